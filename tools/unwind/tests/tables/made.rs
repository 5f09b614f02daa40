// SPDX-License-Identifier: GPL-2.0

//! ELF files made of segments, sections and call frame information.

/// Machines of ELF.
pub const X86_64: u16 = 62;
pub const ARM64: u16 = 183;

/// An ELF file with 64-bit headers.
pub struct Elf {
    pub machine: u16,
    pub entry: u64,
    /// Executable segments: address, offset, size.
    pub segments: Vec<(u64, u64, u64)>,
    /// Sections: name, flags, address, offset, contents.
    pub sections: Vec<(&'static str, u64, u64, u64, Vec<u8>)>,
    /// Exported functions: name, address.
    pub exports: Vec<(&'static str, u64)>,
}

/// Section flags.
pub const ALLOC: u64 = 2;
pub const COMPRESSED: u64 = 0x800;

/// Section types.
const PROGBITS: u32 = 1;
const STRTAB: u32 = 3;
const DYNSYM: u32 = 11;

impl Elf {
    /// The file: headers, sections at their offsets, names, section headers.
    pub fn bytes(&self) -> Vec<u8> {
        let mut all = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let put = |all: &mut Vec<u8>, at: usize, bytes: &[u8]| {
            all.resize(all.len().max(at + bytes.len()), 0);
            all[at..at + bytes.len()].copy_from_slice(bytes);
        };
        let mut names = vec![0];
        let mut headers = vec![0; 64];
        let mut header = |names: &mut Vec<u8>, name: &str, kind: u32, numbers: [u64; 4]| {
            let [flags, address, offset, size] = numbers;
            // The names of symbols are in the last section.
            let (link, entry) = match kind {
                DYNSYM => (self.sections.len() as u64 + 2, 24),
                _ => (0, 0),
            };
            headers.extend((names.len() as u32).to_le_bytes());
            headers.extend(kind.to_le_bytes());
            for number in [flags, address, offset, size, link, 1, entry] {
                headers.extend(u64::to_le_bytes(number));
            }
            names.extend(name.bytes().chain([0]));
        };
        for (name, flags, address, offset, contents) in &self.sections {
            put(&mut all, *offset as usize, contents);
            let numbers = [*flags, *address, *offset, contents.len() as u64];
            header(&mut names, name, PROGBITS, numbers);
        }
        for (_, offset, size) in &self.segments {
            // A segment may be larger than its file.
            put(
                &mut all,
                offset.saturating_add(*size).min(0x4000) as usize,
                &[],
            );
        }
        let mut symbols = vec![0; 24];
        for (name, address) in &self.exports {
            symbols.extend((names.len() as u32).to_le_bytes());
            // A global function of the first section.
            symbols.extend([0x12, 0, 1, 0]);
            symbols.extend(address.to_le_bytes());
            symbols.extend(4_u64.to_le_bytes());
            names.extend(name.bytes().chain([0]));
        }
        let at = all.len().next_multiple_of(8) as u64;
        put(&mut all, at as usize, &symbols);
        let numbers = [ALLOC, 0, at, symbols.len() as u64];
        header(&mut names, ".dynsym", DYNSYM, numbers);
        let at = all.len().next_multiple_of(8);
        let length = names.len() + ".shstrtab".len() + 1;
        header(
            &mut names,
            ".shstrtab",
            STRTAB,
            [0, 0, at as u64, length as u64],
        );
        put(&mut all, at, &names);
        let table = all.len().next_multiple_of(8);
        put(&mut all, table, &headers);

        let mut head = Vec::new();
        head.extend(3_u16.to_le_bytes());
        head.extend(self.machine.to_le_bytes());
        head.extend(1_u32.to_le_bytes());
        for number in [self.entry, 64, table as u64] {
            head.extend(number.to_le_bytes());
        }
        head.extend(0_u32.to_le_bytes());
        let sections = self.sections.len() as u16 + 3;
        for number in [
            64,
            56,
            self.segments.len() as u16,
            64,
            sections,
            sections - 1,
        ] {
            head.extend(number.to_le_bytes());
        }
        for (address, offset, size) in &self.segments {
            head.extend(1_u32.to_le_bytes());
            head.extend(5_u32.to_le_bytes());
            for number in [*offset, *address, *address, *size, *size, 0x1000] {
                head.extend(number.to_le_bytes());
            }
        }
        put(&mut all, 16, &head);
        all
    }
}

/// A function of `.debug_frame` or `.eh_frame`: address, size, instructions.
pub type Made<'a> = (u64, u64, &'a [u8]);

/// A section of call frame information for these functions, after a common entry with these instructions.
pub fn frame(is_eh: bool, machine: u16, common: &[u8], functions: &[Made<'_>]) -> Vec<u8> {
    let mut all = Vec::new();
    let entry = |all: &mut Vec<u8>, mut body: Vec<u8>| {
        // Padded by DW_CFA_nop.
        body.resize(body.len().next_multiple_of(4), 0);
        all.extend((body.len() as u32).to_le_bytes());
        all.extend(body);
    };
    let mut body = if is_eh { [0; 4] } else { [0xff; 4] }.to_vec();
    let return_address = if machine == ARM64 { 30 } else { 16 };
    // Version, augmentation, factors of code and data (-8), return address. Pointers are absolute.
    body.extend([1, 0, 1, 0x78, return_address]);
    body.extend(common);
    entry(&mut all, body);
    for (address, size, instructions) in functions {
        let common = if is_eh { all.len() as u32 + 4 } else { 0 };
        let mut body = common.to_le_bytes().to_vec();
        body.extend(address.to_le_bytes());
        body.extend(size.to_le_bytes());
        body.extend(*instructions);
        entry(&mut all, body);
    }
    all
}
