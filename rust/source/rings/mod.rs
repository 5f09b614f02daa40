// SPDX-License-Identifier: GPL-2.0

//! Rings of programs: memory that a program and the module share, into which the program writes records without a call.
//!
//! The rings are transport, not the trace. A thread of the module copies the records, checks the copies, merges them by
//! time, and [gives](crate::channel::given) them to the channels that record the events. No byte of the shared memory is
//! trusted, see [`program`](crate::program).
//!
//! - [`shared`]: the memory of one open file, and what a program maps;
//! - [`drain`]: takes the records of all programs;
//! - [`event`]: the probes of an event that get such records, and the word that tells the program that there are some.
//!
//! Lock order: `Drain::state` > `EventRings::state` > the locks of a channel. The lock of a process's mappings may be held
//! where [`SharedRings`] is used by mmap(2) and at the end of a mapping; so it takes none of these locks there.

pub(crate) mod drain;
pub(crate) mod event;
pub(crate) mod shared;

use crate::channel::given::Giver;
use crate::channel::Channel;
use crate::program::record::HEADER;
use crate::sys::cpu;
use crate::sys::niceness::EarlierNiceness;
use crate::sys::parameter;
use crate::sys::timer::Timer;
use crate::sys::work::{Ask, Work};
use drain::Drain;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::time::{delay::fsleep, Delta};
use shared::{RingCounts, SharedRings};

/// Work that takes the records of all programs.
pub(crate) type DrainWork = Work<Arc<Drain>>;

/// Period in microseconds in which records are taken.
const PERIOD_US: u32 = 100_000;

/// The records newer than this stay, because a program may be about to commit an earlier one.
const MARGIN: Delta = Delta::from_millis(1);

/// Limits of the memory of rings, from the module's parameters.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Number of rings of an open file.
    pub(crate) rings: u32,
    /// Size of a ring in bytes.
    pub(crate) ring_size: usize,
    /// Bytes of all rings of a user.
    of_user: usize,
    /// Bytes of all rings.
    of_all: usize,
}

impl Limits {
    fn new() -> Self {
        let size = parameter::program_ring_size();
        Self {
            rings: parameter::program_rings().min(cpu::count()),
            ring_size: size
                .max(64 * HEADER)
                .next_power_of_two()
                .max(kernel::page::PAGE_SIZE),
            of_user: parameter::program_memory_user(),
            of_all: parameter::program_memory(),
        }
    }
}

/// The rings of all programs.
#[pin_data]
pub(crate) struct Rings {
    /// See [`Limits`].
    pub(crate) limits: Limits,
    drain: Arc<Drain>,
    work: Arc<DrainWork>,
    #[pin]
    timer: Timer<Arc<DrainWork>>,
}

impl Rings {
    /// Makes it without programs. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let drain = Drain::new()?;
        let work = Work::new(drain.clone(), |drain| {
            // Programs that flood their rings do not take the time of others.
            let _nice = EarlierNiceness::replace(parameter::program_nice());
            drain.run();
        })?;
        let asked = work.clone();
        Arc::pin_init(
            pin_init!(Self {
                limits: Limits::new(),
                drain,
                work,
                timer <- Timer::new(asked, |work, _| work.ask(), PERIOD_US),
            }),
            GFP_KERNEL,
        )
    }

    /// The work, for the end of a mapping.
    pub(crate) fn work(&self) -> &Arc<DrainWork> {
        &self.work
    }

    /// Takes records of this program from now on. May sleep.
    pub(crate) fn add(&self, program: &Arc<SharedRings>) -> Result {
        self.drain.add(program)
    }

    /// Takes the last records of this program, and forgets it. May sleep.
    pub(crate) fn end(&self, program: &Arc<SharedRings>) {
        self.give_all();
        self.drain.remove(program);
    }

    /// Adds the ring with this index to a program. Errors: `EINVAL`: the machine has no such CPU; `EEXIST`: the program has
    /// this ring; `ENOSPC`: it has as many as it may; `EDQUOT`: all rings of the user, or of all users, would be larger
    /// than they may; `ENOMEM`. May sleep.
    pub(crate) fn add_ring(&self, program: &Arc<SharedRings>, index: u32) -> Result {
        let ring = program.new_ring(index)?;
        self.drain.add_ring(program, index, ring, &self.limits)
    }

    /// Gives a channel its records from now on, for a probe. May sleep.
    fn listen(&self, channel: &Arc<Channel>) -> Result {
        self.drain.listen(channel)?;
        self.tick_if_needed();
        Ok(())
    }

    /// Ends one [`listen`](Self::listen). May sleep.
    fn unlisten(&self, channel: &Arc<Channel>) {
        self.drain.unlisten(channel);
        self.tick_if_needed();
    }

    /// Starts the timer if a channel listens; stops it if none does. May sleep.
    fn tick_if_needed(&self) {
        self.drain.tick_if_needed(|is_needed| {
            if is_needed {
                cpu::run_on_housekeeping(&mut &self.timer, |timer| timer.start());
            } else {
                self.timer.cancel();
            }
        });
    }

    /// Calls `show` with each program and the number of its rings. Returns the sums of the counters, those of programs
    /// that have ended included. May sleep.
    pub(crate) fn for_each(
        &self,
        show: impl FnMut(&SharedRings, usize) -> Result,
    ) -> Result<[u64; RingCounts::COUNT]> {
        self.drain.for_each(show)
    }
}

impl Giver for Rings {
    fn give_all(&self) {
        if self.drain.is_idle() {
            return;
        }
        fsleep(MARGIN);
        self.drain.run();
    }
}
