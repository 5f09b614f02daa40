// SPDX-License-Identifier: GPL-2.0

//! `--profile`: which functions the time of the CPUs went by in, by samples of what ran.

mod answer;

use super::{bits, integer, key, Analysis, Answer, Catalogue, EventKey, Missing, Moment};
use ahash::{HashMap, HashMapExt};
use answer::{Comm, Found, Function};
use ctf::{Clock, Event, EventLayout};
use std::cmp::Reverse;
use std::path::Path;
use symbols::{Place, Side, Stacks, Symbols};

/// The events that are samples, and what their periods are.
const EVENTS: [(&str, &str); 2] = [
    ("profile_cpu_clock", "nanoseconds"),
    ("profile_cycles", "cycles"),
];

/// What the period of a sample is, if the event of this name is one.
pub fn unit_of(event: &str) -> Option<&'static str> {
    let mut events = EVENTS.iter();
    let (_, unit) = events.find(|(name, _)| *name == event)?;
    Some(unit)
}

/// The samples of a trace.
pub struct Profile {
    clock: Clock,
    symbols: Symbols,
    events: Vec<Sampled>,
    functions: HashMap<Named, Counts>,
    comms: HashMap<String, u64>,
    /// Of one event on one CPU, what it counted last: missed and throttled.
    counted: HashMap<(usize, usize), (u64, u64)>,
    samples: u64,
    idle: u64,
    /// The functions of a stack, to be used again.
    stack: Vec<Named>,
}

/// An event that is a sample.
pub struct Sampled {
    /// Which.
    pub key: EventKey,
    name: &'static str,
    stacks: Stacks,
    ip: Option<usize>,
    missed: Option<usize>,
    throttled: Option<usize>,
}

/// A function, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Named {
    /// Its name, or its address.
    pub name: String,
    /// The file or module that it is in.
    pub object: String,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    /// Samples in it.
    own: u64,
    /// Those in what it called, too.
    total: u64,
}

impl Profile {
    /// Of the trace in `dir`, with these events.
    pub fn new(catalogue: &Catalogue<'_>, dir: &Path) -> Result<Self, Missing> {
        let events = Sampled::all(catalogue);
        if events.is_empty() {
            return Err(Missing {
                option: "--profile",
                events: "samples",
                record:
                    "-e profile --context tid,comm,callstack-kernel,callstack-user --symbols` or \
                         `rtrace profile",
            });
        }
        Ok(Self {
            clock: catalogue.metadata().clock,
            symbols: Symbols::of(dir, catalogue.metadata()),
            events,
            functions: HashMap::new(),
            comms: HashMap::new(),
            counted: HashMap::new(),
            samples: 0,
            idle: 0,
            stack: Vec::new(),
        })
    }
}

impl Sampled {
    /// Those of a trace.
    pub fn all(catalogue: &Catalogue<'_>) -> Vec<Self> {
        let classes = catalogue.metadata().streams.iter();
        let layouts = classes.flat_map(|class| class.events.values());
        layouts
            .filter_map(|layout| Self::of(catalogue, layout))
            .collect()
    }

    fn of(catalogue: &Catalogue<'_>, layout: &EventLayout) -> Option<Self> {
        let (name, _) = EVENTS.into_iter().find(|(name, _)| layout.name == *name)?;
        Some(Self {
            key: key(layout),
            name,
            stacks: Stacks::of(catalogue.class(layout)?),
            ip: layout.field("ip"),
            missed: layout.field("missed"),
            throttled: layout.field("throttled"),
        })
    }

    /// The functions that ran at a time of the trace's clock, in nanoseconds: the innermost first.
    pub fn stack(
        &self,
        symbols: &mut Symbols,
        event: &Event<'_>,
        tid: Option<i64>,
        ns: u64,
        stack: &mut Vec<Named>,
    ) {
        stack.clear();
        for frame in self.stacks.frames(event, Side::Kernel) {
            stack.push(kernel(symbols, frame.code()));
        }
        for frame in self.stacks.frames(event, Side::User) {
            stack.push(user(symbols, tid, ns, frame.code()));
        }
        if stack.is_empty() {
            // Without stacks there is still the code that ran.
            let ip = self.ip.and_then(|ip| bits(event.value(ip)));
            stack.extend(ip.map(|ip| match Side::of(ip) {
                Side::Kernel => kernel(symbols, ip),
                Side::User => user(symbols, tid, ns, ip),
            }));
        }
    }
}

