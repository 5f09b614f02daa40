// SPDX-License-Identifier: GPL-2.0

//! Dynamic events at tracepoints, including tracepoints without an event of the kernel's own (`*_tp`).

use super::Firing;
use crate::arch::preempt::{level, NoPreempt};
use crate::arch::word::LocalWord;
use crate::sys::args::Registers;
use crate::sys::cpu;
use crate::sys::errno::enosys;
use crate::sys::percpu::PerCpu;
use crate::sys::tracepoint::{Attachments, Handler, Rank, Traced, Tracepoint, Tracepoints};
use kernel::prelude::*;
use kernel::sync::Arc;

/// The hook that fires an event at a tracepoint.
pub(super) struct AtTracepoint {
    tracepoint: Tracepoint,
    handler: Handler<Guarded>,
    guarded: Arc<Guarded>,
    attached: Attachments<Guarded>,
}

/// An event that may fire itself: reading memory that is not present can reach a tracepoint, too.
struct Guarded {
    firing: Arc<Firing>,
    cpus: PerCpu<OnCpu>,
}

struct OnCpu {
    /// A bit for each context level that is inside.
    inside: LocalWord,
    /// The number of times that the event fired itself. These are not recorded.
    recursions: LocalWord,
}

impl AtTracepoint {
    /// Finds the tracepoint `name`. `ENOENT`: the kernel proper has no tracepoint of this name; `ENOSYS`: this
    /// kernel checks the prototypes of handlers. May sleep.
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

    /// Enables the event. May sleep.
    pub(super) fn enable(&mut self) -> Result {
        if self.attached.iter().next().is_some() {
            return Ok(());
        }
        let guarded = self.guarded.clone();
        self.attached
            .attach(self.tracepoint, self.handler, guarded, Rank::Record)
    }

    /// Disables the event. May sleep.
    pub(super) fn disable(&mut self) {
        self.attached = Attachments::new();
    }

    /// The number of times that the event fired itself.
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
        // An interruption has a higher level than all contexts that are inside, and leaves before they
        // continue.
        if inside.load() >= bit {
            return recursions.increment();
        }
        inside.add(bit);
        self.firing.fire_called(registers);
        inside.add(bit.wrapping_neg());
    }
}
