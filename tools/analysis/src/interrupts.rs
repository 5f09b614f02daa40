// SPDX-License-Identifier: GPL-2.0

//! Which interrupts each CPU handles, as far as the trace tells.
//!
//! They are nested: a hard interrupt may come while a soft one is handled. An exit belongs to the
//! entry before it that has no exit yet; if that is of another interrupt, something is missing, and
//! nothing open is paired any more.

use super::{integer, key, text, Catalogue, EventKey};
use ahash::{HashMap, HashMapExt};
use ctf::{Event, EventLayout};

/// The names of soft interrupts, by number.
const SOFT: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// The name of a soft interrupt.
pub fn softirq_name(vec: i64) -> &'static str {
    let name = usize::try_from(vec).ok().and_then(|vec| SOFT.get(vec));
    name.unwrap_or(&"?")
}

/// The interrupts of a trace at a moment.
#[derive(Debug)]
pub struct Interrupts {
    /// The events that it is made from.
    events: Vec<(EventKey, Kind)>,
    /// By the place of the CPU: those that are being handled, the newest last.
    open: HashMap<usize, Vec<Open>>,
    sources: Vec<Source>,
    places: HashMap<(bool, i64, Vec<u8>), usize>,
}

/// What an event tells, and in which fields.
#[derive(Clone, Copy, Debug)]
enum Kind {
    HardEntry { irq: usize, name: usize },
    HardExit { irq: usize },
    SoftEntry { vec: usize },
    SoftExit { vec: usize },
}

/// An interrupt that is being handled.
#[derive(Clone, Copy, Debug)]
struct Open {
    source: usize,
    since: u64,
    /// Clock ticks in other interrupts since then.
    nested: u64,
}

/// Where interrupts come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// Hard, or soft.
    pub is_hard: bool,
    /// Its number.
    pub number: i64,
    /// Of the handler: several may share a number.
    pub name: String,
}

/// An interrupt that was handled.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt<'a> {
    /// The place of the CPU in the schedule.
    pub cpu: usize,
    /// Where it came from.
    pub source: &'a Source,
    /// When it began, in clock ticks.
    pub from: u64,
    /// Clock ticks from its entry to its exit.
    pub ticks: u64,
    /// Those of them that were not spent in others.
    pub own_ticks: u64,
}

impl Interrupts {
    /// Of a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>) -> Self {
        let pair = |entry: &str, exit: &str, kind: fn(&EventLayout) -> Option<Kind>| {
            let both = [catalogue.event(entry)?, catalogue.event(exit)?];
            let [entry, exit] = both.map(|layout| Some((key(layout), kind(layout)?)));
            Some([entry?, exit?])
        };
        let hard = pair("irq_handler_entry", "irq_handler_exit", |layout| {
            let irq = layout.field("irq")?;
            Some(match layout.field("name") {
                Some(name) => Kind::HardEntry { irq, name },
                None => Kind::HardExit { irq },
            })
        });
        let soft = pair("irq_softirq_entry", "irq_softirq_exit", |layout| {
            let vec = layout.field("vec")?;
            Some(if layout.name.ends_with("_entry") {
                Kind::SoftEntry { vec }
            } else {
                Kind::SoftExit { vec }
            })
        });
        Self {
            events: hard.into_iter().chain(soft).flatten().collect(),
            open: HashMap::new(),
            sources: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// The events that it is made from. Each is known by its place in this list.
    pub fn events(&self) -> Vec<EventKey> {
        self.events.iter().map(|(key, _)| *key).collect()
    }

    /// The events of hard interrupts, or of soft ones: none if they are not in the trace.
    pub fn of(&self, is_hard: bool) -> impl Iterator<Item = EventKey> + '_ {
        let is_of = move |kind: &Kind| match kind {
            Kind::HardEntry { .. } | Kind::HardExit { .. } => is_hard,
            Kind::SoftEntry { .. } | Kind::SoftExit { .. } => !is_hard,
        };
        let events = self.events.iter().filter(move |(_, kind)| is_of(kind));
        events.map(|(key, _)| *key)
    }

    /// Whether the trace has hard interrupts.
    pub fn has_hard(&self) -> bool {
        self.of(true).next().is_some()
    }

    /// Whether the trace has soft interrupts.
    pub fn has_soft(&self) -> bool {
        self.of(false).next().is_some()
    }

    /// Events of a CPU may be missing.
    pub fn lose(&mut self, cpu: usize) {
        self.open.remove(&cpu);
    }

    /// The event of this number in [`events`](Self::events) came on a CPU that is whole; if an
    /// interrupt ends with it, which.
    pub fn event(&mut self, which: usize, event: &Event<'_>, cpu: usize) -> Option<Interrupt<'_>> {
        let now = event.timestamp;
        match self.events[which].1 {
            Kind::HardEntry { irq, name } => {
                let (irq, name) = (integer(event.value(irq))?, text(event.value(name))?);
                let source = self.source(true, irq, name);
                self.begin(cpu, source, now);
                None
            }
            Kind::SoftEntry { vec } => {
                let vec = integer(event.value(vec))?;
                let source = self.source(false, vec, softirq_name(vec).as_bytes());
                self.begin(cpu, source, now);
                None
            }
            Kind::HardExit { irq } => self.end(cpu, true, integer(event.value(irq))?, now),
            Kind::SoftExit { vec } => self.end(cpu, false, integer(event.value(vec))?, now),
        }
    }

    fn source(&mut self, is_hard: bool, number: i64, name: &[u8]) -> usize {
        let next = self.sources.len();
        let place = *self
            .places
            .entry((is_hard, number, name.to_vec()))
            .or_insert(next);
        if place == next {
            self.sources.push(Source {
                is_hard,
                number,
                name: String::from_utf8_lossy(name).into_owned(),
            });
        }
        place
    }

    fn begin(&mut self, cpu: usize, source: usize, now: u64) {
        self.open.entry(cpu).or_default().push(Open {
            source,
            since: now,
            nested: 0,
        });
    }

    fn end(&mut self, cpu: usize, is_hard: bool, number: i64, now: u64) -> Option<Interrupt<'_>> {
        let stack = self.open.get_mut(&cpu)?;
        let open = stack.pop()?;
        let source = &self.sources[open.source];
        if (source.is_hard, source.number) != (is_hard, number) {
            stack.clear();
            return None;
        }
        let ticks = now.saturating_sub(open.since);
        if let Some(below) = stack.last_mut() {
            below.nested = below.nested.saturating_add(ticks);
        }
        Some(Interrupt {
            cpu,
            source,
            from: open.since,
            ticks,
            own_ticks: ticks.saturating_sub(open.nested),
        })
    }
}
