// SPDX-License-Identifier: GPL-2.0

//! The functions of programs: at an address, in a thread, at a time.

use super::debuginfod::Servers;
use super::elf::{self, Function};
use super::mappings::{MappedFile, Mappings};
use super::processes::{Change, InFile, Processes};
use std::path::Path;
use std::vec;
use terminal::printable;

/// The code at an address of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The file.
    pub file: &'a MappedFile,
    /// The offset in the file.
    pub offset: u64,
    /// The function there, if known.
    pub function: Option<&'a Function>,
}

/// The programs of a trace, over time.
#[derive(Debug, Default)]
pub struct Programs {
    processes: Processes,
    /// The changes that lie in the future.
    changes: vec::IntoIter<(u64, Change)>,
    next: Option<(u64, Change)>,
    files: Vec<Program>,
    /// The servers for files that this machine does not have.
    servers: Option<Servers>,
}

#[derive(Debug)]
struct Program {
    file: MappedFile,
    /// The functions, sorted. [`None`]: not read yet.
    functions: Option<Vec<Function>>,
}

impl Programs {
    /// Makes the programs with these functions, of files that may be missing here. The functions of other files are
    /// read on demand.
    pub fn new(mappings: Mappings, mut known: Vec<(MappedFile, Vec<Function>)>) -> Self {
        let is_saved = !known.is_empty();
        let program = |file| {
            let known = known.iter_mut().find(|(known, _)| *known == file);
            let functions = known.map(|(_, functions)| std::mem::take(functions));
            Program {
                file,
                functions: functions.or(is_saved.then(Vec::new)),
            }
        };
        let mut changes = mappings.changes.into_iter();
        Self {
            files: mappings.files.into_iter().map(program).collect(),
            next: changes.next(),
            changes,
            processes: Processes::default(),
            servers: None,
        }
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
        let functions = program
            .functions
            .get_or_insert_with(|| read(&program.file, self.servers));
        let behind = functions.partition_point(|function| function.offset <= offset);
        let function = behind.checked_sub(1).map(|place| &functions[place]);
        Some(Place {
            file: &program.file,
            offset,
            function: function.filter(|function| offset - function.offset < function.size),
        })
    }
}

/// The functions of a file, if it is still the mapped one.
fn read(file: &MappedFile, servers: Option<Servers>) -> Vec<Function> {
    // `[vdso]` and `//anon` are no files, but files of these names may exist.
    if !file.path.starts_with('/') || file.path.starts_with("//") {
        return Vec::new();
    }
    elf::functions(file, servers).unwrap_or_default()
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
            build_id: None,
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
                vec![function(0x400, "first"), function(0x420, "second")],
            ),
            (file("/bin/two"), vec![function(0x410, "third")]),
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
            (20, 0x1010, Some("two third")),
        ] {
            assert_eq!(name(ns, address).as_deref(), expected, "{ns} {address:#x}");
        }
    }
}
