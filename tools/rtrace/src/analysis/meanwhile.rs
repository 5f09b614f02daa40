// SPDX-License-Identifier: GPL-2.0

//! The longest wait for a CPU in a trace, and what ran on that CPU meanwhile.
//!
//! The module measures waits where they are over (`latency:wakeup_latency`): that event says who waited. The
//! trace is read twice: for the longest one, and for what the CPU did in that time.

use super::interrupts::Interrupt;
use super::schedule::{Schedule, Span, State};
use super::schedule_events::Switch;
use super::text::table;
use super::{integer, key, text, Analysis, Answer, Catalogue, EventKey, Moment};
use crate::date;
use crate::symbols::{Side, Stacks, Symbols};
use crate::terminal::{duration, printable};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::path::Path;
use trace::ctf::{Clock, Event, Item, Merge, Trace};

/// The event, by its bare name.
pub const EVENT: &str = "wakeup_latency";

/// A thread that was woken, had to wait for a CPU, and runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// How long it waited.
    pub latency_ns: u64,
    /// When it ran then, by the trace's clock: that of the switch to it, if the trace has it.
    #[serde(skip)]
    end: u64,
    /// When the event came that tells of it.
    #[serde(skip)]
    told: u64,
    /// The same since the epoch.
    pub ran_ns: Option<i64>,
    /// On which CPU.
    pub cpu: i64,
    /// Who.
    pub thread: Thread,
    /// Its process.
    pub pid: i64,
    /// Who woke it, or was interrupted by what did.
    pub waker: Thread,
    /// Where that was.
    pub waker_cpu: i64,
    /// Whether an interrupt or a softirq woke it.
    pub in_interrupt: bool,
    /// Who left the CPU then.
    pub prev: Thread,
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

impl Wait {
    /// That of an event, behind this switch of its CPU to a thread.
    fn of(event: &Event<'_>, last: Option<(u64, Option<i64>)>, clock: &Clock) -> Option<Self> {
        let number = |name: &str| integer(event.value(event.layout.field(name)?));
        let thread = Thread::of(event, "")?;
        // Another one, if the right one was lost.
        let switch = last.filter(|(_, next)| *next == Some(thread.tid));
        let end = switch.map_or(event.timestamp, |(time, _)| time);
        Some(Self {
            latency_ns: number("latency")?.try_into().ok()?,
            end,
            told: event.timestamp,
            ran_ns: i64::try_from(clock.since_epoch(end)).ok(),
            cpu: number("target_cpu")?,
            thread,
            pid: number("pid")?,
            waker: Thread::of(event, "waker_")?,
            waker_cpu: number("waker_cpu")?,
            in_interrupt: number("waker_in_interrupt")? != 0,
            prev: Thread::of(event, "prev_")?,
        })
    }

    /// The longest one in a trace, the first of several; none if it has none.
    pub fn longest(trace: &Trace) -> trace::Result<Option<Self>> {
        let mut merge = Merge::new(trace)?;
        let mut longest: Option<Self> = None;
        // The last switch of each stream, and to which thread it was.
        let mut switches = HashMap::new();
        while let Some((stream, item)) = merge.next_item()? {
            let Item::Event(event) = item else { continue };
            match event.layout.name.as_str() {
                "sched_switch" => {
                    let next = event.layout.field("next_tid");
                    let next = next.and_then(|field| integer(event.value(field)));
                    switches.insert(stream, (event.timestamp, next));
                    continue;
                }
                EVENT => {}
                _ => continue,
            }
            let last = switches.get(&stream).copied();
            let wait = Self::of(&event, last, &trace.metadata.clock);
            let before = longest.as_ref().map(|longest| longest.latency_ns);
            longest = wait
                .filter(|wait| before.is_none_or(|before| wait.latency_ns > before))
                .or(longest);
        }
        Ok(longest)
    }

    /// Since the epoch, when it was woken.
    fn woken_ns(&self) -> Option<i64> {
        self.ran_ns?
            .checked_sub(i64::try_from(self.latency_ns).ok()?)
    }
}

