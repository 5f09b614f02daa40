// SPDX-License-Identifier: GPL-2.0

//! The functions of a program or library, by their symbols.

use super::code::Code;
use anyhow::{anyhow, bail};
use object::elf::{STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE};
use object::read::elf::{ElfFile, FileHeader};
use object::{Object, ObjectSymbol, SymbolFlags, SymbolKind};
use std::collections::BTreeSet;
use std::ops::Range;

/// The maximum number of functions that an error names.
const NAMED: usize = 16;

/// A function of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The name, without its version.
    pub name: String,
    /// The address of its first instruction.
    pub address: u64,
    /// Its length in bytes; 0: unknown.
    pub size: u64,
    kind: Kind,
    version: Option<Version>,
    /// The source file of a function that only this one uses.
    source: Option<String>,
}

/// The version of a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    name: String,
    /// Whether programs that are linked today use it.
    is_default: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Function,
    /// A function that returns the address of the function to be used.
    Indirect,
    /// A place without a type, as hand-written code has them.
    Untyped,
    Data,
    /// A symbol of another file.
    Imported,
}

/// The functions of a file, and its other symbols.
pub struct Functions(Vec<Function>);

impl Functions {
    /// The functions of `object`.
    pub fn new(object: &object::File<'_>) -> Self {
        let mut symbols = match object {
            object::File::Elf32(elf) => dynamic_symbols(elf),
            object::File::Elf64(elf) => dynamic_symbols(elf),
            _ => Vec::new(),
        };
        let mut source = None;
        for symbol in object.symbols() {
            let Ok(name) = symbol.name() else {
                continue;
            };
            if symbol.kind() == SymbolKind::File {
                source = Some(name);
            }
            let (name, version) = match name.split_once('@') {
                Some((name, version)) => (name, Some(version)),
                None => (name, None),
            };
            let version = version.map(|version| Version {
                name: version.trim_start_matches('@').to_owned(),
                is_default: version.starts_with('@'),
            });
            let source = source.filter(|_| symbol.is_local());
            symbols.extend(function(&symbol, name, version, source));
        }
        Self(symbols)
    }

    /// Finds a function: `NAME`, `NAME@VERSION`, or `NAME@0xADDRESS`.
    pub fn find(&self, text: &str, code: &Code<'_>) -> anyhow::Result<Function> {
        let (name, choice) = match text.split_once('@') {
            Some((name, choice)) => (name, Some(choice.trim_start_matches('@'))),
            None => (text, None),
        };
        let mut found = self.of_name(name, code)?;
        let address = choice.and_then(|choice| choice.strip_prefix("0x"));
        let address = address.map(|digits| u64::from_str_radix(digits, 16));
        match (address, choice) {
            (Some(address), _) => {
                let address =
                    address.map_err(|_| anyhow!("`{text}` has no hexadecimal address"))?;
                return self.at(name, &found, address, code);
            }
            (None, Some(version)) => {
                let is_it = |f: &&Function| f.version.as_ref().is_some_and(|v| v.name == version);
                if !found.iter().any(is_it) {
                    let known = listed(found.iter().map(|f| f.shown()));
                    bail!("`{name}` has no version `{version}`: there is {known}");
                }
                found.retain(is_it);
            }
            (None, None) if found.iter().any(|f| f.is_default()) => {
                found.retain(|f| f.is_default());
            }
            (None, None) => {}
        }
        // A symbol may be in both tables.
        found.sort_by_key(|f| (f.address, u64::MAX - f.size));
        found.dedup_by_key(|f| f.address);
        match found[..] {
            [f] if f.kind == Kind::Indirect => {
                let targets = self.targets(f, code);
                if targets.is_empty() {
                    bail!(
                        "`{name}` is chosen at run time (IFUNC), and the file does not name the functions to choose from"
                    );
                }
                let targets = listed(targets.iter().map(Function::shown));
                bail!("`{name}` is chosen at run time (IFUNC): probe each function that may be chosen: {targets}");
            }
            [f] => Ok(f.clone()),
            _ => {
                let shown = listed(found.iter().map(|f| f.shown()));
                bail!(
                    "{} functions have the name `{name}`: choose {shown}",
                    found.len()
                );
            }
        }
    }

    /// The addresses of a function. One without a size ends where the next one begins.
    pub fn range(&self, function: &Function) -> Range<u64> {
        let begin = function.address;
        let end = if function.size == 0 {
            let others = self.0.iter().filter(|f| f.kind != Kind::Imported);
            let behind = others.map(|f| f.address).filter(|other| *other > begin);
            behind.min().unwrap_or(u64::MAX)
        } else {
            begin.saturating_add(function.size)
        };
        begin..end
    }

    /// A function that begins inside `range`.
    pub fn inside(&self, range: &Range<u64>) -> Option<&Function> {
        let inside = range.start.saturating_add(1)..range.end;
        let mut functions = self.0.iter().filter(|f| f.kind == Kind::Function);
        functions.find(|f| inside.contains(&f.address))
    }

