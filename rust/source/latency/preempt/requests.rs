// SPDX-License-Identifier: GPL-2.0

//! Open requests to CPUs to reschedule: since when, how urgent, and who made them.
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
//! The kernel makes a request only if it is not already open. So a request replaces the one before, which was
//! met without a switch; but an urgent request adds to a lazy one whose flag is still set.
//!
//! The scheduler clears the flags, and reports it by `sched_switch`, if it switches. If it does not switch,
//! this is found out at its end (`sched_exit_tp`): if the flag is not set there, the request was met; or it is
//! a new request of another CPU that has reached the tracepoint but has not set the flag yet. The next call of
//! the scheduler on this CPU (`sched_entry_tp`) shows which of the two it was.
//!
//! A CPU makes requests to itself with interrupts disabled, and to another CPU with the lock of that CPU's run
//! queue, which is also held in a switch. When both happen at once, the second request is not noted. All
//! changes are made by compare-and-exchange, because they can meet there.

use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::source::latency::who::{Noted, Who};
use crate::sys::args::Task;
use crate::sys::percpu::PerCpu;
use kernel::prelude::*;

/// The urgency of a request to give up the CPU.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// As soon as it can be preempted.
    AtOnce = 0,
    /// At the next tick, or when it returns to user space.
    Lazy = 1,
}

impl RequestKind {
    /// Whether the flag of this kind is set in a task.
    #[inline(always)]
    fn is_flagged(self, task: &Task) -> bool {
        task.need_reschedule() & (1 << self as u8) != 0
    }
}

/// The state of the task on the slot's CPU.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum State {
    /// The task was asked.
    Asked = 1,
    /// The task was asked, and may have given up the CPU already.
    Doubted = 2,
    /// The slot is being written.
    Changing = 3,
}

/// A slot's content in a word: the task's id, the urgency, and a [`State`].
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word(u64);

impl Word {
    /// No request.
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

// Each slot is in a cache line of its own, because other CPUs write it.
#[repr(align(64))]
struct Slot {
    /// A [`Word`].
    word: SharedWord,
    since: SharedWord,
    /// The time since which the request is a lazy one; if it never was, the same as `since`.
    lazy_since: SharedWord,
    asker: Noted,
}

/// A request that was met.
pub(super) struct Request {
    pub(super) kind: RequestKind,
    /// The time of the request, by the stopwatch.
    pub(super) since: u64,
    /// The time since which the request was a lazy one, by the stopwatch; if it never was, the same as `since`.
    pub(super) lazy_since: u64,
    pub(super) asker: Who,
}

/// Another request is being noted.
pub(super) struct RequestPending;

impl Requests {
    /// Makes it without requests. May sleep.
    pub(super) fn new() -> Result<Self> {
        Ok(Self(PerCpu::new(Slot::new)?))
    }

    /// Notes a request to `task`, which runs on `cpu`; the task's flag is not set yet.
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
        // Otherwise the lazy request was met, or belongs to another task.
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

    /// Notes that `task`, which runs here, calls the scheduler.
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

    /// Notes that `task`, which runs here, has called the scheduler and continues to run.
    #[inline(always)]
    pub(super) fn runs_on(&self, task: &Task, guard: &NoPreempt) {
        let slot = self.0.this_cpu(guard);
        let word = slot.load();
        if word.is(State::Asked) && !word.kind().is_flagged(task) {
            slot.replace(word, Word::new(State::Doubted, word.kind(), word.tid()));
        }
    }

    /// Notes that `task` leaves this CPU. Returns the request that this meets, if the task was asked.
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

    /// Replaces the word if it is `old`. Returns whether it did.
    #[inline(always)]
    fn replace(&self, old: Word, new: Word) -> bool {
        self.word.compare_exchange(old.0, new.0)
    }
}
