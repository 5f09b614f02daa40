// SPDX-License-Identifier: GPL-2.0

//! Events of the kernel's perf, one on each CPU: hardware events and software events. They count, or call a
//! handler.

use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::sys::bindings;
use crate::sys::cpu::{self, NoHotplug};
use crate::sys::hotplug::{Hotplug, HotplugWatch, PerCpuState};
use crate::sys::percpu::PerCpu;
use crate::sys::rcu::RcuArc;
use crate::sys::work::{Ask, Work};
use core::ptr::NonNull;
use kernel::error::from_err_ptr;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Event to count, as perf_event_open(2) takes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct CounterConfig {
    /// `enum perf_type_id`.
    pub(crate) ty: u32,
    /// The event within that type.
    pub(crate) config: u64,
}

impl CounterConfig {
    /// Cycles of the processor.
    pub(crate) const CYCLES: Self = Self { ty: 0, config: 0 };
    /// Nanoseconds, counted by a timer of the CPU.
    pub(crate) const CPU_CLOCK: Self = Self { ty: 1, config: 0 };
}

/// Rate of the handler's calls.
pub(super) enum Moments {
    /// A number of times per second and CPU: perf adapts the event's period, or uses a timer.
    PerSecond(u32),
    /// Once for each event, with perf's record of it.
    Each,
}

/// Handler of an event.
pub(super) struct Overflow {
    pub(super) moments: Moments,
    /// The function. Any context calls it, NMI included.
    pub(super) handler: OverflowHandler,
    /// Pointer that the event keeps for the handler.
    pub(super) context: NonNull<c_void>,
}

/// Type of the function that perf calls.
pub(super) type OverflowHandler = unsafe extern "C" fn(
    *mut bindings::perf_event,
    *mut bindings::perf_sample_data,
    *mut bindings::pt_regs,
);

// SAFETY: This type only forwards the pointer. The code that provides it is responsible for its use in any
// thread.
unsafe impl Send for Overflow {}
// SAFETY: As above.
unsafe impl Sync for Overflow {}

/// An event on each selected CPU. It counts from its creation. On a CPU that comes online later, it counts from
/// shortly after that.
pub(super) struct PerfEvents {
    // In the order of the drop: the watch queues the work.
    _watch: Pin<KBox<HotplugWatch<Arrivals>>>,
    work: Arc<Work<Events>>,
}

impl PerfEvents {
    /// Starts to count on the CPUs that `wants` selects. Errors: `ENOENT` or `EOPNOTSUPP` if the machine lacks
    /// the event, `ENOSPC` if all its counters are in use. May sleep.
    ///
    /// # Safety
    ///
    /// It must be safe to call the handler with the context until this is dropped. If the handler runs with
    /// interrupts enabled, it may still run after that: see [`PerfEvent`].
    pub(super) unsafe fn new(
        hotplug: &Arc<Hotplug<Arrivals>>,
        config: CounterConfig,
        overflow: Option<Overflow>,
        wants: impl Fn(u32) -> bool,
    ) -> Result<Self> {
        let work = Work::new(Events::new(config, overflow)?, Events::replace_outdated)?;
        let arrivals = Arc::new(Arrivals(work.clone()), GFP_KERNEL)?;
        let watch = HotplugWatch::new(hotplug, arrivals)?;
        let events = work.data();
        for cpu in cpu::possible().filter(|cpu| wants(*cpu)) {
            let Some(each) = events.each.of(cpu) else {
                continue;
            };
            // If a CPU comes online from now on, the watch reports it. The other CPUs are online.
            each.is_wanted.store(1);
            if events.make_on(cpu).is_err() && NoHotplug::new().is_online(cpu) {
                // The CPU may have come online since the failure.
                events.make_on(cpu)?;
            }
        }
        Ok(Self {
            _watch: watch,
            work,
        })
    }

    /// Value of this CPU's event; 0 if the CPU has just come online. This calls the kernel, whose functions may
    /// be traced. Any context, NMI included.
    #[inline(always)]
    pub(super) fn count(&self, guard: &NoPreempt) -> u64 {
        match self.work.data().each.this_cpu(guard).event.get(guard) {
            // SAFETY: The event lives as long as the guard.
            Some(PerfEvent(event)) => unsafe { bindings::rtrace_counter_read(*event) },
            None => 0,
        }
    }
}

