// SPDX-License-Identifier: GPL-2.0

//! The entries of a file's procedure linkage table (PLT). A program calls a function of a library through such an entry.
//!
//! An entry jumps to the address in a slot of the global offset table. The relocation of the slot has the name of the
//! function. Only entries for x86-64 are known.

use super::contents::Contents;
use object::{Architecture, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, SymbolIndex};
use std::collections::HashMap;

/// The sections with entries. With indirect branch tracking, calls go to `.plt.sec`.
const SECTIONS: [&str; 3] = [".plt", ".plt.got", ".plt.sec"];

/// The sections with relocations. An entry may have the number of its relocation in the first one.
const RELOCATIONS: [&str; 2] = [".rela.plt", ".rela.dyn"];

/// The number of bytes of a relocation: address, type and symbol, addend.
const RELOCATION: usize = 24;

/// The types of relocations of slots: `R_X86_64_GLOB_DAT` and `R_X86_64_JUMP_SLOT`.
const SLOTS: [u64; 2] = [6, 7];

/// The largest number of bytes of an entry.
const ENTRY: usize = 16;

/// The begin of an entry that only resolves its function: `endbr64; push NUMBER`.
const RESOLVES: [u8; 5] = [0xf3, 0x0f, 0x1e, 0xfa, 0x68];

/// The contents of a file.
type Elf<'a> = object::File<'a, &'a Contents>;

/// An entry.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    pub address: u64,
    pub size: u64,
    /// The name of the function, as the linker knows it.
    pub name: String,
}

/// The entries of a file whose functions have names.
pub fn entries(elf: &Elf<'_>) -> Vec<Entry> {
    if elf.architecture() != Architecture::X86_64 {
        return Vec::new();
    }
    let [first, other] = RELOCATIONS.map(|name| relocations(elf, name));
    let slots = first.iter().chain(&other);
    let slots = slots.filter(|relocation| SLOTS.contains(&relocation.ty));
    let slots = slots.map(|relocation| (relocation.address, relocation.symbol));
    let slots: HashMap<u64, u64> = slots.collect();
    let found = |section: object::Section<'_, '_, _>| {
        let bytes = section.data().unwrap_or_default();
        let symbols = in_section(section.address(), bytes, |jump| match jump {
            Jump::Slot(slot) => slots.get(&slot).copied(),
            Jump::Number(number) => Some(first.get(number)?.symbol),
        });
        let end = section.address().saturating_add(bytes.len() as u64);
        let next = symbols.iter().skip(1).map(|(address, _)| *address);
        let next: Vec<_> = next.chain([end]).collect();
        symbols
            .into_iter()
            .zip(next)
            .map(|((address, symbol), next)| (address, next - address, symbol))
            .collect::<Vec<_>>()
    };
    let sections = SECTIONS.iter().filter_map(|name| elf.section_by_name(name));
    let Some(names) = elf.dynamic_symbol_table() else {
        return Vec::new();
    };
    let entry = |(address, size, symbol): (u64, u64, u64)| {
        let index = SymbolIndex(usize::try_from(symbol).ok().filter(|index| *index > 0)?);
        let symbol = names.symbol_by_index(index).ok()?;
        let name = symbol.name().ok().filter(|name| !name.is_empty())?;
        Some(Entry {
            address,
            size: size.min(ENTRY as u64),
            name: name.to_owned(),
        })
    };
    sections.flat_map(found).filter_map(entry).collect()
}

struct Relocation {
    address: u64,
    ty: u64,
    symbol: u64,
}

fn relocations(elf: &Elf<'_>, section: &str) -> Vec<Relocation> {
    let section = elf.section_by_name(section);
    let bytes = section.and_then(|section| section.data().ok());
    let relocations = bytes.unwrap_or_default().chunks_exact(RELOCATION);
    let word = |bytes: &[u8], at: usize| {
        let bytes = bytes[at..at + 8].iter().rev();
        bytes.fold(0, |word, byte| (word << 8) | u64::from(*byte))
    };
    relocations
        .map(|relocation| Relocation {
            address: word(relocation, 0),
            ty: word(relocation, 8) & u64::from(u32::MAX),
            symbol: word(relocation, 8) >> 32,
        })
        .collect()
}

/// The way in which an entry finds its function.
#[derive(Debug, PartialEq, Eq)]
enum Jump {
    /// The address of its slot.
    Slot(u64),
    /// The number of its relocation.
    Number(usize),
}

/// Address and symbol of the entries in a section.
fn in_section(begin: u64, bytes: &[u8], symbol: impl Fn(Jump) -> Option<u64>) -> Vec<(u64, u64)> {
    // An entry has 8 or 16 bytes, and its jump begins in the first 8.
    let places = (0..bytes.len()).step_by(ENTRY / 2);
    let found = |place: usize| {
        let address = begin.wrapping_add(place as u64);
        let bytes = &bytes[place..];
        let number = |at: usize| {
            let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
            Some(i32::from_le_bytes(bytes))
        };
        if bytes.starts_with(&RESOLVES) {
            let number = usize::try_from(number(RESOLVES.len())?).ok()?;
            return Some((address, symbol(Jump::Number(number))?));
        }
        let jump = bytes.windows(2).take(ENTRY / 2);
        let jump = jump.enumerate().find(|(_, bytes)| *bytes == [0xff, 0x25]);
        let distance_at = jump?.0 + 2;
        let next = address.wrapping_add(distance_at as u64 + 4);
        let slot = next.wrapping_add_signed(number(distance_at)?.into());
        Some((address, symbol(Jump::Slot(slot))?))
    };
    places.filter_map(found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The symbols are the slots and, after 0x100, the numbers.
    fn found(bytes: &[u8]) -> Vec<(u64, u64)> {
        in_section(0x1000, bytes, |jump| match jump {
            Jump::Slot(slot) => (slot != 0x3010).then_some(slot),
            Jump::Number(number) => Some(0x100 + number as u64),
        })
    }

    #[test]
    fn a_jump_has_the_address_of_its_slot() {
        // push 0x3008(%rip); jmp *0x3010(%rip): the start of a table has no function.
        let mut plt = vec![0xff, 0x35, 0x02, 0x20, 0, 0, 0xff, 0x25, 0x04, 0x20, 0, 0];
        plt.extend([0x0f, 0x1f, 0x40, 0]);
        // jmp *0x3018(%rip); push 0; jmp 0x1000
        plt.extend([0xff, 0x25, 0x02, 0x20, 0, 0, 0x68, 0, 0, 0, 0]);
        plt.extend([0xe9, 0xe0, 0xff, 0xff, 0xff]);
        assert_eq!(found(&plt), [(0x1010, 0x3018)]);
        // jmp *0x2000(%rip); nop, twice
        let got = [0xff, 0x25, 0xfa, 0x0f, 0, 0, 0x66, 0x90].repeat(2);
        assert_eq!(found(&got), [(0x1000, 0x2000), (0x1008, 0x2008)]);
        // endbr64; bnd jmp *0x2000(%rip)
        let sec = [
            0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xf5, 0x0f, 0, 0, 0x0f, 0x1f, 0x44, 0, 0,
        ];
        assert_eq!(found(&sec), [(0x1000, 0x2000)]);
        // endbr64; push 7; bnd jmp
        let plt = [
            0xf3, 0x0f, 0x1e, 0xfa, 0x68, 7, 0, 0, 0, 0xf2, 0xe9, 0, 0, 0, 0, 0x90,
        ];
        assert_eq!(found(&plt), [(0x1000, 0x107)]);
        for len in 0..plt.len() {
            found(&plt[..len]);
            found(&sec[..len]);
        }
    }
}
