// SPDX-License-Identifier: GPL-2.0

//! Delays: a thread waited for a CPU, a thread gave up its CPU late, or interrupts delayed a timer.
//!
//! The module measures a delay when it ends, and records it in an event of its own.

use super::engine::Engine;
use super::loss::Account;
use super::schedule_events::Switch;
use super::{bits, integer, key, pass, text, Analysis, Catalogue, EventKey, Moment};
use ctf::LatencyKind;
use ctf::{Clock, Event};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use store::Trace;
use system::printing;
use terminal::printable;

/// A delay.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Delay {
    /// Length of the delay.
    pub latency_ns: u64,
    /// End of the delay by the trace's clock: the time of the switch if the trace has it, otherwise of the
    /// event.
    #[serde(skip)]
    pub end: u64,
    /// Time of the event that reports the delay.
    #[serde(skip)]
    pub told: u64,
    /// End of the delay since the epoch.
    pub came_ns: Option<i64>,
    /// CPU of the delay.
    pub cpu: i64,
    /// The thread that waited, kept the CPU, or was interrupted.
    pub thread: Thread,
    /// The thread's process.
    pub pid: i64,
    /// Kind of the delay.
    #[serde(flatten)]
    pub what: What,
}

/// Kind of a delay.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum What {
    /// A woken or preempted thread ran late.
    Wakeup {
        /// Whether the thread was preempted, or yielded; otherwise it was woken.
        preempted: bool,
        /// The thread that woke it, or that was interrupted by the waking handler. After a preemption: the
        /// thread that got the CPU.
        waker: Thread,
        /// CPU of the waker.
        waker_cpu: i64,
        /// Whether an interrupt or a softirq woke it.
        in_interrupt: bool,
        /// The thread that left the CPU when the delay ended.
        prev: Thread,
    },
    /// The thread gave up the CPU late after a request.
    Preempt {
        /// Whether the thread was preempted; otherwise it gave up the CPU by itself.
        preempted: bool,
        /// Whether the request was lazy: to give up the CPU at the next tick, or on the return to user
        /// space.
        lazy: bool,
        /// Nanoseconds between an earlier lazy request and this request; 0 if there was none.
        lazy_before_ns: u64,
        /// The thread that made the request, or that was interrupted by the handler which made it.
        asker: Thread,
        /// CPU of the asker.
        asker_cpu: i64,
        /// Whether an interrupt or a softirq made the request.
        in_interrupt: bool,
        /// The thread that got the CPU when the delay ended.
        next: Thread,
    },
    /// A timer of the CPU expired late.
    Timer {
        /// Address at which the timer interrupted the thread.
        ip: u64,
    },
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Thread {
    /// Thread id; 0 is the idle task.
    pub tid: i64,
    /// Name of the thread.
    pub comm: String,
    /// Priority, if the event has it. Values below 0 are real-time priorities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prio: Option<i64>,
}

impl Thread {
    fn of(event: &Event<'_>, prefix: &str) -> Option<Self> {
        let value = |name: &str| event.value(event.layout.field(&format!("{prefix}{name}"))?);
        Some(Self {
            tid: integer(value("tid"))?,
            comm: printing::text(text(value("comm"))?).into_owned(),
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

/// Analysis that finds the longest delay of a kind.
struct Longest {
    latency: LatencyKind,
    events: Vec<EventKey>,
    clock: Clock,
    /// Time and next thread of the last switch, by CPU index.
    switches: HashMap<usize, (u64, i64)>,
    found: Option<Delay>,
}

impl Analysis for Longest {
    fn events(&self) -> Vec<EventKey> {
        self.events.clone()
    }

    fn event(&mut self, _which: usize, event: &Event<'_>, now: &Moment<'_>) {
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
    /// Reads the delay of an event. Returns `None` if the event lacks a field.
    fn of(
        latency: LatencyKind,
        event: &Event<'_>,
        cpu: u32,
        switch: Option<(u64, i64)>,
        clock: &Clock,
    ) -> Option<Self> {
        let value = |name: &str| event.value(event.layout.field(name)?);
        let number = |name: &str| integer(value(name));
        let thread = Thread::of(event, "")?;
        // The switch to a thread directly precedes the event. If the switch was lost, the event's time
        // replaces it.
        let switch_to = |thread: &Thread| {
            let switch = switch.filter(|(_, next)| *next == thread.tid);
            switch.map_or(event.timestamp, |(time, _)| time)
        };
        let (end, cpu, what) = match latency {
            LatencyKind::Wakeup => {
                let what = What::Wakeup {
                    // Traces of older modules have wake-ups only.
                    preempted: number("preempted").unwrap_or(0) != 0,
                    waker: Thread::of(event, "waker_")?,
                    waker_cpu: number("waker_cpu")?,
                    in_interrupt: number("waker_in_interrupt")? != 0,
                    prev: Thread::of(event, "prev_")?,
                };
                (switch_to(&thread), number("target_cpu")?, what)
            }
            LatencyKind::Preempt => {
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
            LatencyKind::Timer => {
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

    /// Finds the longest delay of a kind in a trace; of equal ones the first. Returns `None` if the trace
    /// has no such delay.
    pub fn longest(latency: LatencyKind, trace: &Trace) -> system::Result<Option<Self>> {
        let classes = trace.metadata.streams.iter();
        let events = classes.flat_map(|class| class.events.values());
        let events = events.filter(|layout| layout.name == latency.event());
        let longest = Box::new(Longest {
            latency,
            events: events.map(key).collect(),
            clock: trace.metadata.clock,
            switches: HashMap::new(),
            found: None,
        });
        let catalogue = Catalogue::new(&trace.metadata);
        let mut engine = Engine::new(&catalogue, Account::of(trace), vec![longest]);
        pass::each_of(
            trace.merge()?.only(|layout| engine.wants(key(layout))),
            |_| Ok::<_, system::Error>(()),
            |stream, item| {
                engine.item(stream, item);
                Ok(ControlFlow::Continue(()))
            },
        )?;
        let (_, analyses) = engine.parts();
        Ok(analyses.iter_mut().find_map(|longest| longest.found.take()))
    }

    /// Returns the kind of latency that was measured.
    pub fn measured(&self) -> LatencyKind {
        match self.what {
            What::Wakeup { .. } => LatencyKind::Wakeup,
            What::Preempt { .. } => LatencyKind::Preempt,
            What::Timer { .. } => LatencyKind::Timer,
        }
    }

    /// Returns the time since the epoch at which the delay began.
    pub fn due_ns(&self) -> Option<i64> {
        self.came_ns?
            .checked_sub(i64::try_from(self.latency_ns).ok()?)
    }
}
