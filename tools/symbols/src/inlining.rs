// SPDX-License-Identifier: GPL-2.0

//! Functions that the compiler has inlined, from the debug information (DWARF) of a file.
//!
//! A unit of the debug information is read when an address of its code is looked up for the first time. The file may be
//! of unknown origin: all work is bounded by the size of its sections, and what cannot be read has no inlined functions.

use super::contents::Contents;
use super::demangle::demangled;
use flate2::read::ZlibDecoder;
use gimli::{
    AttributeValue, DebugInfoOffset, DwAt, DwarfSections, EndianSlice, RunTimeEndian, SectionId,
};
use object::{CompressionFormat, Object, ObjectSection};
use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;
use terminal::printable;

/// The sections that are read.
const SECTIONS: [SectionId; 9] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// The attributes with a function's name, the one with the path of its modules first.
const NAMES: [DwAt; 3] = [
    gimli::DW_AT_linkage_name,
    gimli::DW_AT_MIPS_linkage_name,
    gimli::DW_AT_name,
];

/// The attributes that lead to the entry with the name.
const ORIGINS: [DwAt; 2] = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification];

/// The maximum number of entries that lead to a name.
pub(crate) const MOST_ORIGINS: usize = 8;

/// The maximum number of bytes of all names of a file.
const MOST_NAMES: usize = 64 << 20;

/// The contents of a file.
type Elf<'a> = object::File<'a, &'a Contents>;

pub(crate) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;
pub(crate) type Dwarf<'a> = gimli::Dwarf<Slice<'a>>;
pub(crate) type Unit<'a> = gimli::Unit<Slice<'a>>;
pub(crate) type Entry<'a, 'u, 's> = gimli::DebuggingInformationEntry<'a, 'u, Slice<'s>>;

/// A part of a file that is mapped at an address.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub address: u64,
    pub offset: u64,
    pub size: u64,
}

/// The inlined functions of a file.
#[derive(Debug)]
pub struct Inlining {
    information: Information,
    /// The answers so far, by offset in the file.
    known: HashMap<u64, Vec<String>>,
}

/// The debug information of a file.
#[derive(Debug)]
struct Information {
    sections: DwarfSections<Vec<u8>>,
    endian: RunTimeEndian,
    segments: Vec<Segment>,
    /// Where each unit starts, in order.
    starts: Vec<DebugInfoOffset>,
    /// The code of the inlined functions of each unit. [`None`]: not read yet.
    units: Vec<Option<Code>>,
    /// The addresses of units, sorted, each with the index of the unit.
    ranges: Vec<(Range<u64>, usize)>,
    names: Names,
}

/// The code of inlined functions, sorted by its begin.
#[derive(Debug, Default)]
struct Code {
    pieces: Vec<Piece>,
    /// For each piece, the largest end up to it.
    ends: Vec<u64>,
}

/// Consecutive code of an inlined function.
#[derive(Debug)]
struct Piece {
    range: Range<u64>,
    /// The number of inlined functions around it.
    depth: usize,
    /// The index of its name.
    name: usize,
}

/// The debug information of a file, as it is read.
struct Source<'a> {
    dwarf: Dwarf<'a>,
    starts: &'a [DebugInfoOffset],
}

/// The names of functions, each once.
#[derive(Debug, Default)]
struct Names {
    names: Vec<String>,
    bytes: usize,
    /// By the entry with the function.
    places: HashMap<DebugInfoOffset, Option<usize>>,
}

impl Segment {
    /// The address of an offset in the file.
    fn address(&self, offset: u64) -> Option<u64> {
        let inside = offset.checked_sub(self.offset)?;
        (inside < self.size).then_some(self.address.wrapping_add(inside))
    }
}

