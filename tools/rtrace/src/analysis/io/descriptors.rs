// SPDX-License-Identifier: GPL-2.0

//! Which files the descriptors of processes stand for, as far as the trace tells.
//!
//! A process that was made has those of the one that made it. Processes that share their descriptors
//! (`CLONE_FILES`), but for the threads of one, are not known as such; the state has the same files for each.

use super::file_calls::{closes_on_exec, Does};
use crate::analysis::calls::Entry;
use crate::analysis::whose::Owner;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// `F_DUPFD`
const DUPFD: u64 = 0;
/// `F_SETFD`
const SETFD: u64 = 2;
/// `F_DUPFD_CLOEXEC`
const DUPFD_CLOEXEC: u64 = 1030;
/// `FD_CLOEXEC`
const FD_CLOEXEC: u64 = 1;
/// `CLOSE_RANGE_CLOEXEC`
const CLOSE_RANGE_CLOEXEC: u64 = 4;

/// The descriptors of all processes.
#[derive(Debug, Default)]
pub struct Descriptors {
    processes: HashMap<Owner, Table>,
    /// Whose the kernel's tables are of which the state tells: one that has it.
    tables: HashMap<u64, Owner>,
}

/// Those of a process.
type Table = BTreeMap<i32, Descriptor>;

/// What a descriptor stands for.
#[derive(Clone, Debug)]
struct Descriptor {
    file: Rc<str>,
    /// Whether it is closed when another program is executed.
    closes: bool,
}

impl Descriptors {
    /// The file of a descriptor.
    pub fn file(&self, owner: Owner, fd: i32) -> Option<&Rc<str>> {
        let descriptor = self.processes.get(&owner)?.get(&fd)?;
        Some(&descriptor.file)
    }

    /// A call that did not fail returned `ret`.
    pub fn call(&mut self, does: Does, entry: &Entry<Does>, ret: i64) {
        let [first, second, third] = entry.arguments;
        let fd = |argument: Option<u64>| argument.map(|argument| argument as i32);
        let new = i32::try_from(ret).unwrap_or(-1);
        match does {
            Does::Open => {
                let Some(name) = &entry.text else { return };
                let file = self.below(entry.owner, fd(first), name);
                self.set(entry.owner, new, file, closes_on_exec(second));
            }
            Does::Make(kind, cloexec) => {
                let closes = first.is_some_and(|flags| flags & cloexec != 0);
                self.set(entry.owner, new, format!("[{kind}]").into(), closes);
            }
            Does::Duplicate => self.duplicate(entry.owner, fd(first), new, closes_on_exec(third)),
            Does::Control => match second {
                Some(DUPFD) => self.duplicate(entry.owner, fd(first), new, false),
                Some(DUPFD_CLOEXEC) => self.duplicate(entry.owner, fd(first), new, true),
                Some(SETFD) => {
                    let closes = third.is_some_and(|flags| flags & FD_CLOEXEC != 0);
                    let table = self.processes.get_mut(&entry.owner);
                    let descriptor = fd(first).and_then(|fd| table?.get_mut(&fd));
                    if let Some(descriptor) = descriptor {
                        descriptor.closes = closes;
                    }
                }
                _ => {}
            },
            Does::Close => self.close(entry.owner, fd(first), fd(first)),
            Does::CloseRange => {
                if third.is_some_and(|flags| flags & CLOSE_RANGE_CLOEXEC != 0) {
                    return;
                }
                let end = second.map(|fd| i32::try_from(fd).unwrap_or(i32::MAX));
                self.close(entry.owner, fd(first), end);
            }
            Does::Execute => {
                if let Some(table) = self.processes.get_mut(&entry.owner) {
                    table.retain(|_, descriptor| !descriptor.closes);
                }
            }
            Does::Read | Does::Write | Does::Copy => {}
        }
    }

    /// A process has this table of the kernel's.
    pub fn has(&mut self, owner: Owner, table: u64) {
        let first = *self.tables.entry(table).or_insert(owner);
        if first != owner {
            self.fork(first, owner);
        }
    }

    /// What stood for a table of the kernel's may stand for another one from now on.
    pub fn forget_tables(&mut self) {
        self.tables.clear();
    }

    /// A table of the kernel's has this file.
    pub fn opened(&mut self, table: u64, fd: i32, name: &[u8], flags: u64) {
        if let Some(&owner) = self.tables.get(&table) {
            let file = String::from_utf8_lossy(name).into();
            self.set(owner, fd, file, closes_on_exec(Some(flags)));
        }
    }

    /// A thread is found to be of a process: what it had by itself, that has.
    pub fn belongs(&mut self, tid: i64, process: Owner) {
        if let Some(table) = self.processes.remove(&Owner::Thread(tid)) {
            self.processes.entry(process).or_insert(table);
        }
    }

    /// A process has made another.
    pub fn fork(&mut self, parent: Owner, child: Owner) {
        match self.processes.get(&parent).cloned() {
            Some(table) => self.processes.insert(child, table),
            None => self.processes.remove(&child),
        };
    }

    /// A process has ended.
    pub fn exit(&mut self, owner: Owner) {
        self.tables.retain(|_, first| *first != owner);
        self.processes.remove(&owner);
    }

    /// Nothing is known any more.
    pub fn forget(&mut self) {
        self.processes.clear();
        self.tables.clear();
    }

    fn set(&mut self, owner: Owner, fd: i32, file: Rc<str>, closes: bool) {
        let table = self.processes.entry(owner).or_default();
        table.insert(fd, Descriptor { file, closes });
    }

    /// The new descriptor stands for what the old one does, be that known or not.
    fn duplicate(&mut self, owner: Owner, old: Option<i32>, new: i32, closes: bool) {
        match old.and_then(|old| self.file(owner, old).cloned()) {
            Some(file) => self.set(owner, new, file, closes),
            None => self.close(owner, Some(new), Some(new)),
        }
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

    /// A file's name: as it was given, behind that of the directory below which it is, if that is known.
    fn below(&self, owner: Owner, dir: Option<i32>, name: &[u8]) -> Rc<str> {
        let name = String::from_utf8_lossy(name);
        let dir = dir.and_then(|fd| self.file(owner, fd));
        match dir {
            Some(dir) if !name.starts_with('/') => format!("{dir}/{name}").into(),
            _ => name.into(),
        }
    }
}