/// Gathers what the CPU did during a wait.
pub struct Meanwhile {
    wait: Wait,
    clock: Clock,
    symbols: Symbols,
    stacks: HashMap<EventKey, Stacks>,
    /// The clock when the thread was woken.
    begin: u64,
    /// From when on it is known who ran on that CPU.
    known: Option<u64>,
    ran: Vec<Ran>,
    stack: Vec<String>,
    /// The thread that left the CPU is still the last that did.
    may_have_stack: bool,
}

/// Something that a CPU did.
#[derive(Debug, Serialize)]
struct Ran {
    /// When it began, from the wake-up on; below 0: it was under way.
    at_ns: i64,
    /// How long it took, within the wait.
    took_ns: u64,
    /// What it was.
    what: String,
}

impl Meanwhile {
    /// Of the trace in `dir`.
    pub fn new(dir: &Path, catalogue: &Catalogue<'_>, wait: Wait) -> Self {
        let metadata = catalogue.metadata();
        let clock = metadata.clock;
        let ticks = u128::from(wait.latency_ns) * u128::from(clock.frequency) / 1_000_000_000;
        let ticks = u64::try_from(ticks).unwrap_or(u64::MAX);
        let classes = metadata.streams.iter();
        let stacks = classes.flat_map(|class| {
            let layouts = class.events.values();
            layouts.map(|layout| (key(layout), Stacks::of(class)))
        });
        Self {
            begin: wait.end.saturating_sub(ticks),
            clock,
            symbols: Symbols::of(dir, metadata),
            stacks: stacks.collect(),
            wait,
            known: None,
            ran: Vec::new(),
            stack: Vec::new(),
            may_have_stack: false,
        }
    }

    fn is_here(&self, number: u32) -> bool {
        i64::from(number) == self.wait.cpu
    }

    /// The CPU did something from one time to another.
    fn add(&mut self, from: u64, to: u64, what: impl FnOnce() -> String) {
        let (begin, end) = (from.max(self.begin), to.min(self.wait.end));
        // What began with the wait's end is the thread itself.
        if begin >= end {
            return;
        }
        let at = self.clock.nanoseconds(from.abs_diff(self.begin));
        let at = i64::try_from(at).unwrap_or(i64::MAX);
        self.ran.push(Ran {
            at_ns: if from < self.begin { -at } else { at },
            took_ns: self.clock.nanoseconds(end - begin),
            what: what(),
        });
    }

    fn function(&self, address: u64) -> String {
        match self.symbols.kernel(address) {
            Some(symbol) => symbol.name.clone(),
            None => format!("{address:#x}"),
        }
    }
}

impl Analysis for Meanwhile {
    fn events(&self) -> Vec<EventKey> {
        self.stacks.keys().copied().collect()
    }

    fn event(&mut self, _which: usize, event: &Event<'_>, now: &Moment<'_>) {
        if !self.is_here(now.schedule.number(now.cpu)) {
            return;
        }
        if event.layout.name == EVENT && now.time == self.wait.told {
            self.may_have_stack = true;
        }
        let is_stack = matches!(event.layout.name.as_str(), EVENT | Stacks::EVENT);
        if !self.may_have_stack || !is_stack || !self.stack.is_empty() {
            return;
        }
        if let Some(stacks) = self.stacks.get(&key(event.layout)) {
            let frames = stacks.frames(event, Side::Kernel);
            self.stack = frames.map(|frame| self.function(frame.code())).collect();
        }
    }

    fn switch(&mut self, _switch: &Switch<'_>, now: &Moment<'_>) {
        if self.is_here(now.schedule.number(now.cpu)) && now.time > self.wait.told {
            self.may_have_stack = false;
        }
    }

    fn span(&mut self, span: &Span, schedule: &Schedule) {
        let Some(cpu) = span.cpu.filter(|_| span.state == State::Running) else {
            return;
        };
        if !self.is_here(schedule.number(cpu)) {
            return;
        }
        self.known = Some(self.known.map_or(span.from, |known| known.min(span.from)));
        let comm = schedule.comm(span.tid).unwrap_or_default();
        let thread = Thread {
            tid: span.tid,
            comm: String::from_utf8_lossy(comm).into_owned(),
            prio: None,
        };
        self.add(span.from, span.to, || thread.to_string());
    }