impl Inlining {
    /// The inlined functions in the debug information of `elf`. The code is in a file with these segments. [`None`]:
    /// there is no debug information.
    pub fn of(contents: &Contents, elf: &Elf<'_>, segments: &[Segment]) -> Option<Self> {
        elf.section_by_name(SectionId::DebugInfo.name())?;
        let load = |id: SectionId| {
            let is_read = SECTIONS.contains(&id);
            let bytes = is_read.then(|| section(contents, elf, id.name()));
            Ok::<_, ()>(bytes.flatten().unwrap_or_default())
        };
        let endian = match elf.is_little_endian() {
            true => RunTimeEndian::Little,
            false => RunTimeEndian::Big,
        };
        let mut information = Information {
            sections: DwarfSections::load(load).ok()?,
            endian,
            segments: segments.to_vec(),
            starts: Vec::new(),
            units: Vec::new(),
            ranges: Vec::new(),
            names: Names::default(),
        };
        information.find_units();
        let known = HashMap::new();
        (!information.ranges.is_empty()).then_some(Self { information, known })
    }

    /// The functions that are inlined at an offset of the file, the innermost first. The function that contains them is
    /// not among them.
    pub fn at(&mut self, offset: u64) -> &[String] {
        let find = || self.information.find(offset).unwrap_or_default();
        self.known.entry(offset).or_insert_with(find)
    }
}

impl Information {
    /// Finds the units, and the addresses of each.
    fn find_units(&mut self) {
        let dwarf = dwarf(&self.sections, self.endian);
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Some(offset) = header.offset().as_debug_info_offset() else {
                continue;
            };
            let number = self.starts.len();
            self.starts.push(offset);
            let Ok(unit) = dwarf.unit(header) else {
                continue;
            };
            let Ok(mut ranges) = dwarf.unit_ranges(&unit) else {
                continue;
            };
            while let Ok(Some(range)) = ranges.next() {
                self.ranges
                    .extend(code_of(range).map(|range| (range, number)));
            }
        }
        self.ranges.sort_by_key(|(range, _)| range.start);
        self.units.resize_with(self.starts.len(), || None);
    }

    fn find(&mut self, offset: u64) -> Option<Vec<String>> {
        let mut addresses = self.segments.iter().filter_map(|s| s.address(offset));
        let address = addresses.next()?;
        let after = self
            .ranges
            .partition_point(|(range, _)| range.start <= address);
        let (range, number) = self.ranges.get(after.checked_sub(1)?)?;
        if !range.contains(&address) {
            return None;
        }
        let unit = self.units.get_mut(*number)?;
        let code = match unit {
            Some(code) => code,
            None => {
                let source = Source {
                    dwarf: dwarf(&self.sections, self.endian),
                    starts: &self.starts,
                };
                let mut pieces = Vec::new();
                // A damaged unit lacks the rest of its inlined functions.
                let start = *self.starts.get(*number)?;
                let _ = source.read(start, &mut self.names, &mut pieces);
                unit.insert(Code::new(pieces))
            }
        };
        let names = code.at(address).into_iter();
        let names = names.filter_map(|name| self.names.names.get(name).cloned());
        Some(names.collect())
    }
}

impl Code {
    fn new(mut pieces: Vec<Piece>) -> Self {
        pieces.sort_by_key(|piece| piece.range.start);
        let mut last = 0;
        let ends = pieces.iter().map(|piece| {
            last = piece.range.end.max(last);
            last
        });
        let ends = ends.collect();
        Self { pieces, ends }
    }

    /// The names of the functions at an address, the innermost first.
    fn at(&self, address: u64) -> Vec<usize> {
        let after = self
            .pieces
            .partition_point(|piece| piece.range.start <= address);
        let before = self.pieces.iter().zip(&self.ends).take(after).rev();
        let near = before.take_while(|(_, last)| **last > address);
        let mut found: Vec<_> = near
            .map(|(piece, _)| piece)
            .filter(|piece| piece.range.contains(&address))
            .collect();
        found.sort_by_key(|piece| std::cmp::Reverse(piece.depth));
        found.into_iter().map(|piece| piece.name).collect()
    }
}

