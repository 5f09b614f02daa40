// SPDX-License-Identifier: GPL-2.0

//! A latency that is measured by probes at tracepoints while somebody records its event.

use super::results::Results;
use crate::abi::schema::Field;
use crate::arch::preempt::NoPreempt;
use crate::probe::listed::Removed;
use crate::probe::Probe;
use crate::source::probe_list::{NewProbe, ProbeList};
use crate::sys::tracepoint::{Attachments, Handler, Rank, Tracepoints};
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Measures a latency while it exists.
pub(crate) trait Meter: Send + Sized + Unpin + 'static {
    /// The event's name.
    const NAME: &'static str;

    /// Its fields, in the order of the record.
    const FIELDS: &'static [Field<'static>];

    /// Choice of a session, beside a threshold.
    type Choice: Send + Sync;

    /// Begins to measure. May sleep.
    fn new(results: &Arc<Results>, choice: &Arc<Self::Choice>) -> Result<Self>;

    /// Measures for this probe, too. May sleep.
    fn attach(&self, _probe: &Probe) {}
}

/// A latency that a session measures.
#[pin_data]
pub(crate) struct Metered<M: Meter> {
    results: Arc<Results>,
    choice: Arc<M::Choice>,
    /// The probes exist while somebody records the event.
    #[pin]
    meter: Mutex<Option<M>>,
}

impl<M: Meter> Metered<M> {
    /// Makes it without measurements and without probes. May sleep.
    pub(crate) fn new(choice: M::Choice) -> Result<Arc<Self>> {
        let results = Results::new()?;
        let choice = Arc::new(choice, GFP_KERNEL)?;
        let metered = pin_init!(Self {
            results,
            choice,
            meter <- new_mutex!(None),
        });
        Arc::pin_init(metered, GFP_KERNEL)
    }

    /// The results of the measurements.
    pub(crate) fn results(&self) -> &Results {
        &self.results
    }

    /// The session's setting.
    pub(crate) fn choice(&self) -> &M::Choice {
        &self.choice
    }

    /// Calls `change` with the choice and the meter, if that exists. The meter neither begins nor ends meanwhile.
    pub(super) fn change(&self, change: impl FnOnce(&M::Choice, Option<&M>)) {
        change(&self.choice, self.meter.lock().as_ref());
    }
}

impl<M: Meter> ProbeList for Metered<M> {
    fn attach(&self, NewProbe { probe, .. }: NewProbe<'_>) -> Result {
        let mut meter = self.meter.lock();
        let probes = &self.results.probes;
        probes.attach(probe.clone())?;
        if meter.is_none() {
            let new = M::new(&self.results, &self.choice);
            *meter = Some(new.inspect_err(|_| probes.detach(&probe, &mut Removed::new()))?);
        }
        if let Some(meter) = &*meter {
            meter.attach(&probe);
        }
        Ok(())
    }

    fn detach(&self, probe: &Probe, removed: &mut Removed) {
        let mut meter = self.meter.lock();
        self.results.probes.detach(probe, removed);
        if !self.results.probes.is_any(&NoPreempt::new()) {
            *meter = None;
        }
    }
}

/// Attaches the handlers of a meter, with its data, to the tracepoints of these names: what ends a latency before what
/// begins one. `ENOENT`: the kernel lacks one of the tracepoints. May sleep.
pub(super) fn attach<D: Send + Sync>(
    data: D,
    handlers: &[(&str, Handler<D>)],
) -> Result<Attachments<D>> {
    let data = Arc::new(data, GFP_KERNEL)?;
    let tracepoints = Tracepoints::new()?;
    let mut attachments = Attachments::new();
    for &(name, handler) in handlers {
        let tracepoint = tracepoints.find(name).ok_or(ENOENT)?;
        // After the probes that record: in a trace, a latency follows the event that ends it.
        let (to, data) = (&mut attachments, data.clone());
        Attachments::attach(to, tracepoint, handler, data, Rank::End)?;
    }
    Ok(attachments)
}
