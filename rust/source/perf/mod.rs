// SPDX-License-Identifier: GPL-2.0

//! All other events of ftrace and perf: events of tracepoints without a probe here, events of modules that were
//! built without rtrace, and events that users of ftrace define.
//!
//! The kernel writes such a record for perf; a perf counter on each CPU, with a sample for each event, hands it
//! over. The [layout] puts it into a trace as a probe would. This takes longer than any other way, and perf
//! drops events without a count: an event that happens while perf records another one in the same context (a
//! task, a softirq, an interrupt, an NMI).

mod layout;

use crate::abi::schema::Field;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::probe::listed::{ListedProbes, Removed};
use crate::probe::Probe;
use crate::source::attached::AttachedProbes;
use crate::source::description::{Description, FullName};
use crate::source::event_source::EventSource;
use crate::source::probe_list::{NewProbe, ProbeList};
use crate::sys::hotplug::Hotplug;
use crate::sys::perf::Arrivals;
use crate::sys::perf_records::{OnRecord, PerfRecords};
use crate::sys::trace_event::{TraceEvent, TraceFields};
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::{new_mutex, Arc, Mutex};
use layout::{PerfLayout, PerfRecord};

/// An event that perf hands over.
#[pin_data]
pub(crate) struct Perf {
    description: Description,
    firing: Arc<Firing>,
    hotplug: Arc<Hotplug<Arrivals>>,
    /// Held to change the probes, and to start or stop perf for them.
    #[pin]
    records: Mutex<Option<PerfRecords<Firing>>>,
    /// Non-zero while perf hands the event over. (Callers may hold locks in which `records` must not be taken.)
    is_recorded: SharedWord,
}

/// The actions when the event fires.
#[pin_data]
struct Firing {
    layout: PerfLayout,
    #[pin]
    probes: ListedProbes,
}

impl Perf {
    /// Finds the kernel's event of this name; [`None`] if there is none. `EINVAL`: its records cannot be
    /// described; `ENODEV`: perf does not have it. May sleep.
    pub(crate) fn find(
        subsystem: &str,
        name: &str,
        hotplug: &Arc<Hotplug<Arrivals>>,
    ) -> Result<Option<Arc<Self>>> {
        let Some(event) = find(subsystem, name)? else {
            return Ok(None);
        };
        let (description, layout) = layout::describe(&event, subsystem, name)?;
        let firing = pin_init!(Firing {
            layout,
            probes <- ListedProbes::new(),
        });
        let firing = Arc::pin_init(firing, GFP_KERNEL)?;
        let hotplug = hotplug.clone();
        let perf = pin_init!(Self {
            description,
            firing,
            hotplug,
            records <- new_mutex!(None),
            is_recorded: SharedWord::new(0),
        });
        Ok(Some(Arc::pin_init(perf, GFP_KERNEL)?))
    }

    fn is_recorded(&self) -> bool {
        self.is_recorded.load() != 0
    }

    /// `ENOENT`: the event was removed, or another event has its name.
    fn event(&self) -> Result<TraceEvent> {
        let (subsystem, name) = self.description.full_name();
        let event = find(subsystem, name)?.ok_or(ENOENT)?;
        match layout::describe(&event, subsystem, name) {
            Ok((description, layout))
                if description == self.description && layout == self.firing.layout =>
            {
                Ok(event)
            }
            Ok(_) | Err(EINVAL) => Err(ENOENT),
            Err(error) => Err(error),
        }
    }
}

/// Describes the fields of an event's records. `EINVAL`: a trace cannot contain them. May sleep.
pub(crate) fn describe(
    event: &impl TraceFields,
    subsystem: &str,
    name: &str,
) -> Result<Description> {
    Ok(layout::describe(event, subsystem, name)?.0)
}

fn find(subsystem: &str, name: &str) -> Result<Option<TraceEvent>> {
    let subsystem = CString::try_from_fmt(fmt!("{subsystem}"))?;
    let name = CString::try_from_fmt(fmt!("{name}"))?;
    TraceEvent::find(&subsystem, &name)
}

impl EventSource for Arc<Perf> {
    fn full_name(&self) -> FullName<'_> {
        self.description.full_name()
    }

    fn field(&self, place: usize) -> Option<Field<'_>> {
        self.description.field(place)
    }

    fn attach(&self, new: NewProbe<'_>, to: &mut AttachedProbes) -> Result {
        to.in_list(self.clone(), new)
    }

    /// The event costs more than any other, and which events of perf are known depends on earlier patterns.
    fn is_explicit(&self) -> bool {
        true
    }

    fn is_privileged(&self) -> bool {
        true
    }

    /// Whether the kernel still has the event as it was found. A recorded event cannot be removed.
    fn is_there(&self) -> Result<bool> {
        if self.is_recorded() {
            return Ok(true);
        }
        match self.event() {
            Ok(_) => Ok(true),
            Err(ENOMEM) => Err(ENOMEM),
            Err(_) => Ok(false),
        }
    }

    /// A filter that was made for this event must fit the records of the other.
    fn gives_way_to(&self, other: &Description) -> bool {
        !self.is_recorded() && self.description.has_fields_of(other)
    }

    fn is_again(&self, old: &Self) -> bool {
        self.description == old.description && self.firing.layout == old.firing.layout
    }
}

impl ProbeList for Perf {
    /// `ENOENT`: the event was removed, or has other fields now; `EPERM`: the current task lacks `CAP_PERFMON`,
    /// which is needed to see perf's records.
    fn attach(&self, NewProbe { probe, .. }: NewProbe<'_>) -> Result {
        let mut records = self.records.lock();
        self.firing.probes.attach(probe.clone())?;
        if records.is_some() {
            return Ok(());
        }
        let begun = self
            .event()
            .and_then(|event| PerfRecords::new(&self.hotplug, &event, self.firing.clone()));
        match begun {
            Ok(begun) => {
                *records = Some(begun);
                self.is_recorded.store(1);
            }
            Err(error) => {
                self.firing.probes.detach(&probe, &mut Removed::new());
                return Err(error);
            }
        }
        Ok(())
    }

    fn detach(&self, probe: &Probe, removed: &mut Removed) {
        let mut records = self.records.lock();
        self.firing.probes.detach(probe, removed);
        if !self.firing.probes.is_any(&NoPreempt::new()) {
            *records = None;
            self.is_recorded.store(0);
        }
    }
}

impl OnRecord for Firing {
    #[inline(always)]
    fn recorded(&self, record: &[u8]) {
        let guard = NoPreempt::new();
        let record = PerfRecord {
            layout: &self.layout,
            bytes: record,
        };
        self.probes.handle(&record, &guard);
    }
}
