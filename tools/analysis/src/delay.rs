// SPDX-License-Identifier: GPL-2.0

//! What came late: a thread that had to wait for a CPU, one that had to give it up, or a timer that had to wait for
//! interrupts.
//!
//! The module measures these where they come at last, each by an event of its own.

use super::engine::Engine;
use super::loss::Account;
use super::schedule_events::Switch;
use super::{bits, integer, pass, text, Analysis, Catalogue, Moment};
use control::Latency;
use ctf::{Clock, Event};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use store::Trace;
use terminal::printable;

/// Something that came late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Delay {
    /// By how much.
    pub latency_ns: u64,
    /// When it came then, by the trace's clock: that of the switch, if there is one and the trace has it.
    #[serde(skip)]
    pub end: u64,
    /// When the event came that tells of it.
    #[serde(skip)]
    pub told: u64,
    /// When it came, since the epoch.
    pub came_ns: Option<i64>,
    /// On which CPU.
    pub cpu: i64,
    /// Who had to wait, kept the CPU, or was interrupted.
    pub thread: Thread,
    /// Its process.
    pub pid: i64,
    /// What it was.
    #[serde(flatten)]
    pub what: What,
}

/// What came late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum What {
    /// A thread that was woken.
    Wakeup {
        /// Who woke it, or was interrupted by what did.
        waker: Thread,
        /// Where that was.
        waker_cpu: i64,
        /// Whether an interrupt or a softirq woke it.
        in_interrupt: bool,
        /// Who left the CPU then.
        prev: Thread,
    },
    /// The thread was asked to give up the CPU.
    Preempt {
        /// Whether it was preempted then; else it gave it up by itself.
        preempted: bool,
        /// Whether it was asked to do so at the next tick, or on its return to user space.
        lazy: bool,
        /// For how long that had been so before.
        lazy_before_ns: u64,
        /// Who asked, or was interrupted by what did.
        asker: Thread,
        /// Where that was.
        asker_cpu: i64,
        /// Whether an interrupt or a softirq asked.
        in_interrupt: bool,
        /// Who got the CPU then.
        next: Thread,
    },
    /// A timer of the CPU.
    Timer {
        /// Where it has interrupted the thread.
        ip: u64,
    },
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// Its id; 0 is the idle task.
    pub tid: i64,
    /// Its name.
    pub comm: String,
    /// Its priority, if the event tells it: below 0 are those of real time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prio: Option<i64>,
}

impl Thread {
    fn of(event: &Event<'_>, prefix: &str) -> Option<Self> {
        let value = |name: &str| event.value(event.layout.field(&format!("{prefix}{name}"))?);
        Some(Self {
            tid: integer(value("tid"))?,
            comm: String::from_utf8_lossy(text(value("comm"))?).into_owned(),
            prio: integer(value("prio")),
        })
    }
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tid {
            0 => f.write_str("idle"),
            tid => write!(f, "{}-{tid}", printable(&self.comm)),
        }
    }
}

/// Gathers the longest delay of a kind.
struct Longest {
    latency: Latency,
    clock: Clock,
    /// By the place of the CPU: the last switch, and the thread that it was to.
    switches: HashMap<usize, (u64, i64)>,
    found: Option<Delay>,
}

impl Analysis for Longest {
    fn wants_all(&self) -> bool {
        true
    }

    fn any(&mut self, event: &Event<'_>, now: &Moment<'_>) {
        if event.layout.name != self.latency.event() {
            return;
        }
        let (cpu, switch) = (now.schedule.number(now.cpu), self.switches.get(&now.cpu));
        let delay = Delay::of(self.latency, event, cpu, switch.copied(), &self.clock);
        let least = self.found.as_ref().map(|found| found.latency_ns);
        let longer = delay.filter(|delay| least.is_none_or(|least| delay.latency_ns > least));
        self.found = longer.or(self.found.take());
    }

    fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.switches.insert(now.cpu, (now.time, switch.next_tid));
    }
}

impl Delay {
    /// That of an event.
    fn of(
        latency: Latency,
        event: &Event<'_>,
        cpu: u32,
        switch: Option<(u64, i64)>,
        clock: &Clock,
    ) -> Option<Self> {
        let value = |name: &str| event.value(event.layout.field(name)?);
        let number = |name: &str| integer(value(name));
        let thread = Thread::of(event, "")?;
        // When there was a switch to a thread: just before, if it was not lost.
        let switch_to = |thread: &Thread| {
            let switch = switch.filter(|(_, next)| *next == thread.tid);
            switch.map_or(event.timestamp, |(time, _)| time)
        };
        let (end, cpu, what) = match latency {
            Latency::Wakeup => {
                let what = What::Wakeup {
                    waker: Thread::of(event, "waker_")?,
                    waker_cpu: number("waker_cpu")?,
                    in_interrupt: number("waker_in_interrupt")? != 0,
                    prev: Thread::of(event, "prev_")?,
                };
                (switch_to(&thread), number("target_cpu")?, what)
            }
            Latency::Preempt => {
                let next = Thread::of(event, "next_")?;
                let end = switch_to(&next);
                let what = What::Preempt {
                    preempted: number("preempted")? != 0,
                    lazy: number("lazy")? != 0,
                    lazy_before_ns: number("lazy_before")?.try_into().ok()?,
                    asker: Thread::of(event, "asker_")?,
                    asker_cpu: number("asker_cpu")?,
                    in_interrupt: number("asker_in_interrupt")? != 0,
                    next,
                };
                (end, cpu.into(), what)
            }
            Latency::Timer => {
                let ip = bits(value("ip"))?;
                (event.timestamp, cpu.into(), What::Timer { ip })
            }
        };
        Some(Self {
            latency_ns: number("latency")?.try_into().ok()?,
            end,
            told: event.timestamp,
            came_ns: i64::try_from(clock.since_epoch(end)).ok(),
            cpu,
            thread,
            pid: number("pid")?,
            what,
        })
    }

    /// The longest one of a kind in a trace, the first of several; none if it has none.
    pub fn longest(latency: Latency, trace: &Trace) -> system::Result<Option<Self>> {
        let longest = Box::new(Longest {
            latency,
            clock: trace.metadata.clock,
            switches: HashMap::new(),
            found: None,
        });
        let catalogue = Catalogue::new(&trace.metadata);
        let mut engine = Engine::new(&catalogue, Account::of(trace), vec![longest]);
        pass::each(
            trace,
            |_| Ok::<_, system::Error>(()),
            |stream, item| {
                engine.item(stream, item);
                Ok(ControlFlow::Continue(()))
            },
        )?;
        let (_, analyses) = engine.parts();
        Ok(analyses.iter_mut().find_map(|longest| longest.found.take()))
    }

    /// What was measured.
    pub fn measured(&self) -> Latency {
        match self.what {
            What::Wakeup { .. } => Latency::Wakeup,
            What::Preempt { .. } => Latency::Preempt,
            What::Timer { .. } => Latency::Timer,
        }
    }

    /// Since the epoch, when it should have come.
    pub fn due_ns(&self) -> Option<i64> {
        self.came_ns?
            .checked_sub(i64::try_from(self.latency_ns).ok()?)
    }
}
