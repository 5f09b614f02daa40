// SPDX-License-Identifier: GPL-2.0

//! Interrupts that each CPU handles, as far as they are known from the trace.
//!
//! Interrupts nest: a hard interrupt may arrive while a soft interrupt is handled. An exit belongs to the
//! last entry without an exit. If that entry is of another interrupt, events are missing, and all open
//! entries are forgotten.

use super::{integer, key, text, Catalogue, EventKey};
use ahash::{HashMap, HashMapExt};
use ctf::{Event, EventLayout};
use system::printing;

/// Names of soft interrupts, by number.
const SOFT: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// Returns the name of a soft interrupt.
pub fn softirq_name(vec: i64) -> &'static str {
    let name = usize::try_from(vec).ok().and_then(|vec| SOFT.get(vec));
    name.unwrap_or(&"?")
}

/// The interrupts that the CPUs handle at one moment.
#[derive(Debug)]
pub struct Interrupts {
    /// Events that the interrupts are read from.
    events: Vec<(EventKey, Kind)>,
    /// Interrupts being handled by CPU index, the newest last.
    open: HashMap<usize, Vec<Open>>,
    sources: Vec<InterruptSource>,
    places: HashMap<(bool, i64, Vec<u8>), usize>,
}

/// Kind of an event, with the indexes of its fields.
#[derive(Clone, Copy, Debug)]
enum Kind {
    HardEntry { irq: usize, name: usize },
    HardExit { irq: usize },
    SoftEntry { vec: usize },
    SoftExit { vec: usize },
}

/// An interrupt being handled.
#[derive(Clone, Copy, Debug)]
struct Open {
    source: usize,
    since: u64,
    /// Clock ticks in nested interrupts.
    nested: u64,
}

/// Source of interrupts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InterruptSource {
    /// Whether the interrupt is hard; otherwise it is soft.
    pub is_hard: bool,
    /// Number of the interrupt.
    pub number: i64,
    /// Name of the handler. Several handlers may share a number.
    pub name: String,
}

/// A completed interrupt.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt<'a> {
    /// Index of the CPU in the schedule.
    pub cpu: usize,
    /// Source of the interrupt.
    pub source: &'a InterruptSource,
    /// Time of the entry, in clock ticks.
    pub from: u64,
    /// Clock ticks from its entry to its exit.
    pub ticks: u64,
    /// Clock ticks without the time in nested interrupts.
    pub own_ticks: u64,
}

impl Interrupts {
    /// Creates the interrupts for a trace with these events.
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

    /// Returns the events that the interrupts are read from. `event` identifies each by its index in this
    /// list.
    pub fn events(&self) -> Vec<EventKey> {
        self.events.iter().map(|(key, _)| *key).collect()
    }

    /// Returns the events of hard or of soft interrupts; none if the trace does not have them.
    pub fn of(&self, is_hard: bool) -> impl Iterator<Item = EventKey> + '_ {
        let is_of = move |kind: &Kind| match kind {
            Kind::HardEntry { .. } | Kind::HardExit { .. } => is_hard,
            Kind::SoftEntry { .. } | Kind::SoftExit { .. } => !is_hard,
        };
        let events = self.events.iter().filter(move |(_, kind)| is_of(kind));
        events.map(|(key, _)| *key)
    }

    /// Returns whether the trace has hard interrupts.
    pub fn has_hard(&self) -> bool {
        self.of(true).next().is_some()
    }

    /// Returns whether the trace has soft interrupts.
    pub fn has_soft(&self) -> bool {
        self.of(false).next().is_some()
    }

    /// Forgets the interrupts of a CPU whose events may be missing.
    pub fn lose(&mut self, cpu: usize) {
        self.open.remove(&cpu);
    }

    /// Processes the event with this index in [`events`](Self::events), which happened on a CPU without a
    /// loss. Returns the interrupt that the event ends.
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
            self.sources.push(InterruptSource {
                is_hard,
                number,
                name: printing::text(name).into_owned(),
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
