// SPDX-License-Identifier: GPL-2.0

//! Sampled events: periodic samples of the code that runs on each CPU.
//!
//! The kernel's perf interrupts the running code: after a number of the processor's cycles, where it has a
//! counter for them, in an NMI; or when a timer expires. Each channel that records such an event has a sampler
//! of its own, so several channels do not disturb each other; a sampler works while the event is recorded.

use super::attached::AttachedProbes;
use super::description::FullName;
use super::event_source::{EventSource, FoundSources};
use super::field::{record, KernelAddress};
pub(crate) use super::frequency::Frequency;
use super::probe_list::{NewProbe, ProbeList};
use crate::abi::schema::Field;
use crate::arch::preempt::{self, NoPreempt};
use crate::arch::registers::Register;
use crate::arch::word::SharedWord;
use crate::probe::listed::Removed;
use crate::probe::Probe;
use crate::record::memory::Payload;
use crate::sys::hotplug::Hotplug;
use crate::sys::percpu::PerCpu;
use crate::sys::perf::{Arrivals, CounterConfig};
use crate::sys::sampler::{self, OnSample, Sample, SampleTimer, Sampler};
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Decides when a sample is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// Time, by a timer.
    CpuClock,
    /// The processor's cycles, by one of its counters.
    Cycles,
}

impl Pace {
    const ALL: [Self; 2] = [Self::CpuClock, Self::Cycles];

    /// The event's name.
    const fn name(self) -> &'static str {
        match self {
            Self::CpuClock => "profile_cpu_clock",
            Self::Cycles => "profile_cycles",
        }
    }

    const fn config(self) -> CounterConfig {
        match self {
            Self::CpuClock => CounterConfig::CPU_CLOCK,
            Self::Cycles => CounterConfig::CYCLES,
        }
    }
}

/// The subsystem of sampled events.
const SUBSYSTEM: &str = "profile";

record! {
    /// A sample.
    ProfileRecord {
        // Where the code was interrupted.
        ip: KernelAddress,
        // Count since the previous sample, in nanoseconds or cycles.
        period: u64,
        // How many samples of the timer did not come on this CPU, up to now: it was late.
        missed: u64,
        // How often perf stopped the sampling on this CPU up to the next tick.
        throttled: u64,
        // Whether interrupts were off there; never where a timer's interrupt takes the sample.
        interrupts_off: u8,
    }
}

/// A sampled event.
#[pin_data]
pub(crate) struct Sampled {
    pace: Pace,
    hotplug: Arc<Hotplug<Arrivals>>,
    /// A sampler for each recorder of the event.
    #[pin]
    samplers: Mutex<KVec<(Arc<Sampling>, Sampler<Sampling>)>>,
}

/// Finds the events that this machine has. None is recorded yet. May sleep.
pub(super) fn find(sources: &mut FoundSources) -> Result {
    let possible = |pace: &Pace| sampler::is_possible(pace.config());
    Pace::ALL.into_iter().filter(possible).try_for_each(|pace| {
        let hotplug = sources.hotplug.clone();
        let sampled = pin_init!(Sampled {
            pace,
            hotplug,
            samplers <- new_mutex!(KVec::new()),
        });
        sources.add(Arc::pin_init(sampled, GFP_KERNEL)?)
    })
}

impl EventSource for Arc<Sampled> {
    fn full_name(&self) -> FullName<'_> {
        (SUBSYSTEM, self.pace.name())
    }

    fn field(&self, place: usize) -> Option<Field<'_>> {
        ProfileRecord::FIELDS.get(place).copied()
    }

    fn attach(&self, new: NewProbe<'_>, to: &mut AttachedProbes) -> Result {
        to.in_list(self.clone(), new)
    }

    /// Samples are taken only because a probe records them.
    fn is_explicit(&self) -> bool {
        true
    }
}

impl ProbeList for Sampled {
    /// `ENOSPC`: the processor's counters are all in use.
    fn attach(&self, new: NewProbe<'_>) -> Result {
        let sampling = Sampling {
            probe: new.probe,
            progress: PerCpu::new(Progress::new)?,
        };
        let sampling = Arc::new(sampling, GFP_KERNEL)?;
        let mut samplers = self.samplers.lock();
        samplers.reserve(1, GFP_KERNEL)?;
        let sampler = Sampler::new(
            &self.hotplug,
            self.pace.config(),
            new.frequency.hertz(),
            |cpu| sampling.probe.takes_cpu(cpu),
            sampling.clone(),
        )?;
        Ok(samplers.push((sampling, sampler), GFP_KERNEL)?)
    }

    fn detach(&self, probe: &Probe, _: &mut Removed) {
        let mut samplers = self.samplers.lock();
        samplers.retain(|(sampling, _)| !core::ptr::eq(&*sampling.probe, probe));
    }
}

/// A probe that gets samples, and its counters.
struct Sampling {
    probe: Arc<Probe>,
    progress: PerCpu<Progress>,
}

/// The counters of one CPU. Only this CPU writes them, and never from two handlers at once: perf does not call
/// the handler of an event while one runs.
struct Progress {
    /// The timer of the last sample, and the time at which that sample was due.
    timer: SharedWord,
    due: SharedWord,
    missed: SharedWord,
    throttled: SharedWord,
}

impl Progress {
    const fn new() -> Self {
        Self {
            timer: SharedWord::new(0),
            due: SharedWord::new(0),
            missed: SharedWord::new(0),
            throttled: SharedWord::new(0),
        }
    }

    /// Counts the samples that a timer missed before this one. The timer has a fixed period; if it is late by
    /// more than a period, it continues at the next multiple.
    fn count_missed(&self, timer: SampleTimer, period: u64) {
        let last = self.due.load();
        if self.timer.load() == timer.id {
            let periods = timer.due.wrapping_sub(last).checked_div(period);
            let missed = periods.unwrap_or(0).saturating_sub(1);
            self.missed.store(self.missed.load().wrapping_add(missed));
        }
        // With another timer, the CPU was offline meanwhile, and nothing is counted.
        self.timer.store(timer.id);
        self.due.store(timer.due);
    }
}

impl OnSample for Sampling {
    #[inline(always)]
    fn sampled(&self, sample: &Sample<'_>) {
        let guard = &NoPreempt::new();
        let progress = self.progress.this_cpu(guard);
        if let Some(timer) = sample.timer {
            progress.count_missed(timer, sample.period);
        }
        let throttled = u64::from(sample.is_throttled);
        let throttled = progress.throttled.load().wrapping_add(throttled);
        progress.throttled.store(throttled);
        let interrupts_off = !preempt::was_interruptible(|register| sample.registers.get(register));
        let record = ProfileRecord {
            ip: KernelAddress::new(sample.registers.get(Register::Ip)),
            period: sample.period,
            missed: progress.missed.load(),
            throttled,
            interrupts_off: interrupts_off.into(),
        };
        self.probe
            .handle_interrupted::<64, _>(&record, sample.registers, guard);
    }
}
