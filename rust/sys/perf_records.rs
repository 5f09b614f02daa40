// SPDX-License-Identifier: GPL-2.0

//! What the kernel's perf records of a trace event, handed over each time it happens.

use crate::sys::bindings;
use crate::sys::hotplug::Hotplug;
use crate::sys::perf::{Arrivals, CounterConfig, Moments, Overflow, PerfEvents};
use crate::sys::retired::{self, Retirable};
use crate::sys::trace_event::TraceEvent;
use crate::sys::waiters;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::sync::Arc;

/// What gets records.
pub(crate) trait OnRecord: Send + Sync + 'static {
    /// The event happened on this CPU, of which perf has recorded this. Any context, NMI included;
    /// interrupts are off. What happens meanwhile, but in an NMI, is not handed over.
    fn recorded(&self, record: &[u8]);
}

/// Has the records of an event handed over, from its making until some time after it was dropped: the kernel waits for
/// RCU tasks trace when a tracepoint's last event goes, so that is done when no reader is there. Dropping it waits for
/// that, but a second at most, and not if a reader is known to sleep.
pub(crate) struct PerfRecords<T: OnRecord>(Option<KBox<Retirable<Records<T>>>>);

struct Records<T: OnRecord> {
    // In the order of their end.
    _events: PerfEvents,
    _under_way: UnderWay,
    _target: Arc<T>,
}

impl<T: OnRecord> PerfRecords<T> {
    /// Gives `target` each record on each CPU from now on; those of a CPU that comes later from shortly
    /// after that. `EPERM`: the current task may not see them. May sleep.
    pub(crate) fn new(
        hotplug: &Arc<Hotplug<Arrivals>>,
        event: &TraceEvent,
        target: Arc<T>,
    ) -> Result<Self> {
        let config = CounterConfig {
            ty: bindings::perf_type_id_PERF_TYPE_TRACEPOINT,
            config: event.id(),
        };
        let overflow = Overflow {
            moments: Moments::Each,
            handler: recorded::<T>,
            context: NonNull::from(&*target).cast(),
        };
        // Before the events: those that could be made go before it, if one of them cannot.
        let under_way = UnderWay;
        // SAFETY: The target lives until no handler runs any more (`UnderWay`); the handler takes it.
        let events = unsafe { PerfEvents::new(hotplug, config, Some(overflow), |_| true)? };
        let records = Retirable::new(Records {
            _events: events,
            _under_way: under_way,
            _target: target,
        })?;
        Ok(Self(Some(records)))
    }
}

impl<T: OnRecord> Drop for PerfRecords<T> {
    fn drop(&mut self) {
        if let Some(records) = self.0.take() {
            records.retire();
            if waiters::all().next().is_none() {
                retired::wait_a_second();
            }
        }
    }
}

/// Handlers that still run when their event is gone: it can be taken off a CPU in the middle of one.
struct UnderWay;

impl Drop for UnderWay {
    /// Waits for them: they disable preemption.
    fn drop(&mut self) {
        // SAFETY: May sleep here.
        unsafe { bindings::synchronize_rcu() };
    }
}

/// # Safety
///
/// For perf to call, with an event made to record, whose context is a `T` that lives.
#[link_section = ".kprobes.text"]
unsafe extern "C" fn recorded<T: OnRecord>(
    event: *mut bindings::perf_event,
    data: *mut bindings::perf_sample_data,
    _registers: *mut bindings::pt_regs,
) {
    let mut record = bindings::rtrace_perf_record::default();
    // SAFETY: perf's own arguments, of such an event; a place for what is read.
    let context = unsafe { bindings::rtrace_perf_record_read(event, data, &mut record) };
    // SAFETY:
    // - By the contract. Nobody has the target mutably.
    // - The record is perf's own, and nobody else's until this returns.
    unsafe {
        let target = &*context.cast::<T>();
        target.recorded(core::slice::from_raw_parts(record.data.cast(), record.size));
    }
}
