// SPDX-License-Identifier: GPL-2.0

//! Which files the descriptors of processes stand for, as far as the trace tells.
//!
//! A process that was made has those of the one that made it. Processes that share their descriptors
//! (`CLONE_FILES`), but for the threads of one, are not known as such; the state has the same files for each.
//!
//! A file that /proc showed while the trace was recorded is known from the time on at which it was
//! looked up: it may be a later one than that which an event before was about.

use super::calls::{closes_on_exec, Does};
use crate::calls::Entry;
use crate::whose::Owner;
use ahash::HashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// Whose the kernel's tables are of which the state tells: one that has it.
    tables: HashMap<u64, Owner>,
}

/// Those of a process.
type Table = BTreeMap<i32, Descriptor>;

/// What a descriptor stands for.
#[derive(Clone, Debug)]
struct Descriptor {
    file: Arc<str>,
    /// Whether it is closed when another program is executed.
    closes: bool,
    /// The clock from which on that is known.
    from: u64,
}

impl Tables {
    /// The file of a descriptor, as it was at this time.
    pub fn file(&self, owner: Owner, fd: i32, time: u64) -> Option<&Arc<str>> {
        let descriptor = self.processes.get(&owner)?.get(&fd)?;
        (descriptor.from <= time).then_some(&descriptor.file)
    }

    /// Whether nothing is known of a descriptor, nor will be from a later time on.
    pub fn is_unknown(&self, owner: Owner, fd: i32) -> bool {
        let table = self.processes.get(&owner);
        !table.is_some_and(|table| table.contains_key(&fd))
    }

    /// From this time on a process has that file, if nothing else is heard of the descriptor until then.
    pub fn found(&mut self, owner: Owner, fd: i32, from: u64, file: Arc<str>, closes: bool) {
        let table = self.processes.entry(owner).or_default();
        table.entry(fd).or_insert(Descriptor { file, closes, from });
    }

    /// A call that did not fail returned `ret` at this time.
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

    /// A process has this table of the kernel's.
    pub fn has(&mut self, owner: Owner, table: u64) {
        let first = *self.tables.entry(table).or_insert(owner);
        if first != owner {
            self.fork(first, owner, u64::MAX);
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

    /// A process has made another at this time.
    pub fn fork(&mut self, parent: Owner, child: Owner, time: u64) {
        match self.processes.get(&parent).cloned() {
            Some(mut table) => {
                // What will be known of the parent later may be what it opened after this.
                table.retain(|_, descriptor| descriptor.from <= time);
                self.processes.insert(child, table)
            }
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

    fn set(&mut self, owner: Owner, fd: i32, file: Arc<str>, closes: bool) {
        let table = self.processes.entry(owner).or_default();
        let from = 0;
        table.insert(fd, Descriptor { file, closes, from });
    }

    /// The file that gets another descriptor, if it is known.
    fn copied(&self, owner: Owner, old: Option<i32>, time: u64) -> Option<Arc<str>> {
        old.and_then(|old| self.file(owner, old, time).cloned())
    }

    /// A descriptor stands for this file, if it is known, and not for what it stood for before.
    fn replace(&mut self, owner: Owner, fd: i32, file: Option<Arc<str>>, closes: bool) {
        match file {
            Some(file) => self.set(owner, fd, file, closes),
            None => self.close(owner, Some(fd), Some(fd)),
        }
    }

    /// Descriptors are closed when another program is executed, or not.
    fn mark(&mut self, owner: Owner, first: Option<i32>, last: Option<i32>, closes: bool) {
        let table = self.processes.get_mut(&owner);
        if let (Some(table), Some(first), Some(last)) = (table, first, last) {
            let marked = table.iter_mut();
            for (_, descriptor) in marked.filter(|(fd, _)| (first..=last).contains(fd)) {
                descriptor.closes = closes;
            }
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
    fn below(&self, owner: Owner, dir: Option<i32>, name: &[u8], time: u64) -> Arc<str> {
        let name = String::from_utf8_lossy(name);
        let dir = dir.and_then(|fd| self.file(owner, fd, time));
        match dir {
            Some(dir) if !name.starts_with('/') => format!("{dir}/{name}").into(),
            _ => name.into(),
        }
    }
}