/// The events of all CPUs.
struct Events {
    config: CounterConfig,
    overflow: Option<Overflow>,
    each: PerCpu<OnCpu>,
    /// Held while an event is created.
    making: Pin<KBox<Mutex<()>>>,
}

/// The event of one CPU.
struct OnCpu {
    event: RcuArc<PerfEvent>,
    /// Non-zero: the CPU came online again, and its event, if there is one, does not count any more.
    is_outdated: SharedWord,
    /// Non-zero: the CPU has an event as soon as it is online.
    is_wanted: SharedWord,
}

impl Events {
    fn new(config: CounterConfig, overflow: Option<Overflow>) -> Result<Self> {
        Ok(Self {
            config,
            overflow,
            each: PerCpu::new(|| OnCpu {
                event: RcuArc::new(),
                is_outdated: SharedWord::new(0),
                is_wanted: SharedWord::new(0),
            })?,
            making: KBox::pin_init(new_mutex!(()), GFP_KERNEL)?,
        })
    }

    /// Starts to count on `cpu`. May sleep.
    fn make_on(&self, cpu: u32) -> Result {
        let _making = self.making.lock();
        let each = self.each.of(cpu).ok_or(EINVAL)?;
        // The old event goes first: two events at a time would hand over each record twice.
        each.event.replace(None);
        let event = PerfEvent::new(self.config, self.overflow.as_ref(), cpu)?;
        each.event.replace(Some(Arc::new(event, GFP_KERNEL)?));
        Ok(())
    }

    fn replace_outdated(&self) {
        for cpu in cpu::possible() {
            let each = self.each.of(cpu);
            if each.is_some_and(|each| each.is_outdated.compare_exchange(1, 0)) {
                // The CPU may be offline again. Tracing goes on without its event.
                let _ = self.make_on(cpu);
            }
        }
    }
}

/// Queues the creation of events on CPUs that come online.
pub(crate) struct Arrivals(Arc<Work<Events>>);

impl PerCpuState for Arrivals {
    fn prepare(&self, _cpu: u32) {}

    fn online(&self, cpu: u32) -> Result {
        let each = self.0.data().each.of(cpu);
        if let Some(each) = each.filter(|each| each.is_wanted.load() != 0) {
            each.is_outdated.store_release(1);
            // perf takes a lock that the CPU's bring-up holds, so the event is not created here.
            self.0.ask();
        }
        Ok(())
    }

    /// The kernel removes the event of a CPU that goes offline.
    fn offline(&self, _cpu: u32) {}
}

/// An event of one CPU. The drop removes it from that CPU by an interrupt; afterwards perf starts no handler of
/// it. A handler in an interrupt or an NMI has then ended. A handler that can be interrupted (of a trace event,
/// in a task) may still run.
///
/// # Invariants
///
/// The pointer is to a live event, which this owns.
struct PerfEvent(*mut bindings::perf_event);

// SAFETY: perf has its own locks.
unsafe impl Send for PerfEvent {}
// SAFETY: As above.
unsafe impl Sync for PerfEvent {}

impl PerfEvent {
    fn new(config: CounterConfig, overflow: Option<&Overflow>, cpu: u32) -> Result<Self> {
        let CounterConfig { ty, config } = config;
        let cpu = cpu as c_int;
        let event = match overflow {
            // SAFETY: Any process context may call it. It checks its arguments.
            None => unsafe { bindings::rtrace_counter_new(ty, config, cpu) },
            Some(Overflow {
                moments,
                handler,
                context,
            }) => {
                let (handler, context) = (Some(*handler), context.as_ptr());
                // SAFETY: As above. The caller of `PerfEvents::new` guarantees handler and context for the
                // lifetime of the event.
                unsafe {
                    match *moments {
                        Moments::PerSecond(frequency) => bindings::rtrace_sampler_new(
                            ty, config, frequency, cpu, handler, context,
                        ),
                        Moments::Each => {
                            bindings::rtrace_recorder_new(ty, config, cpu, handler, context)
                        }
                    }
                }
            }
        };
        // INVARIANT: The event was created above.
        Ok(Self(from_err_ptr(event)?))
    }
}

impl Drop for PerfEvent {
    fn drop(&mut self) {
        // SAFETY: By the invariant. This context may sleep.
        unsafe { bindings::perf_event_release_kernel(self.0) };
    }
}
