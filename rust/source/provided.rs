// SPDX-License-Identifier: GPL-2.0

//! Events that other modules provide.

use super::attached::AttachedProbes;
use super::description::{Description, FullName};
use super::event_source::EventSource;
use super::probe_list::{NewProbe, ProbeList};
use crate::abi::schema::Field;
use crate::arch::preempt::NoPreempt;
use crate::probe::listed::{ListedProbes, Removed};
use crate::probe::{captured, Probe};
use crate::record::memory::TEXT_MAX;
use crate::record::memory::{Space, Tail};
use kernel::prelude::*;
use kernel::sync::Arc;

/// An event of another module.
#[pin_data]
pub(crate) struct Provided {
    description: Description,
    #[pin]
    probes: ListedProbes,
}

impl Provided {
    /// Makes an event that nobody records. `EINVAL`: a field other than a string at the end is of variable
    /// size. May sleep.
    pub(crate) fn new(description: Description) -> Result<Arc<Self>> {
        if !description.has_only_last_string() {
            return Err(EINVAL);
        }
        Arc::pin_init(
            pin_init!(Self {
                description,
                probes <- ListedProbes::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Whether somebody records the event. Any context, NMI included.
    pub(crate) fn is_recorded(&self) -> bool {
        self.probes.is_any(&NoPreempt::new())
    }

    /// Records the event if it is enabled. `EINVAL` if `data` has the wrong size. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn emit(&self, data: &[u8], text: &[u8]) -> Result {
        let guard = NoPreempt::new();
        if self.probes.is_any(&guard) && data.len() != self.description.fixed() {
            return Err(EINVAL);
        }
        let record = Record {
            data,
            text,
            has_string: self.description.varies(),
        };
        self.probes.handle(&record, &guard);
        Ok(())
    }
}

impl EventSource for Arc<Provided> {
    fn full_name(&self) -> FullName<'_> {
        self.description.full_name()
    }

    fn field(&self, place: usize) -> Option<Field<'_>> {
        self.description.field(place)
    }

    fn attach(&self, new: NewProbe<'_>, to: &mut AttachedProbes) -> Result {
        to.in_list(self.clone(), new)
    }

    /// Records that are too long cannot be captured.
    fn can_be_filtered(&self) -> bool {
        self.description.fixed() + TEXT_MAX < captured::LONGEST
    }

    fn is_again(&self, old: &Self) -> bool {
        self.description == old.description
    }
}

impl ProbeList for Provided {
    fn attach(&self, new: NewProbe<'_>) -> Result {
        self.probes.attach(new.probe)
    }

    fn detach(&self, probe: &Probe, removed: &mut Removed) {
        self.probes.detach(probe, removed);
    }
}

/// The fields of a provided event, as a record's tail.
struct Record<'a> {
    data: &'a [u8],
    text: &'a [u8],
    has_string: bool,
}

impl Tail for Record<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        let string = if self.has_string {
            self.text.len().wrapping_add(1)
        } else {
            0
        };
        self.data.len().wrapping_add(string)
    }

    #[inline(always)]
    fn write(&self, mut space: Space<'_>) {
        space.put_bytes(self.data);
        if self.has_string {
            space.put_bytes(self.text);
            space.put(0u8);
        }
    }
}
