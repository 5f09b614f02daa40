// SPDX-License-Identifier: GPL-2.0

//! Functions that used the time of the CPUs, found by samples of the running code (`--profile`).

mod answer;
mod ends;

use super::{bits, integer, key, Analysis, Answer, Catalogue, EventKey, Missing, Moment};
use ahash::{HashMap, HashMapExt};
pub(crate) use answer::ProfileAnswer;
use answer::{Comm, Function};
use ctf::{Clock, Event, EventLayout};
use ends::Ends;
use std::cmp::Reverse;
use std::path::Path;
use symbols::{Place, Side, Stacks, Symbols};
use system::printing;

/// Sampling events, and the units of their periods.
const EVENTS: [(&str, &str); 2] = [
    ("profile_cpu_clock", "nanoseconds"),
    ("profile_cycles", "cycles"),
];

/// Returns the unit of a sample's period, if the event with this name is a sample.
pub fn unit_of(event: &str) -> Option<&'static str> {
    let mut events = EVENTS.iter();
    let (_, unit) = events.find(|(name, _)| *name == event)?;
    Some(unit)
}

/// Analysis of the samples of a trace.
pub struct Profile {
    clock: Clock,
    symbols: Symbols,
    events: Vec<Sampled>,
    functions: HashMap<Named, Counts>,
    comms: HashMap<String, u64>,
    /// Last counts of one event on one CPU: missed and throttled samples.
    counted: HashMap<(usize, usize), (u64, u64)>,
    samples: u64,
    idle: u64,
    /// How the stacks of programs ended.
    ends: Ends,
    /// Functions of a stack; the memory is reused.
    stack: Vec<Named>,
}

/// A sampling event.
pub struct Sampled {
    /// Identity of the event.
    pub key: EventKey,
    name: &'static str,
    stacks: Stacks,
    ip: Option<usize>,
    missed: Option<usize>,
    throttled: Option<usize>,
}

/// A function, as the report shows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Named {
    /// Name, or address if the name is not known.
    pub name: String,
    /// File or module of the function.
    pub object: String,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    /// Number of samples in the function itself.
    own: u64,
    /// Number of samples in the function and in the functions that it called.
    total: u64,
}

impl Profile {
    /// Creates the analysis for the trace in `dir`, which has these events.
    pub fn new(catalogue: &Catalogue<'_>, dir: &Path) -> Result<Self, Missing> {
        let events = Sampled::all(catalogue);
        if events.is_empty() {
            return Err(Missing {
                option: "--profile",
                events: "samples",
                record:
                    "-e profile --context tid,comm,callstack-kernel,callstack-user --symbols` or \
                         `rtrace profile"
                        .into(),
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
            ends: Ends::default(),
            stack: Vec::new(),
        })
    }
}

impl Sampled {
    /// Returns the sampling events of a trace.
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

    /// Fills `stack` with the functions that ran at the time `ns` of the trace's clock, the innermost
    /// first. If callers are missing, the last one says why.
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
            stack.push(kernel(symbols, ns, frame.code()));
        }
        for frame in self.stacks.frames(event, Side::User) {
            stack.extend(user(symbols, tid, ns, frame.code()));
        }
        if stack.is_empty() {
            // Without stacks, the address of the sample still names the code that ran.
            let ip = self.ip.and_then(|ip| bits(event.value(ip)));
            match ip.map(|ip| (ip, Side::of(ip))) {
                Some((ip, Side::Kernel)) => stack.push(kernel(symbols, ns, ip)),
                Some((ip, Side::User)) => stack.extend(user(symbols, tid, ns, ip)),
                None => {}
            }
        }
        stack.extend(self.stacks.cut(event).map(|cut| Named {
            name: cut,
            object: String::new(),
        }));
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
        let comm = now.comm().map_or("?".into(), printing::text);
        match self.comms.get_mut(&*comm) {
            Some(count) => *count += 1,
            None => drop(self.comms.insert(comm.into_owned(), 1)),
        }
        self.ends.add(sampled.stacks.end(event));
        let ns = self.clock.nanoseconds(event.timestamp);
        sampled.stack(&mut self.symbols, event, tid, ns, &mut self.stack);
        for (place, function) in self.stack.iter().enumerate() {
            let is_again = self.stack[..place].contains(function);
            let counts = match self.functions.get_mut(function) {
                Some(counts) => counts,
                None => self.functions.entry(function.clone()).or_default(),
            };
            counts.own += u64::from(place == 0);
            // A recursive function counts once per sample.
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
        Box::new(ProfileAnswer {
            events,
            samples: self.samples,
            idle: self.idle,
            missed: sum(|(missed, _)| *missed),
            throttled: sum(|(_, throttled)| *throttled),
            user_stacks: self.ends.counted(),
            functions,
            comms,
        })
    }
}

fn kernel(symbols: &Symbols, ns: u64, code: u64) -> Named {
    match symbols.kernel(ns, code) {
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

/// The functions at an address of a program, the innermost first: those that are inlined there, and the one that contains
/// them.
fn user(symbols: &mut Symbols, tid: Option<i64>, ns: u64, code: u64) -> Vec<Named> {
    let place = tid.and_then(|tid| symbols.user(tid, ns, code));
    let object = place.map_or("?".to_owned(), |place| place.file.name());
    let function = place.and_then(|place| place.function);
    let name = function.map_or("?".to_owned(), |function| function.name.clone());
    let inlined = place.iter().flat_map(Place::inlined);
    let names = inlined.chain([name]);
    names
        .map(|name| Named {
            name,
            object: object.clone(),
        })
        .collect()
}
