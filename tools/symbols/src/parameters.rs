// SPDX-License-Identifier: GPL-2.0

//! The parameters of a program's function, from its debug information (DWARF): their names, types and places.

use super::contents::Contents;
use super::elf::{self, Elf};
use super::inlining::{code_of, dwarf, origin, section, Dwarf, Entry, Slice, Unit, MOST_ORIGINS};
use gimli::{
    AttributeValue, DebugInfoOffset, DwAt, DwarfSections, Operation, RunTimeEndian, SectionId,
};
use object::Object;
use std::path::Path;

/// The sections that are read.
const SECTIONS: [SectionId; 11] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// The maximum number of types that lead to a type without a name.
const MOST_TYPES: usize = 32;

/// The maximum number of parameters.
const MOST_PARAMETERS: usize = 256;

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: ParameterType,
    /// The register, by its number in DWARF, that has the value at the function's first instruction. [`None`]: the
    /// debug information does not say it.
    pub register: Option<u16>,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterType {
    /// A number of this many bytes.
    Number {
        /// Its size.
        bytes: u64,
        /// Whether it is signed.
        is_signed: bool,
    },
    /// A pointer to characters.
    Text,
    /// A pointer or reference to something else.
    Pointer,
    /// A number with a fraction.
    Float,
    /// Another type.
    Other,
}

/// A function in the debug information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prototype {
    /// The parameters, in their order.
    pub parameters: Vec<Parameter>,
    /// Whether the result is a structure, whose address may be an argument before the parameters.
    pub returns_structure: bool,
}

/// The prototype of the function that begins at `address` in the file `path`. [`None`]: there is no debug information
/// about the function.
pub fn prototype(path: &Path, address: u64) -> Option<Prototype> {
    let find = |contents: &Contents, elf: &Elf<'_>| in_file(contents, elf, address);
    elf::in_debug_information(path, find)
}

fn in_file(contents: &Contents, elf: &Elf<'_>, address: u64) -> Option<Prototype> {
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
    let sections = DwarfSections::load(load).ok()?;
    let source = Source::new(dwarf(&sections, endian));
    // A damaged unit has no functions.
    let mut found = source.starts.iter().filter_map(|start| {
        let unit = source.unit(*start).ok()?;
        source.in_unit(&unit, address).ok()?
    });
    found.next()
}

/// The debug information of a file.
struct Source<'a> {
    dwarf: Dwarf<'a>,
    /// Where each unit starts, in order.
    starts: Vec<DebugInfoOffset>,
}

