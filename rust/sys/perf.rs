// SPDX-License-Identifier: GPL-2.0

//! Events of the kernel's perf, one on each CPU: of what the processor does, and of what the kernel
//! does. They count, or have something called again and again.

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

/// What is counted, as perf_event_open(2) takes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct CounterConfig {
    /// `enum perf_type_id`.
    pub(crate) ty: u32,
    /// What of that type.
    pub(crate) config: u64,
}

impl CounterConfig {
    /// Cycles of the processor.
    pub(crate) const CYCLES: Self = Self { ty: 0, config: 0 };
    /// Nanoseconds, by a timer of the CPU.
    pub(crate) const CPU_CLOCK: Self = Self { ty: 1, config: 0 };
}

/// When a handler is called.
pub(super) enum Moments {
    /// So often, per second and CPU: perf adapts the count, or has a timer.
    PerSecond(u32),
    /// For each event, of which perf has a record.
    Each,
}

/// What is called.
pub(super) struct Overflow {
    pub(super) moments: Moments,
    /// Is called, in any context, NMI included.
    pub(super) handler: OverflowHandler,
    /// Kept in the event for the handler.
    pub(super) context: NonNull<c_void>,
}

/// As perf calls it.
pub(super) type OverflowHandler = unsafe extern "C" fn(
    *mut bindings::perf_event,
    *mut bindings::perf_sample_data,
    *mut bindings::pt_regs,
);

// SAFETY: The context is handed on and not looked at; who gives it answers for that.
unsafe impl Send for Overflow {}
// SAFETY: As above.
unsafe impl Sync for Overflow {}

/// An event on each CPU that is wanted. It counts from its making on; that of a CPU that comes later,
/// from shortly after that.
pub(super) struct PerfEvents {
    // In the order of their end: this one asks for the work.
    _watch: Pin<KBox<HotplugWatch<Arrivals>>>,
    work: Arc<Work<Events>>,
}

impl PerfEvents {
    /// Begins to count, on the CPUs that `wants` picks. `ENOENT`, `EOPNOTSUPP`: the machine cannot;
    /// `ENOSPC`: its counters are all in use. May sleep.
    ///
    /// # Safety
    ///
    /// The handler may be called with the context until this was dropped; and where it runs with interrupts
    /// enabled, it may not have returned yet then: see [`PerfEvent`].
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
            // A CPU that comes from now on is made known by the watch; the others are online.
            each.is_wanted.store(1);
            if events.make_on(cpu).is_err() && NoHotplug::new().is_online(cpu) {
                // It may have come just now.
                events.make_on(cpu)?;
            }
        }
        Ok(Self {
            _watch: watch,
            work,
        })
    }

    /// What was counted on this CPU; 0 if it came just now. The kernel is called, and what it does
    /// may be traced. Any context, NMI included.
    #[inline(always)]
    pub(super) fn count(&self, guard: &NoPreempt) -> u64 {
        match self.work.data().each.this_cpu(guard).event.get(guard) {
            // SAFETY: The event lives while the guard does.
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
    /// Held by who makes an event.
    making: Pin<KBox<Mutex<()>>>,
}

/// That of one CPU.
struct OnCpu {
    event: RcuArc<PerfEvent>,
    /// Not 0: the CPU has come, and its event, if it has one, does not count any more.
    is_outdated: SharedWord,
    /// Not 0: it has one as soon as it is online.
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

    /// Counts on `cpu` from now on. May sleep.
    fn make_on(&self, cpu: u32) -> Result {
        let _making = self.making.lock();
        let each = self.each.of(cpu).ok_or(EINVAL)?;
        // First, for nothing may be handed over twice.
        each.event.replace(None);
        let event = PerfEvent::new(self.config, self.overflow.as_ref(), cpu)?;
        each.event.replace(Some(Arc::new(event, GFP_KERNEL)?));
        Ok(())
    }

    fn replace_outdated(&self) {
        for cpu in cpu::possible() {
            let each = self.each.of(cpu);
            if each.is_some_and(|each| each.is_outdated.compare_exchange(1, 0)) {
                // It may have gone again; and tracing goes on without.
                let _ = self.make_on(cpu);
            }
        }
    }
}

/// What makes CPUs known that come.
pub(crate) struct Arrivals(Arc<Work<Events>>);

impl PerCpuState for Arrivals {
    fn prepare(&self, _cpu: u32) {}

    fn online(&self, cpu: u32) -> Result {
        let each = self.0.data().each.of(cpu);
        if let Some(each) = each.filter(|each| each.is_wanted.load() != 0) {
            each.is_outdated.store_release(1);
            // Not here: perf takes the lock that who brings the CPU up holds.
            self.0.ask();
        }
        Ok(())
    }

    /// The kernel takes the event off a CPU that goes.
    fn offline(&self, _cpu: u32) {}
}

/// An event of one CPU. Dropping it takes it off that CPU by an interrupt: afterwards perf begins no handler
/// of it. One that runs in an interrupt or an NMI has ended then; one that can be interrupted (of a trace
/// event, in a task) may still run.
///
/// # Invariants
///
/// A live event, which this owns.
struct PerfEvent(*mut bindings::perf_event);

// SAFETY: perf has locks of its own.
unsafe impl Send for PerfEvent {}
// SAFETY: As above.
unsafe impl Sync for PerfEvent {}

impl PerfEvent {
    fn new(config: CounterConfig, overflow: Option<&Overflow>, cpu: u32) -> Result<Self> {
        let CounterConfig { ty, config } = config;
        let cpu = cpu as c_int;
        let event = match overflow {
            // SAFETY: May be called from any process context; it checks what it is given.
            None => unsafe { bindings::rtrace_counter_new(ty, config, cpu) },
            Some(Overflow {
                moments,
                handler,
                context,
            }) => {
                let (handler, context) = (Some(*handler), context.as_ptr());
                // SAFETY: As above. Who gave handler and context answers for them as long as the event
                // lives (`PerfEvents::new`).
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
        // INVARIANT: Just made.
        Ok(Self(from_err_ptr(event)?))
    }
}

impl Drop for PerfEvent {
    fn drop(&mut self) {
        // SAFETY: By the invariant. May sleep here.
        unsafe { bindings::perf_event_release_kernel(self.0) };
    }
}
