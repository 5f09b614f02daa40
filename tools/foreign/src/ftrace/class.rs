// SPDX-License-Identifier: GPL-2.0

//! The stream class of a buffer's events, and the translation of their records.

use super::calls::{self, Raw};
use super::format::EventFormat;
use super::names;
use super::plan::{part, run, Plan, Step};
use crate::content::IDS;
use crate::Content;
use ctf::{EventLayout, EventLayouts, FieldLayout, StreamClass};
use decode::Architecture;
use rtrace_abi::header::Layout;
use std::collections::{BTreeSet, HashSet};

/// The translation of a buffer's events.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// The index of each event by its number in the kernel, plus one.
    places: Vec<u32>,
    events: Vec<Kind>,
}

/// The translation of an event of the kernel.
#[derive(Clone, Debug)]
enum Kind {
    /// To an event of rtrace's with this id.
    One(u32, Vec<Step>),
    /// To an event for each system call.
    Calls {
        raw: Raw,
        /// The event of each call by its number: an id, and the steps at this index.
        calls: Vec<Option<(u32, usize)>>,
        steps: Vec<Vec<Step>>,
        unknown: (u32, Vec<Step>),
    },
}

/// Makes a stream class.
struct Maker {
    number: u32,
    layouts: EventLayouts,
    names: HashSet<String>,
    next: u32,
}

impl Maker {
    /// Adds an event, and returns its id.
    fn add(&mut self, system: &str, name: String, fields: Vec<FieldLayout>) -> u32 {
        // Two subsystems may have an event of the same name.
        let name = match self.names.contains(&name) {
            true => format!("{system}:{name}"),
            false => name,
        };
        self.names.insert(name.clone());
        let id = self.next;
        self.next += 1;
        self.layouts
            .insert(EventLayout::new(self.number, id, name, fields));
        id
    }
}

impl Events {
    /// Makes the stream class `number` of the events with these numbers in the kernel, and of other events before
    /// them, whose ids are their indexes.
    pub fn new(
        number: u32,
        formats: &[EventFormat],
        ids: &BTreeSet<u16>,
        contexts: Vec<FieldLayout>,
        others: Vec<(String, Vec<FieldLayout>)>,
        architecture: Architecture,
    ) -> Result<(StreamClass, Self), String> {
        let mut this = Self::default();
        let mut maker = Maker {
            number,
            layouts: EventLayouts::default(),
            names: HashSet::new(),
            next: 0,
        };
        for (name, fields) in others {
            maker.add("perf", name, fields);
        }
        for format in formats.iter().filter(|format| ids.contains(&format.id)) {
            let system = format.system.as_str();
            let kind = match Raw::of(format) {
                Some(raw) => Kind::calls(raw, &mut maker, architecture),
                None => {
                    let (name, plan) = calls::own(format)
                        .unwrap_or_else(|| (names::event(system, &format.name), Plan::of(format)));
                    Kind::One(maker.add(system, name, plan.fields), plan.steps)
                }
            };
            this.events.push(kind);
            let id = usize::from(format.id);
            if this.places.len() <= id {
                this.places.resize(id + 1, 0);
            }
            this.places[id] = this.events.len() as u32;
        }
        if maker.next >= IDS {
            return Err(format!("{} events, more than rtrace reads", maker.next));
        }
        Ok((
            StreamClass::new(Layout::Large, contexts, maker.layouts),
            this,
        ))
    }

    /// Writes an event with these contexts. `Err`: its number is unknown, or its record too short.
    #[inline]
    pub fn write(
        &self,
        id: u16,
        time: u64,
        contexts: &[u8],
        record: &[u8],
        content: &mut Content,
    ) -> Result<(), String> {
        let place = self.places.get(usize::from(id)).copied().unwrap_or(0);
        let kind = place
            .checked_sub(1)
            .and_then(|place| self.events.get(place as usize));
        let kind = kind.ok_or_else(|| format!("an event of the unknown kind {id}"))?;
        let (id, steps) = match kind {
            Kind::One(id, steps) => (*id, steps),
            Kind::Calls {
                raw,
                calls,
                steps,
                unknown,
            } => {
                let number = part(record, raw.id(), 8)?.first_chunk().copied();
                let number = usize::try_from(u64::from_le_bytes(number.unwrap_or_default()));
                let call = number.ok().and_then(|number| *calls.get(number)?);
                match call {
                    Some((id, place)) => (id, &steps[place]),
                    None => (unknown.0, &unknown.1),
                }
            }
        };
        content.event(id, time);
        content.bytes.extend_from_slice(contexts);
        content.payload();
        run(steps, record, &mut content.bytes)
    }
}

impl Kind {
    fn calls(raw: Raw, maker: &mut Maker, architecture: Architecture) -> Self {
        let (mut calls, mut steps) = (Vec::new(), Vec::new());
        for call in calls::numbers(architecture) {
            calls.push(call.map(|call| {
                let (name, plan) = raw.call(call);
                steps.push(plan.steps);
                (
                    maker.add("raw_syscalls", name, plan.fields),
                    steps.len() - 1,
                )
            }));
        }
        let (name, plan) = raw.unknown();
        let unknown = (maker.add("raw_syscalls", name, plan.fields), plan.steps);
        Self::Calls {
            raw,
            calls,
            steps,
            unknown,
        }
    }
}
