// SPDX-License-Identifier: GPL-2.0

//! Sampling by the kernel's perf: being called again and again, with what runs then.

use crate::sys::args::Registers;
use crate::sys::bindings;
use crate::sys::hotplug::Hotplug;
use crate::sys::perf::{Arrivals, CounterConfig, Moments, Overflow, PerfEvents};
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A moment that is a sample.
pub(crate) struct Sample<'a> {
    /// Of the code that runs.
    pub(crate) registers: &'a Registers,
    /// What was counted since the sample before: cycles, or nanoseconds.
    pub(crate) period: u64,
    /// Whether perf stops the sampling on this CPU up to the next tick, for there were too many.
    pub(crate) is_throttled: bool,
    /// Of a timer, which may have come late.
    pub(crate) timer: Option<SampleTimer>,
}

/// The timer that has a CPU sampled.
#[derive(Clone, Copy)]
pub(crate) struct SampleTimer {
    /// Another number for each timer that a CPU has had one after the other.
    pub(crate) id: u64,
    /// When it was to come, in nanoseconds of the monotonic clock.
    pub(crate) due: u64,
}

/// What gets samples.
pub(crate) trait OnSample: Send + Sync + 'static {
    /// Gets one, with preemption disabled; in the context that the processor calls perf in: an interrupt or
    /// an NMI.
    fn sampled(&self, sample: &Sample<'_>);
}

/// Has each CPU sampled that is wanted, from its making until it was dropped.
pub(crate) struct Sampler<T: OnSample> {
    // In the order of their end: these call the other.
    _events: PerfEvents,
    _entry: Arc<Entry<T>>,
}

/// What the handler gets.
struct Entry<T> {
    target: Arc<T>,
    is_timed: bool,
}

impl<T: OnSample> Sampler<T> {
    /// Begins, so often per second on each CPU that `wants` picks. `ENOENT`, `EOPNOTSUPP`: the machine
    /// cannot; `ENOSPC`: its counters are all in use. May sleep.
    pub(crate) fn new(
        hotplug: &Arc<Hotplug<Arrivals>>,
        config: CounterConfig,
        frequency: u32,
        wants: impl Fn(u32) -> bool,
        target: Arc<T>,
    ) -> Result<Self> {
        let is_timed = config == CounterConfig::CPU_CLOCK;
        let entry = Arc::new(Entry { target, is_timed }, GFP_KERNEL)?;
        let overflow = Overflow {
            moments: Moments::PerSecond(frequency),
            handler: overflown::<T>,
            context: NonNull::from(&*entry).cast(),
        };
        // SAFETY: The entry lives as long as the events, which go first; the handler takes it. perf calls
        // it in an interrupt or an NMI, so that it has ended when they have gone.
        let events = unsafe { PerfEvents::new(hotplug, config, Some(overflow), wants)? };
        Ok(Self {
            _events: events,
            _entry: entry,
        })
    }
}

/// Whether such samples can be taken here; also where all counters are in use at the moment. May sleep.
pub(crate) fn is_possible(config: CounterConfig) -> bool {
    // SAFETY: May be called from any process context; it checks what it is given.
    unsafe { bindings::rtrace_sampler_possible(config.ty, config.config) }
}

/// # Safety
///
/// For perf to call, with an event whose context is an `Entry<T>` that lives.
#[link_section = ".kprobes.text"]
unsafe extern "C" fn overflown<T: OnSample>(
    event: *mut bindings::perf_event,
    data: *mut bindings::perf_sample_data,
    registers: *mut bindings::pt_regs,
) {
    let mut read = bindings::rtrace_sample::default();
    // SAFETY: perf's own arguments; a place for what is read.
    let context = unsafe { bindings::rtrace_sample_read(event, data, &mut read) };
    // SAFETY: By the contract. Nobody has the entry mutably; the registers live during the call.
    let (entry, registers) = unsafe {
        (
            &*context.cast::<Entry<T>>(),
            &*registers.cast::<Registers>(),
        )
    };
    entry.target.sampled(&Sample {
        registers,
        period: read.period,
        is_throttled: read.is_throttled,
        timer: entry.is_timed.then_some(SampleTimer {
            id: event.addr() as u64,
            due: read.due,
        }),
    });
}
