// SPDX-License-Identifier: GPL-2.0

//! A latency that probes at tracepoints measure while somebody records its event.

use super::results::Results;
use crate::arch::preempt::NoPreempt;
use crate::probe::Probe;
use crate::source::attached::{NewProbe, ProbeList};
use crate::sys::tracepoint::{Attachments, Handler, Tracepoints};
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The data of the probes.
pub(crate) trait Meter: Sized + Send + Sync + 'static {
    /// The tracepoints and their probes: what ends a latency before what begins one.
    const PROBES: &'static [(&'static str, Handler<Self>)];

    /// What a session can choose of it, beside a threshold.
    type Choice: Send + Sync;

    /// One that has measured nothing. May sleep.
    fn new(results: &Arc<Results>, choice: &Arc<Self::Choice>) -> Result<Self>;
}

/// A latency that a session measures by such probes.
#[pin_data]
pub(crate) struct Metered<M: Meter> {
    results: Arc<Results>,
    choice: Arc<M::Choice>,
    /// There are some while somebody records the event.
    #[pin]
    probes: Mutex<Option<Attachments<M>>>,
}

impl<M: Meter> Metered<M> {
    /// Nothing was measured, and nobody wants it. May sleep.
    pub(crate) fn new(choice: M::Choice) -> Result<Arc<Self>> {
        let results = Results::new()?;
        let choice = Arc::new(choice, GFP_KERNEL)?;
        let metered = pin_init!(Self {
            results,
            choice,
            probes <- new_mutex!(None),
        });
        Arc::pin_init(metered, GFP_KERNEL)
    }

    /// What was measured.
    pub(crate) fn results(&self) -> &Results {
        &self.results
    }

    /// What was chosen.
    pub(crate) fn choice(&self) -> &M::Choice {
        &self.choice
    }

    /// Measures until what this returns is dropped. `ENOENT`: the kernel has not the tracepoints. May
    /// sleep.
    fn begin(&self) -> Result<Attachments<M>> {
        let meter = Arc::new(M::new(&self.results, &self.choice)?, GFP_KERNEL)?;
        let tracepoints = Tracepoints::new()?;
        let mut attachments = Attachments::new();
        for &(name, handler) in M::PROBES {
            let tracepoint = tracepoints.find(name).ok_or(ENOENT)?;
            // After those who record the same tracepoint: what is measured follows it in the trace.
            attachments.attach_last(tracepoint, handler, meter.clone())?;
        }
        Ok(attachments)
    }
}

impl<M: Meter> ProbeList for Metered<M> {
    fn attach(&self, NewProbe { probe, .. }: NewProbe<'_>) -> Result {
        let mut probes = self.probes.lock();
        let recorders = &self.results.recorders;
        recorders.attach(probe.clone())?;
        if probes.is_none() {
            *probes = Some(self.begin().inspect_err(|_| recorders.detach(&probe))?);
        }
        Ok(())
    }

    fn detach(&self, probe: &Probe) {
        let mut probes = self.probes.lock();
        self.results.recorders.detach(probe);
        if !self.results.recorders.is_any(&NoPreempt::new()) {
            *probes = None;
        }
    }
}
