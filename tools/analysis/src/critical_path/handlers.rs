// SPDX-License-Identifier: GPL-2.0

//! What a CPU does instead of the thread that runs there: the handlers of interrupts and timers. Who
//! is woken meanwhile is not woken by that thread.

use crate::interrupts::softirq_name;
use crate::schedule::Schedule;
use crate::{bits, key, text, Catalogue, EventKey, Moment};
use ctf::{Event, EventLayout};
use std::collections::HashMap;
use std::rc::Rc;

/// Events at the begin and at the end of handlers, and the field that both have.
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
/// The places of some of them.
const HARD: usize = 0;
const SOFT: usize = 1;
const HRTIMER: usize = 2;
const TIMER: usize = 3;

/// Who woke a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waker {
    /// Another thread.
    Thread(i64),
    /// A handler: what it is called.
    Handler(Rc<str>),
    /// Nobody knows.
    Unknown,
}

/// The handlers that run on each CPU at a moment.
#[derive(Debug)]
pub struct Handlers {
    events: Vec<(EventKey, Kind)>,
    /// By the place of the CPU: those that are known since its last switch, the newest last. A CPU that
    /// is not in it has not switched yet, or not since events were lost.
    open: HashMap<usize, Vec<Open>>,
    names: HashMap<(usize, u64), Rc<str>>,
    idle: Rc<str>,
}

/// What an event tells, and in which fields.
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
    name: Rc<str>,
}

impl Handlers {
    /// Of a trace with these events.
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

    /// The events that they are made from. Each is known by its place in this list.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.events.iter().map(|(key, _)| *key)
    }

    /// Whether the trace has hard and soft interrupts, and timers.
    pub fn has_all(&self) -> bool {
        let has = |pair| self.events.iter().any(|(_, kind)| kind.pair == pair);
        [HARD, SOFT, HRTIMER].into_iter().all(has)
    }

    /// One of these events.
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
        // The addresses of timers are no names, and there are many.
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

    /// A CPU has switched: it is in no handler.
    pub fn switch(&mut self, now: &Moment<'_>) {
        self.open.entry(now.cpu).or_default().clear();
    }

    /// The handlers that run on a CPU are not known from here on.
    pub fn forget(&mut self, cpu: usize) {
        self.open.remove(&cpu);
    }

    /// Events may be missing on a CPU from here on.
    pub fn lost(&mut self, schedule: &Schedule) {
        self.open.retain(|cpu, _| schedule.is_whole(*cpu));
    }

    /// Who wakes a thread now, on this CPU.
    pub fn waker(&self, now: &Moment<'_>) -> Waker {
        let Some(open) = self.open.get(&now.cpu) else {
            return Waker::Unknown;
        };
        match (open.last(), now.schedule.running(now.cpu)) {
            (Some(open), _) => Waker::Handler(open.name.clone()),
            // The idle task wakes nobody.
            (None, Some(0)) => Waker::Handler(self.idle.clone()),
            (None, Some(tid)) => Waker::Thread(tid),
            (None, None) => Waker::Unknown,
        }
    }
}

fn describe(pair: usize, number: u64, name: Option<&[u8]>) -> String {
    let name = String::from_utf8_lossy(name.unwrap_or_default());
    match pair {
        HARD => format!("irq {number} {name}"),
        SOFT => format!("softirq {}", softirq_name(number as i64)),
        HRTIMER => "hrtimer".to_owned(),
        TIMER => "timer".to_owned(),
        other => format!("interrupt {}", PAIRS[other].0.trim_end_matches("_entry")),
    }
}
