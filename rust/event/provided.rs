// SPDX-License-Identifier: GPL-2.0

//! Events that other modules provide.

use super::captured::{self, CapturedProbe};
use super::description::Description;
use crate::arch::preempt::NoPreempt;
use crate::record::memory::{Space, Tail};
use crate::sys::args::TEXT_MAX;
use crate::sys::rcu::RcuArc;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// An event of another module.
#[pin_data]
pub(crate) struct Provided {
    description: Description,
    /// Who records it.
    recorders: RcuArc<Recorder>,
    /// Held to change the list of recorders.
    #[pin]
    changing: Mutex<()>,
}

/// A channel that records the event, or a trigger, in a list of them.
struct Recorder {
    probe: Arc<CapturedProbe>,
    next: RcuArc<Recorder>,
}

impl Provided {
    /// An event that nobody records. `EINVAL`: of variable size is not just a string at its end. May
    /// sleep.
    pub(super) fn new(description: Description) -> Result<Arc<Self>> {
        if !description.has_only_last_string() {
            return Err(EINVAL);
        }
        Arc::pin_init(
            pin_init!(Self {
                description,
                recorders: RcuArc::new(),
                changing <- new_mutex!(()),
            }),
            GFP_KERNEL,
        )
    }

    /// What its module says of it.
    pub(super) fn description(&self) -> &Description {
        &self.description
    }

    /// Whether it is what `description` says.
    pub(super) fn is_described_by(&self, description: &Description) -> bool {
        self.description == *description
    }

    /// Whether a filter can look at its records: they are not too long.
    pub(super) fn can_be_captured(&self) -> bool {
        self.description.fixed() + TEXT_MAX < captured::LONGEST
    }

    /// Has it recorded by `probe`, too, from now on; triggers come after all others. May sleep.
    pub(crate) fn attach(&self, probe: Arc<CapturedProbe>) -> Result {
        let _changing = self.changing.lock();
        let next = RcuArc::new();
        if probe.trigger().is_some() {
            let recorder = Arc::new(Recorder { probe, next }, GFP_KERNEL)?;
            let Some(mut last) = self.recorders.get_arc() else {
                self.recorders.replace(Some(recorder));
                return Ok(());
            };
            while let Some(next) = last.next.get_arc() {
                last = next;
            }
            last.next.replace(Some(recorder));
            return Ok(());
        }
        next.replace(self.recorders.get_arc());
        let recorder = Arc::new(Recorder { probe, next }, GFP_KERNEL)?;
        self.recorders.replace(Some(recorder));
        Ok(())
    }

    /// Has it not recorded by `probe` any more, and waits until that does not run. May sleep.
    pub(crate) fn detach(&self, probe: &CapturedProbe) {
        let _changing = self.changing.lock();
        let mut before: Option<Arc<Recorder>> = None;
        loop {
            let place = before
                .as_ref()
                .map_or(&self.recorders, |before| &before.next);
            let Some(recorder) = place.get_arc() else {
                return;
            };
            if core::ptr::eq(&*recorder.probe, probe) {
                return place.replace(recorder.next.get_arc());
            }
            before = Some(recorder);
        }
    }

    /// Whether somebody records it. Any context, NMI included.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorders.get(&NoPreempt::new()).is_some()
    }

    /// Records it if it is enabled. `EINVAL` if `data` is not of its size. Any context, NMI
    /// included.
    #[inline(always)]
    pub(crate) fn emit(&self, data: &[u8], text: &[u8]) -> Result {
        let guard = NoPreempt::new();
        let mut next = self.recorders.get(&guard);
        if next.is_some() && data.len() != self.description.fixed() {
            return Err(EINVAL);
        }
        let record = Record {
            data,
            text,
            has_string: self.description.varies(),
        };
        while let Some(Recorder { probe, next: after }) = next {
            probe.record_tail(&record, &guard);
            next = after.get(&guard);
        }
        Ok(())
    }
}

/// A provided event's fields as a record's tail.
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
