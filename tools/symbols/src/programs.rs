// SPDX-License-Identifier: GPL-2.0

//! The functions of programs: at an address, in a thread, at a time.

use super::debuginfod::{self, Servers};
use super::elf::{self, Function};
use super::inlining::Inlining;
use super::kept::{is_file, Kept};
use super::mappings::{MappedFile, Mappings};
use super::perf_map;
use super::processes::{Change, InFile, Processes};
use super::saved::FileNames;
use super::vdso;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::vec;
use system::code::{file_at, VDSO};
use system::regular_file;
use terminal::{printable, say};

/// The code at an address of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The file.
    pub file: &'a MappedFile,
    /// The offset in the file.
    pub offset: u64,
    /// The function there, if known.
    pub function: Option<&'a Function>,
    /// The functions that are inlined there, the innermost first. Empty if the function is not known.
    pub inlined: &'a [String],
    /// Whether the file was removed or replaced before its functions were read.
    pub is_gone: bool,
}

/// The programs of a trace, over time.
#[derive(Debug, Default)]
pub struct Programs {
    processes: Processes,
    /// The changes that lie in the future.
    changes: vec::IntoIter<(u64, Change)>,
    next: Option<(u64, Change)>,
    files: Vec<Program>,
    /// The files that the recording kept.
    kept: Arc<Kept>,
    /// Whether the vDSO of this machine is that of the trace.
    has_vdso: bool,
    /// The servers for files that this machine does not have.
    servers: Option<Servers>,
}

#[derive(Debug)]
struct Program {
    file: MappedFile,
    /// Where processes have its code.
    places: Vec<(i64, u64, u64)>,
    /// The functions, sorted. [`None`]: not read yet.
    names: Option<FileNames>,
    /// The inlined functions of a file that was read.
    inlining: Option<Inlining>,
}

impl Place<'_> {
    /// The inlined functions there as views show them, the innermost first.
    pub fn inlined(&self) -> impl DoubleEndedIterator<Item = String> + '_ {
        self.inlined.iter().map(|name| format!("{name} (inlined)"))
    }
}

impl Programs {
    /// Makes the programs with these functions, of files that may be missing here. The functions of other files are
    /// read on demand.
    pub fn new(mappings: Mappings, mut known: Vec<(MappedFile, FileNames)>) -> Self {
        let is_saved = !known.is_empty();
        let program = |mut file: MappedFile| {
            let known = known.iter_mut().find(|(known, _)| *known == file);
            let names = known.map(|(_, names)| std::mem::take(names));
            // The kernel itself shows ` (deleted)`.
            let is_gone = names.as_ref().is_some_and(|names| names.is_gone);
            if is_gone && !file.path.ends_with(')') {
                file.path.push_str(" (removed)");
            }
            Program {
                file,
                places: Vec::new(),
                names: names.or(is_saved.then(FileNames::default)),
                inlining: None,
            }
        };
        let mut files: Vec<_> = mappings.files.into_iter().map(program).collect();
        for (_, change) in &mappings.changes {
            if let Change::Map {
                pid,
                begin,
                end,
                file,
                ..
            } = change
            {
                if let Some(Program {
                    names: None,
                    places,
                    ..
                }) = files.get_mut(*file)
                {
                    places.push((*pid, *begin, *end));
                }
            }
        }
        let mut changes = mappings.changes.into_iter();
        Self {
            files,
            next: changes.next(),
            changes,
            processes: Processes::default(),
            kept: Arc::default(),
            has_vdso: false,
            servers: None,
        }
    }

    /// Adds later changes.
    pub fn add(&mut self, mappings: Mappings) {
        let places = mappings.files.into_iter().map(|file| {
            let known = self.files.iter().position(|known| known.file == file);
            known.unwrap_or_else(|| {
                self.files.push(Program {
                    file,
                    places: Vec::new(),
                    names: None,
                    inlining: None,
                });
                self.files.len() - 1
            })
        });
        let places: Vec<_> = places.collect();
        let mut changes: Vec<_> = self.next.take().into_iter().collect();
        changes.extend(self.changes.by_ref());
        for (ns, mut change) in mappings.changes {
            if let Change::Map {
                pid,
                begin,
                end,
                file,
                ..
            } = &mut change
            {
                *file = places[*file];
                self.files[*file].places.push((*pid, *begin, *end));
            }
            changes.push((ns, change));
        }
        changes.sort_by_key(|(ns, _)| *ns);
        self.changes = changes.into_iter();
        self.next = self.changes.next();
    }

    /// From now on also reads the files that the recording kept.
    pub fn keep(&mut self, kept: Arc<Kept>) {
        self.kept = kept;
    }

    /// From now on also reads the vDSO of this machine.
    pub fn read_vdso(&mut self) {
        self.has_vdso = true;
    }

    /// From now on also asks these servers.
    pub fn ask(&mut self, servers: Servers) {
        self.servers = Some(servers);
    }

