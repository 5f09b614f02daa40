// SPDX-License-Identifier: GPL-2.0

//! The thread or interrupt that has caused something, noted until the latency ends.

use crate::arch::preempt::is_in_interrupt;
use crate::arch::word::SharedWord;
use crate::sys::args::Task;

/// The cause.
#[derive(Clone, Copy)]
pub(super) struct Who {
    /// The thread that did it, or that was interrupted by the interrupt that did it.
    pub(super) tid: i32,
    pub(super) comm: [u8; 16],
    pub(super) cpu: i32,
    /// Whether an interrupt or a softirq did it.
    pub(super) is_interrupt: bool,
}

impl Who {
    /// This task, on this CPU.
    #[inline(always)]
    pub(super) fn of(task: &Task, cpu: i32) -> Self {
        Self {
            tid: task.tid(),
            comm: task.comm(),
            cpu,
            is_interrupt: false,
        }
    }

    /// The code that runs this. Any context, NMI included.
    #[inline(always)]
    pub(super) fn now() -> Self {
        let current = Task::current();
        Self {
            is_interrupt: is_in_interrupt(),
            ..Self::of(&current, current.cpu())
        }
    }
}

/// A place to note a cause. The reader must know that nobody writes it meanwhile.
pub(super) struct Noted([SharedWord; 5]);

impl Noted {
    /// Notes nobody.
    pub(super) const fn new() -> Self {
        Self([const { SharedWord::new(0) }; 5])
    }

    /// Notes this cause.
    #[inline(always)]
    pub(super) fn store(&self, who: &Who) {
        let [low, high, tid, cpu, is_interrupt] = &self.0;
        let comm = u128::from_ne_bytes(who.comm);
        low.store(comm as u64);
        high.store((comm >> 64) as u64);
        tid.store(who.tid as u64);
        cpu.store(who.cpu as u64);
        is_interrupt.store(who.is_interrupt.into());
    }

    /// The noted cause.
    #[inline(always)]
    pub(super) fn load(&self) -> Who {
        let [low, high, tid, cpu, is_interrupt] = &self.0;
        let comm = u128::from(low.load()) | u128::from(high.load()) << 64;
        Who {
            tid: tid.load() as i32,
            comm: comm.to_ne_bytes(),
            cpu: cpu.load() as i32,
            is_interrupt: is_interrupt.load() != 0,
        }
    }
}