impl<'a> Source<'a> {
    fn new(dwarf: Dwarf<'a>) -> Self {
        let mut starts = Vec::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            starts.extend(header.offset().as_debug_info_offset());
        }
        Self { dwarf, starts }
    }

    fn unit(&self, start: DebugInfoOffset) -> gimli::Result<Unit<'a>> {
        let header = self.dwarf.debug_info.header_from_offset(start)?;
        self.dwarf.unit(header)
    }

    /// The function at `address`, if the unit has it.
    fn in_unit(&self, unit: &Unit<'a>, address: u64) -> gimli::Result<Option<Prototype>> {
        let mut ranges = self.dwarf.unit_ranges(unit)?;
        let mut has_it = false;
        while let Some(range) = ranges.next()? {
            has_it |= code_of(range).is_some_and(|range| range.contains(&address));
        }
        if !has_it {
            return Ok(None);
        }
        let mut entries = unit.entries();
        let mut level = 0_isize;
        // The level of the function, once it was found.
        let mut function = None;
        let mut found = Prototype {
            parameters: Vec::new(),
            returns_structure: false,
        };
        while let Some((delta, entry)) = entries.next_dfs()? {
            level = level.saturating_add(delta);
            match function {
                Some(above) if level <= above => break,
                // The parameters of functions and blocks inside the function are below them.
                Some(above) => {
                    let is_own = level == above.saturating_add(1);
                    let is_parameter = entry.tag() == gimli::DW_TAG_formal_parameter;
                    if is_own && is_parameter && found.parameters.len() < MOST_PARAMETERS {
                        found.parameters.push(self.parameter(unit, entry, address)?);
                    }
                }
                None if entry.tag() == gimli::DW_TAG_subprogram => {
                    let begin = match entry.attr_value(gimli::DW_AT_low_pc)? {
                        Some(value) => self.dwarf.attr_address(unit, value)?,
                        None => None,
                    };
                    if begin == Some(address) {
                        function = Some(level);
                        let result = self.inherited_type(unit, entry)?;
                        let result = result.map(|ty| self.bare(ty)).transpose()?.flatten();
                        found.returns_structure = result.is_some_and(|ty| ty.is_structure());
                    }
                }
                None => {}
            }
        }
        Ok(function.map(|_| found))
    }

    fn parameter(
        &self,
        unit: &Unit<'a>,
        entry: &Entry<'_, '_, 'a>,
        address: u64,
    ) -> gimli::Result<Parameter> {
        let name = match self.inherited(unit, entry, gimli::DW_AT_name)? {
            Some((place, value)) => self.read(place, |unit, _| {
                let text = self.dwarf.attr_string(unit, value)?;
                Ok(text.to_string_lossy().into_owned())
            })?,
            None => None,
        };
        let ty = self.inherited_type(unit, entry)?;
        let ty = ty.map(|ty| self.ty(ty)).transpose()?;
        Ok(Parameter {
            name: name.unwrap_or_default(),
            ty: ty.unwrap_or(ParameterType::Other),
            register: self.register(unit, entry, address)?,
        })
    }

    /// The type of a function's result or of a parameter.
    fn inherited_type(
        &self,
        unit: &Unit<'a>,
        entry: &Entry<'_, '_, 'a>,
    ) -> gimli::Result<Option<DebugInfoOffset>> {
        match self.inherited(unit, entry, gimli::DW_AT_type)? {
            Some((place, value)) => self.target(place, value),
            None => Ok(None),
        }
    }

    /// The register that has a parameter at `address`.
    fn register(
        &self,
        unit: &Unit<'a>,
        entry: &Entry<'_, '_, 'a>,
        address: u64,
    ) -> gimli::Result<Option<u16>> {
        let Some(value) = entry.attr_value(gimli::DW_AT_location)? else {
            return Ok(None);
        };
        let mut expression = value.exprloc_value();
        if expression.is_none() {
            let Some(mut places) = self.dwarf.attr_locations(unit, value)? else {
                return Ok(None);
            };
            while let Some(place) = places.next()? {
                if (place.range.begin..place.range.end).contains(&address) {
                    expression = Some(place.data);
                    break;
                }
            }
        }
        let Some(expression) = expression else {
            return Ok(None);
        };
        let mut operations = expression.operations(unit.encoding());
        let first = operations.next()?;
        let is_only = operations.next()?.is_none();
        Ok(match first {
            Some(Operation::Register { register }) if is_only => Some(register.0),
            _ => None,
        })
    }

    /// The unit that has an entry.
    fn unit_of(&self, place: DebugInfoOffset) -> gimli::Result<Option<Unit<'a>>> {
        let after = self.starts.partition_point(|start| *start <= place);
        let start = after
            .checked_sub(1)
            .and_then(|index| self.starts.get(index));
        start.map(|start| self.unit(*start)).transpose()
    }

    /// Reads the entry at `place`. [`None`]: there is none.
    fn read<T>(
        &self,
        place: DebugInfoOffset,
        read: impl FnOnce(&Unit<'a>, &Entry<'_, '_, 'a>) -> gimli::Result<T>,
    ) -> gimli::Result<Option<T>> {
        let Some(unit) = self.unit_of(place)? else {
            return Ok(None);
        };
        let Some(inside) = place.to_unit_offset(&unit.header) else {
            return Ok(None);
        };
        let entry = unit.entry(inside)?;
        read(&unit, &entry).map(Some)
    }

    /// An attribute of an entry, or of an entry to which the entry refers, and the place of that entry.
    fn inherited(
        &self,
        unit: &Unit<'a>,
        entry: &Entry<'_, '_, 'a>,
        attribute: DwAt,
    ) -> gimli::Result<Option<(DebugInfoOffset, AttributeValue<Slice<'a>>)>> {
        let Some(place) = entry.offset().to_debug_info_offset(&unit.header) else {
            return Ok(None);
        };
        if let Some(value) = entry.attr_value(attribute)? {
            return Ok(Some((place, value)));
        }
        let mut next = origin(unit, entry)?;
        for _ in 0..MOST_ORIGINS {
            let Some(place) = next else {
                break;
            };
            let read = self.read(place, |unit, entry| {
                Ok((entry.attr_value(attribute)?, origin(unit, entry)?))
            })?;
            next = match read {
                Some((Some(value), _)) => return Ok(Some((place, value))),
                Some((None, next)) => next,
                None => break,
            };
        }
        Ok(None)
    }

    /// The place to which an attribute of the entry at `place` refers.
    fn target(
        &self,
        place: DebugInfoOffset,
        value: AttributeValue<Slice<'a>>,
    ) -> gimli::Result<Option<DebugInfoOffset>> {
        Ok(match value {
            AttributeValue::UnitRef(offset) => {
                let unit = self.unit_of(place)?;
                unit.and_then(|unit| offset.to_debug_info_offset(&unit.header))
            }
            AttributeValue::DebugInfoRef(offset) => Some(offset),
            _ => None,
        })
    }

    /// The type to which the entry at `place` refers.
    fn type_of(
        &self,
        place: DebugInfoOffset,
        entry: &Entry<'_, '_, 'a>,
    ) -> gimli::Result<Option<DebugInfoOffset>> {
        match entry.attr_value(gimli::DW_AT_type)? {
            Some(value) => self.target(place, value),
            None => Ok(None),
        }
    }

    /// The type at `place`, and the target of a pointer, without names and qualifiers. [`None`]: there is none.
    fn bare(&self, mut place: DebugInfoOffset) -> gimli::Result<Option<Bare>> {
        for _ in 0..MOST_TYPES {
            let read = self.read(place, |_, entry| {
                let bytes = entry.attr_value(gimli::DW_AT_byte_size)?;
                let encoding = match entry.attr_value(gimli::DW_AT_encoding)? {
                    Some(AttributeValue::Encoding(encoding)) => Some(encoding),
                    _ => None,
                };
                Ok(Bare {
                    tag: entry.tag(),
                    bytes: bytes.and_then(|value| value.udata_value()).unwrap_or(0),
                    encoding,
                    target: self.type_of(place, entry)?,
                })
            })?;
            let Some(ty) = read else {
                break;
            };
            match ty.tag {
                gimli::DW_TAG_typedef
                | gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type => match ty.target {
                    Some(target) => place = target,
                    None => break,
                },
                _ => return Ok(Some(ty)),
            }
        }
        Ok(None)
    }

    fn ty(&self, place: DebugInfoOffset) -> gimli::Result<ParameterType> {
        let Some(ty) = self.bare(place)? else {
            return Ok(ParameterType::Other);
        };
        let number = |is_signed| ParameterType::Number {
            bytes: ty.bytes,
            is_signed,
        };
        Ok(match ty.tag {
            gimli::DW_TAG_base_type => match ty.encoding {
                Some(gimli::DW_ATE_float | gimli::DW_ATE_complex_float) => ParameterType::Float,
                Some(gimli::DW_ATE_signed | gimli::DW_ATE_signed_char) => number(true),
                _ => number(false),
            },
            gimli::DW_TAG_enumeration_type => number(false),
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => {
                let target = match ty.target {
                    Some(target) => self.bare(target)?,
                    None => None,
                };
                match target.and_then(|target| target.encoding) {
                    Some(gimli::DW_ATE_signed_char | gimli::DW_ATE_unsigned_char) => {
                        ParameterType::Text
                    }
                    _ => ParameterType::Pointer,
                }
            }
            _ => ParameterType::Other,
        })
    }
}

