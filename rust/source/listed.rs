// SPDX-License-Identifier: GPL-2.0

//! Events that no tracepoint fires: each has a list of who records it.

use super::aux::AuxSource;
use super::dynamic::Dynamic;
use super::function;
use super::latency::{self, preempt, timer, wakeup};
use super::perf::Perf;
use super::provided::Provided;
use super::sampled::{self, Sampled};
use super::state::{self, StateEvent};
use super::{FullName, SessionSources};
use crate::abi::schema::Field;
use crate::source::Attach;
use kernel::sync::Arc;

/// What such an event is.
pub(crate) enum ListedSource {
    /// Emitted by another module.
    Provided(Arc<Provided>),
    /// A chunk of raw bytes, written by another module.
    Aux(Arc<AuxSource>),
    /// Defined by a user.
    Dynamic(Arc<Dynamic>),
    /// That a function is called, or returns.
    Function(function::FunctionKind),
    /// How long a task that was woken has waited for a CPU.
    WakeupLatency,
    /// How long a task keeps its CPU that was asked to give it up.
    PreemptLatency,
    /// How late a timer of a CPU comes.
    TimerLatency,
    /// Taken again and again.
    Sampled(Arc<Sampled>),
    /// Recorded by the kernel, for perf.
    Perf(Arc<Perf>),
    /// Recorded when a session is asked for the state.
    State(Arc<StateEvent>),
}

impl ListedSource {
    /// Where one attaches to it; that may be the session's sources.
    pub(crate) fn list<'a>(&'a self, sources: &'a SessionSources) -> &'a dyn Attach {
        match self {
            Self::Provided(provided) => &**provided,
            Self::Aux(source) => &**source,
            Self::Dynamic(dynamic) => &**dynamic,
            Self::Function(kind) => sources.functions.event(*kind),
            Self::WakeupLatency => &*sources.wakeups,
            Self::PreemptLatency => &*sources.preemptions,
            Self::TimerLatency => &*sources.timers,
            Self::Sampled(sampled) => &**sampled,
            Self::Perf(perf) => &**perf,
            Self::State(state) => &**state,
        }
    }

    /// Whether it is recorded only where its subsystem or its name was asked for. Samples come, and
    /// latencies are measured, because somebody records them; chunks need an AUX area, and have one
    /// recorder; what perf hands over costs more, and which of that is known depends on who has asked before.
    pub(crate) fn is_asked_for(&self) -> bool {
        matches!(
            self,
            Self::Aux(_)
                | Self::WakeupLatency
                | Self::PreemptLatency
                | Self::TimerLatency
                | Self::Sampled(_)
                | Self::Perf(_)
        )
    }

    /// Its subsystem and its name.
    pub(crate) fn full_name(&self) -> FullName<'_> {
        match self {
            Self::Provided(provided) => provided.description().full_name(),
            Self::Aux(source) => source.description().full_name(),
            Self::Dynamic(dynamic) => dynamic.description().full_name(),
            Self::Function(kind) => (function::FunctionKind::SUBSYSTEM, kind.name()),
            Self::WakeupLatency => (latency::SUBSYSTEM, wakeup::NAME),
            Self::PreemptLatency => (latency::SUBSYSTEM, preempt::NAME),
            Self::TimerLatency => (latency::SUBSYSTEM, timer::NAME),
            Self::Sampled(sampled) => (sampled::SUBSYSTEM, sampled.pace().name()),
            Self::Perf(perf) => perf.description().full_name(),
            Self::State(state) => (state::SUBSYSTEM, state.declaration().name),
        }
    }

    /// The field at this place in the record.
    pub(crate) fn field(&self, place: usize) -> Option<Field<'_>> {
        match self {
            Self::Provided(provided) => provided.description().field(place),
            Self::Aux(source) => source.description().field(place),
            Self::Dynamic(dynamic) => dynamic.description().field(place),
            Self::Function(kind) => kind.fields().get(place).copied(),
            Self::WakeupLatency => wakeup::FIELDS.get(place).copied(),
            Self::PreemptLatency => preempt::FIELDS.get(place).copied(),
            Self::TimerLatency => timer::FIELDS.get(place).copied(),
            Self::Sampled(_) => sampled::FIELDS.get(place).copied(),
            Self::Perf(perf) => perf.description().field(place),
            Self::State(state) => state.declaration().fields.get(place).copied(),
        }
    }
}
