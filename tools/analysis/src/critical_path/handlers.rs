// SPDX-License-Identifier: GPL-2.0

//! Handlers of interrupts and timers that run on a CPU. A wake-up inside a handler does not come from the
//! interrupted thread.

use crate::interrupts::{softirq_name, InterruptSource};
use crate::schedule::Schedule;
use crate::{bits, key, text, Catalogue, EventKey, Moment};
use ctf::{Event, EventLayout};
use std::collections::HashMap;
use std::sync::Arc;
use system::printing;

/// Events at the begin and at the end of handlers, and the field that both events have.
const PAIRS: [(&str, &str, &str); 8] = [
    ("irq_handler_entry", "irq_handler_exit", "irq"),
    ("irq_softirq_entry", "irq_softirq_exit", "vec"),
    (
        "timer_hrtimer_expire_entry",
        "timer_hrtimer_expire_exit",
        "hrtimer",
    ),
    ("timer_expire_entry", "timer_expire_exit", "timer"),
    ("local_timer_entry", "local_timer_exit", "vector"),
    ("call_function_entry", "call_function_exit", "vector"),
    (
        "call_function_single_entry",
        "call_function_single_exit",
        "vector",
    ),
    ("irq_work_entry", "irq_work_exit", "vector"),
];
/// Indexes of some of the pairs.
const HARD: usize = 0;
const SOFT: usize = 1;
const HRTIMER: usize = 2;
const TIMER: usize = 3;

/// Source of a wake-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waker {
    /// Another thread.
    Thread(i64),
    /// A handler, by its name.
    Handler(Arc<str>),
    /// The source is not known.
    Unknown,
}

/// The handlers that run on each CPU at one moment.
#[derive(Debug)]
pub struct Handlers {
    events: Vec<(EventKey, Kind)>,
    /// Running handlers by CPU index, the innermost last. A CPU has no entry before its first switch, and
    /// after a loss until its next switch.
    open: HashMap<usize, Vec<Open>>,
    names: HashMap<(usize, u64), Arc<str>>,
    idle: Arc<str>,
}

/// Pair of an event, with the indexes of its fields.
#[derive(Clone, Copy, Debug)]
struct Kind {
    pair: usize,
    is_entry: bool,
    number: usize,
    name: Option<usize>,
}

#[derive(Debug)]
struct Open {
    pair: usize,
    number: u64,
    name: Arc<str>,
}

impl Handlers {
    /// Creates the handlers for a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>) -> Self {
        let mut events = Vec::new();
        for (pair, (entry, exit, field)) in PAIRS.into_iter().enumerate() {
            let kind = |layout: &EventLayout, is_entry| {
                let kind = Kind {
                    pair,
                    is_entry,
                    number: layout.field(field)?,
                    name: layout.field("name"),
                };
                Some((key(layout), kind))
            };
            let both = catalogue.event(entry).zip(catalogue.event(exit));
            let both = both.and_then(|(entry, exit)| kind(entry, true).zip(kind(exit, false)));
            events.extend(both.into_iter().flat_map(|(entry, exit)| [entry, exit]));
        }
        Self {
            events,
            open: HashMap::new(),
            names: HashMap::new(),
            idle: "an interrupt".into(),
        }
    }

    /// Returns the events that the handlers are read from. `event` identifies each by its index in this
    /// list.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.events.iter().map(|(key, _)| *key)
    }

    /// Returns whether the trace has hard interrupts, soft interrupts and timers.
    pub fn has_all(&self) -> bool {
        let has = |pair| self.events.iter().any(|(_, kind)| kind.pair == pair);
        [HARD, SOFT, HRTIMER].into_iter().all(has)
    }

    /// Processes an event.
    pub fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) -> Option<()> {
        let kind = self.events[which].1;
        let number = bits(event.value(kind.number))?;
        let open = self.open.get_mut(&now.cpu)?;
        if !kind.is_entry {
            let same = |open: &Open| (open.pair, open.number) == (kind.pair, number);
            open.truncate(open.iter().rposition(same)?);
            return Some(());
        }
        let name = kind.name.and_then(|name| text(event.value(name)));
        // Timers are not named by their addresses: an address says little, and there are many.
        let named = match kind.pair {
            HRTIMER | TIMER => (kind.pair, 0),
            _ => (kind.pair, number),
        };
        let names = self.names.entry(named);
        let name = names.or_insert_with(|| describe(kind.pair, number, name).into());
        open.push(Open {
            pair: kind.pair,
            number,
            name: name.clone(),
        });
        Some(())
    }

    /// Handles a switch: the CPU is in no handler.
    pub fn switch(&mut self, now: &Moment<'_>) {
        self.open.entry(now.cpu).or_default().clear();
    }

    /// Forgets the handlers of a CPU, because they are not known from now on.
    pub fn forget(&mut self, cpu: usize) {
        self.open.remove(&cpu);
    }

    /// Handles a loss: events of a CPU may be missing from now on.
    pub fn lost(&mut self, schedule: &Schedule) {
        self.open.retain(|cpu, _| schedule.is_whole(*cpu));
    }

    /// Returns the source of a wake-up that happens now on this CPU.
    pub fn waker(&self, now: &Moment<'_>) -> Waker {
        let Some(open) = self.open.get(&now.cpu) else {
            return Waker::Unknown;
        };
        match (open.last(), now.schedule.running(now.cpu)) {
            (Some(open), _) => Waker::Handler(open.name.clone()),
            // The idle task itself wakes no thread.
            (None, Some(0)) => Waker::Handler(self.idle.clone()),
            (None, Some(tid)) => Waker::Thread(tid),
            (None, None) => Waker::Unknown,
        }
    }
}

fn describe(pair: usize, number: u64, name: Option<&[u8]>) -> String {
    let name = printing::text(name.unwrap_or_default());
    match pair {
        HARD => format!("irq {number} {name}"),
        SOFT => format!("softirq {}", softirq_name(number as i64)),
        HRTIMER => "hrtimer".to_owned(),
        TIMER => "timer".to_owned(),
        other => format!("interrupt {}", PAIRS[other].0.trim_end_matches("_entry")),
    }
}

/// Returns the name of the handler of an interrupt.
pub fn name_of(source: &InterruptSource) -> String {
    let pair = if source.is_hard { HARD } else { SOFT };
    describe(pair, source.number as u64, Some(source.name.as_bytes()))
}
