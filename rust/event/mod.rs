// SPDX-License-Identifier: GPL-2.0

//! The events: what can be recorded.
//!
//! There are several sources: [declared](typed) events, with a probe each; [system calls](syscall),
//! with two probes for all of them; events with a probe in [other modules](fired), some of them of tracepoints
//! of modules, which come and go ([`awaited`]); events that other
//! modules [provide](provided); chunks of raw bytes that they [write](aux); events that users [define](dynamic); calls of [functions](function);
//! [samples](sampled) of what runs; [latencies](latency) that are measured; those of the [state](state); and, when somebody asks for it, any other
//! event of ftrace's, which [perf](perf) hands over. The [`registry`] has the events of all sources; to the
//! rest of the module they look alike.

pub(crate) mod aux;
pub(crate) mod awaited;
pub(crate) mod builtin;
pub(crate) mod captured;
pub(crate) mod description;
pub(crate) mod dynamic;
pub(crate) mod filter;
pub(crate) mod fired;
mod format;
pub(crate) mod function;
mod handlers;
mod id;
pub(crate) mod latency;
pub(crate) mod listed;
pub(crate) mod perf;
pub(crate) mod provided;
pub(crate) mod recorders;
pub(crate) mod registry;
pub(crate) mod sampled;
pub(crate) mod state;
mod stopwatch;
pub(crate) mod syscall;
pub(crate) mod tasks;
pub(crate) mod trigger;
mod typed;

use crate::abi::schema::Field;
use crate::arch::word::SharedWord;
use crate::sys::foreign::ForeignModule;
use crate::sys::hotplug::Hotplug;
use crate::sys::tracepoint::Tracepoint;
use fired::Fired;
use function::Functions;
pub(crate) use id::Id;
use kernel::error::Result;
use kernel::sync::Arc;
use latency::preempt::{self, PreemptLatency};
use latency::timer::{TimerLatency, Timers};
use latency::wakeup::WakeupLatency;
use listed::Listed;
use syscall::{Call, Direction};
use typed::Declaration;

/// How an event comes about.
pub(crate) enum Source {
    /// A tracepoint of its own, with a probe of its own.
    Typed {
        /// What is recorded, and how.
        declaration: &'static Declaration,
        /// Where it fires.
        tracepoint: Tracepoint,
    },
    /// The entry or the exit of this system call: one slot of the probe of all of them.
    Syscall {
        /// Which it is.
        call: &'static Call,
        /// Entry or exit.
        direction: Direction,
        /// Where all calls fire.
        tracepoint: Tracepoint,
    },
    /// A tracepoint of its own, with a probe in another module.
    Fired(Fired),
    /// None: it keeps a list of who records it.
    Listed(Listed),
}

/// What a session has of its own: the events of these happen to it alone.
#[derive(Clone)]
pub(crate) struct Own {
    /// The functions that it traces.
    pub(crate) functions: Arc<Functions>,
    /// The wake-ups that it measures.
    pub(crate) wakeups: Arc<WakeupLatency>,
    /// The preemptions that it measures.
    pub(crate) preemptions: Arc<PreemptLatency>,
    /// Its timers, whose lateness it measures.
    pub(crate) timers: Arc<TimerLatency>,
}

impl Own {
    /// Nothing is traced or measured. May sleep.
    pub(crate) fn new(timer_hotplug: &Arc<Hotplug<Timers>>) -> Result<Self> {
        Ok(Self {
            functions: Functions::new()?,
            wakeups: WakeupLatency::new(())?,
            preemptions: PreemptLatency::new(preempt::Choice::new())?,
            timers: TimerLatency::new(timer_hotplug)?,
        })
    }
}

/// An event that can be recorded.
pub(crate) struct Event {
    id: Arc<Id>,
    source: Source,
    /// Not 0 while there is what fires it, or that can come.
    known: SharedWord,
}

/// A subsystem and a name.
pub(crate) type FullName<'a> = (&'a str, &'a str);

impl Event {
    /// An event that is known.
    fn new(id: Arc<Id>, source: Source) -> Self {
        Self {
            id,
            source,
            known: SharedWord::new(1),
        }
    }

    /// Its id: its place among all events. Another event can have it only when this event is gone and no
    /// [selection](crate::session::Selection) has it; traces have numbers of their own.
    pub(crate) fn id(&self) -> u32 {
        self.id.number()
    }

    /// The id, to keep it in use.
    pub(crate) fn shared_id(&self) -> &Arc<Id> {
        &self.id
    }

    /// How it comes about.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// What it is, if it keeps a list of who records it.
    pub(crate) fn listed(&self) -> Option<&Listed> {
        match &self.source {
            Source::Listed(listed) => Some(listed),
            _ => None,
        }
    }

