// SPDX-License-Identifier: GPL-2.0

//! The state: what exists at a moment, as events, so that a reader knows about things that began before the
//! trace.
//!
//! These events are recorded only in a session that is asked for the state. Threads are recorded [by the
//! kernel](walk), in order with the events that change them; parts that need not be as exact come as
//! [lines](lines) from user space. The names and fields are LTTng's where it has the event.

mod declared;
pub(crate) mod lines;
mod walk;

use crate::abi::schema::Field;
use crate::arch::preempt::NoPreempt;
use crate::probe::captured::Bytes;
use crate::probe::listed::{ListedProbes, Removed};
use crate::probe::Probe;
use crate::record::memory::Tail;
use crate::source::attached::AttachedProbes;
use crate::source::description::FullName;
use crate::source::event_source::{EventSource, FoundSources};
use crate::source::probe_list::{NewProbe, ProbeList};
use crate::sys::threads;
use declared::{StateDeclaration, DECLARED, END, START};
use kernel::prelude::*;
use kernel::sync::Arc;

/// An event of the state.
#[pin_data]
pub(crate) struct StateEvent {
    declaration: &'static StateDeclaration,
    #[pin]
    probes: ListedProbes,
}

/// Subsystem of the events.
const SUBSYSTEM: &str = "statedump";

/// Finds all events of the state. None is recorded yet. May sleep.
pub(super) fn find(sources: &mut FoundSources) -> Result {
    threads::init();
    DECLARED.iter().try_for_each(|&declaration| {
        let event = pin_init!(StateEvent {
            declaration,
            probes <- ListedProbes::new(),
        });
        sources.add(Arc::pin_init(event, GFP_KERNEL)?)
    })
}

impl EventSource for Arc<StateEvent> {
    fn full_name(&self) -> FullName<'_> {
        (SUBSYSTEM, self.declaration.name)
    }

    fn field(&self, place: usize) -> Option<Field<'_>> {
        self.declaration.fields.get(place).copied()
    }

    fn attach(&self, new: NewProbe<'_>, to: &mut AttachedProbes) -> Result {
        to.in_list(self.clone(), new)
    }

    fn is_of_all_tasks(&self) -> bool {
        true
    }
}

impl ProbeList for StateEvent {
    fn attach(&self, new: NewProbe<'_>) -> Result {
        self.probes.attach(new.probe)
    }

    fn detach(&self, probe: &Probe, removed: &mut Removed) {
        self.probes.detach(probe, removed);
    }
}

/// Records the state in one session.
pub(crate) struct Dump<P> {
    /// The events, in the order of their declarations.
    events: KVec<Arc<StateEvent>>,
    is_ours: P,
}

impl<P: Fn(&Probe) -> bool> Dump<P> {
    /// Records into the probes for which `is_ours` is true. `events` are all events of the state. May sleep.
    pub(crate) fn new<'a>(
        events: impl Iterator<Item = &'a Arc<StateEvent>>,
        is_ours: P,
    ) -> Result<Self> {
        let mut all = KVec::with_capacity(DECLARED.len(), GFP_KERNEL)?;
        for event in events {
            all.push(event.clone(), GFP_KERNEL)?;
        }
        Ok(Self {
            events: all,
            is_ours,
        })
    }

    /// Whether anything of the state is recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        self.events.iter().any(|event| self.records(event))
    }

    /// Records the `parts` in their order. `EINTR`: the task was killed meanwhile. May sleep.
    pub(crate) fn take(&self, parts: &lines::LineParts) -> Result {
        for part in parts.iter() {
            match part {
                lines::Part::All => {
                    self.record(&START, &());
                    self.walk()?;
                    self.record(&END, &());
                }
                lines::Part::Threads => self.walk()?,
                lines::Part::Record(place, fields) => {
                    if let Some(event) = self.events.get(place) {
                        self.record_event(event, &Bytes(fields));
                    }
                }
            }
        }
        Ok(())
    }

    fn find(&self, declaration: &'static StateDeclaration) -> Option<&StateEvent> {
        let mut events = self.events.iter();
        let event = events.find(|event| core::ptr::eq(event.declaration, declaration))?;
        Some(&**event)
    }

    /// Whether somebody in this session records an event.
    fn has(&self, declaration: &'static StateDeclaration) -> bool {
        self.find(declaration)
            .is_some_and(|event| self.records(event))
    }

    fn records(&self, event: &StateEvent) -> bool {
        event.probes.has_any(&self.is_ours, &NoPreempt::new())
    }

    fn record(&self, declaration: &'static StateDeclaration, fields: &impl Tail) {
        if let Some(event) = self.find(declaration) {
            self.record_event(event, fields);
        }
    }

    fn record_event(&self, event: &StateEvent, fields: &impl Tail) {
        let guard = NoPreempt::new();
        event.probes.handle_where(fields, &self.is_ours, &guard);
    }
}
