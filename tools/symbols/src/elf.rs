// SPDX-License-Identifier: GPL-2.0

//! The functions of a program or library, from its file, or from the file of its debug information.

use super::contents::Contents;
use super::debuginfod::{self, Servers};
use super::demangle::demangled;
use super::inlining::{Inlining, Segment};
use super::mappings::MappedFile;
use super::plt::{self, Entry};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};
use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};
use terminal::printable;

/// The directory in which distributions put debug information.
const DEBUG: &str = "/usr/lib/debug";

/// The maximum length of a build id: that of SHA-512.
const ID_MAX: usize = 64;

/// A function of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// Its offset in the file.
    pub offset: u64,
    /// Its length.
    pub size: u64,
    /// Its name in readable form, without control characters.
    pub name: String,
}

/// The contents of a program's or library's file.
pub(crate) type Elf<'a> = object::File<'a, &'a Contents>;

/// The build id of a program or library, in hexadecimal. [`None`]: it has none, or the file is no such file.
pub fn build_id(path: &Path) -> Option<String> {
    let contents = Contents::open(path).ok()?;
    id_of(&object::File::parse(&contents).ok()?)
}

fn id_of(elf: &Elf<'_>) -> Option<String> {
    let id = elf.build_id().ok()?.filter(|id| id.len() <= ID_MAX)?;
    Some(id.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// The names of a program's or library's code.
#[derive(Debug, Default)]
pub struct Program {
    /// Its functions, sorted.
    pub functions: Vec<Function>,
    /// Whether neither the file nor its debug information has a function. Its entries of a procedure linkage table are
    /// functions of other files.
    pub is_stripped: bool,
    /// Its inlined functions, if there is debug information.
    pub(crate) inlining: Option<Inlining>,
}

impl Program {
    /// The functions that are inlined at an offset of the file, the innermost first.
    pub fn inlined(&mut self, offset: u64) -> &[String] {
        match &mut self.inlining {
            Some(inlining) => inlining.at(offset),
            None => &[],
        }
    }
}

/// The names of an open file. [`None`]: it has another build id than the mapped file, or is no program or library. If
/// the mapped file has no build id, the caller knows that the open file is the same. `servers` are asked for debug
/// information that this machine does not have.
pub fn program(opened: File, file: &MappedFile, servers: Option<Servers>) -> Option<Program> {
    let contents = Contents::of(opened);
    let elf: Elf<'_> = object::File::parse(&contents).ok()?;
    let own = id_of(&elf);
    if file.build_id().is_some_and(|id| own.as_deref() != Some(id)) {
        return None;
    }
    let segments = elf.segments().map(|segment| {
        let (offset, size) = segment.file_range();
        Segment {
            address: segment.address(),
            offset,
            size,
        }
    });
    let segments: Vec<_> = segments.collect();
    let in_file = |address: u64| {
        segments.iter().find_map(|segment| {
            let inside = address.checked_sub(segment.address)?;
            let offset = segment.offset.checked_add(inside);
            offset.filter(|_| inside < segment.size)
        })
    };
    let mut functions = symbols(&contents, &elf, in_file);
    let mut inlining = Inlining::of(&contents, &elf, &segments);
    // The first debug file that belongs to the file.
    let mut debug_symbols = |path: PathBuf| {
        let contents = Contents::open(&path).ok()?;
        let debug = object::File::parse(&contents).ok()?;
        let is_own = own.is_some() && id_of(&debug) == own;
        is_own.then(|| {
            functions.extend(symbols(&contents, &debug, in_file));
            if inlining.is_none() {
                inlining = Inlining::of(&contents, &debug, &segments);
            }
        })
    };
    let here = debug_files(Path::new(&file.path), &elf, own.as_deref());
    let is_found = here.into_iter().find_map(&mut debug_symbols).is_some();
    if !is_found && elf.symbol_table().is_none() {
        servers
            .and_then(|servers| servers.debug_information(file))
            .and_then(debug_symbols);
    }
    let is_stripped = functions.is_empty();
    functions.extend(linkage(&contents, &elf, in_file));
    Some(Program {
        functions: sorted(functions),
        is_stripped,
        inlining,
    })
}

/// The first answer of `find`, which looks in a program's or library's file, then in the files of its debug information.
pub(crate) fn in_debug_information<T>(
    path: &Path,
    find: impl Fn(&Contents, &Elf<'_>) -> Option<T>,
) -> Option<T> {
    let contents = Contents::open(path).ok()?;
    let elf = object::File::parse(&contents).ok()?;
    let own = id_of(&elf);
    find(&contents, &elf).or_else(|| {
        let files = debug_files(path, &elf, own.as_deref());
        files.into_iter().find_map(|path| {
            let contents = Contents::open(&path).ok()?;
            let debug = object::File::parse(&contents).ok()?;
            let is_own = own.is_some() && id_of(&debug) == own;
            is_own.then(|| find(&contents, &debug)).flatten()
        })
    })
}

/// A function, and its size at most: up to the end of its section.
struct Bounded {
    function: Function,
    most: u64,
}

fn symbols(
    contents: &Contents,
    elf: &Elf<'_>,
    in_file: impl Fn(u64) -> Option<u64>,
) -> Vec<Bounded> {
    let symbols = elf.symbols().chain(elf.dynamic_symbols());
    let functions = symbols.filter(|symbol| symbol.kind() == SymbolKind::Text);
    let function = |symbol: object::Symbol<'_, '_, _>| {
        let name = symbol.name().ok().filter(|name| !name.is_empty())?;
        let offset = in_file(symbol.address())?;
        let name = printable(&demangled(name));
        contents.spend(name.len() as u64)?;
        let section = elf.section_by_index(symbol.section_index()?).ok();
        let end = section.map_or(0, |section| {
            section.address().saturating_add(section.size())
        });
        let function = Function {
            offset,
            size: symbol.size(),
            name,
        };
        Some(Bounded {
            function,
            most: end.saturating_sub(symbol.address()),
        })
    };
    functions
        .filter(ObjectSymbol::is_definition)
        .filter_map(function)
        .collect()
}

/// The entries of the procedure linkage table, as `NAME@plt`.
fn linkage(
    contents: &Contents,
    elf: &Elf<'_>,
    in_file: impl Fn(u64) -> Option<u64>,
) -> Vec<Bounded> {
    let function = |entry: Entry| {
        let name = format!("{}@plt", printable(&demangled(&entry.name)));
        contents.spend(name.len() as u64)?;
        let function = Function {
            offset: in_file(entry.address)?,
            size: entry.size,
            name,
        };
        Some(Bounded {
            function,
            most: entry.size,
        })
    };
    plt::entries(elf).into_iter().filter_map(function).collect()
}

/// The possible places of the file's debug information.
fn debug_files(path: &Path, elf: &Elf<'_>, build_id: Option<&str>) -> Vec<PathBuf> {
    let by_id = build_id.and_then(|id| Some((id.get(..2)?, id.get(2..)?)));
    let by_id = by_id.map(|(first, rest)| format!("{DEBUG}/.build-id/{first}/{rest}.debug").into());
    let fetched = build_id.and_then(|id| debuginfod::fetched(id, "debuginfo"));
    let mut files: Vec<PathBuf> = by_id.into_iter().chain(fetched).collect();
    if let (Ok(Some((name, _))), Some(dir)) = (elf.gnu_debuglink(), path.parent()) {
        if let Ok(name) = std::str::from_utf8(name) {
            files.push(dir.join(name));
            files.push(dir.join(".debug").join(name));
            files.push(
                Path::new(DEBUG)
                    .join(dir.strip_prefix("/").unwrap_or(dir))
                    .join(name),
            );
        }
    }
    files
}

/// Sorts functions by place, one for each. A function without a size ends where the next one begins, or with its
/// section.
fn sorted(mut functions: Vec<Bounded>) -> Vec<Function> {
    // Of several functions at a place the largest counts; of several names the first in the alphabet.
    functions.sort_by(|Bounded { function: a, .. }, Bounded { function: b, .. }| {
        (a.offset, u64::MAX - a.size, &a.name).cmp(&(b.offset, u64::MAX - b.size, &b.name))
    });
    functions.dedup_by_key(|Bounded { function, .. }| function.offset);
    let mut next = u64::MAX;
    for Bounded { function, most } in functions.iter_mut().rev() {
        if function.size == 0 {
            function.size = (next - function.offset).min(*most);
        }
        next = function.offset;
    }
    let functions = functions.into_iter();
    functions.map(|bounded| bounded.function).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_may_be_anywhere() {
        let this = std::env::current_exe().unwrap();
        let mut bytes = std::fs::read(this).unwrap();
        let number = |bytes: &[u8], at: usize, len: usize| {
            let bytes = bytes[at..at + len].iter().rev();
            bytes.fold(0, |number, byte| (number << 8) | usize::from(*byte))
        };
        let (headers, size) = (number(&bytes, 0x20, 8), number(&bytes, 0x36, 2));
        for header in 0..number(&bytes, 0x38, 2) {
            let offset = headers + header * size + 8;
            bytes[offset..offset + 8].fill(0xff);
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let id = build_id(file.path());
        // Only the first place in it has a number.
        let file = MappedFile {
            path: file.path().to_str().unwrap().to_owned(),
            id,
        };
        let opened = File::open(&file.path).unwrap();
        let found = program(opened, &file, None).unwrap().functions;
        assert!(
            found.iter().all(|function| function.offset == u64::MAX),
            "{found:?}"
        );
    }

    #[test]
    fn functions_of_this_program_are_found() {
        let this = std::env::current_exe().unwrap();
        let id = build_id(&this);
        let functions = |path: &Path, id: Option<&str>| {
            let file = MappedFile {
                path: path.to_str().unwrap().to_owned(),
                id: id.map(str::to_owned),
            };
            Some(program(File::open(path).unwrap(), &file, None)?.functions)
        };
        let all = functions(&this, id.as_deref()).unwrap();
        let main = all.iter().find(|function| function.name == "main").unwrap();
        assert!(main.size > 0 && main.offset > 0);
        assert!(all
            .iter()
            .any(|f| f.name.ends_with("functions_of_this_program_are_found")));
        assert!(functions(&this, Some("00")).is_none());
        assert!(functions(Path::new("/etc/passwd"), None).is_none());
    }

    #[test]
    fn a_function_without_a_size_ends_where_the_next_one_begins_or_its_section_ends() {
        let function = |offset, size, name: &str| Function {
            offset,
            size,
            name: name.to_owned(),
        };
        let bounded = |offset, size, name| Bounded {
            function: function(offset, size, name),
            most: 0x18,
        };
        let functions = sorted(vec![
            bounded(0x30, 0, "c"),
            bounded(0x10, 0, "a"),
            bounded(0x20, 4, "b"),
            bounded(0x20, 4, "a_name_of_b"),
            bounded(0x20, 2, "a"),
        ]);
        assert_eq!(functions[0], function(0x10, 0x10, "a"));
        assert_eq!(functions[1], function(0x20, 4, "a_name_of_b"));
        assert_eq!(functions[2], function(0x30, 0x18, "c"));
        assert_eq!(functions.len(), 3);
    }
}
