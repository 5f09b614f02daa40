// SPDX-License-Identifier: GPL-2.0

//! Timer latency: the delay with which a timer of the CPU fires.
//!
//! A timer on each CPU fires periodically, as that of the kernel's timerlat tracer. It can be late because
//! interrupts were off, or another interrupt was handled, or the hardware was late; with interrupts off, it
//! interrupts the code that has just enabled them. If an expiry comes more than a period late, the expiries in
//! between are missed.

use super::metered::{Meter, Metered};
use super::results::Results;
use crate::abi::schema::Field;
use crate::arch::clock::monotonic_ns;
use crate::arch::preempt::NoPreempt;
use crate::arch::registers::Register;
use crate::arch::word::SharedWord;
use crate::probe::Probe;
use crate::record::gate::FilledOnce;
use crate::record::memory::Payload;
use crate::source::field::{record, KernelAddress};
use crate::sys::args::Task;
use crate::sys::cpu::{self, NoHotplug};
use crate::sys::hotplug::{Hotplug, HotplugWatch, PerCpuState};
use crate::sys::percpu::{OnceArc, PerCpu};
use crate::sys::timer::{Expiry, Timer};
use kernel::prelude::*;
use kernel::sync::Arc;

record! {
    /// A timer that was late.
    TimerRecord {
        // Interrupted task.
        comm: [u8; 16],
        tid: i32,
        pid: i32,
        prio: i32,
        // From when the timer was due until now, in nanoseconds.
        latency: u64,
        // Where the code was interrupted; 0: it is not known.
        ip: KernelAddress,
    }
}

/// The lateness of a session's timers. An expiry that was due while another was late counts as missed.
pub(crate) type TimerLatency = Metered<TimerMeter>;

/// Settings of a session's timers.
pub(crate) struct TimerChoice {
    hotplug: Arc<Hotplug<Timers>>,
    period_us: SharedWord,
}

impl TimerChoice {
    /// The default choice; `hotplug` notifies the timers of CPUs.
    pub(crate) fn new(hotplug: &Arc<Hotplug<Timers>>) -> Self {
        Self {
            hotplug: hotplug.clone(),
            period_us: SharedWord::new(TimerLatency::PERIOD.into()),
        }
    }
}

impl TimerLatency {
    /// Default period of the expiries in microseconds, as timerlat's `timerlat_period_us`.
    pub(crate) const PERIOD: u32 = 1000;

    /// The shortest and the longest period.
    pub(crate) const PERIODS: (u32, u32) = (100, 1_000_000);

    /// Microseconds from one expiry to the next.
    pub(crate) fn period(&self) -> u32 {
        self.choice().period_us.load() as u32
    }

    /// Sets the period, within [`PERIODS`](Self::PERIODS), from the next expiry on. May sleep.
    pub(crate) fn set_period(&self, period_us: u32) {
        self.change(|choice, meter| {
            choice.period_us.store(period_us.into());
            for (_, this) in meter.iter().flat_map(|meter| meter.timers.each()) {
                this.timer.set_period(period_us);
            }
        });
    }
}

/// Timers that are armed and disarmed as CPUs come and go.
pub(crate) struct TimerMeter {
    // This field is dropped first, because that disarms the timers.
    _watch: Pin<KBox<HotplugWatch<Timers>>>,
    timers: Arc<Timers>,
}

impl Meter for TimerMeter {
    const NAME: &'static str = "timer_latency";

    const FIELDS: &'static [Field<'static>] = TimerRecord::FIELDS;

    type Choice = TimerChoice;

    fn new(results: &Arc<Results>, choice: &Arc<TimerChoice>) -> Result<Self> {
        let timers = Timers::new(results, choice.period_us.load() as u32)?;
        let timers = Arc::new(timers, GFP_KERNEL)?;
        Ok(Self {
            _watch: HotplugWatch::new(&choice.hotplug, timers.clone())?,
            timers,
        })
    }

    fn attach(&self, probe: &Probe) {
        self.timers.arm_where(|cpu| probe.takes_cpu(cpu));
    }
}

/// A timer for each possible CPU.
pub(crate) struct Timers(PerCpu<OnceArc<OnCpu>>);

#[pin_data]
struct OnCpu {
    /// Not 0: the timer fires while the CPU is online.
    is_wanted: SharedWord,
    #[pin]
    timer: Timer<Arc<Results>>,
}

impl Timers {
    /// Makes the timers, none of them armed. May sleep.
    fn new(results: &Arc<Results>, period_us: u32) -> Result<Self> {
        let timers = PerCpu::new(OnceArc::new)?;
        for place in cpu::possible().filter_map(|cpu| timers.of(cpu)) {
            let results = results.clone();
            let this = pin_init!(OnCpu {
                is_wanted: SharedWord::new(0),
                timer <- Timer::new(results, expired, period_us),
            });
            place.set(Arc::pin_init(this, GFP_KERNEL)?);
        }
        Ok(Self(timers))
    }

    fn of(&self, cpu: u32) -> Option<&OnCpu> {
        self.0.of(cpu)?.get()
    }

    fn each(&self) -> impl Iterator<Item = (u32, &OnCpu)> {
        cpu::possible().filter_map(|cpu| Some((cpu, self.of(cpu)?)))
    }

    /// Arms the timers of the CPUs for which `wants` is true. May sleep.
    fn arm_where(&self, wants: impl Fn(u32) -> bool) {
        let cpus = NoHotplug::new();
        for (cpu, this) in self.each() {
            let is_new = wants(cpu) && this.is_wanted.compare_exchange(0, 1);
            if is_new && cpus.is_online(cpu) {
                // This cannot fail: the CPU stays online.
                let _ = cpu::run_on(cpu, &mut &this.timer, |timer| timer.start());
            }
        }
    }
}

impl PerCpuState for Timers {
    fn prepare(&self, _cpu: u32) {}

    fn online(&self, cpu: u32) -> Result {
        if let Some(this) = self.of(cpu).filter(|this| this.is_wanted.load() != 0) {
            this.timer.start();
        }
        Ok(())
    }

    /// Cancels the timer: otherwise the kernel would move it to another CPU.
    fn offline(&self, cpu: u32) {
        if let Some(this) = self.of(cpu) {
            this.timer.cancel();
        }
    }
}

/// Measures the latency when a timer has interrupted its CPU.
#[link_section = ".kprobes.text"]
fn expired(results: &Arc<Results>, expiry: &Expiry<'_>) {
    let latency = monotonic_ns().saturating_sub(expiry.due_ns);
    let guard = &NoPreempt::new();
    results.miss(latency.checked_div(expiry.period_ns).unwrap_or(0));
    if !results.count(latency, guard) {
        return;
    }
    let task = Task::current();
    let ip = expiry.registers.map_or(0, |these| these.get(Register::Ip));
    let record = TimerRecord {
        comm: task.comm(),
        tid: task.tid(),
        pid: task.tgid(),
        prio: task.prio(),
        latency,
        ip: KernelAddress::new(ip),
    };
    results.probes.for_each(
        guard,
        #[inline(always)]
        |probe| match expiry.registers {
            Some(registers) => probe.handle_interrupted::<64, _>(&record, registers, guard),
            None => probe.handle_tail(&record, guard),
        },
    );
}
