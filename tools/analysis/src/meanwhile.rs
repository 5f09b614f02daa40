// SPDX-License-Identifier: GPL-2.0

//! Activity of a CPU during a delay.

use super::delay::{Delay, Thread, What};
use super::interrupts::Interrupt;
use super::schedule::{Schedule, Span};
use super::schedule_events::Activity;
use super::schedule_events::Switch;
use super::text::table;
use super::{bits, key, unit_of, Analysis, Answer, Catalogue, EventKey, Moment};
use ctf::LatencyKind;
use ctf::{Clock, Event};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::path::Path;
use symbols::{Side, Stacks, Symbols};
use system::printing;
use terminal::{date, duration, printable};

/// Analysis of the CPU's activity during a delay.
pub struct Meanwhile {
    delay: Delay,
    clock: Clock,
    symbols: Symbols,
    /// Events that the analysis receives, with the stacks recorded beside them.
    events: Vec<(EventKey, Stacks)>,
    /// Begin of the delay, by the trace's clock.
    begin: u64,
    /// Time from which on the running threads of the CPU are known.
    known: Option<u64>,
    ran: Vec<Ran>,
    /// Number of samples of the processor by function.
    samples: HashMap<String, u64>,
    stack: Vec<String>,
    /// Whether the thread that left the CPU, or was interrupted, is still the last such thread. Its stack
    /// may still follow.
    may_have_stack: bool,
}

/// An activity of a CPU.
#[derive(Debug, JsonSchema, Serialize)]
struct Ran {
    /// Begin, counted from the begin of the delay. Below 0: the activity began before the delay.
    at_ns: i64,
    /// Duration within the delay.
    took_ns: u64,
    /// Description of the activity.
    what: String,
}

impl Meanwhile {
    /// Creates the analysis of a delay in the trace in `dir`.
    pub fn new(dir: &Path, catalogue: &Catalogue<'_>, delay: Delay) -> Self {
        let metadata = catalogue.metadata();
        let clock = metadata.clock;
        let ticks = u128::from(delay.latency_ns) * u128::from(clock.frequency) / 1_000_000_000;
        let ticks = u64::try_from(ticks).unwrap_or(u64::MAX);
        let classes = metadata.streams.iter();
        let events = classes.flat_map(|class| {
            let layouts = class.events.values();
            layouts.map(|layout| (key(layout), Stacks::of(class)))
        });
        Self {
            begin: delay.end.saturating_sub(ticks),
            clock,
            symbols: Symbols::of(dir, metadata),
            events: events.collect(),
            delay,
            known: None,
            ran: Vec::new(),
            samples: HashMap::new(),
            stack: Vec::new(),
            may_have_stack: false,
        }
    }

    fn is_here(&self, number: u32) -> bool {
        i64::from(number) == self.delay.cpu
    }

    /// Adds an activity of the CPU.
    fn add(&mut self, from: u64, to: u64, what: impl FnOnce() -> String) {
        let (begin, end) = (from.max(self.begin), to.min(self.delay.end));
        // An activity that begins at the end of the delay is the thread that waited.
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

    fn function(&self, time: u64, address: u64) -> String {
        match self.symbols.kernel(self.clock.nanoseconds(time), address) {
            Some(symbol) => symbol.name.clone(),
            None => format!("{address:#x}"),
        }
    }
}

impl Analysis for Meanwhile {
    fn events(&self) -> Vec<EventKey> {
        self.events.iter().map(|(key, _)| *key).collect()
    }

    fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        if !self.is_here(now.schedule.number(now.cpu)) {
            return;
        }
        let name = event.layout.name.as_str();
        let measured = self.delay.measured();
        let is_told = name == measured.event() && now.time == self.delay.told;
        if is_told {
            self.may_have_stack = true;
        }
        if unit_of(name).is_some() && (self.begin..self.delay.end).contains(&now.time) {
            let ip = event
                .layout
                .field("ip")
                .and_then(|field| bits(event.value(field)));
            let function = ip.map_or_else(String::new, |ip| self.function(now.time, ip));
            *self.samples.entry(function).or_default() += 1;
        }
        let is_stack = is_told || measured != LatencyKind::Timer && name == Stacks::EVENT;
        if !self.may_have_stack || !is_stack || !self.stack.is_empty() {
            return;
        }
        if let Some((_, stacks)) = self.events.get(which) {
            let frames = stacks.frames(event, Side::Kernel);
            self.stack = frames
                .map(|frame| self.function(now.time, frame.code()))
                .collect();
        }
    }

    fn switch(&mut self, _switch: &Switch<'_>, now: &Moment<'_>) {
        if self.is_here(now.schedule.number(now.cpu)) && now.time > self.delay.told {
            self.may_have_stack = false;
        }
    }