    fn wants_interrupts(&self) -> bool {
        true
    }

    fn interrupt(&mut self, interrupt: &Interrupt<'_>, schedule: &Schedule) {
        if !self.is_here(schedule.number(interrupt.cpu)) {
            return;
        }
        let (from, source) = (interrupt.from, interrupt.source);
        self.add(from, from.saturating_add(interrupt.ticks), || {
            let kind = if source.is_hard { "irq" } else { "softirq" };
            format!("{kind} {} {}", source.number, printable(&source.name))
        });
    }

    fn answer(mut self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        // An interrupt lies within a thread's time.
        self.ran
            .sort_by_key(|ran| (ran.at_ns, std::cmp::Reverse(ran.took_ns)));
        let known = self.known.unwrap_or(self.wait.end);
        Box::new(Case {
            unknown_ns: self.clock.nanoseconds(known.saturating_sub(self.begin)),
            woken_ns: self.wait.woken_ns(),
            wait: self.wait,
            ran: self.ran,
            stack: self.stack,
        })
    }
}

/// The answer.
#[derive(Debug, Serialize)]
struct Case {
    #[serde(flatten)]
    wait: Wait,
    /// When the thread was woken, since the epoch.
    woken_ns: Option<i64>,
    /// What the CPU did, in the order in which it began.
    ran: Vec<Ran>,
    /// So much of the wait is before it is known who ran.
    unknown_ns: u64,
    /// The kernel's functions in which the CPU was left, the innermost first.
    stack: Vec<String>,
}

impl Answer for Case {
    fn name(&self) -> &'static str {
        "worst_wait"
    }

    fn json(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn text(&self, out: &mut String, rows: usize) -> fmt::Result {
        let Wait {
            thread,
            waker,
            prev,
            cpu,
            ..
        } = &self.wait;
        let prio = |thread: &Thread| match thread.prio {
            Some(prio) => format!(" (priority {prio})"),
            None => String::new(),
        };
        let at = |ns: Option<i64>| ns.map_or_else(String::new, date::time_of_day);
        writeln!(
            out,
            "\n{thread}{}, process {}, waited {} for CPU {cpu}",
            prio(thread),
            self.wait.pid,
            duration(self.wait.latency_ns)
        )?;
        let by = match self.wait.in_interrupt {
            true => format!("an interrupt over {waker}"),
            false => waker.to_string(),
        };
        let woken = at(self.woken_ns);
        writeln!(
            out,
            "  woken  {woken}  by {by} on CPU {}",
            self.wait.waker_cpu
        )?;
        let ran = at(self.wait.ran_ns);
        writeln!(out, "  ran    {ran}  when {prev}{} left", prio(prev))?;
        // What took long, in the order of time.
        let mut longest: Vec<_> = self.ran.iter().collect();
        longest.sort_by_key(|ran| std::cmp::Reverse(ran.took_ns));
        let least = longest
            .get(rows.saturating_sub(1))
            .map_or(0, |ran| ran.took_ns);
        let shown: Vec<_> = self.ran.iter().filter(|ran| ran.took_ns >= least).collect();
        let heading = format!("{:>10} {:>10}  what CPU {cpu} did meanwhile", "at", "took");
        table(out, &heading, &shown, rows, |ran| {
            let sign = if ran.at_ns < 0 { "-" } else { "" };
            format!(
                "{:>10} {:>10}  {}",
                format!("{sign}{}", duration(ran.at_ns.unsigned_abs())),
                duration(ran.took_ns),
                ran.what
            )
        })?;
        let hidden = self.ran.len().saturating_sub(shown.len().min(rows));
        if hidden > 0 {
            writeln!(out, "{hidden} shorter ones are not shown")?;
        }
        if self.unknown_ns > 0 {
            let unknown = duration(self.unknown_ns);
            writeln!(out, "of the first {unknown} the trace has nothing")?;
        }
        if !self.stack.is_empty() {
            writeln!(out, "\nwhere {prev} left the CPU")?;
            for function in &self.stack {
                writeln!(out, "  {function}")?;
            }
        }
        Ok(())
    }
}
