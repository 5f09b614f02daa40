// SPDX-License-Identifier: GPL-2.0

//! Files that the descriptors of processes refer to, as far as they are known from the trace.
//!
//! A new process has the descriptors of the process that created it. Processes other than threads of one
//! process can share a table (`CLONE_FILES`). The trace does not show this; the initial state lists the
//! same files for each of them.
//!
//! A file found in /proc during the recording is known from the time of its lookup on. At an earlier event
//! the descriptor may have referred to another file.

use super::calls::{closes_on_exec, Does};
use crate::calls::Entry;
use crate::whose::Owner;
use ahash::HashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use system::printing;

/// `F_DUPFD`
const DUPFD: u64 = 0;
/// `F_SETFD`
const SETFD: u64 = 2;
/// `F_DUPFD_CLOEXEC`
const DUPFD_CLOEXEC: u64 = 1030;
/// `FD_CLOEXEC`
const FD_CLOEXEC: u64 = 1;
/// `FIONCLEX`
const NOT_ON_EXEC: u64 = 0x5450;
/// `FIOCLEX`
const ON_EXEC: u64 = 0x5451;
/// `CLOSE_RANGE_CLOEXEC`
const CLOSE_RANGE_CLOEXEC: u64 = 4;

/// The descriptors of all processes.
#[derive(Debug, Default)]
pub struct Tables {
    processes: HashMap<Owner, Table>,
    /// A process for each table of the kernel that the initial state lists.
    tables: HashMap<u64, Owner>,
}

/// Descriptors of a process.
type Table = BTreeMap<i32, Descriptor>;

/// File of a descriptor.
#[derive(Clone, Debug)]
struct Descriptor {
    file: Arc<str>,
    /// Whether an exec closes the descriptor.
    closes: bool,
    /// Time from which on the file is known.
    from: u64,
}

impl Tables {
    /// Returns the file that a descriptor had at this time.
    pub fn file(&self, owner: Owner, fd: i32, time: u64) -> Option<&Arc<str>> {
        let descriptor = self.processes.get(&owner)?.get(&fd)?;
        (descriptor.from <= time).then_some(&descriptor.file)
    }

    /// Returns whether no file of a descriptor is known, neither for now nor for a later time.
    pub fn is_unknown(&self, owner: Owner, fd: i32) -> bool {
        let table = self.processes.get(&owner);
        !table.is_some_and(|table| table.contains_key(&fd))
    }

    /// Sets the file that a process has from this time on, if the descriptor has no known file yet.
    pub fn found(&mut self, owner: Owner, fd: i32, from: u64, file: Arc<str>, closes: bool) {
        let table = self.processes.entry(owner).or_default();
        table.entry(fd).or_insert(Descriptor { file, closes, from });
    }

    /// Applies a call that succeeded and returned `ret` at this time.
    pub fn call(&mut self, does: Does, entry: &Entry<Does>, ret: i64, time: u64) {
        let [first, second, third] = entry.arguments;
        let fd = |argument: Option<u64>| argument.map(|argument| argument as i32);
        let new = i32::try_from(ret).unwrap_or(-1);
        match does {
            Does::Open => {
                let Some(name) = &entry.text else {
                    return self.close(entry.owner, Some(new), Some(new));
                };
                let file = self.below(entry.owner, fd(first), name, time);
                self.set(entry.owner, new, file, closes_on_exec(second));
            }
            Does::Make(kind, cloexec) => {
                let closes = first.is_some_and(|flags| flags & cloexec != 0);
                self.set(entry.owner, new, format!("[{kind}]").into(), closes);
            }
            Does::Duplicate => {
                let file = self.copied(entry.owner, fd(first), time);
                self.replace(entry.owner, new, file, closes_on_exec(third));
            }
            Does::Control => match second {
                Some(command @ (DUPFD | DUPFD_CLOEXEC)) => {
                    let file = self.copied(entry.owner, fd(first), time);
                    self.replace(entry.owner, new, file, command == DUPFD_CLOEXEC);
                }
                Some(SETFD) => {
                    let closes = third.is_some_and(|flags| flags & FD_CLOEXEC != 0);
                    self.mark(entry.owner, fd(first), fd(first), closes);
                }
                _ => {}
            },
            Does::Device => {
                if let Some(command @ (ON_EXEC | NOT_ON_EXEC)) = second {
                    self.mark(entry.owner, fd(first), fd(first), command == ON_EXEC);
                }
            }
            Does::Close => self.close(entry.owner, fd(first), fd(first)),
            Does::CloseRange => {
                let end = second.map(|fd| i32::try_from(fd).unwrap_or(i32::MAX));
                if third.is_some_and(|flags| flags & CLOSE_RANGE_CLOEXEC != 0) {
                    self.mark(entry.owner, fd(first), end, true);
                } else {
                    self.close(entry.owner, fd(first), end);
                }
            }
            Does::Execute => {
                if let Some(table) = self.processes.get_mut(&entry.owner) {
                    table.retain(|_, descriptor| !descriptor.closes);
                }
            }
            Does::Read | Does::Write | Does::Copy => {}
        }
    }

