// SPDX-License-Identifier: GPL-2.0

//! Tasks that wait for a CPU: since when, and why.
//!
//! A task waits because it was woken, or because it left its CPU although it could have continued to run: it was
//! preempted, or it yielded.
//!
//! A table of slots, each shared by all tasks whose ids have the same low bits. A task takes its slot when its wait
//! begins, and leaves it when it runs, on whatever CPUs; this takes no lock and no memory. Only events about a task
//! change what its slot says of it, and the scheduler orders these events:
//!
//! ```text
//!            waking                switch to it
//!   (none) ---------> WOKEN ------------------------> (none), measured
//!     |                 ^
//!     | waking, while   | wakeup, and it does not run
//!     | it runs         |
//!     +------------> LEAVING -----------------------> (none)
//!     |                 |      wakeup, and it runs
//!     |                 | preempted
//!     | preempted       v
//!     +------------> PREEMPTED ---------------------> (none), measured
//!                              switch to it
//! ```
//!
//! A task that is woken while it runs, on its way to sleep, either does not sleep, and was not really woken; or
//! it has left its CPU when the wake-up is done, and waits from then on. A preempted task that is woken waits already.
//! `rtrace report --latency` treats these events in the same way.
//!
//! Two tasks may need the same slot. The second one's wait is not measured. All changes are made by
//! compare-and-exchange, because the CPUs of two tasks can meet there.

use crate::arch::word::SharedWord;
use crate::source::latency::who::{Noted, Who};
use kernel::prelude::*;

/// The number of slots; a power of two. Two tasks share a slot if their ids differ by a multiple of it.
const SLOTS: usize = 1 << 13;

/// The state of the task in a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum State {
    /// The task was woken, and waits.
    Woken = 1,
    /// The task was woken while it runs.
    Leaving = 2,
    /// The task was preempted, and waits.
    Preempted = 3,
    /// The slot is being written.
    Changing = 4,
}

/// The word of a free slot.
const FREE: u64 = 0;

impl State {
    /// The word of a slot in which the task is in this state.
    #[inline(always)]
    const fn of(self, tid: u32) -> u64 {
        (self as u64) << 32 | tid as u64
    }
}

/// The waits of all tasks.
pub(super) struct Waits(VVec<Slot>);

/// A wait, or none.
// Each slot is in a cache line of its own, because tasks of other CPUs have the neighbouring slots.
#[repr(align(64))]
struct Slot {
    /// A [`State`] and a task's id, or [`FREE`].
    word: SharedWord,
    since: SharedWord,
    cause: Noted,
}

/// A wait that is over.
pub(super) struct Wait {
    /// The time at which it began, by the stopwatch.
    pub(super) since: u64,
    /// The waker, or the task that got the CPU.
    pub(super) cause: Who,
    /// Whether the task was preempted, or yielded; otherwise it was woken.
    pub(super) is_preempted: bool,
}

/// Another task's wait is in the slot, or another CPU is changing this task's.
pub(super) struct SlotTaken;

impl Waits {
    /// Makes it without waits. May sleep.
    pub(super) fn new() -> Result<Self> {
        let mut slots = VVec::with_capacity(SLOTS, GFP_KERNEL)?;
        for _ in 0..SLOTS {
            slots.push(Slot::new(), GFP_KERNEL)?;
        }
        Ok(Self(slots))
    }

    /// [`None`] for the idle tasks: all have the same id, and nobody wakes them.
    #[inline(always)]
    fn slot(&self, tid: u32) -> Option<&Slot> {
        (tid != 0).then_some(())?;
        self.0.get(tid as usize % SLOTS)
    }

    /// Notes that a task is woken; `runs`: it still runs.
    #[inline(always)]
    pub(super) fn wake(
        &self,
        tid: u32,
        runs: bool,
        since: u64,
        waker: impl FnOnce() -> Who,
    ) -> Result<(), SlotTaken> {
        let Some(slot) = self.slot(tid) else {
            return Ok(());
        };
        let state = if runs { State::Leaving } else { State::Woken };
        slot.begin(tid, state, since, waker)
    }

    /// Notes that a task leaves its CPU to `next`, and could have continued to run.
    #[inline(always)]
    pub(super) fn preempt(
        &self,
        tid: u32,
        since: u64,
        next: impl FnOnce() -> Who,
    ) -> Result<(), SlotTaken> {
        let Some(slot) = self.slot(tid) else {
            return Ok(());
        };
        slot.begin(tid, State::Preempted, since, next)
    }

    /// Notes that a task can run from now on; `runs`: it has never stopped.
    #[inline(always)]
    pub(super) fn ready(&self, tid: u32, runs: bool, now: u64) {
        let Some(slot) = self.slot(tid) else {
            return;
        };
        let leaving = State::Leaving.of(tid);
        if slot.word.load() != leaving {
            return;
        }
        if runs {
            slot.word.compare_exchange(leaving, FREE);
        } else if slot.word.compare_exchange(leaving, State::Changing.of(tid)) {
            slot.since.store(now);
            slot.word.store_release(State::Woken.of(tid));
        }
    }

    /// Notes that a task leaves its CPU, and sleeps or ends.
    #[inline(always)]
    pub(super) fn leave(&self, tid: u32) {
        let Some(slot) = self.slot(tid) else {
            return;
        };
        let word = slot.word.load();
        if word == State::Woken.of(tid) || word == State::Preempted.of(tid) {
            // The task already ran when measuring began.
            slot.word.compare_exchange(word, FREE);
        }
    }

    /// Notes that a task runs from now on. Returns the wait that this ends.
    #[inline(always)]
    pub(super) fn end(&self, tid: u32) -> Option<Wait> {
        let slot = self.slot(tid)?;
        let word = slot.word.load_acquire();
        if word == State::Leaving.of(tid) {
            slot.word.compare_exchange(word, FREE);
            return None;
        }
        let is_preempted = word == State::Preempted.of(tid);
        if !is_preempted && word != State::Woken.of(tid) {
            return None;
        }
        let wait = Wait {
            since: slot.since.load(),
            cause: slot.cause.load(),
            is_preempted,
        };
        slot.word.compare_exchange(word, FREE).then_some(wait)
    }
}

impl Slot {
    const fn new() -> Self {
        Self {
            word: SharedWord::new(FREE),
            since: SharedWord::new(0),
            cause: Noted::new(),
        }
    }

    #[inline(always)]
    fn begin(
        &self,
        tid: u32,
        state: State,
        since: u64,
        cause: impl FnOnce() -> Who,
    ) -> Result<(), SlotTaken> {
        loop {
            let word = self.word.load();
            if word != FREE {
                if word as u32 != tid {
                    return Err(SlotTaken);
                }
                if state != State::Preempted {
                    // The task waits already.
                    return Ok(());
                }
                if word == State::Changing.of(tid) {
                    return Err(SlotTaken);
                }
                // The task runs, so its slot is that of a wake-up on its way to sleep, or older than the measurement.
            }
            if self.word.compare_exchange(word, State::Changing.of(tid)) {
                break;
            }
        }
        self.since.store(since);
        self.cause.store(&cause());
        self.word.store_release(state.of(tid));
        Ok(())
    }
}