pub(crate) fn dwarf(sections: &DwarfSections<Vec<u8>>, endian: RunTimeEndian) -> Dwarf<'_> {
    sections.borrow(|bytes| EndianSlice::new(bytes, endian))
}

/// The bytes of a section, decompressed.
pub(crate) fn section(contents: &Contents, elf: &Elf<'_>, name: &str) -> Option<Vec<u8>> {
    let data = elf.section_by_name(name)?.compressed_data().ok()?;
    contents.spend(data.uncompressed_size)?;
    match data.format {
        CompressionFormat::None => Some(data.data.to_vec()),
        CompressionFormat::Zlib => {
            let mut bytes = Vec::new();
            let mut decoder = ZlibDecoder::new(data.data).take(data.uncompressed_size);
            decoder.read_to_end(&mut bytes).ok()?;
            Some(bytes)
        }
        _ => None,
    }
}

/// The addresses of a range. [`None`]: it is empty, or of code that the linker has left out.
pub(crate) fn code_of(range: gimli::Range) -> Option<Range<u64>> {
    (0 < range.begin && range.begin < range.end).then_some(range.begin..range.end)
}

impl<'a> Source<'a> {
    fn unit(&self, start: DebugInfoOffset) -> gimli::Result<Unit<'a>> {
        let header = self.dwarf.debug_info.header_from_offset(start)?;
        self.dwarf.unit(header)
    }

    /// Reads the code of the inlined functions of a unit.
    fn read(
        &self,
        start: DebugInfoOffset,
        names: &mut Names,
        pieces: &mut Vec<Piece>,
    ) -> gimli::Result<()> {
        let unit = self.unit(start)?;
        let mut entries = unit.entries();
        // Levels of the entry, and of the inlined functions that contain it.
        let (mut level, mut around) = (0_isize, Vec::new());
        while let Some((delta, entry)) = entries.next_dfs()? {
            level = level.saturating_add(delta);
            while around.last().is_some_and(|outer| *outer >= level) {
                around.pop();
            }
            if entry.tag() != gimli::DW_TAG_inlined_subroutine {
                continue;
            }
            let depth = around.len();
            around.push(level);
            let Some(place) = origin(&unit, entry)? else {
                continue;
            };
            let Some(name) = names.index(place, || self.name(place).ok().flatten()) else {
                continue;
            };
            let mut ranges = self.dwarf.die_ranges(&unit, entry)?;
            while let Some(range) = ranges.next()? {
                let range = code_of(range);
                pieces.extend(range.map(|range| Piece { range, depth, name }));
            }
        }
        Ok(())
    }

    /// The name of the function that an entry describes.
    fn name(&self, mut place: DebugInfoOffset) -> gimli::Result<Option<String>> {
        for _ in 0..MOST_ORIGINS {
            let after = self.starts.partition_point(|start| *start <= place);
            let Some(start) = after.checked_sub(1) else {
                return Ok(None);
            };
            let unit = self.unit(self.starts[start])?;
            let Some(inside) = place.to_unit_offset(&unit.header) else {
                return Ok(None);
            };
            let entry = unit.entry(inside)?;
            for attribute in NAMES {
                if let Some(value) = entry.attr_value(attribute)? {
                    let text = self.dwarf.attr_string(&unit, value)?;
                    return Ok(Some(printable(&demangled(&text.to_string_lossy()))));
                }
            }
            match origin(&unit, &entry)? {
                Some(next) => place = next,
                None => return Ok(None),
            }
        }
        Ok(None)
    }
}

/// The entry to which an entry refers for what it does not say itself.
pub(crate) fn origin(
    unit: &Unit<'_>,
    entry: &Entry<'_, '_, '_>,
) -> gimli::Result<Option<DebugInfoOffset>> {
    for attribute in ORIGINS {
        match entry.attr_value(attribute)? {
            Some(AttributeValue::UnitRef(offset)) => {
                return Ok(offset.to_debug_info_offset(&unit.header));
            }
            Some(AttributeValue::DebugInfoRef(offset)) => return Ok(Some(offset)),
            _ => {}
        }
    }
    Ok(None)
}