    /// The part of a function that has the instruction at `address`, if the compiler has moved rarely executed code there.
    pub fn cold_part(&self, function: &Function, address: u64) -> Option<Range<u64>> {
        let is_name = |name: &str| {
            let mut named = self.0.iter().filter(|f| f.name == name);
            named.any(|f| f.address == function.address)
        };
        let parts = self.0.iter().filter_map(|part| {
            let (owner, number) = part.name.split_once(".cold")?;
            let is_part = number.is_empty() || number.starts_with('.');
            (is_part && part.size > 0 && is_name(owner)).then(|| self.range(part))
        });
        parts.into_iter().find(|range| range.contains(&address))
    }

    /// All functions with a name, in each version. There is at least one.
    fn of_name(&self, name: &str, code: &Code<'_>) -> anyhow::Result<Vec<&Function>> {
        let named: Vec<_> = self.0.iter().filter(|f| f.name == name).collect();
        let of = |is_meant: &dyn Fn(&Function) -> bool| -> Vec<_> {
            named.iter().copied().filter(|f| is_meant(f)).collect()
        };
        let functions = of(&|f| matches!(f.kind, Kind::Function | Kind::Indirect));
        if !functions.is_empty() {
            return Ok(functions);
        }
        let untyped = of(&|f| f.kind == Kind::Untyped && code.in_file(f.address).is_some());
        if !untyped.is_empty() {
            return Ok(untyped);
        }
        match named.first() {
            None => bail!("it has no symbol `{name}`"),
            Some(f) if f.kind == Kind::Imported => {
                bail!("`{name}` is a function of another file: name the library that has it")
            }
            Some(_) => bail!("`{name}` is not a function"),
        }
    }

    /// The function at `address` that has the name, or may be chosen for it.
    fn at(
        &self,
        name: &str,
        named: &[&Function],
        address: u64,
        code: &Code<'_>,
    ) -> anyhow::Result<Function> {
        let indirect = named.iter().filter(|f| f.kind == Kind::Indirect);
        let targets = indirect.flat_map(|f| self.targets(f, code));
        let own = named.iter().filter(|f| f.kind != Kind::Indirect);
        let own = own.map(|f| (*f).clone());
        let found = own.chain(targets).find(|f| f.address == address);
        found.ok_or_else(|| anyhow!("`{name}` is not at {address:#x}"))
    }

    /// The functions from which an indirect one chooses: those whose addresses its code computes.
    fn targets(&self, indirect: &Function, code: &Code<'_>) -> Vec<Function> {
        let addresses = code.code_addresses(self.range(indirect));
        let function = |address| {
            let mut here = self.0.iter().filter(|f| f.address == address);
            let known = here.find(|f| f.kind == Kind::Function).cloned();
            known.unwrap_or_else(|| Function {
                name: indirect.name.clone(),
                address,
                size: 0,
                kind: Kind::Untyped,
                version: None,
                source: None,
            })
        };
        addresses.into_iter().map(function).collect()
    }
}

impl Function {
    fn is_default(&self) -> bool {
        self.version.as_ref().is_none_or(|v| v.is_default)
    }

    /// The text that chooses this one among those of its name.
    fn shown(&self) -> String {
        let Self { name, address, .. } = self;
        let shown = match &self.version {
            Some(version) => format!("`{name}@{}`", version.name),
            None => format!("`{name}@{address:#x}`"),
        };
        match &self.source {
            Some(source) => format!("{shown} ({source})"),
            None => shown,
        }
    }
}

/// The first of some names, with commas between them.
fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<_> = names.collect::<BTreeSet<_>>().into_iter().collect();
    let shown = names.get(..NAMED).unwrap_or(&names).join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The symbols for the dynamic linker, which have versions.
fn dynamic_symbols<E: FileHeader>(elf: &ElfFile<'_, E>) -> Vec<Function> {
    let (endian, data) = (elf.endian(), elf.data());
    let versions = elf.elf_section_table().versions(endian, data);
    let versions = versions.ok().flatten();
    let symbols = elf.dynamic_symbols().filter_map(|symbol| {
        let version = versions.as_ref().and_then(|versions| {
            let index = versions.version_index(endian, symbol.index());
            let version = versions.version(index).ok().flatten()?;
            Some(Version {
                name: String::from_utf8_lossy(version.name()).into_owned(),
                is_default: !index.is_hidden(),
            })
        });
        function(&symbol, symbol.name().ok()?, version, None)
    });
    symbols.collect()
}

fn function<'d>(
    symbol: &impl ObjectSymbol<'d>,
    name: &str,
    version: Option<Version>,
    source: Option<&str>,
) -> Option<Function> {
    let SymbolFlags::Elf { st_info, .. } = symbol.flags() else {
        return None;
    };
    let kind = match st_info & 15 {
        _ if symbol.is_undefined() => Kind::Imported,
        STT_FUNC => Kind::Function,
        STT_GNU_IFUNC => Kind::Indirect,
        STT_NOTYPE => Kind::Untyped,
        _ => Kind::Data,
    };
    Some(Function {
        name: name.to_owned(),
        address: symbol.address(),
        size: symbol.size(),
        kind,
        version,
        source: source.map(str::to_owned),
    })
}

#[cfg(test)]
impl Functions {
    /// Functions with these names, addresses and sizes.
    pub fn of(functions: &[(&str, u64, u64)]) -> Self {
        let functions = functions.iter().map(|&(name, address, size)| Function {
            name: name.to_owned(),
            address,
            size,
            kind: Kind::Function,
            version: None,
            source: None,
        });
        Self(functions.collect())
    }
}
