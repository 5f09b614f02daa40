// SPDX-License-Identifier: GPL-2.0

//! What CPUs are asked for and have not done yet, to reschedule: since when, how soon, and who asked.
//!
//! A slot of each CPU follows the flags (`TIF_NEED_RESCHED`, `_LAZY`) of the task that runs there:
//!
//! ```text
//!             asked               switch
//!   (none) ------------> ASKED ------------> (none), measured
//!     ^                  |   ^
//!     |        scheduled |   | schedules, and
//!     | schedules, and   |   | the flag is set
//!     | the flag is not  v   |
//!     +--------------- DOUBTED
//! ```
//!
//! The kernel asks only for what is not asked for yet. So a request takes the place of the one before, which was
//! met without a switch; but one to reschedule at once adds to a lazy one whose flag is still set.
//!
//! The scheduler clears the flags, and then says so by `sched_switch`, if there is a switch. If not, that is seen
//! when it is done (`sched_exit_tp`): if the flag is not set there, the request was met; or it is a new one, of
//! another CPU that has come to the tracepoint and not yet to the flag. Which, is seen when this CPU schedules the
//! next time (`sched_entry_tp`).
//!
//! A CPU asks itself with interrupts disabled, and another one with the lock of its run queue, which is held in a
//! switch, too. When both do at once, the second request is not noted. All changes are by compare-and-exchange, for
//! there they meet.

use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::source::latency::who::{Noted, Who};
use crate::sys::args::Task;
use crate::sys::percpu::PerCpu;
use kernel::prelude::*;

/// How soon a task is to give up its CPU.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// As soon as it can be preempted.
    AtOnce = 0,
    /// At the next tick, or when it returns to user space.
    Lazy = 1,
}

impl RequestKind {
    /// Whether a task has the flag of it.
    #[inline(always)]
    fn is_flagged(self, task: &Task) -> bool {
        task.need_reschedule() & (1 << self as u8) != 0
    }
}

/// What a slot says of the task on its CPU.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum State {
    /// It was asked.
    Asked = 1,
    /// It was asked, and may have given up the CPU already.
    Doubted = 2,
    /// Somebody writes the slot just now.
    Changing = 3,
}

/// The same in a word: a task's id, how soon it is to give up its CPU, and a [`State`].
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word(u64);

impl Word {
    /// Nothing.
    const FREE: Self = Self(0);
    const KIND: u32 = 32;
    const STATE: u32 = 33;

    #[inline(always)]
    const fn new(state: State, kind: RequestKind, tid: u32) -> Self {
        Self((state as u64) << Self::STATE | (kind as u64) << Self::KIND | tid as u64)
    }

    #[inline(always)]
    const fn is(self, state: State) -> bool {
        self.0 >> Self::STATE == state as u64
    }

    #[inline(always)]
    const fn kind(self) -> RequestKind {
        match self.0 >> Self::KIND & 1 {
            0 => RequestKind::AtOnce,
            _ => RequestKind::Lazy,
        }
    }

    #[inline(always)]
    const fn tid(self) -> u32 {
        self.0 as u32
    }
}

/// The open requests of all CPUs.
pub(super) struct Requests(PerCpu<Slot>);

// In a cache line of its own: other CPUs write it.
#[repr(align(64))]
struct Slot {
    /// A [`Word`].
    word: SharedWord,
    since: SharedWord,
    /// From when on it was a lazy one; if it never was, as `since`.
    lazy_since: SharedWord,
    asker: Noted,
}

/// A request that is met.
pub(super) struct Request {
    pub(super) kind: RequestKind,
    /// A moment of the stopwatch.
    pub(super) since: u64,
    /// The moment from which on it was a lazy one; if it never was, as `since`.
    pub(super) lazy_since: u64,
    pub(super) asker: Who,
}

/// Another request is noted just now.
pub(super) struct RequestPending;

impl Requests {
    /// No CPU was asked for anything. May sleep.
    pub(super) fn new() -> Result<Self> {
        Ok(Self(PerCpu::new(Slot::new)?))
    }

    /// `task`, which runs on `cpu`, is asked; its flag is not set yet.
    #[inline(always)]
    pub(super) fn ask(
        &self,
        cpu: u32,
        task: &Task,
        kind: RequestKind,
        now: u64,
    ) -> Result<(), RequestPending> {
        let Some(slot) = self.0.of(cpu) else {
            return Ok(());
        };
        let tid = task.tid() as u32;
        let last = loop {
            let last = slot.load();
            if last.is(State::Changing) {
                return Err(RequestPending);
            }
            if slot.replace(last, Word::new(State::Changing, kind, tid)) {
                break last;
            }
        };
        // Else that lazy request was met, or is of another task.
        let is_more = last != Word::FREE && last.kind() == RequestKind::Lazy && last.tid() == tid;
        let was_lazy = is_more && RequestKind::Lazy.is_flagged(task);
        let lazy_since = if was_lazy { slot.since.load() } else { now };
        slot.since.store(now);
        slot.lazy_since.store(lazy_since);
        slot.asker.store(&Who::now());
        let asked = Word::new(State::Asked, kind, tid);
        slot.word.store_release(asked.0);
        Ok(())
    }

    /// `task`, which runs here, calls the scheduler.
    #[inline(always)]
    pub(super) fn schedules(&self, task: &Task, guard: &NoPreempt) {
        let slot = self.0.this_cpu(guard);
        let word = slot.load();
        if word.is(State::Doubted) {
            let new = match word.kind().is_flagged(task) {
                true => Word::new(State::Asked, word.kind(), word.tid()),
                false => Word::FREE,
            };
            slot.replace(word, new);
        }
    }

    /// `task`, which runs here, has called the scheduler, and runs on.
    #[inline(always)]
    pub(super) fn runs_on(&self, task: &Task, guard: &NoPreempt) {
        let slot = self.0.this_cpu(guard);
        let word = slot.load();
        if word.is(State::Asked) && !word.kind().is_flagged(task) {
            slot.replace(word, Word::new(State::Doubted, word.kind(), word.tid()));
        }
    }

    /// `task` leaves this CPU: the request that is met by that, if it was asked.
    #[inline(always)]
    pub(super) fn leaves(&self, task: &Task, guard: &NoPreempt) -> Option<Request> {
        let slot = self.0.this_cpu(guard);
        let word = slot.load();
        let request = Request {
            kind: word.kind(),
            since: slot.since.load(),
            lazy_since: slot.lazy_since.load(),
            asker: slot.asker.load(),
        };
        let is_met = word.is(State::Asked) && word.tid() == task.tid() as u32;
        (slot.replace(word, Word::FREE) && is_met).then_some(request)
    }
}

impl Slot {
    const fn new() -> Self {
        Self {
            word: SharedWord::new(Word::FREE.0),
            since: SharedWord::new(0),
            lazy_since: SharedWord::new(0),
            asker: Noted::new(),
        }
    }

    #[inline(always)]
    fn load(&self) -> Word {
        Word(self.word.load_acquire())
    }

    /// Whether the word was `old`, and is `new` now.
    #[inline(always)]
    fn replace(&self, old: Word, new: Word) -> bool {
        self.word.compare_exchange(old.0, new.0)
    }
}
