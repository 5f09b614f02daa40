// SPDX-License-Identifier: GPL-2.0

//! The mappings of processes, as they change over time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// The number of threads that are remembered after their end, because their last stacks are recorded then.
const ENDED: usize = 1000;

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Code of a file was mapped.
    Map {
        pid: i64,
        begin: u64,
        end: u64,
        /// Its offset in the file.
        offset: u64,
        /// The file.
        file: usize,
    },
    /// A thread began. In a process of its own it has the parent's memory.
    Fork { pid: i64, tid: i64, parent: i64 },
    /// The process has no mapping any more.
    Exec { pid: i64 },
    /// A thread ended.
    Exit { pid: i64, tid: i64 },
}

/// The code at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFile {
    /// The file.
    pub file: usize,
    /// The offset in the file.
    pub offset: u64,
}

/// The processes at one moment.
#[derive(Debug, Default)]
pub struct Processes {
    processes: HashMap<i64, Process>,
    /// The process of each thread.
    threads: HashMap<i64, i64>,
    /// The threads that ended last, with their processes.
    ended: VecDeque<(i64, i64)>,
}

#[derive(Debug, Default)]
struct Process {
    /// Shared by processes that have the same areas since a fork.
    memory: Arc<Memory>,
    threads: usize,
}

/// Areas by their begin. They do not overlap, and none is empty. A trace may contain any offset, so sums of offsets
/// wrap around.
pub type Memory = BTreeMap<u64, Area>;

/// Contents of memory from an address to `end`.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub end: u64,
    /// The offset in the file.
    pub offset: u64,
    pub file: usize,
}

impl Processes {
    /// Applies a change.
    pub fn change(&mut self, change: &Change) {
        match *change {
            Change::Map {
                pid,
                begin,
                end,
                offset,
                file,
            } => {
                self.process_of(pid, pid);
                let process = self.processes.entry(pid).or_default();
                let area = Area { end, offset, file };
                map(Arc::make_mut(&mut process.memory), begin, area);
            }
            Change::Fork { pid, tid, parent } => {
                if let Some(place) = self.ended.iter().position(|(_, ended)| *ended == tid) {
                    let ended = self.ended.remove(place);
                    ended.into_iter().for_each(|ended| self.forget(ended));
                }
                if pid != parent {
                    let memory = self.processes.get(&parent);
                    let memory = memory.map(|process| process.memory.clone());
                    let memory = memory.unwrap_or_default();
                    let process = Process { memory, threads: 0 };
                    if self.processes.insert(pid, process).is_some() {
                        // The number belonged to another process, whose end is unknown.
                        self.threads.retain(|_, process| *process != pid);
                    }
                }
                self.process_of(pid, tid);
            }
            Change::Exec { pid } => {
                if let Some(process) = self.processes.get_mut(&pid) {
                    process.memory = Arc::default();
                }
                // If another thread executed the program, it now has the id of the first one, which has ended.
                self.ended.retain(|(_, ended)| *ended != pid);
            }
            Change::Exit { pid, tid } => {
                self.ended.push_back((pid, tid));
                if self.ended.len() > ENDED {
                    let first = self.ended.pop_front();
                    first.into_iter().for_each(|ended| self.forget(ended));
                }
            }
        }
    }

    /// Forgets a thread that ended long ago.
    fn forget(&mut self, (pid, tid): (i64, i64)) {
        if self.threads.remove(&tid).is_none() {
            return;
        }
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads = process.threads.saturating_sub(1);
            if process.threads == 0 {
                self.processes.remove(&pid);
            }
        }
    }

    /// Notes a thread of a process.
    fn process_of(&mut self, pid: i64, tid: i64) {
        if self.threads.insert(tid, pid) != Some(pid) {
            self.processes.entry(pid).or_default().threads += 1;
        }
    }

    /// The code at an address of the thread with this id.
    pub fn find(&self, tid: i64, address: u64) -> Option<InFile> {
        let process = self.processes.get(self.threads.get(&tid)?)?;
        let (begin, area) = process.memory.range(..=address).next_back()?;
        (address < area.end).then_some(InFile {
            file: area.file,
            offset: area.offset.wrapping_add(address - begin),
        })
    }
}

/// Replaces the areas in the place of a new area.
pub fn map(memory: &mut Memory, begin: u64, area: Area) {
    let before = memory.range(..begin).next_back();
    if let Some((old_begin, old)) = before.map(|(begin, area)| (*begin, *area)) {
        if old.end > begin {
            memory.insert(old_begin, Area { end: begin, ..old });
            if old.end > area.end {
                memory.insert(area.end, rest(old_begin, old, area.end));
            }
        }
    }
    let inside: Vec<_> = memory
        .range(begin..area.end)
        .map(|(b, a)| (*b, *a))
        .collect();
    for (old_begin, old) in inside {
        memory.remove(&old_begin);
        if old.end > area.end {
            memory.insert(area.end, rest(old_begin, old, area.end));
        }
    }
    memory.insert(begin, area);
}