impl Names {
    /// The index of the name of the function that the entry at `place` describes. `name` reads it.
    fn index(
        &mut self,
        place: DebugInfoOffset,
        name: impl FnOnce() -> Option<String>,
    ) -> Option<usize> {
        if let Some(known) = self.places.get(&place) {
            return *known;
        }
        let name = name().filter(|name| self.bytes + name.len() <= MOST_NAMES);
        let index = name.map(|name| {
            self.bytes += name.len();
            self.names.push(name);
            self.names.len() - 1
        });
        self.places.insert(place, index);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf;
    use crate::mappings::MappedFile;
    use std::collections::HashSet;
    use std::fs::File;
    use std::process::Command;

    fn code(pieces: &[(u64, u64, usize, usize)]) -> Code {
        let piece = |&(begin, end, depth, name)| Piece {
            range: begin..end,
            depth,
            name,
        };
        Code::new(pieces.iter().map(piece).collect())
    }

    #[test]
    fn the_innermost_function_is_first() {
        let code = code(&[
            (0x10, 0x80, 0, 1),
            (0x20, 0x30, 1, 2),
            (0x24, 0x28, 2, 3),
            (0x40, 0x50, 1, 4),
            (0x90, 0xa0, 0, 5),
        ]);
        for (address, expected) in [
            (0xf, &[][..]),
            (0x10, &[1]),
            (0x25, &[3, 2, 1]),
            (0x28, &[2, 1]),
            (0x44, &[4, 1]),
            (0x7f, &[1]),
            (0x80, &[]),
            (0x9f, &[5]),
        ] {
            assert_eq!(code.at(address), expected, "{address:#x}");
        }
    }
    /// `middle` is inlined twice in `outer`, and has `inner` inlined.
    const PROGRAM: &str = "\
        int step(int);\n\
        static inline __attribute__((always_inline)) int inner(int n) { return step(n) * 7; }\n\
        static inline __attribute__((always_inline)) int middle(int n) { return inner(n) + step(n ^ 5); }\n\
        int outer(int n) { return middle(n) + middle(n * 3); }\n\
        __attribute__((noinline)) int step(int n) { asm volatile(\"\" : \"+r\"(n)); return n; }\n\
        int main() { return outer(1); }\n";

    #[test]
    fn inlined_functions_are_those_of_the_debug_information() {
        let dir = tempfile::tempdir().unwrap();
        let (source, program) = (dir.path().join("a.c"), dir.path().join("a"));
        std::fs::write(&source, PROGRAM).unwrap();
        for options in [&["-gdwarf-5"][..], &["-gdwarf-4"], &["-g", "-gz=zlib"]] {
            let mut compiler = Command::new("gcc");
            compiler.args(["-O2", "-o"]).arg(&program).args(options);
            let compiled = compiler.arg(&source).status();
            if !compiled.is_ok_and(|status| status.success()) {
                return synthetic::skip("no gcc here");
            }
            let file = MappedFile {
                path: program.to_str().unwrap().to_owned(),
                id: None,
            };
            let opened = File::open(&program).unwrap();
            let found = elf::program(opened, &file, None).unwrap();
            let mut inlining = found.inlining.unwrap();
            let mut functions = found.functions.iter();
            let outer = functions.find(|function| function.name == "outer").unwrap();
            let offsets = outer.offset..outer.offset + outer.size;
            let all: HashSet<_> = offsets
                .map(|offset| inlining.at(offset).join(" "))
                .collect();
            assert!(all.contains("inner middle"), "{options:?}: {all:?}");
            assert!(
                all.contains("middle") && all.contains(""),
                "{options:?}: {all:?}"
            );
            assert_eq!(all.len(), 3, "{options:?}: {all:?}");
            assert!(inlining.at(u64::MAX).is_empty());
        }
    }
}
