// SPDX-License-Identifier: GPL-2.0

//! The threads of a trace at one moment: their names, processes and parents. All views use these.
//!
//! Names come from `task_rename`, `sched_process_exec`, `sched_process_fork`, `sched_process_exit`,
//! `sched_switch`, wake-ups, the contexts of events, and the initial state.
//!
//! The kernel reuses ids. A thread that executes a program gets the id of its process, if its own id
//! differs. An id alone is therefore not enough:
//!
//! - A [`Serial`] identifies a thread, independent of its id.
//! - A [`Life`] identifies the time in which an id belongs to one process or thread.

use super::by_id::ById;
use super::schedule_events::Activity;

/// Unique number of a thread.
pub type Serial = u64;

/// Unique number of a life.
pub type Life = u64;

/// A thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Serial of the thread.
    pub serial: Serial,
    /// Life of the thread's id.
    pub life: Life,
    comm: Vec<u8>,
    /// Process of the thread.
    pub process: Option<i64>,
    /// Parent of the process.
    pub parent: Option<i64>,
    /// State and its begin, if they are known.
    pub state: Option<(Activity, u64)>,
    /// Whether the name is from `task_rename`, with no exec since then.
    pub is_renamed: bool,
    /// The name before the last `task_rename`, until an event shows the new one.
    old_comm: Option<Vec<u8>>,
    /// Whether the thread is about to end (`sched_process_exit`).
    pub is_exiting: bool,
    /// Whether the thread is known to be one of those whose events the trace has, if it has only some threads' events.
    pub is_chosen: bool,
}

/// All threads.
#[derive(Debug, Default)]
pub struct Tasks {
    /// Threads that have not ended, by thread id.
    threads: ById<Thread>,
    /// By thread or process id: the last life, and whether its thread has ended.
    lives: ById<(Life, bool)>,
    /// A thread that has ended. Its last event may still be in process.
    ended: Option<i64>,
    /// Number of serials and lives that were assigned.
    numbers: u64,
}

impl Thread {
    /// Returns the name; empty if it is not known.
    pub fn comm(&self) -> &[u8] {
        &self.comm
    }

    /// Sets the name.
    pub fn call(&mut self, comm: &[u8]) {
        if self.comm != comm {
            self.comm.clear();
            self.comm.extend_from_slice(comm);
        }
        self.old_comm = None;
    }

    /// Handles an event that has this name.
    ///
    /// The kernel emits `task_rename` before it changes the name (`__set_task_comm`). A thread that is
    /// preempted in between still has the old name.
    pub fn shows(&mut self, comm: &[u8]) {
        if self.old_comm.as_deref() != Some(comm) {
            self.call(comm);
        }
    }

    /// Handles `task_rename`.
    pub fn rename(&mut self, old: &[u8], new: &[u8]) {
        self.call(new);
        self.is_renamed = true;
        self.old_comm = (old != new).then(|| old.to_vec());
    }

    /// Handles a loss, in which a `task_rename` may be missing.
    pub fn forget_rename(&mut self) {
        self.is_renamed = false;
        self.old_comm = None;
    }
}

impl Tasks {
    /// Returns a thread that has not ended, if an event showed it.
    pub fn get(&self, tid: i64) -> Option<&Thread> {
        self.threads.get(tid)
    }

    /// Returns a mutable reference to such a thread.
    pub fn get_mut(&mut self, tid: i64) -> Option<&mut Thread> {
        self.threads.get_mut(tid)
    }

    /// Returns all threads with their ids.
    pub fn all(&self) -> impl Iterator<Item = (i64, &Thread)> {
        self.threads.iter()
    }

    /// Returns all threads with their ids, to change them.
    pub fn all_mut(&mut self) -> impl Iterator<Item = (i64, &mut Thread)> {
        self.threads.iter_mut()
    }

    /// Returns the last life of a thread or process id; 0 if no event showed the id.
    pub fn life(&self, id: i64) -> Life {
        self.lives.get(id).map_or(0, |(life, _)| *life)
    }

    /// Returns the thread with this id. Adds the thread if it is new.
    pub fn thread(&mut self, tid: i64) -> &mut Thread {
        if self.threads.get(tid).is_none() {
            let life = match self.lives.get(tid) {
                Some((life, false)) => *life,
                _ => self.number(),
            };
            self.lives.insert(tid, (life, false));
            let thread = Thread {
                serial: self.number(),
                life,
                comm: Vec::new(),
                process: None,
                parent: None,
                state: None,
                is_renamed: false,
                old_comm: None,
                is_exiting: false,
                is_chosen: false,
            };
            return self.threads.insert(tid, thread);
        }
        match self.threads.get_mut(tid) {
            Some(thread) => thread,
            None => unreachable!("it was found"),
        }
    }

    /// Sets the process of a thread.
    pub fn belongs(&mut self, tid: i64, process: i64) {
        let thread = self.thread(tid);
        if thread.process != Some(process) {
            thread.process = Some(process);
            let is_known = self.lives.get(process).is_some();
            if !is_known {
                let life = self.number();
                self.lives.insert(process, (life, false));
            }
        }
    }

    /// Adds a new thread. An earlier thread with its id has ended, unless the state of that thread is
    /// known.
    pub fn made(&mut self, tid: i64) -> &mut Thread {
        let lives = |thread: &Thread| thread.state.is_some();
        if self.threads.get(tid).is_some_and(lives) {
            return self.thread(tid);
        }
        self.threads.remove(tid);
        if let Some((_, is_over)) = self.lives.get_mut(tid) {
            *is_over = true;
        }
        self.thread(tid)
    }

    /// Marks a thread as ended.
    pub fn ends(&mut self, tid: i64) {
        self.ended = Some(tid);
    }

    /// Forgets the thread that has ended with the last event. Returns its id.
    pub fn forget_ended(&mut self) -> Option<i64> {
        let tid = self.ended.take()?;
        self.threads.remove(tid);
        if let Some((_, is_over)) = self.lives.get_mut(tid) {
            *is_over = true;
        }
        Some(tid)
    }

    /// Gives the thread `old` the id `pid` of its process, whose other threads have all ended, or have only their last
    /// switch left. The data under the old id remains until the next event.
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
        thread.life = match self.lives.get_mut(pid) {
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
