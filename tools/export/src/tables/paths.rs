// SPDX-License-Identifier: GPL-2.0

//! The files of system calls and of requests of io_uring: a path among the arguments, or the file of a descriptor.

use analysis::descriptors::Descriptors;
use analysis::schedule::Schedule;
use analysis::syscalls::{edge, CallName, Edge};
use analysis::uring::{Request, Seen, Uring};
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
    uring: Option<Uring>,
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
            uring: Uring::new(catalogue),
        }
    }

    /// Whether the trace has requests of io_uring, and some of their events are chosen.
    pub fn has_requests(&self, chosen: &HashSet<EventKey>) -> bool {
        let mut events = self.uring.iter().flat_map(Uring::events);
        events.any(|event| chosen.contains(&event))
    }

    /// Takes an event, from which files of descriptors may follow. Returns what it means for a request of io_uring.
    pub fn event(&mut self, event: &Event<'_>, now: &Moment<'_>) -> Seen {
        let key = key(event.layout);
        if let Some(descriptors) = &mut self.descriptors {
            if let Some(switch) = &now.switch {
                descriptors.switch(switch, now);
            }
            if let Some(which) = self.places.get(&key) {
                descriptors.event(*which, event, now);
                return Seen::default();
            }
        }
        let Some(uring) = &mut self.uring else {
            return Seen::default();
        };
        let Some(which) = uring.place(key) else {
            return Seen::default();
        };
        let descriptors = self.descriptors.as_ref();
        let seen = uring.event(which, event, now, |owner, fd| {
            let file = descriptors?.file(owner, fd, now.time);
            file.cloned()
        });
        if let (Some(descriptors), Some(posted)) = (&mut self.descriptors, &seen.posted) {
            descriptors.posted(posted);
        }
        seen
    }

    /// Forgets the requests of io_uring without a result so far, and returns them.
    pub fn open_requests(&mut self) -> Vec<Request> {
        self.uring.as_mut().map_or_else(Vec::new, Uring::rest)
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

    /// Takes the time from which events of a CPU may be missing. Returns the requests of io_uring without a result so far.
    pub fn lost(&mut self, schedule: &Schedule) -> Vec<Request> {
        if let Some(descriptors) = &mut self.descriptors {
            descriptors.lost(schedule);
        }
        self.open_requests()
    }
}
