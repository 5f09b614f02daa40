// SPDX-License-Identifier: GPL-2.0

//! The code of an ELF file: segments, sections, entry.

use crate::Error;
use flate2::read::ZlibDecoder;
use object::elf::{EM_AARCH64, EM_X86_64, PF_X};
use object::read::elf::{ElfFile64, FileHeader};
use object::{
    CompressionFormat, FileKind, LittleEndian, Object, ObjectSection, ObjectSegment, ObjectSymbol,
    SegmentFlags,
};
use rtrace_unwind::processor::Processor;
use std::borrow::Cow;
use std::io::Read;

/// Maximum size of a section after decompression: a multiple of the compressed size, plus a constant.
const EXPANSION: u64 = 64;
const EXPANSION_ROOM: u64 = 64 << 10;

/// An executable segment.
#[derive(Clone, Copy, Debug)]
pub struct CodeSegment {
    /// Address of the first byte.
    pub address: u64,
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// Number of bytes in the file.
    pub size: u64,
}

impl CodeSegment {
    /// The address after the last byte.
    pub fn end(&self) -> u64 {
        self.address + self.size
    }
}

/// The contents of a section.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// Address of the first byte.
    pub address: u64,
    /// The bytes.
    pub bytes: Cow<'a, [u8]>,
}

impl Section<'_> {
    /// The bytes from an address on.
    pub fn bytes_at(&self, address: u64) -> Option<&[u8]> {
        let inside = address.checked_sub(self.address)?;
        self.bytes.get(usize::try_from(inside).ok()?..)
    }

    /// The instruction of arm64 at an address.
    pub fn instruction(&self, address: u64) -> Option<u32> {
        let bytes = self.bytes_at(address)?.first_chunk();
        bytes.map(|bytes| u32::from_le_bytes(*bytes))
    }
}

/// The code of an ELF file, and the sections that describe it.
#[derive(Debug)]
pub struct ElfCode<'a> {
    /// The processor.
    pub processor: Processor,
    /// The executable segments by address. They overlap neither in memory nor in the file.
    pub segments: Vec<CodeSegment>,
    /// Address of the first instruction of a program.
    pub entry: u64,
    file: ElfFile64<'a, LittleEndian>,
}

impl<'a> ElfCode<'a> {
    /// Parses the headers.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        match FileKind::parse(bytes).map_err(Error::Elf)? {
            FileKind::Elf32 => return Err(Error::Bits),
            FileKind::Elf64 => {}
            // The error of another kind of file.
            _ => {}
        }
        let file = ElfFile64::<LittleEndian>::parse(bytes).map_err(Error::Elf)?;
        let machine = file.elf_header().e_machine(LittleEndian);
        let processor = match machine {
            EM_X86_64 => Processor::X86_64,
            EM_AARCH64 => Processor::Arm64,
            _ => return Err(Error::Processor),
        };
        Ok(Self {
            processor,
            segments: segments(&file, bytes.len() as u64),
            entry: file.entry(),
            file,
        })
    }

    /// The section of this name, if it has bytes in the file. Decompresses it.
    pub fn section(&self, name: &'static str) -> Result<Option<Section<'a>>, Error> {
        let Some(section) = self.file.section_by_name(name) else {
            return Ok(None);
        };
        let wrong = |why: String| Error::Section { name, why };
        let data = section.compressed_data();
        let data = data.map_err(|error| wrong(error.to_string()))?;
        let bytes = match data.format {
            CompressionFormat::None => Cow::Borrowed(data.data),
            CompressionFormat::Zlib => {
                let limit = (data.data.len() as u64)
                    .saturating_mul(EXPANSION)
                    .saturating_add(EXPANSION_ROOM);
                if data.uncompressed_size > limit {
                    return Err(wrong("it is too large".to_owned()));
                }
                let mut bytes = Vec::new();
                let mut decoder = ZlibDecoder::new(data.data).take(data.uncompressed_size);
                let read = decoder.read_to_end(&mut bytes);
                read.map_err(|error| wrong(error.to_string()))?;
                Cow::Owned(bytes)
            }
            _ => return Err(wrong("unknown compression".to_owned())),
        };
        let address = section.address();
        Ok((!bytes.is_empty()).then_some(Section { address, bytes }))
    }

    /// Address of the section of this name; 0 if it does not exist.
    pub fn address_of(&self, name: &str) -> u64 {
        let section = self.file.section_by_name(name);
        section.map_or(0, |section| section.address())
    }

    /// Address of the exported function of this name.
    pub fn exported(&self, name: &str) -> Option<u64> {
        let mut symbols = self.file.dynamic_symbols();
        let found = symbols.find(|symbol| symbol.name_bytes() == Ok(name.as_bytes()));
        found.map(|symbol| symbol.address())
    }

    /// Addresses of all exported functions.
    pub fn all_exported(&self) -> impl Iterator<Item = u64> + '_ {
        let symbols = self.file.dynamic_symbols();
        let functions = symbols.filter(|symbol| symbol.is_definition());
        functions.map(|symbol| symbol.address())
    }
}

/// The executable segments of a file of this many bytes.
fn segments(file: &ElfFile64<'_, LittleEndian>, len: u64) -> Vec<CodeSegment> {
    let mut all: Vec<_> = file
        .segments()
        .filter(|segment| {
            matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & PF_X != 0)
        })
        .filter_map(|segment| {
            let (offset, size) = segment.file_range();
            let size = size.min(len.checked_sub(offset)?);
            let address = segment.address();
            address.checked_add(size)?;
            (size > 0).then_some(CodeSegment {
                address,
                offset,
                size,
            })
        })
        .collect();
    // Of segments that overlap, the first one counts. Valid files have none.
    let mut end = 0;
    all.sort_by_key(|segment| segment.offset);
    all.retain(|segment| keep(segment.offset, segment.size, &mut end));
    end = 0;
    all.sort_by_key(|segment| segment.address);
    all.retain(|segment| keep(segment.address, segment.size, &mut end));
    all
}

/// Whether a range does not begin before `end`, which is then the end of the range.
fn keep(begin: u64, size: u64, end: &mut u64) -> bool {
    let is_free = begin >= *end;
    if is_free {
        *end = begin.saturating_add(size);
    }
    is_free
}