impl Analysis for Profile {
    fn events(&self) -> Vec<EventKey> {
        self.events.iter().map(|event| event.key).collect()
    }

    fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        let Some(sampled) = self.events.get(which) else {
            return;
        };
        self.samples += 1;
        let number = |field: Option<usize>| integer(event.value(field?));
        let count = |field| number(field).and_then(|count| u64::try_from(count).ok());
        let counted = (
            count(sampled.missed).unwrap_or(0),
            count(sampled.throttled).unwrap_or(0),
        );
        self.counted.insert((which, now.cpu), counted);
        let tid = now.tid();
        if tid == Some(0) {
            self.idle += 1;
            return;
        }
        let comm = now.comm().map_or("?".into(), String::from_utf8_lossy);
        match self.comms.get_mut(&*comm) {
            Some(count) => *count += 1,
            None => drop(self.comms.insert(comm.into_owned(), 1)),
        }
        let ns = self.clock.nanoseconds(event.timestamp);
        sampled.stack(&mut self.symbols, event, tid, ns, &mut self.stack);
        for (place, function) in self.stack.iter().enumerate() {
            let is_again = self.stack[..place].contains(function);
            let counts = match self.functions.get_mut(function) {
                Some(counts) => counts,
                None => self.functions.entry(function.clone()).or_default(),
            };
            counts.own += u64::from(place == 0);
            // A function that calls itself is there once.
            counts.total += u64::from(!is_again);
        }
    }

    fn answer(self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        let sum = |of: fn(&(u64, u64)) -> u64| self.counted.values().map(of).sum();
        let names = self.events.iter().map(|event| event.name.to_owned());
        let mut events: Vec<_> = names.collect();
        events.sort();
        events.dedup();
        let functions = self.functions.into_iter();
        let mut functions: Vec<_> = functions
            .map(|(Named { name, object }, Counts { own, total })| Function {
                name,
                object,
                own,
                total,
            })
            .collect();
        functions.sort_by(|a, b| {
            (Reverse(a.own), Reverse(a.total), &a.name, &a.object).cmp(&(
                Reverse(b.own),
                Reverse(b.total),
                &b.name,
                &b.object,
            ))
        });
        let comms = self.comms.into_iter();
        let mut comms: Vec<_> = comms
            .map(|(comm, samples)| Comm { comm, samples })
            .collect();
        comms.sort_by(|a, b| (Reverse(a.samples), &a.comm).cmp(&(Reverse(b.samples), &b.comm)));
        Box::new(Found {
            events,
            samples: self.samples,
            idle: self.idle,
            missed: sum(|(missed, _)| *missed),
            throttled: sum(|(_, throttled)| *throttled),
            functions,
            comms,
        })
    }
}

fn kernel(symbols: &Symbols, code: u64) -> Named {
    match symbols.kernel(code) {
        Some(symbol) => Named {
            name: symbol.name.clone(),
            object: format!("[{}]", symbol.module.as_deref().unwrap_or("kernel")),
        },
        None => Named {
            name: format!("{code:#x}"),
            object: "[kernel]".to_owned(),
        },
    }
}

fn user(symbols: &mut Symbols, tid: Option<i64>, ns: u64, code: u64) -> Named {
    match tid.and_then(|tid| symbols.user(tid, ns, code)) {
        Some(Place {
            file,
            function: Some(function),
            ..
        }) => Named {
            name: function.name.clone(),
            object: file.name(),
        },
        Some(Place { file, .. }) => Named {
            name: "?".to_owned(),
            object: file.name(),
        },
        None => Named {
            name: "?".to_owned(),
            object: "?".to_owned(),
        },
    }
}
