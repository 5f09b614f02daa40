// SPDX-License-Identifier: GPL-2.0

//! The functions of a program or library, out of its file, or that of its debug information.

use object::read::ReadCache;
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};
use std::fs::File;
use std::path::{Path, PathBuf};
use trace::regular_file;

/// Where distributions put debug information.
const DEBUG: &str = "/usr/lib/debug";

/// A function of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// Where in the file it begins.
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
    /// Its name, as people write it.
    pub name: String,
}

/// What stands in the file of a program or library.
type Elf<'a> = object::File<'a, &'a ReadCache<File>>;

/// The build id of a program or library, in hexadecimal; none if it has none, or is no such thing.
pub fn build_id(path: &Path) -> Option<String> {
    let cache = ReadCache::new(regular_file::open(path).ok()?);
    id_of(&object::File::parse(&cache).ok()?)
}

fn id_of(elf: &Elf<'_>) -> Option<String> {
    use std::fmt::Write;
    let id = elf.build_id().ok()??;
    Some(id.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// The functions of the file at `path`, sorted; none if it is not there, is no program or library, or has
/// another build id than this, or one where there is to be none.
pub fn functions(path: &Path, build_id: Option<&str>) -> Option<Vec<Function>> {
    let cache = ReadCache::new(regular_file::open(path).ok()?);
    let elf: Elf<'_> = object::File::parse(&cache).ok()?;
    let own = id_of(&elf);
    // A container's file without one is not the file that has its path here.
    if own.as_deref() != build_id {
        return None;
    }
    let segments: Vec<_> = elf
        .segments()
        .map(|segment| (segment.address(), segment.file_range()))
        .collect();
    let in_file = |address: u64| {
        segments.iter().find_map(|(begin, (offset, size))| {
            let inside = address.checked_sub(*begin)?;
            (inside < *size).then_some(offset + inside)
        })
    };
    let mut functions = symbols(&elf, in_file);
    for path in debug_files(path, &elf, own.as_deref()) {
        let Ok(file) = regular_file::open(&path) else {
            continue;
        };
        let cache = ReadCache::new(file);
        if let Ok(debug) = object::File::parse(&cache) {
            if own.is_some() && id_of(&debug) == own {
                functions.extend(symbols(&debug, in_file));
                break;
            }
        }
    }
    Some(sorted(functions))
}

fn symbols(elf: &Elf<'_>, in_file: impl Fn(u64) -> Option<u64>) -> Vec<Function> {
    let symbols = elf.symbols().chain(elf.dynamic_symbols());
    let functions = symbols.filter(|symbol| symbol.kind() == SymbolKind::Text);
    let function = |symbol: object::Symbol<'_, '_, _>| {
        let name = symbol.name().ok().filter(|name| !name.is_empty())?;
        Some(Function {
            offset: in_file(symbol.address())?,
            size: symbol.size(),
            name: demangled(name),
        })
    };
    functions
        .filter(ObjectSymbol::is_definition)
        .filter_map(function)
        .collect()
}

/// Where the debug information of a file may be.
fn debug_files(path: &Path, elf: &Elf<'_>, build_id: Option<&str>) -> Vec<PathBuf> {
    let by_id = build_id.and_then(|id| Some((id.get(..2)?, id.get(2..)?)));
    let by_id = by_id.map(|(first, rest)| format!("{DEBUG}/.build-id/{first}/{rest}.debug").into());
    let mut files: Vec<PathBuf> = by_id.into_iter().collect();
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

/// By their places, one each; what has no size ends where the next one begins.
fn sorted(mut functions: Vec<Function>) -> Vec<Function> {
    // The largest first, of those that have several names the first one in the alphabet.
    functions.sort_by(|a, b| {
        (a.offset, u64::MAX - a.size, &a.name).cmp(&(b.offset, u64::MAX - b.size, &b.name))
    });
    functions.dedup_by_key(|function| function.offset);
    let mut next = u64::MAX;
    for function in functions.iter_mut().rev() {
        if function.size == 0 {
            function.size = next - function.offset;
        }
        next = function.offset;
    }
    functions
}

/// A name as people write it, in Rust and in C++; of a function in C++ without its arguments.
fn demangled(name: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(name) {
        return format!("{name:#}");
    }
    if !name.starts_with("_Z") {
        return name.to_owned();
    }
    let options = cpp_demangle::DemangleOptions::new();
    let options = options.no_params().no_return_type();
    let symbol = cpp_demangle::Symbol::new(name).ok();
    let demangled = symbol.and_then(|symbol| symbol.demangle_with_options(&options).ok());
    demangled.unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        for (mangled, name) in [
            ("main", "main"),
            ("_ZN3foo3bar17h0123456789abcdefE", "foo::bar"),
            ("_RNvCs4fqI2P2rA04_3foo3bar", "foo::bar"),
            ("_ZN3foo3barEi", "foo::bar"),
            ("_Z", "_Z"),
        ] {
            assert_eq!(demangled(mangled), name);
        }
    }

    #[test]
    fn functions_of_this_program_are_found() {
        let this = std::env::current_exe().unwrap();
        let id = build_id(&this);
        let all = functions(&this, id.as_deref()).unwrap();
        let main = all.iter().find(|function| function.name == "main").unwrap();
        assert!(main.size > 0 && main.offset > 0);
        assert!(all
            .iter()
            .any(|f| f.name.ends_with("functions_of_this_program_are_found")));
        assert!(id.is_some() && functions(&this, None).is_none());
        assert!(functions(&this, Some("00")).is_none());
        assert!(functions(Path::new("/etc/passwd"), None).is_none());
    }

    #[test]
    fn a_function_without_a_size_ends_where_the_next_one_begins() {
        let function = |offset, size, name: &str| Function {
            offset,
            size,
            name: name.to_owned(),
        };
        let functions = sorted(vec![
            function(0x30, 0, "c"),
            function(0x10, 0, "a"),
            function(0x20, 4, "b"),
            function(0x20, 4, "a_name_of_b"),
            function(0x20, 2, "a"),
        ]);
        assert_eq!(functions[0], function(0x10, 0x10, "a"));
        assert_eq!(functions[1], function(0x20, 4, "a_name_of_b"));
        assert_eq!(functions.len(), 3);
    }
}
