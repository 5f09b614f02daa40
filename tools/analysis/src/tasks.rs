// SPDX-License-Identifier: GPL-2.0

//! The threads of a trace at a moment: their names, processes and parents. Every view has them from
//! here.
//!
//! Names come from `task_rename`, `sched_process_exec`, `sched_process_fork`, `sched_process_exit`,
//! `sched_switch`, wake-ups, the contexts of events, and the initial state.
//!
//! The kernel uses ids again. And a thread that executes a program gets the id of its process, if it
//! had another one. So an id is not enough:
//!
//! - A [`Serial`] is a thread, whatever its id is.
//! - A [`Life`] is the time in which an id stands for one process or thread.

use super::schedule::State;
use ahash::HashMap;

/// The number of a thread, which no other one gets.
pub type Serial = u64;

/// The number of a life, which no other one gets.
pub type Life = u64;

/// A thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// It.
    pub serial: Serial,
    /// The life of its id.
    pub life: Life,
    comm: Vec<u8>,
    /// Its process.
    pub process: Option<i64>,
    /// The parent of its process.
    pub parent: Option<i64>,
    /// Its state, and since when, if that is known.
    pub state: Option<(State, u64)>,
    /// Whether its name is from `task_rename`, and it has executed no program since.
    pub is_renamed: bool,
    /// The name before the last `task_rename`, until an event shows the new one.
    old_comm: Option<Vec<u8>>,
}

/// The threads.
#[derive(Debug, Default)]
pub struct Tasks {
    /// By thread id: those that have not ended.
    threads: HashMap<i64, Thread>,
    /// By thread or process id: the last life, and whether its thread has ended.
    lives: HashMap<i64, (Life, bool)>,
    /// A thread that has ended, and of which the last event may still be told.
    ended: Option<i64>,
    /// Numbers that were given.
    numbers: u64,
}

impl Thread {
    /// Its name; empty if that is not known.
    pub fn comm(&self) -> &[u8] {
        &self.comm
    }

    /// It is called so.
    pub fn call(&mut self, comm: &[u8]) {
        if self.comm != comm {
            self.comm.clear();
            self.comm.extend_from_slice(comm);
        }
        self.old_comm = None;
    }

    /// An event shows this name.
    ///
    /// The kernel emits `task_rename` before it changes the name (`__set_task_comm`). A thread that is
    /// preempted in between still has the old name.
    pub fn shows(&mut self, comm: &[u8]) {
        if self.old_comm.as_deref() != Some(comm) {
            self.call(comm);
        }
    }

    /// `task_rename` came.
    pub fn rename(&mut self, old: &[u8], new: &[u8]) {
        self.call(new);
        self.is_renamed = true;
        self.old_comm = (old != new).then(|| old.to_vec());
    }

    /// Events were lost, and names with them.
    pub fn forget_rename(&mut self) {
        self.is_renamed = false;
        self.old_comm = None;
    }
}

impl Tasks {
    /// A thread that has not ended, if it was seen.
    pub fn get(&self, tid: i64) -> Option<&Thread> {
        self.threads.get(&tid)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, tid: i64) -> Option<&mut Thread> {
        self.threads.get_mut(&tid)
    }

    /// All of them, with their ids.
    pub fn all_mut(&mut self) -> impl Iterator<Item = (i64, &mut Thread)> {
        self.threads.iter_mut().map(|(tid, thread)| (*tid, thread))
    }

    /// The last life of the id of a thread or process; 0 if it was not seen.
    pub fn life(&self, id: i64) -> Life {
        self.lives.get(&id).map_or(0, |(life, _)| *life)
    }

    /// The thread of this id, which is seen.
    pub fn thread(&mut self, tid: i64) -> &mut Thread {
        let Self {
            threads,
            lives,
            numbers,
            ..
        } = self;
        threads.entry(tid).or_insert_with(|| {
            let mut number = || {
                *numbers += 1;
                *numbers
            };
            let life = match lives.get(&tid) {
                Some((life, false)) => *life,
                _ => number(),
            };
            lives.insert(tid, (life, false));
            Thread {
                serial: number(),
                life,
                comm: Vec::new(),
                process: None,
                parent: None,
                state: None,
                is_renamed: false,
                old_comm: None,
            }
        })
    }

    /// A thread is of this process.
    pub fn belongs(&mut self, tid: i64, process: i64) {
        let thread = self.thread(tid);
        if thread.process != Some(process) {
            thread.process = Some(process);
            let is_known = self.lives.contains_key(&process);
            if !is_known {
                let life = self.number();
                self.lives.insert(process, (life, false));
            }
        }
    }

    /// A thread is made: what had its id before has ended, unless it is known what that does.
    pub fn made(&mut self, tid: i64) -> &mut Thread {
        let lives = |thread: &Thread| thread.state.is_some();
        if self.threads.get(&tid).is_some_and(lives) {
            return self.thread(tid);
        }
        self.threads.remove(&tid);
        if let Some((_, is_over)) = self.lives.get_mut(&tid) {
            *is_over = true;
        }
        self.thread(tid)
    }

    /// A thread has ended. It is forgotten at the next event.
    pub fn ends(&mut self, tid: i64) {
        self.ended = Some(tid);
    }

    /// The next event comes.
    pub fn next(&mut self) {
        if let Some(tid) = self.ended.take() {
            self.threads.remove(&tid);
            if let Some((_, is_over)) = self.lives.get_mut(&tid) {
                *is_over = true;
            }
        }
    }

    /// The thread `old` has the id `pid` of its process from now on: all other threads of that have
    /// ended. What is known under the old id is so until the next event.
    pub fn becomes(&mut self, old: i64, pid: i64) {
        let serial = self.number();
        let thread = self.thread(old);
        let before = Thread {
            serial,
            ..thread.clone()
        };
        let mut thread = std::mem::replace(thread, before);
        self.ends(old);
        thread.process = Some(pid);
        thread.life = match self.lives.get_mut(&pid) {
            Some((life, is_over)) => {
                *is_over = false;
                *life
            }
            None => {
                let life = self.number();
                self.lives.insert(pid, (life, false));
                life
            }
        };
        self.threads.insert(pid, thread);
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}