    /// What it is, if its probe is in another module.
    fn fired(&self) -> Option<&Fired> {
        match &self.source {
            Source::Fired(fired) => Some(fired),
            _ => None,
        }
    }

    /// Whether it can be chosen: it is present, or awaited.
    fn is_known(&self) -> bool {
        self.known.load() != 0
    }

    /// Whether it can fire now; that of a module that is gone cannot.
    fn is_present(&self) -> bool {
        self.is_known() && self.fired().is_none_or(Fired::is_there)
    }

    /// Whether it is of a module that can be loaded, and is not.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_known() && !self.is_present()
    }

    /// Whether one that has a probe can take its place: it is handed over by perf, not recorded now, and a
    /// filter that was made for it fits the other one's records. Any context.
    fn gives_way_to(&self, fired: &Fired) -> bool {
        match &self.source {
            Source::Listed(Listed::Perf(perf)) => {
                !perf.is_recorded() && perf.description().has_fields_of(&fired.description)
            }
            _ => false,
        }
    }

    /// Whether what fires it is still there, where nobody says that it goes. `ENOMEM`: that is not known.
    /// May sleep.
    pub(crate) fn is_there(&self) -> Result<bool> {
        match &self.source {
            Source::Listed(Listed::Perf(perf)) => perf.is_there(),
            _ => Ok(true),
        }
    }

    fn set_known(&self, known: bool) {
        self.known.store(known.into());
    }

    /// Subsystem: the directory below `events/`.
    pub(crate) fn subsystem(&self) -> &str {
        self.full_name().0
    }

    /// Name, as viewers of traces know it.
    pub(crate) fn name(&self) -> &str {
        self.full_name().1
    }

    /// Both.
    pub(crate) fn full_name(&self) -> FullName<'_> {
        match &self.source {
            Source::Typed { declaration, .. } => (declaration.subsystem, declaration.name),
            Source::Syscall {
                call, direction, ..
            } => (syscall::SUBSYSTEM, call.name(*direction)),
            Source::Fired(fired) => fired.description.full_name(),
            Source::Listed(listed) => listed.full_name(),
        }
    }

    /// The names by which patterns pick it: its own, and then those that ftrace and perf have for
    /// it, where they are others.
    pub(crate) fn names(&self) -> impl Iterator<Item = FullName<'_>> {
        let (kernel_name, of_all) = match &self.source {
            Source::Typed { declaration, .. } if declaration.tracepoint != declaration.name => {
                (Some((declaration.subsystem, declaration.tracepoint)), None)
            }
            Source::Syscall {
                call, direction, ..
            } => (
                call.kernel_name(*direction)
                    .map(|name| (syscall::SUBSYSTEM, name)),
                Some(("raw_syscalls", direction.tracepoint())),
            ),
            Source::Typed { .. } | Source::Fired(_) | Source::Listed(_) => (None, None),
        };
        core::iter::once(self.full_name())
            .chain(kernel_name)
            .chain(of_all)
    }

    /// Whether its probe is in this module.
    pub(crate) fn is_of(&self, owner: ForeignModule) -> bool {
        match &self.source {
            Source::Fired(fired) => fired.handler.is_of(owner),
            _ => false,
        }
    }

    /// Whether this is one of its names.
    fn is_called(&self, name: FullName<'_>) -> bool {
        self.names().any(|known| known == name)
    }

    /// Whether it is chosen only where its subsystem or its name was asked for.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.is_awaited() || self.listed().is_some_and(Listed::is_asked_for)
    }

    /// Whether it is recorded when nothing else was asked for.
    pub(crate) fn is_default(&self) -> bool {
        match &self.source {
            Source::Typed { declaration, .. } => declaration.default,
            Source::Syscall { .. } => true,
            Source::Fired(_) | Source::Listed(_) => false,
        }
    }

    /// Whether a filter can look at its records.
    fn can_be_captured(&self) -> bool {
        match &self.source {
            Source::Listed(Listed::Provided(provided)) => provided.can_be_captured(),
            _ => true,
        }
    }

    /// Its fields, in the order of the record.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field<'_>> + Clone {
        (0..).map_while(|place| self.field(place))
    }

    /// The one at this place.
    pub(crate) fn field(&self, place: usize) -> Option<Field<'_>> {
        match &self.source {
            Source::Typed { declaration, .. } => declaration.fields.get(place).copied(),
            Source::Syscall {
                call, direction, ..
            } => call.fields(*direction).nth(place),
            Source::Fired(fired) => fired.description.field(place),
            Source::Listed(listed) => listed.field(place),
        }
    }
}
