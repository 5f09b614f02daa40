// SPDX-License-Identifier: GPL-2.0

//! Records that the kernel's perf makes of a trace event, handed over at each event.

use crate::sys::bindings;
use crate::sys::hotplug::Hotplug;
use crate::sys::perf::{Arrivals, CounterConfig, Moments, Overflow, PerfEvents};
use crate::sys::retired::{self, Retirable, UsedBy};
use crate::sys::trace_event::TraceEvent;
use crate::sys::waiters;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Receives the records.
pub(crate) trait OnRecord: Send + Sync + 'static {
    /// Handles an event of this CPU, with perf's record. Preemption is disabled; any context, NMI included. An
    /// event in the same kind of context (task, softirq, interrupt, NMI) during the call is not handed over.
    fn recorded(&self, record: &[u8]);
}

/// Hands over the records of an event, from creation until some time after the drop. When a tracepoint's last
/// perf event ends, the kernel waits for RCU tasks trace, so that happens when no reader is left. The drop
/// waits for that, for up to one second, and not at all if a reader is known to sleep.
pub(crate) struct PerfRecords<T: OnRecord>(Option<KBox<Retirable<Records<T>>>>);

struct Records<T: OnRecord> {
    // In the order of the drop.
    _events: PerfEvents,
    _under_way: UnderWay,
    _target: Arc<T>,
}

impl<T: OnRecord> PerfRecords<T> {
    /// Gives `target` each record of each CPU from now on; on a CPU that comes online later, from shortly after
    /// that. `EPERM`: the current task may not see the records. May sleep.
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
        // Declared before the events: if one event cannot be created, the others are dropped before it.
        let under_way = UnderWay;
        // SAFETY: The target lives until no handler runs any more (`UnderWay`). The handler takes a `T`.
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
            records.retire(UsedBy::Tracepoint);
            if waiters::all().next().is_none() {
                retired::wait_a_second();
            }
        }
    }
}

/// Handlers that still run after the drop of their event. An event can be removed from a CPU while its handler
/// runs.
struct UnderWay;

impl Drop for UnderWay {
    /// Waits for these handlers, which disable preemption.
    fn drop(&mut self) {
        // SAFETY: This context may sleep.
        unsafe { bindings::synchronize_rcu() };
    }
}

/// # Safety
///
/// Only perf calls this, with an event created for records, whose context is a live `T`.
#[link_section = ".kprobes.text"]
unsafe extern "C" fn recorded<T: OnRecord>(
    event: *mut bindings::perf_event,
    data: *mut bindings::perf_sample_data,
    _registers: *mut bindings::pt_regs,
) {
    let mut record = bindings::rtrace_perf_record::default();
    // SAFETY: The arguments are perf's, of an event for records. `record` is memory for the result.
    let context = unsafe { bindings::rtrace_perf_record_read(event, data, &mut record) };
    // SAFETY:
    // - By the contract. No code has a mutable reference to the target.
    // - The record is perf's own. No other code uses it until this returns.
    unsafe {
        let target = &*context.cast::<T>();
        target.recorded(core::slice::from_raw_parts(record.data.cast(), record.size));
    }
}
