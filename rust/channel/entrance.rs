// SPDX-License-Identifier: GPL-2.0

//! The part of a channel that probes own: the way to its buffers, and the counter of records that find none.
//!
//! A probe that may sleep can outlive its channel. The entrance is small, and the buffers are not its own.

use super::clock::ClockKind;
use super::cpus::CpuSet;
use super::{Buffer, Entered, Route, Setup, Waiting, Ways};
use crate::abi::header::Layout;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::{LocalWord, SharedWord};
use crate::sys::args::Task;
use crate::sys::percpu::PerCpu;
use kernel::prelude::*;
use kernel::sync::Arc;

/// See the [module](self).
pub(crate) struct Entrance {
    /// Non-zero while records are taken.
    pub(super) active: SharedWord,
    ways: Ways,
    /// Where a probe is diverted to that looks at records first.
    closed: Ways,
    /// Records fired on each CPU while it had no buffer.
    no_buffer: PerCpu<LocalWord>,
    cpus: Arc<CpuSet>,
    layout: Layout,
    has_usual_format: bool,
}

impl Entrance {
    /// Makes the entrance of a channel that takes no records yet. May sleep.
    pub(super) fn new(ways: Ways, setup: &Setup) -> Result<Self> {
        let has_usual_format = matches!(
            (setup.layout, setup.clock),
            (Layout::Compact, ClockKind::Tsc { .. })
        );
        Ok(Self {
            active: SharedWord::new(0),
            ways,
            closed: Ways::closed().ok_or(ENOMEM)?,
            no_buffer: PerCpu::new(|| LocalWord::new(0))?,
            cpus: setup.cpus.clone(),
            layout: setup.layout,
            has_usual_format,
        })
    }

    /// The ways to the buffers.
    pub(crate) fn ways(&self) -> &Ways {
        &self.ways
    }

    /// A route to the buffers. While it is diverted it leads to gates that stay closed.
    pub(crate) fn route(&self) -> Route {
        Route::new(self.ways.clone(), self.closed.clone())
    }

    /// The event header that all records have.
    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// Whether all records are in the default format.
    pub(crate) fn has_usual_format(&self) -> bool {
        self.has_usual_format
    }

    /// The CPUs that are recorded.
    pub(crate) fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// Whether records are taken: while this says so, each recorded CPU's gate is open that has a
    /// buffer. Any context.
    pub(crate) fn is_active(&self) -> bool {
        self.active.load() != 0
    }

    /// Whether the CPU that this runs on is recorded. Any context.
    pub(crate) fn records_this_cpu(&self, _guard: &NoPreempt) -> bool {
        self.cpus.has(Task::current().cpu() as u32)
    }

    /// Looks at somebody who was stopped on the way to a buffer, with a record of `least` bytes or
    /// more. If that is refused, it is counted. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn admit<'a>(&self, waiting: Waiting<'a>, least: u64) -> Option<Entered<'a>> {
        match waiting.pass() {
            Ok(entered) => Buffer::admit(entered, least),
            Err(waiting) => self.admit_fenced(waiting),
        }
    }

    /// The same for a gate that is not open. Does not look whether the buffer is full.
    #[cold]
    #[inline(never)]
    pub(crate) fn admit_fenced<'a>(&self, waiting: Waiting<'a>) -> Option<Entered<'a>> {
        let passed = waiting.pass_fence();
        passed.map_err(|waiting| self.refuse(waiting)).ok()
    }

    /// Refuses a record whose gate is closed.
    #[cold]
    #[inline(never)]
    pub(crate) fn refuse(&self, waiting: Waiting<'_>) {
        if !waiting.has_target() && self.records_this_cpu(waiting.guard()) {
            self.count_no_buffer(waiting.guard());
        }
    }

    /// Counts a record that there is no buffer for, while the trace is active. Any context, NMI included.
    pub(crate) fn count_no_buffer(&self, guard: &NoPreempt) {
        if self.active.load() != 0 {
            self.no_buffer.this_cpu(guard).increment();
        }
    }

    /// Records of `cpu` that there was no buffer for.
    pub(super) fn no_buffer(&self, cpu: u32) -> u64 {
        self.no_buffer.of(cpu).map_or(0, LocalWord::load)
    }
}
