// SPDX-License-Identifier: GPL-2.0

//! Dynamic events at tracepoints, also those that have no event of the kernel's own (`*_tp`).

use super::Firing;
use crate::arch::preempt::{level, NoPreempt};
use crate::arch::word::LocalWord;
use crate::sys::args::Registers;
use crate::sys::cpu;
use crate::sys::errno::enosys;
use crate::sys::percpu::PerCpu;
use crate::sys::tracepoint::{Attachments, Handler, Traced, Tracepoint, Tracepoints};
use kernel::prelude::*;
use kernel::sync::Arc;

/// What makes an event fire at a tracepoint.
pub(super) struct AtTracepoint {
    tracepoint: Tracepoint,
    handler: Handler<Guarded>,
    guarded: Arc<Guarded>,
    attached: Attachments<Guarded>,
}

/// An event that may fire itself: memory that it reads may not be there, and that is a tracepoint, too.
struct Guarded {
    firing: Arc<Firing>,
    cpus: PerCpu<OnCpu>,
}

struct OnCpu {
    /// The levels of the contexts that are inside.
    inside: LocalWord,
    /// How often it fired itself, which is not recorded.
    recursions: LocalWord,
}

impl AtTracepoint {
    /// Where the tracepoint `name` is. `ENOENT`: the kernel proper has none of this name; `ENOSYS`: this kernel
    /// checks handlers' prototypes. May sleep.
    pub(super) fn new(name: &str, firing: Arc<Firing>) -> Result<Self> {
        let handler = Handler::of_any().ok_or_else(enosys)?;
        let tracepoint = Tracepoints::new()?.find(name).ok_or(ENOENT)?;
        let cpus = PerCpu::new(|| OnCpu {
            inside: LocalWord::new(0),
            recursions: LocalWord::new(0),
        })?;
        let guarded = Arc::new(Guarded { firing, cpus }, GFP_KERNEL)?;
        Ok(Self {
            tracepoint,
            handler,
            guarded,
            attached: Attachments::new(),
        })
    }

    /// Has it fire from now on. May sleep.
    pub(super) fn enable(&mut self) -> Result {
        if self.attached.iter().next().is_some() {
            return Ok(());
        }
        let guarded = self.guarded.clone();
        self.attached.attach(self.tracepoint, self.handler, guarded)
    }

    /// Has it not fire any more. May sleep.
    pub(super) fn disable(&mut self) {
        self.attached = Attachments::new();
    }

    /// How often it fired itself.
    pub(super) fn missed(&self) -> u64 {
        let cpus = cpu::possible().filter_map(|cpu| self.guarded.cpus.of(cpu));
        cpus.fold(0, |sum, cpu| sum.wrapping_add(cpu.recursions.load()))
    }
}

impl Traced for Guarded {
    fn traced(&self, registers: &Registers) {
        let guard = NoPreempt::new();
        let OnCpu { inside, recursions } = self.cpus.this_cpu(&guard);
        let bit = level().bit();
        // An interruption has a higher level than all that are inside. It leaves before these go on.
        if inside.load() >= bit {
            return recursions.increment();
        }
        inside.add(bit);
        self.firing.fire_called(registers);
        inside.add(bit.wrapping_neg());
    }
}
