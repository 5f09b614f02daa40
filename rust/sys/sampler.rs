// SPDX-License-Identifier: GPL-2.0

//! Sampling by the kernel's perf: periodic calls of a target, with the interrupted registers.

use crate::sys::args::Registers;
use crate::sys::bindings;
use crate::sys::hotplug::Hotplug;
use crate::sys::perf::{Arrivals, CounterConfig, Moments, Overflow, PerfEvents};
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A sample.
pub(crate) struct Sample<'a> {
    /// Registers of the interrupted code.
    pub(crate) registers: &'a Registers,
    /// Count since the previous sample: cycles, or nanoseconds.
    pub(crate) period: u64,
    /// Whether perf stops the sampling on this CPU until the next tick, because there were too many samples.
    pub(crate) is_throttled: bool,
    /// The timer that caused the sample, if a timer did. It may have fired late.
    pub(crate) timer: Option<SampleTimer>,
}

/// A timer that causes the samples of a CPU.
#[derive(Clone, Copy)]
pub(crate) struct SampleTimer {
    /// Identity of the timer: the id of its perf event, which no later event gets.
    pub(crate) id: u64,
    /// Expiry time in nanoseconds of the monotonic clock.
    pub(crate) due: u64,
}

/// Receives the samples.
pub(crate) trait OnSample: Send + Sync + 'static {
    /// Handles a sample, with preemption disabled, in the context in which perf handles the event: an interrupt
    /// or an NMI.
    fn sampled(&self, sample: &Sample<'_>);
}

/// Samples each selected CPU, from creation until dropped.
pub(crate) struct Sampler<T: OnSample> {
    // In the order of the drop: the events call the entry.
    _events: PerfEvents,
    _entry: Arc<Entry<T>>,
}

/// Context of the handler.
struct Entry<T> {
    target: Arc<T>,
    is_timed: bool,
}

impl<T: OnSample> Sampler<T> {
    /// Starts to sample, `frequency` times per second, on each CPU that `wants` selects. Errors: `ENOENT` or
    /// `EOPNOTSUPP` if the machine lacks the event, `ENOSPC` if all its counters are in use. May sleep.
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
        // SAFETY: The entry lives longer than the events, which are dropped first. The handler takes an
        // `Entry<T>`. perf calls the handler in an interrupt or an NMI. So it has ended when the events are
        // dropped.
        let events = unsafe { PerfEvents::new(hotplug, config, Some(overflow), wants)? };
        Ok(Self {
            _events: events,
            _entry: entry,
        })
    }
}

/// Whether this machine can take samples of this kind, even if all its counters are in use now. May sleep.
pub(crate) fn is_possible(config: CounterConfig) -> bool {
    // SAFETY: Any process context may call it. It checks its arguments.
    unsafe { bindings::rtrace_sampler_possible(config.ty, config.config) }
}

/// # Safety
///
/// Only perf calls this, with an event whose context is a live `Entry<T>`.
#[link_section = ".kprobes.text"]
unsafe extern "C" fn overflown<T: OnSample>(
    event: *mut bindings::perf_event,
    data: *mut bindings::perf_sample_data,
    registers: *mut bindings::pt_regs,
) {
    let mut read = bindings::rtrace_sample::default();
    // SAFETY: The arguments are perf's. `read` is memory for the result.
    let context = unsafe { bindings::rtrace_sample_read(event, data, &mut read) };
    // SAFETY: By the contract. No code has a mutable reference to the entry. The registers live during the
    // call.
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
            id: read.event,
            due: read.due,
        }),
    });
}
