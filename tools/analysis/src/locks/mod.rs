// SPDX-License-Identifier: GPL-2.0

//! Kernel locks and futexes that threads had to wait for (`--locks`).

mod answer;
pub mod futexes;
pub mod kernel;
mod waits;

use super::schedule::Schedule;
use super::schedule_events::Switch;
use crate::{Analysis, Answer, Catalogue, EventKey, Missing, Moment};
pub(crate) use answer::LocksAnswer;
use ctf::Event;
use futexes::Futexes;
use kernel::KernelLocks;

/// Analysis of the locks that threads had to wait for.
pub struct Locks {
    kernel: Option<KernelLocks>,
    futexes: Option<Futexes>,
}

impl Locks {
    /// Creates the analysis for a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>) -> Result<Self, Missing> {
        let locks = Self {
            kernel: KernelLocks::new(catalogue),
            futexes: Futexes::new(catalogue),
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
            .collect()
    }

    fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        let kernel = self.kernel.iter().flat_map(KernelLocks::events).count();
        match (
            which.checked_sub(kernel),
            &mut self.kernel,
            &mut self.futexes,
        ) {
            (None, Some(kernel), _) => kernel.event(which, event, now),
            (Some(which), _, Some(futexes)) => futexes.event(which, event, now),
            _ => {}
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
    }

    fn answer(self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        let kernel = self.kernel.map(KernelLocks::found);
        Box::new(LocksAnswer::new(kernel, self.futexes.map(Futexes::found)))
    }
}
