// SPDX-License-Identifier: GPL-2.0

//! Records calls of functions, and their returns.

use super::kind::{FunctionRecord, GraphEntryRecord, GraphExitRecord};
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::probe::listed::ListedProbes;
use crate::probe::stopwatch::Stopwatch;
use crate::source::field::KernelAddress;
use crate::sys::args::Task;
use crate::sys::functions::begin::Begins;
use crate::sys::functions::call::Calls;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The probes of calls, without returns.
#[pin_data]
pub(super) struct Beginnings {
    #[pin]
    pub(super) probes: ListedProbes,
}

/// The probes of calls and returns.
#[pin_data]
pub(super) struct Graph {
    #[pin]
    pub(super) entries: ListedProbes,
    #[pin]
    pub(super) exits: ListedProbes,
    /// Maximum call depth that is traced; 0 for no limit.
    pub(super) max_depth: SharedWord,
    stopwatch: Stopwatch,
}

/// Data kept from a call to its return.
#[derive(Clone, Copy)]
pub(super) struct PendingCall {
    time: u64,
    depth: u32,
}

impl Beginnings {
    /// Makes it without probes. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        let nobody = pin_init!(Self { probes <- ListedProbes::new() });
        Arc::pin_init(nobody, GFP_KERNEL)
    }

    /// Whether it has any recorder.
    pub(super) fn is_any(&self) -> bool {
        self.probes.is_any(&NoPreempt::new())
    }
}

impl Graph {
    /// Makes it without probes. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        let nobody = pin_init!(Self {
            entries <- ListedProbes::new(),
            exits <- ListedProbes::new(),
            max_depth: SharedWord::new(0),
            stopwatch: Stopwatch::best(),
        });
        Arc::pin_init(nobody, GFP_KERNEL)
    }

    /// Whether it has any recorder.
    pub(super) fn is_any(&self) -> bool {
        let guard = NoPreempt::new();
        self.entries.is_any(&guard) || self.exits.is_any(&guard)
    }
}

impl Begins for Beginnings {
    #[inline(always)]
    fn begins(&self, ip: usize, parent_ip: usize) {
        let guard = NoPreempt::new();
        self.probes.handle_fields(
            None,
            #[inline(always)]
            move || FunctionRecord {
                ip: KernelAddress::new(ip as u64),
                parent_ip: KernelAddress::new(parent_ip as u64),
            },
            &guard,
        );
    }
}

impl Calls for Graph {
    type Kept = PendingCall;

    #[inline(always)]
    fn called(&self, function: usize, depth: u32) -> Option<PendingCall> {
        let max_depth = self.max_depth.load();
        if max_depth != 0 && u64::from(depth) >= max_depth {
            return None;
        }
        let guard = NoPreempt::new();
        self.entries.handle_fields(
            None,
            #[inline(always)]
            move || GraphEntryRecord {
                func: KernelAddress::new(function as u64),
                depth,
            },
            &guard,
        );
        // The clock is read last, so that the time for recording does not count as part of the call.
        let time = self.stopwatch.read();
        Some(PendingCall { time, depth })
    }

    #[inline(always)]
    fn returned(&self, function: usize, PendingCall { time, depth }: PendingCall) {
        let duration = self.stopwatch.ns_between(time, self.stopwatch.read());
        let overrun = Task::current().graph_overrun();
        let guard = NoPreempt::new();
        self.exits.handle_fields(
            None,
            #[inline(always)]
            move || GraphExitRecord {
                func: KernelAddress::new(function as u64),
                depth,
                overrun,
                duration,
            },
            &guard,
        );
    }
}