    /// Records that a process has this table of the kernel.
    pub fn has(&mut self, owner: Owner, table: u64) {
        let first = *self.tables.entry(table).or_insert(owner);
        if first != owner {
            self.fork(first, owner, u64::MAX);
        }
    }

    /// Forgets the tables of the kernel: the same address may identify another table from now on.
    pub fn forget_tables(&mut self) {
        self.tables.clear();
    }

    /// Records a file in a table of the kernel.
    pub fn opened(&mut self, table: u64, fd: i32, name: &[u8], flags: u64) {
        if let Some(&owner) = self.tables.get(&table) {
            let file = printing::text(name).into();
            self.set(owner, fd, file, closes_on_exec(Some(flags)));
        }
    }

    /// Moves the descriptors of a thread to its process, which has just become known.
    pub fn belongs(&mut self, tid: i64, process: Owner) {
        if let Some(table) = self.processes.remove(&Owner::Thread(tid)) {
            self.processes.entry(process).or_insert(table);
        }
    }

    /// Copies the descriptors of a process to a new process at this time.
    pub fn fork(&mut self, parent: Owner, child: Owner, time: u64) {
        match self.processes.get(&parent).cloned() {
            Some(mut table) => {
                // A later known file of the parent may be one that the parent opened after the fork.
                table.retain(|_, descriptor| descriptor.from <= time);
                self.processes.insert(child, table)
            }
            None => self.processes.remove(&child),
        };
    }

    /// Handles the end of a process.
    pub fn exit(&mut self, owner: Owner) {
        self.tables.retain(|_, first| *first != owner);
        self.processes.remove(&owner);
    }

    /// Forgets all descriptors.
    pub fn forget(&mut self) {
        self.processes.clear();
        self.tables.clear();
    }

    fn set(&mut self, owner: Owner, fd: i32, file: Arc<str>, closes: bool) {
        let table = self.processes.entry(owner).or_default();
        let from = 0;
        table.insert(fd, Descriptor { file, closes, from });
    }

    /// Returns the file whose descriptor is duplicated, if it is known.
    fn copied(&self, owner: Owner, old: Option<i32>, time: u64) -> Option<Arc<str>> {
        old.and_then(|old| self.file(owner, old, time).cloned())
    }

    /// Replaces the file of a descriptor. If the new file is not known, the descriptor becomes unknown.
    fn replace(&mut self, owner: Owner, fd: i32, file: Option<Arc<str>>, closes: bool) {
        match file {
            Some(file) => self.set(owner, fd, file, closes),
            None => self.close(owner, Some(fd), Some(fd)),
        }
    }

    /// Sets whether an exec closes the descriptors from `first` to `last`.
    fn mark(&mut self, owner: Owner, first: Option<i32>, last: Option<i32>, closes: bool) {
        let table = self.processes.get_mut(&owner);
        if let (Some(table), Some(first), Some(last)) = (table, first, last) {
            let marked = table.iter_mut();
            for (_, descriptor) in marked.filter(|(fd, _)| (first..=last).contains(fd)) {
                descriptor.closes = closes;
            }
        }
    }

    /// Forgets the file of a descriptor: it is another file from now on.
    pub fn unknown(&mut self, owner: Owner, fd: i32) {
        self.close(owner, Some(fd), Some(fd));
    }

    fn close(&mut self, owner: Owner, first: Option<i32>, last: Option<i32>) {
        let (Some(table), Some(first), Some(last)) = (self.processes.get_mut(&owner), first, last)
        else {
            return;
        };
        table.retain(|fd, _| !(first..=last).contains(fd));
        if table.is_empty() {
            self.processes.remove(&owner);
        }
    }

    /// Returns the name of a file. If it is relative and its directory is known, the directory's name precedes it.
    fn below(&self, owner: Owner, dir: Option<i32>, name: &[u8], time: u64) -> Arc<str> {
        let name = printing::text(name);
        let dir = dir.and_then(|fd| self.file(owner, fd, time));
        match dir {
            Some(dir) if !name.starts_with('/') => format!("{dir}/{name}").into(),
            _ => name.into(),
        }
    }
}
