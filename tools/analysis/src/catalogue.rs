// SPDX-License-Identifier: GPL-2.0

//! The events of a trace, and access to the values of their fields.

use super::whose::Whose;
use ctf::{EventLayout, Metadata, StreamClass, Value};
use decode::Architecture;
use std::collections::BTreeMap;

/// Returns the processor that a trace with this description is of.
pub fn architecture(metadata: &Metadata) -> Architecture {
    Architecture::named(metadata.env.get("architecture").map(String::as_str))
}

/// Identity of an event: its stream class, and its id in that class.
pub type EventKey = (u32, u32);

/// The events of a trace by name. If several channels have an event, the catalogue has the event of the
/// first channel. An event is therefore counted once.
#[derive(Debug)]
pub struct Catalogue<'a> {
    metadata: &'a Metadata,
    events: BTreeMap<&'a str, &'a EventLayout>,
}

impl<'a> Catalogue<'a> {
    /// Creates the catalogue of a trace with this description.
    pub fn new(metadata: &'a Metadata) -> Self {
        let mut events = BTreeMap::new();
        for class in &metadata.streams {
            for layout in class.events.values() {
                events.entry(layout.name.as_str()).or_insert(layout);
            }
        }
        Self { metadata, events }
    }

    /// Returns the processor that the trace is of.
    pub fn architecture(&self) -> Architecture {
        architecture(self.metadata)
    }

    /// Returns the event with this name.
    pub fn event(&self, name: &str) -> Option<&'a EventLayout> {
        self.events.get(name).copied()
    }

    /// Returns all events, sorted by name.
    pub fn events(&self) -> impl Iterator<Item = &'a EventLayout> + '_ {
        self.events.values().copied()
    }

    /// Returns the channel of an event.
    pub fn class(&self, layout: &EventLayout) -> Option<&'a StreamClass> {
        self.metadata.stream(layout.stream_id)
    }

    /// Returns whether the thread of each event with this layout is known.
    pub fn knows_thread(&self, layout: &EventLayout) -> bool {
        self.has_switches() || self.says_thread(layout)
    }

    /// Returns whether each event with this layout records its thread.
    pub fn says_thread(&self, layout: &EventLayout) -> bool {
        self.class(layout)
            .is_some_and(|class| Whose::of(class).has_tid())
    }

    /// Returns whether the trace records the task that runs on each CPU.
    pub fn has_switches(&self) -> bool {
        self.event("sched_switch").is_some()
    }

    /// Returns whether the trace records wake-ups of threads.
    pub fn has_wakeups(&self) -> bool {
        let mut names = ["sched_waking", "sched_wakeup"].iter();
        names.any(|name| self.event(name).is_some())
    }

    /// Returns whether the event belongs to the initial state, which describes the system before the trace.
    pub fn is_state(&self, (class, id): EventKey) -> bool {
        let class = self.metadata.stream(class);
        let layout = class.and_then(|class| class.events.get(&id));
        layout.is_some_and(|layout| layout.name.starts_with("lttng_statedump_"))
    }

    /// Returns the trace's description.
    pub fn metadata(&self) -> &'a Metadata {
        self.metadata
    }
}

/// Returns the identity of a layout's event.
pub fn key(layout: &EventLayout) -> EventKey {
    (layout.stream_id, layout.id)
}

/// Returns the value of an integer.
pub fn integer(value: Option<Value<'_>>) -> Option<i64> {
    match value? {
        Value::Signed(number) => Some(number),
        Value::Unsigned(number) => i64::try_from(number).ok(),
        Value::Float(_) | Value::Text(_) | Value::Integers(_) => None,
    }
}

/// Returns the 64 bits of an integer, for example of an address.
pub fn bits(value: Option<Value<'_>>) -> Option<u64> {
    match value? {
        Value::Signed(number) => Some(number as u64),
        Value::Unsigned(number) => Some(number),
        Value::Float(_) | Value::Text(_) | Value::Integers(_) => None,
    }
}

/// Returns the value of a string.
pub fn text(value: Option<Value<'_>>) -> Option<&[u8]> {
    match value? {
        Value::Text(text) => Some(text),
        _ => None,
    }
}
