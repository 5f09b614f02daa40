// SPDX-License-Identifier: GPL-2.0

//! The sources: where events come from.
//!
//! [Declared](typed) events have a probe each. [System calls](syscall) have two probes for all of them. An event
//! can have its probe in [another module](external), which can also [provide](provided) events by itself, or write
//! [chunks](aux) of raw bytes. Users [define](dynamic) events. The rest are calls of [functions](function),
//! [samples](sampled) of what runs, [latencies](latency) that are measured, the [state](state) before a trace, and
//! other events of ftrace's, which [perf](perf) hands over.

pub(crate) mod aux;
pub(crate) mod description;
pub(crate) mod dynamic;
pub(crate) mod external;
pub(crate) mod function;
pub(crate) mod latency;
pub(crate) mod listed;
pub(crate) mod perf;
pub(crate) mod provided;
pub(crate) mod sampled;
pub(crate) mod state;
mod stopwatch;
pub(crate) mod syscall;
pub(crate) mod typed;

use crate::abi::schema::Field;
use crate::probe::Probe;
use crate::sys::hotplug::Hotplug;
use crate::sys::tracepoint::Tracepoint;
use external::External;
use function::Functions;
use kernel::error::Result;
use kernel::sync::Arc;
use latency::preempt::{self, PreemptLatency};
use latency::timer::{TimerLatency, Timers};
use latency::wakeup::WakeupLatency;
use listed::ListedSource;
use sampled::Frequency;
use syscall::{Call, Direction};
use typed::Declaration;

/// A subsystem and a name.
pub(crate) type FullName<'a> = (&'a str, &'a str);

/// A source that keeps a list of the probes of its event.
pub(crate) trait Attach {
    /// Adds `probe` to the list. Probes of triggers come after all others. A sampled event is sampled at this
    /// `frequency`. May sleep.
    fn attach(&self, probe: Arc<Probe>, frequency: Frequency) -> Result;

    /// Removes `probe` from the list, and waits until it does not run any more. May sleep.
    fn detach(&self, probe: &Probe);
}

/// Source of an event.
pub(crate) enum EventSource {
    /// A tracepoint of its own, with a probe of its own.
    Typed {
        /// Fields of the event, and its handlers.
        declaration: &'static Declaration,
        /// The tracepoint that fires it.
        tracepoint: Tracepoint,
    },
    /// The entry or the exit of a system call.
    Syscall {
        /// The system call.
        call: &'static Call,
        /// Entry or exit.
        direction: Direction,
        /// The tracepoint of all system calls.
        tracepoint: Tracepoint,
    },
    /// A tracepoint of its own, with a probe in another module.
    External(External),
    /// No tracepoint: the source keeps a list of probes.
    Listed(ListedSource),
}

/// Sources that each session has for itself: their events are fired for this session only.
#[derive(Clone)]
pub(crate) struct SessionSources {
    /// The functions that it traces.
    pub(crate) functions: Arc<Functions>,
    /// The wake-ups that it measures.
    pub(crate) wakeups: Arc<WakeupLatency>,
    /// The preemptions that it measures.
    pub(crate) preemptions: Arc<PreemptLatency>,
    /// Its timers, whose lateness it measures.
    pub(crate) timers: Arc<TimerLatency>,
}

impl SessionSources {
    /// Makes sources that trace and measure nothing yet. May sleep.
    pub(crate) fn new(timer_hotplug: &Arc<Hotplug<Timers>>) -> Result<Self> {
        Ok(Self {
            functions: Functions::new()?,
            wakeups: WakeupLatency::new(())?,
            preemptions: PreemptLatency::new(preempt::PreemptChoice::new())?,
            timers: TimerLatency::new(timer_hotplug)?,
        })
    }
}

impl EventSource {
    /// Its subsystem and its name.
    pub(crate) fn full_name(&self) -> FullName<'_> {
        match self {
            EventSource::Typed { declaration, .. } => (declaration.subsystem, declaration.name),
            EventSource::Syscall {
                call, direction, ..
            } => (syscall::SUBSYSTEM, call.name(*direction)),
            EventSource::External(external) => external.description.full_name(),
            EventSource::Listed(listed) => listed.full_name(),
        }
    }

    /// The names by which patterns pick it: its own, and then those that ftrace and perf have for
    /// it, where they are others.
    pub(crate) fn names(&self) -> impl Iterator<Item = FullName<'_>> {
        let (kernel_name, of_all) = match self {
            EventSource::Typed { declaration, .. }
                if declaration.tracepoint != declaration.name =>
            {
                (Some((declaration.subsystem, declaration.tracepoint)), None)
            }
            EventSource::Syscall {
                call, direction, ..
            } => (
                call.kernel_name(*direction)
                    .map(|name| (syscall::SUBSYSTEM, name)),
                Some(("raw_syscalls", direction.tracepoint())),
            ),
            EventSource::Typed { .. } | EventSource::External(_) | EventSource::Listed(_) => {
                (None, None)
            }
        };
        core::iter::once(self.full_name())
            .chain(kernel_name)
            .chain(of_all)
    }

    /// Whether it is recorded when nothing else was asked for.
    pub(crate) fn is_default(&self) -> bool {
        match self {
            EventSource::Typed { declaration, .. } => declaration.default,
            EventSource::Syscall { .. } => true,
            EventSource::External(_) | EventSource::Listed(_) => false,
        }
    }

    /// Whether a filter can look at its records.
    pub(crate) fn can_be_captured(&self) -> bool {
        match self {
            EventSource::Listed(ListedSource::Provided(provided)) => provided.can_be_captured(),
            _ => true,
        }
    }

    /// The field at this place in the record.
    pub(crate) fn field(&self, place: usize) -> Option<Field<'_>> {
        match self {
            EventSource::Typed { declaration, .. } => declaration.fields.get(place).copied(),
            EventSource::Syscall {
                call, direction, ..
            } => call.fields(*direction).nth(place),
            EventSource::External(external) => external.description.field(place),
            EventSource::Listed(listed) => listed.field(place),
        }
    }
}