    /// See [`Symbols::user`](super::Symbols::user).
    pub fn find(&mut self, tid: i64, ns: u64, address: u64) -> Option<Place<'_>> {
        while let Some((_, change)) = self.next.filter(|(at, _)| *at <= ns) {
            self.processes.change(&change);
            self.next = self.changes.next();
        }
        let InFile { file, offset } = self.processes.find(tid, address)?;
        let program = self.files.get_mut(file)?;
        let (kept, servers) = (&self.kept, self.servers);
        let is_vdso = program.file.path == VDSO;
        let names = match &mut program.names {
            Some(names) => names,
            names if is_vdso && self.has_vdso => {
                names.insert(FileNames::of(vdso::functions(&program.file)))
            }
            names => {
                let (read, inlining) = read(&program.file, &program.places, kept, servers);
                program.inlining = inlining;
                names.insert(read)
            }
        };
        let functions = &names.functions;
        let behind = functions.partition_point(|function| function.offset <= offset);
        let function = behind.checked_sub(1).map(|place| &functions[place]);
        let function = function.filter(|_| !is_vdso || vdso::is_wide(address));
        let function = function.filter(|function| offset - function.offset < function.size);
        let inlined = match &mut program.inlining {
            _ if function.is_none() => &[],
            Some(inlining) => inlining.at(offset),
            None => names.inlined.get(&offset).map_or(&[][..], Vec::as_slice),
        };
        Some(Place {
            file: &program.file,
            offset,
            function,
            inlined,
            is_gone: names.is_gone,
        })
    }
}

/// Reads the functions of the mapped file. Another file with its path does not count.
fn read(
    file: &MappedFile,
    places: &[(i64, u64, u64)],
    kept: &Kept,
    servers: Option<Servers>,
) -> (FileNames, Option<Inlining>) {
    if let Some(map) = kept.map(file) {
        let functions = perf_map::functions(map).unwrap_or_else(|error| {
            say(format_args!("{}: {error}", file.shown()));
            Vec::new()
        });
        return (FileNames::of(functions), None);
    }
    // Without an id, any file may have its path now.
    if !is_file(&file.path) || file.id.is_none() {
        return Default::default();
    }
    let program = |opened: File| elf::program(opened, file, servers);
    let program = match file.build_id() {
        Some(id) => {
            let paths = [
                Some(PathBuf::from(&file.path)),
                debuginfod::fetched(id, "executable"),
            ];
            let places = places.iter();
            let places = places.map(|(pid, begin, end)| file_at(*pid, *begin, *end));
            let paths = paths.into_iter().flatten().chain(places);
            let here = paths.filter_map(|path| regular_file::open(&path).ok());
            let mut here = kept.program(file).into_iter().chain(here);
            let fetched = || program(regular_file::open(&servers?.executable(file)?).ok()?);
            match here.find_map(program) {
                Some(program) if !program.is_stripped => Some(program),
                // The servers may have the file with its names.
                stripped => fetched().or(stripped),
            }
        }
        // It may be no program at all.
        None => kept
            .program(file)
            .map(|kept| program(kept).unwrap_or_default()),
    };
    match program {
        Some(program) => (FileNames::of(program.functions), program.inlining),
        None => {
            let gone = FileNames {
                is_gone: true,
                ..FileNames::default()
            };
            (gone, None)
        }
    }
}

impl MappedFile {
    /// Its name without directories, for display.
    pub fn name(&self) -> String {
        let name = Path::new(&self.path).file_name();
        let name = name.and_then(|name| name.to_str());
        printable(name.unwrap_or(&self.path))
    }

    /// Its path, for display. Any user may have chosen it.
    pub fn shown(&self) -> String {
        printable(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_by_thread_time_and_address() {
        let file = |path: &str| MappedFile {
            path: path.to_owned(),
            id: None,
        };
        let map = |file| Change::Map {
            pid: 7,
            begin: 0x1000,
            end: 0x2000,
            offset: 0x400,
            file,
        };
        let mappings = Mappings {
            files: vec![file("/bin/one"), file("/bin/two")],
            changes: vec![(10, map(0)), (20, Change::Exec { pid: 7 }), (20, map(1))],
            lost: 0,
        };
        let function = |offset, name: &str| Function {
            offset,
            size: 0x10,
            name: name.to_owned(),
        };
        let known = vec![
            (
                file("/bin/one"),
                FileNames::of(vec![function(0x400, "first"), function(0x420, "second")]),
            ),
            (
                file("/bin/two"),
                FileNames {
                    functions: vec![function(0x410, "third")],
                    is_gone: true,
                    ..FileNames::default()
                },
            ),
        ];
        let mut programs = Programs::new(mappings, known);
        let mut name = |ns, address| {
            let place = programs.find(7, ns, address)?;
            let function = place.function.map_or("?", |function| &function.name);
            Some(format!("{} {function}", place.file.name()))
        };
        for (ns, address, expected) in [
            (9, 0x1000, None),
            (10, 0x1000, Some("one first")),
            (10, 0x1010, Some("one ?")),
            (19, 0x1020, Some("one second")),
            (19, 0x2000, None),
            (20, 0x1010, Some("two (removed) third")),
        ] {
            assert_eq!(name(ns, address).as_deref(), expected, "{ns} {address:#x}");
        }
    }
}