    fn span(&mut self, span: &Span, schedule: &Schedule) {
        let Some(cpu) = span.cpu.filter(|_| span.state == Activity::Running) else {
            return;
        };
        if !self.is_here(schedule.number(cpu)) {
            return;
        }
        self.known = Some(self.known.map_or(span.from, |known| known.min(span.from)));
        let comm = schedule.comm(span.tid).unwrap_or_default();
        let thread = Thread {
            tid: span.tid,
            comm: printing::text(comm).into_owned(),
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
        // An interrupt lies within a thread's time, so the longer activity comes first.
        self.ran
            .sort_by_key(|ran| (ran.at_ns, Reverse(ran.took_ns)));
        let mut samples: Vec<_> = std::mem::take(&mut self.samples).into_iter().collect();
        samples.sort_by(|(a, many), (b, more)| more.cmp(many).then_with(|| a.cmp(b)));
        let known = self.known.unwrap_or(self.delay.end);
        let place = match self.delay.what {
            What::Timer { ip } => Some(self.function(self.delay.told, ip)),
            What::Wakeup { .. } | What::Preempt { .. } => None,
        };
        Box::new(Case {
            unknown_ns: self.clock.nanoseconds(known.saturating_sub(self.begin)),
            due_ns: self.delay.due_ns(),
            delay: self.delay,
            place,
            ran: self.ran,
            samples,
            stack: self.stack,
        })
    }
}

/// Answer to the question about a delay.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Case {
    #[serde(flatten)]
    delay: Delay,
    /// Begin of the delay since the epoch: the thread was woken, preempted or asked to yield, or the timer was due.
    due_ns: Option<i64>,
    /// The interrupted function, if one was interrupted.
    place: Option<String>,
    /// Activities of the CPU, in the order of their begin.
    ran: Vec<Ran>,
    /// Length of the first part of the delay, in which the running threads are not known.
    unknown_ns: u64,
    /// Functions and their numbers of samples, the most frequent first.
    samples: Vec<(String, u64)>,
    /// Kernel functions in which a thread left the CPU or was interrupted, the innermost first.
    stack: Vec<String>,
}

impl Answer for Case {
    fn name(&self) -> &'static str {
        "worst_delay"
    }

    fn json(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn text(&self, out: &mut String, rows: usize) -> fmt::Result {
        let Delay {
            thread, cpu, what, ..
        } = &self.delay;
        let latency = duration(self.delay.latency_ns);
        let prio = |thread: &Thread| match thread.prio {
            Some(prio) => format!(" (priority {prio})"),
            None => String::new(),
        };
        let at = |ns: Option<i64>| ns.map_or_else(String::new, date::time_of_day);
        let (due, came) = (at(self.due_ns), at(self.delay.came_ns));
        let where_it_was = match what {
            What::Wakeup {
                preempted,
                waker,
                waker_cpu,
                in_interrupt,
                prev,
            } => {
                let (who, pid) = (prio(thread), self.delay.pid);
                writeln!(
                    out,
                    "\n{thread}{who}, process {pid}, waited {latency} for CPU {cpu}"
                )?;
                let by = by(waker, *in_interrupt);
                match preempted {
                    true => writeln!(
                        out,
                        "  left   {due}  when it was preempted for {by} on CPU {waker_cpu}"
                    )?,
                    false => writeln!(out, "  woken  {due}  by {by} on CPU {waker_cpu}")?,
                }
                writeln!(out, "  ran    {came}  when {prev}{} left", prio(prev))?;
                format!("where {prev} left the CPU")
            }
            What::Preempt {
                preempted,
                lazy,
                lazy_before_ns,
                asker,
                asker_cpu,
                in_interrupt,
                next,
            } => {
                let (who, pid) = (prio(thread), self.delay.pid);
                writeln!(
                    out,
                    "\n{thread}{who}, process {pid}, kept CPU {cpu} for {latency} when it was asked to give it up"
                )?;
                let (by, how) = (
                    by(asker, *in_interrupt),
                    if *lazy { "lazily" } else { "at once" },
                );
                let before = match lazy_before_ns {
                    0 => String::new(),
                    before => format!(", {} after a lazy request", duration(*before)),
                };
                writeln!(
                    out,
                    "  asked  {due}  {how}, by {by} on CPU {asker_cpu}{before}"
                )?;
                let left = if *preempted {
                    "was preempted"
                } else {
                    "gave it up"
                };
                writeln!(
                    out,
                    "  left   {came}  when it {left} for {next}{}",
                    prio(next)
                )?;
                format!("where {thread} left the CPU")
            }
            What::Timer { ip } => {
                let place = match Side::of(*ip) {
                    Side::User => "user space",
                    Side::Kernel => self.place.as_deref().unwrap_or_default(),
                };
                let who = prio(thread);
                writeln!(out, "\na timer of CPU {cpu} expired {latency} late")?;
                writeln!(out, "  due    {due}")?;
                writeln!(out, "  came   {came}  over {thread}{who} in {place}")?;
                format!("where {thread} was interrupted")
            }
        };
        self.text_of_ran(out, rows)?;
        if !self.samples.is_empty() {
            let heading = format!("{:>10}  where CPU {cpu} was meanwhile", "samples");
            table(out, &heading, &self.samples, rows, |(function, samples)| {
                format!("{samples:>10}  {function}")
            })?;
        }
        if !self.stack.is_empty() {
            writeln!(out, "\n{where_it_was}")?;
            for function in &self.stack {
                writeln!(out, "  {function}")?;
            }
        }
        Ok(())
    }
}

/// Formats the thread that acted, or the interrupt that acted while this thread ran.
fn by(who: &Thread, in_interrupt: bool) -> String {
    match in_interrupt {
        true => format!("an interrupt over {who}"),
        false => who.to_string(),
    }
}

impl Case {
    /// Writes the long activities, in order of time.
    fn text_of_ran(&self, out: &mut String, rows: usize) -> fmt::Result {
        let mut longest: Vec<_> = self.ran.iter().collect();
        longest.sort_by_key(|ran| Reverse(ran.took_ns));
        let least = longest
            .get(rows.saturating_sub(1))
            .map_or(0, |ran| ran.took_ns);
        let shown: Vec<_> = self.ran.iter().filter(|ran| ran.took_ns >= least).collect();
        let cpu = self.delay.cpu;
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
            writeln!(out, "{hidden} shorter rows are not shown")?;
        }
        if self.unknown_ns > 0 {
            let unknown = duration(self.unknown_ns);
            writeln!(out, "the trace has no events of the first {unknown}")?;
        }
        Ok(())
    }
}
