// SPDX-License-Identifier: GPL-2.0

//! Counters of the kernel's perf: of what the processor does, and of what the kernel does.

use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::sys::bindings;
use crate::sys::cpu::{self, NoHotplug};
use crate::sys::hotplug::{Hotplug, PerCpuState, Watch};
use crate::sys::percpu::PerCpu;
use crate::sys::rcu::RcuArc;
use crate::sys::work::{Ask, Work};
use kernel::error::from_err_ptr;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// What is counted, as perf_event_open(2) takes it.
#[derive(Clone, Copy)]
pub(crate) struct Config {
    /// `enum perf_type_id`.
    pub(crate) ty: u32,
    /// What of that type.
    pub(crate) config: u64,
}

/// A counter on each CPU. It counts from its making on; that of a CPU that comes later, from shortly
/// after that.
pub(crate) struct Counter {
    // In the order of their end: this one asks for the work.
    _watch: Pin<KBox<Watch<Arrivals>>>,
    counts: Arc<Work<Counts>>,
}

impl Counter {
    /// Begins to count. `ENOENT`, `EOPNOTSUPP`: the machine cannot; `ENOSPC`: its counters are all in
    /// use. May sleep.
    pub(crate) fn new(hotplug: &Arc<Hotplug<Arrivals>>, config: Config) -> Result<Arc<Self>> {
        let counts = Counts::new(config)?;
        let counts = Work::new(counts, Counts::replace_outdated)?;
        let arrivals = Arc::new(Arrivals(counts.clone()), GFP_KERNEL)?;
        let watch = Watch::new(hotplug, arrivals)?;
        // A CPU that comes from now on is made known by the watch; the others are online.
        counts.data().is_watched.store(1);
        for cpu in cpu::possible() {
            match counts.data().count_on(cpu) {
                Err(error) if NoHotplug::new().is_online(cpu) => return Err(error),
                _ => {}
            }
        }
        Ok(Arc::new(
            Self {
                _watch: watch,
                counts,
            },
            GFP_KERNEL,
        )?)
    }

    /// What was counted on this CPU; 0 if it came just now. The kernel is called, and what it does
    /// may be traced. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn now(&self, guard: &NoPreempt) -> u64 {
        match self.counts.data().events.this_cpu(guard).get(guard) {
            // SAFETY: The event lives while the guard does.
            Some(PerfEvent(event)) => unsafe { bindings::rtrace_counter_read(*event) },
            None => 0,
        }
    }
}

/// What is counted on each CPU.
struct Counts {
    config: Config,
    events: PerCpu<RcuArc<PerfEvent>>,
    /// Not 0: the CPU has come, and its event, if it has one, does not count any more.
    is_outdated: PerCpu<SharedWord>,
    /// Not 0 once CPUs that come are made known.
    is_watched: SharedWord,
    /// Held by who makes an event.
    making: Pin<KBox<Mutex<()>>>,
}

impl Counts {
    fn new(config: Config) -> Result<Self> {
        Ok(Self {
            config,
            events: PerCpu::new(RcuArc::new)?,
            is_outdated: PerCpu::new(|| SharedWord::new(0))?,
            is_watched: SharedWord::new(0),
            making: KBox::pin_init(new_mutex!(()), GFP_KERNEL)?,
        })
    }

    /// Counts on `cpu` from now on. May sleep.
    fn count_on(&self, cpu: u32) -> Result {
        let _making = self.making.lock();
        let place = self.events.of(cpu).ok_or(EINVAL)?;
        let event = PerfEvent::new(self.config, cpu)?;
        place.replace(Some(Arc::new(event, GFP_KERNEL)?));
        Ok(())
    }

    fn replace_outdated(&self) {
        for cpu in cpu::possible() {
            let is_outdated = self.is_outdated.of(cpu);
            if is_outdated.is_some_and(|word| word.compare_exchange(1, 0)) {
                // It may have gone again; and tracing goes on without.
                let _ = self.count_on(cpu);
            }
        }
    }
}

/// What makes CPUs known that come.
pub(crate) struct Arrivals(Arc<Work<Counts>>);

impl PerCpuState for Arrivals {
    fn prepare(&self, _cpu: u32) {}

    fn online(&self, cpu: u32) -> Result {
        let counts = self.0.data();
        if counts.is_watched.load() != 0 {
            if let Some(word) = counts.is_outdated.of(cpu) {
                word.store_release(1);
                // Not here: perf takes the lock that who brings the CPU up holds.
                self.0.ask();
            }
        }
        Ok(())
    }

    /// The kernel takes the event off a CPU that goes.
    fn offline(&self, _cpu: u32) {}
}

/// A counter of one CPU.
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
    fn new(config: Config, cpu: u32) -> Result<Self> {
        // SAFETY: May be called from any process context; it checks what it is given.
        let event = unsafe { bindings::rtrace_counter_new(config.ty, config.config, cpu as c_int) };
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