/// A type without names and qualifiers.
struct Bare {
    tag: gimli::DwTag,
    /// Its size.
    bytes: u64,
    /// The kind of a number.
    encoding: Option<gimli::DwAte>,
    /// Target of a pointer.
    target: Option<DebugInfoOffset>,
}

impl Bare {
    fn is_structure(&self) -> bool {
        matches!(
            self.tag,
            gimli::DW_TAG_structure_type | gimli::DW_TAG_union_type | gimli::DW_TAG_class_type
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::ObjectSymbol;
    use std::process::Command;

    const PROGRAM: &str = "\
        struct pair { long a, b; };\n\
        enum kind { ONE, TWO };\n\
        __attribute__((noinline)) int many(short number, const char *text, struct pair *pair, double x, unsigned char byte, enum kind kind)\n\
        { asm volatile(\"\" : : \"r\"(text), \"r\"(pair)); return number + byte + kind + (int)x; }\n\
        __attribute__((noinline)) struct pair returned(long a) { struct pair p = { a, a }; return p; }\n\
        int main(int count, char **words) { struct pair p = returned(count); return many(1, words[0], &p, 2, 3, TWO) != 9; }\n";

    #[test]
    fn parameters_are_those_of_the_debug_information() {
        let dir = tempfile::tempdir().unwrap();
        let (source, program) = (dir.path().join("a.c"), dir.path().join("a"));
        std::fs::write(&source, PROGRAM).unwrap();
        for options in [
            &["-gdwarf-5", "-O2"][..],
            &["-gdwarf-4", "-O2"],
            &["-g"],
            &["-O2"],
        ] {
            let mut compiler = Command::new("gcc");
            compiler.arg("-o").arg(&program).args(options);
            let compiled = compiler.arg(&source).status();
            if !compiled.is_ok_and(|status| status.success()) {
                return synthetic::skip("no gcc here");
            }
            let bytes = std::fs::read(&program).unwrap();
            let object = object::File::parse(&*bytes).unwrap();
            let address = |name| {
                let mut symbols = object.symbols();
                symbols.find(|s| s.name() == Ok(name)).unwrap().address()
            };
            let found = prototype(&program, address("many"));
            if options == ["-O2"] {
                assert_eq!(found, None);
                continue;
            }
            let found = found.unwrap();
            let number = |bytes, is_signed| ParameterType::Number { bytes, is_signed };
            let named: Vec<_> = found.parameters.iter().map(|p| (&*p.name, p.ty)).collect();
            let expected = [
                ("number", number(2, true)),
                ("text", ParameterType::Text),
                ("pair", ParameterType::Pointer),
                ("x", ParameterType::Float),
                ("byte", number(1, false)),
                ("kind", number(4, false)),
            ];
            assert_eq!(named, expected, "{options:?}");
            assert!(!found.returns_structure);
            // Without optimization the values are in memory, once the function has put them there.
            let is_in_register = found.parameters[1].register.is_some();
            assert_eq!(is_in_register, options.contains(&"-O2"), "{options:?}");
            assert!(
                prototype(&program, address("returned"))
                    .unwrap()
                    .returns_structure
            );
            assert_eq!(prototype(&program, address("many") + 1), None);
            assert_eq!(prototype(&program, u64::MAX), None);
        }
    }
}
