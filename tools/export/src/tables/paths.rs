// SPDX-License-Identifier: GPL-2.0

//! The files of system calls: a path among the arguments, or the file of a descriptor.

use analysis::descriptors::Descriptors;
use analysis::schedule::Schedule;
use analysis::syscalls::{edge, CallName, Edge};
use analysis::{integer, key, text, Catalogue, EventKey, Moment};
use ctf::{Event, EventLayout};
use decode::path_of;
use std::collections::{HashMap, HashSet};

/// The files of the calls of a trace.
pub struct Paths {
    descriptors: Option<Descriptors>,
    /// The numbers of the events that the descriptors are read from.
    places: HashMap<EventKey, usize>,
    /// The fields with the file, for the entries of calls that have one.
    fields: HashMap<EventKey, Field>,
}

/// A field of the entry of a call.
#[derive(Clone, Copy)]
enum Field {
    /// The path.
    Path(usize),
    /// The descriptor.
    Descriptor(usize),
}

impl Field {
    /// The field with the file of a call, if the event is its entry.
    fn of(layout: &EventLayout) -> Option<Self> {
        let Some((CallName::Own(call), Edge::Entry)) = edge(layout) else {
            return None;
        };
        let path = path_of(&call).and_then(|argument| layout.field(argument));
        let descriptor = || {
            let mut arguments = decode::arguments(&call).iter();
            let (argument, _) = arguments.find(|(name, _)| decode::is_descriptor(&call, name))?;
            layout.field(argument)
        };
        path.map(Self::Path)
            .or_else(|| descriptor().map(Self::Descriptor))
    }
}

impl Paths {
    /// For a trace with these events, of which some are chosen.
    pub fn new(catalogue: &Catalogue<'_>, chosen: &HashSet<EventKey>) -> Self {
        let descriptors = Descriptors::new(catalogue);
        let events = descriptors.iter().flat_map(Descriptors::events);
        let layouts = catalogue.events();
        let layouts = layouts.filter(|layout| chosen.contains(&key(layout)));
        Self {
            places: events.zip(0..).collect(),
            descriptors,
            fields: layouts
                .filter_map(|layout| Some((key(layout), Field::of(layout)?)))
                .collect(),
        }
    }

    /// Takes an event, from which files of descriptors may follow.
    pub fn event(&mut self, event: &Event<'_>, now: &Moment<'_>) {
        let Some(descriptors) = &mut self.descriptors else {
            return;
        };
        if let Some(switch) = &now.switch {
            descriptors.switch(switch, now);
        }
        if let Some(which) = self.places.get(&key(event.layout)) {
            descriptors.event(*which, event, now);
        }
    }

    /// The file of a call, at its entry.
    pub fn path(&self, entry: &Event<'_>, now: &Moment<'_>) -> Option<Vec<u8>> {
        match *self.fields.get(&key(entry.layout))? {
            Field::Path(field) => text(entry.value(field)).map(<[u8]>::to_vec),
            Field::Descriptor(field) => {
                let fd = integer(entry.value(field))?.try_into().ok()?;
                let file = self.descriptors.as_ref()?.file(now.owner(), fd, now.time);
                file.map(|file| file.as_bytes().to_vec())
            }
        }
    }

    /// Takes the time from which events of a CPU may be missing.
    pub fn lost(&mut self, schedule: &Schedule) {
        if let Some(descriptors) = &mut self.descriptors {
            descriptors.lost(schedule);
        }
    }
}
