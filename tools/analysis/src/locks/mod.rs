// SPDX-License-Identifier: GPL-2.0

//! Kernel locks and futexes that threads had to wait for, and the threads that held them (`--locks`).

mod answer;
pub mod futexes;
pub mod kernel;
mod waiters;
mod waits;

use super::schedule::Schedule;
use super::schedule_events::Switch;
use crate::{Analysis, Answer, Catalogue, EventKey, Missing, Moment};
pub(crate) use answer::LocksAnswer;
use ctf::Event;
use futexes::Futexes;
use kernel::KernelLocks;
use waiters::Waiters;

/// Analysis of the locks that threads had to wait for.
pub struct Locks {
    kernel: Option<KernelLocks>,
    futexes: Option<Futexes>,
    waiters: Waiters,
}

impl Locks {
    /// Creates the analysis for a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>) -> Result<Self, Missing> {
        let locks = Self {
            kernel: KernelLocks::new(catalogue),
            futexes: Futexes::new(catalogue),
            waiters: Waiters::new(catalogue),
        };
        if locks.kernel.is_none() && locks.futexes.is_none() {
            return Err(Missing {
                option: "--locks",
                events: "contention_begin and contention_end, or the system call futex, and sched_switch",
                record: "-e contention_begin,contention_end,sched_switch -e 'syscall_*_futex*'".into(),
            });
        }
        Ok(locks)
    }
}

impl Analysis for Locks {
    fn events(&self) -> Vec<EventKey> {
        let kernel = self.kernel.iter().flat_map(KernelLocks::events);
        kernel
            .chain(self.futexes.iter().flat_map(Futexes::events))
            .chain(self.waiters.event())
            .collect()
    }

    fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        let waiters = &mut self.waiters;
        let kernel = self.kernel.iter().flat_map(KernelLocks::events).count();
        let Some(which) = which.checked_sub(kernel) else {
            let kernel = self.kernel.as_mut();
            return kernel.map_or((), |kernel| kernel.event(which, event, now, waiters));
        };
        let futexes = self.futexes.iter().flat_map(Futexes::events).count();
        match &mut self.futexes {
            Some(all) if which < futexes => all.event(which, event, now, waiters),
            _ => waiters.waking(event, now),
        }
    }

    fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        if let Some(kernel) = &mut self.kernel {
            kernel.switch(switch, now);
        }
        if let Some(futexes) = &mut self.futexes {
            futexes.switch(switch, now);
        }
    }

    fn lost(&mut self, schedule: &Schedule, _time: u64) {
        if let Some(kernel) = &mut self.kernel {
            kernel.lost(schedule);
        }
        if let Some(futexes) = &mut self.futexes {
            futexes.lost(schedule);
        }
        self.waiters.lost();
    }

    fn answer(mut self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        let waiters = &mut self.waiters;
        let kernel = self.kernel.map(|kernel| kernel.found(waiters));
        let futexes = self.futexes.map(|futexes| futexes.found(waiters));
        Box::new(LocksAnswer::new(kernel, futexes, self.waiters))
    }
}
