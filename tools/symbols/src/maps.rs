// SPDX-License-Identifier: GPL-2.0

//! Names of functions in the keys of maps.

use super::programs::{Place, Programs};
use super::stacks::Frame;
use rtrace_unwind::end::StackEnd;
use store::maps::{MapTable, UserStack};

impl Programs {
    /// See [`Symbols::name_maps`](super::Symbols::name_maps).
    pub fn name_maps(&mut self, tables: &mut [MapTable]) {
        for table in tables {
            if table.user_stacks().next().is_some() {
                table.name_user_stacks(|stack| self.named(stack));
            }
        }
    }

    /// The functions of a stack, the innermost first, with `;` between them. If the stack is cut, the last one says why.
    fn named(&mut self, stack: &UserStack) -> String {
        let frames = Frame::of_user(stack);
        let mut names: Vec<_> = frames
            .map(
                |frame| match self.find(stack.pid.into(), u64::MAX, frame.code()) {
                    Some(Place {
                        function: Some(function),
                        ..
                    }) => function.name.replace(';', ":"),
                    Some(place) => format!("[{}]", place.file.name().replace(';', ":")),
                    None => format!("[unknown] {:#x}", frame.address),
                },
            )
            .collect();
        names.extend(match StackEnd::from_raw(stack.end) {
            Some((StackEnd::Whole, _)) => None,
            Some((end, _)) => Some(format!("[{}]", end.name())),
            None => Some("[cut]".to_owned()),
        });
        names.join(";")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::Function;
    use crate::mappings::{MappedFile, Mappings};
    use crate::processes::Change;
    use crate::FileNames;

    #[test]
    fn functions_of_ended_processes_have_names() {
        let file = MappedFile {
            path: "/bin/one".to_owned(),
            id: None,
        };
        let function = |offset, name: &str| Function {
            offset,
            size: 0x10,
            name: name.to_owned(),
        };
        let map = Change::Map {
            pid: 7,
            begin: 0x1000,
            end: 0x2000,
            offset: 0,
            file: 0,
        };
        let exit = Change::Exit { pid: 7, tid: 7 };
        let mappings = Mappings {
            files: vec![file.clone()],
            changes: vec![(10, map), (20, exit)],
            lost: 0,
        };
        let functions = vec![function(0, "inner"), function(0x10, "caller<[u8; 3]>")];
        let mut programs = Programs::new(mappings, vec![(file, FileNames::of(functions))]);
        let mut named = |pid, end, addresses: &[u64]| {
            programs.named(&UserStack {
                pid,
                end,
                addresses: addresses.to_vec(),
            })
        };
        // A call may be the last instruction of a function.
        let whole = named(7, 0, &[0x1000, 0x1020, 0x1500, 0x9000]);
        assert_eq!(whole, "inner;caller<[u8: 3]>;[one];[unknown] 0x9000");
        assert_eq!(named(7, 16, &[0x1000]), "inner");
        assert_eq!(named(7, 2, &[0x1000]), "inner;[cut: stack not readable]");
        assert_eq!(named(8, 99, &[0x1000]), "[unknown] 0x1000;[cut]");
    }
}
