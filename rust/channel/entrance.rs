// SPDX-License-Identifier: GPL-2.0

//! The part of a channel that probes own: the ways to its buffers, and the counter of records without buffer.
//!
//! A probe that may sleep can outlive its channel. So the entrance is small, and does not own the buffers.

use super::clock::ClockKind;
use super::cpus::CpuSet;
use super::{Buffer, Entry, Route, Setup, Stopped, Ways};
use crate::abi::header::Layout;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::{LocalWord, SharedWord};
use crate::sys::args::Task;
use crate::sys::percpu::PerCpu;
use kernel::prelude::*;
use kernel::sync::Arc;

/// See the [module documentation](self).
pub(crate) struct Entrance {
    /// Non-zero while records are accepted.
    pub(super) active: SharedWord,
    ways: Ways,
    /// The ways of a diverted probe, which examines records first.
    closed: Ways,
    /// Number of records of each CPU that fired while it had no buffer.
    no_buffer: PerCpu<LocalWord>,
    /// Number of events that fired, and for which the kernel called no probe.
    missed: SharedWord,
    cpus: Arc<CpuSet>,
    layout: Layout,
    has_usual_format: bool,
}

impl Entrance {
    /// Creates the entrance of a channel that accepts no records yet. May sleep.
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
            missed: SharedWord::new(0),
            cpus: setup.cpus.clone(),
            layout: setup.layout,
            has_usual_format,
        })
    }

    /// The ways to the buffers.
    pub(crate) fn ways(&self) -> &Ways {
        &self.ways
    }

    /// A route to the buffers. While it is diverted, its gates stay closed.
    pub(crate) fn route(&self) -> Route {
        Route::new(self.ways.clone(), self.closed.clone())
    }

    /// The event header of all records.
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

    /// Whether records are accepted. While this is true, the gate of each recorded CPU that has a buffer is
    /// open. Any context.
    pub(crate) fn is_active(&self) -> bool {
        self.active.load() != 0
    }

    /// Whether the current CPU is recorded. Any context.
    pub(crate) fn records_this_cpu(&self, _guard: &NoPreempt) -> bool {
        self.cpus.has(Task::current().cpu() as u32)
    }

    /// Decides on a writer that was stopped on its way to a buffer, with a record of at least `least` bytes.
    /// Counts the record if it is refused. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn admit<'a>(&self, stopped: Stopped<'a>, least: u64) -> Option<Entry<'a>> {
        match stopped.pass() {
            Ok(entered) => Buffer::admit(entered, least),
            Err(stopped) => self.admit_fenced(stopped),
        }
    }

    /// The same for a gate that is not open. Does not look whether the buffer is full.
    #[cold]
    #[inline(never)]
    pub(crate) fn admit_fenced<'a>(&self, stopped: Stopped<'a>) -> Option<Entry<'a>> {
        let passed = stopped.pass_fence();
        passed.map_err(|stopped| self.refuse(stopped)).ok()
    }

    /// Refuses a record whose gate is closed.
    #[cold]
    #[inline(never)]
    pub(crate) fn refuse(&self, stopped: Stopped<'_>) {
        if !stopped.has_target() && self.records_this_cpu(stopped.guard()) {
            self.count_no_buffer(stopped.guard());
        }
    }

    /// Counts a record of a CPU without buffer, while the trace is active. Any context, NMI included.
    pub(crate) fn count_no_buffer(&self, guard: &NoPreempt) {
        if self.active.load() != 0 {
            self.no_buffer.this_cpu(guard).increment();
        }
    }

    /// Counts a record of `cpu`, which has no buffer. The caller is the only one for that CPU's counter.
    pub(super) fn count_no_buffer_of(&self, cpu: u32) {
        if let Some(count) = self.no_buffer.of(cpu) {
            count.increment();
        }
    }

    /// Counts events for which the kernel called no probe. Any context.
    pub(crate) fn count_missed(&self, events: u64) {
        self.missed.add(events);
    }

    /// Number of events for which the kernel called no probe.
    pub(super) fn missed(&self) -> u64 {
        self.missed.load()
    }

    /// Number of records of `cpu` that found no buffer.
    pub(super) fn no_buffer(&self, cpu: u32) -> u64 {
        self.no_buffer.of(cpu).map_or(0, LocalWord::load)
    }
}