/// The part of an area after `from`.
fn rest(begin: u64, area: Area, from: u64) -> Area {
    Area {
        offset: area.offset.wrapping_add(from - begin),
        ..area
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pid: i64, begin: u64, end: u64, offset: u64, file: usize) -> Change {
        Change::Map {
            pid,
            begin,
            end,
            offset,
            file,
        }
    }

    fn found(processes: &Processes, tid: i64, address: u64) -> Option<(usize, u64)> {
        let found = processes.find(tid, address)?;
        Some((found.file, found.offset))
    }

    #[test]
    fn what_is_mapped_over_is_gone() {
        let mut processes = Processes::default();
        for change in [
            map(1, 0x1000, 0x5000, 0x100, 0),
            map(1, 0x2000, 0x3000, 0, 1),
            map(1, 0x4000, 0x6000, 0, 2),
            map(1, 0x8000, 0x9000, 0, 3),
            map(1, 0x7000, 0x8800, 0, 4),
            map(1, 0xa000, 0xc000, u64::MAX, 5),
            map(1, 0xa800, 0xb000, 0, 6),
        ] {
            processes.change(&change);
        }
        for (address, expected) in [
            (0xfff, None),
            (0x1fff, Some((0, 0x10ff))),
            (0x2000, Some((1, 0))),
            (0x3000, Some((0, 0x2100))),
            (0x3fff, Some((0, 0x30ff))),
            (0x4000, Some((2, 0))),
            (0x5fff, Some((2, 0x1fff))),
            (0x6000, None),
            (0x87ff, Some((4, 0x17ff))),
            (0x8800, Some((3, 0x800))),
            (0xb000, Some((5, 0xfff))),
        ] {
            assert_eq!(found(&processes, 1, address), expected, "{address:#x}");
        }
        assert_eq!(found(&processes, 2, 0x2000), None);
    }

    #[test]
    fn a_fork_has_the_same_until_it_executes() {
        let mut processes = Processes::default();
        let fork = |pid, tid, parent| Change::Fork { pid, tid, parent };
        for change in [
            map(1, 0x1000, 0x2000, 0, 0),
            fork(1, 2, 1),
            fork(3, 3, 1),
            fork(4, 4, 3),
        ] {
            processes.change(&change);
        }
        for tid in 1..=4 {
            assert_eq!(found(&processes, tid, 0x1000), Some((0, 0)));
        }
        processes.change(&Change::Exec { pid: 3 });
        processes.change(&map(3, 0x1000, 0x2000, 0, 7));
        let files = [1, 2, 3, 4].map(|tid| found(&processes, tid, 0x1000).unwrap().0);
        assert_eq!(files, [0, 0, 7, 0]);
        // The first thread may end before the others.
        processes.change(&Change::Exit { pid: 1, tid: 1 });
        assert_eq!(found(&processes, 1, 0x1000), Some((0, 0)));
        processes.change(&Change::Exit { pid: 1, tid: 2 });
        // The number belongs to another thread now.
        processes.change(&fork(1, 1, 9));
        assert_eq!(found(&processes, 1, 0x1000), None);
        for tid in 0..ENDED as i64 {
            processes.change(&fork(5, 1000 + tid, 5));
            processes.change(&Change::Exit {
                pid: 5,
                tid: 1000 + tid,
            });
        }
        assert_eq!(found(&processes, 2, 0x1000), None);
        assert_eq!(processes.threads.len(), ENDED + 3);
    }

    #[test]
    fn any_thread_may_execute_a_program() {
        let mut processes = Processes::default();
        let fork = |pid, tid, parent| Change::Fork { pid, tid, parent };
        for change in [
            fork(1, 1, 9),
            fork(1, 2, 1),
            // Thread 2 executes a program: thread 1 ends, and thread 2 gets its id.
            Change::Exit { pid: 1, tid: 1 },
            Change::Exec { pid: 1 },
            map(1, 0x1000, 0x2000, 0, 0),
        ] {
            processes.change(&change);
        }
        for tid in 0..=ENDED as i64 {
            processes.change(&fork(5, 1000 + tid, 5));
            processes.change(&Change::Exit {
                pid: 5,
                tid: 1000 + tid,
            });
        }
        assert_eq!(found(&processes, 1, 0x1000), Some((0, 0)));
    }
}
