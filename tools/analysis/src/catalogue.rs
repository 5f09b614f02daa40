// SPDX-License-Identifier: GPL-2.0

//! Which events a trace has, and the values of their fields.

use super::whose::Whose;
use ctf::{EventLayout, Metadata, StreamClass, Value};
use std::collections::BTreeMap;

/// Which event: its stream class, and its id there.
pub type EventKey = (u32, u32);

/// The events of a trace by name. Where several channels have an event it is the first one's, so
/// that nothing is counted twice.
#[derive(Debug)]
pub struct Catalogue<'a> {
    metadata: &'a Metadata,
    events: BTreeMap<&'a str, &'a EventLayout>,
}

impl<'a> Catalogue<'a> {
    /// Of a trace with this description.
    pub fn new(metadata: &'a Metadata) -> Self {
        let mut events = BTreeMap::new();
        for class in &metadata.streams {
            for layout in class.events.values() {
                events.entry(layout.name.as_str()).or_insert(layout);
            }
        }
        Self { metadata, events }
    }

    /// The event of this name.
    pub fn event(&self, name: &str) -> Option<&'a EventLayout> {
        self.events.get(name).copied()
    }

    /// All events, sorted by name.
    pub fn events(&self) -> impl Iterator<Item = &'a EventLayout> + '_ {
        self.events.values().copied()
    }

    /// The channel of an event.
    pub fn class(&self, layout: &EventLayout) -> Option<&'a StreamClass> {
        self.metadata.stream(layout.stream_id)
    }

    /// Whether it is known which thread each event of this kind happens to.
    pub fn knows_thread(&self, layout: &EventLayout) -> bool {
        self.has_switches() || self.says_thread(layout)
    }

    /// Whether each event of this kind says itself which thread it happens to.
    pub fn says_thread(&self, layout: &EventLayout) -> bool {
        self.class(layout)
            .is_some_and(|class| Whose::of(class).has_tid())
    }

    /// Whether the trace tells who runs on each CPU.
    pub fn has_switches(&self) -> bool {
        self.event("sched_switch").is_some()
    }

    /// Whether it tells when threads are woken.
    pub fn has_wakeups(&self) -> bool {
        let mut names = ["sched_waking", "sched_wakeup"].iter();
        names.any(|name| self.event(name).is_some())
    }

    /// Whether it is an event of the state: of what there was before the trace.
    pub fn is_state(&self, (class, id): EventKey) -> bool {
        let class = self.metadata.stream(class);
        let layout = class.and_then(|class| class.events.get(&id));
        layout.is_some_and(|layout| layout.name.starts_with("lttng_statedump_"))
    }

    /// The trace's description.
    pub fn metadata(&self) -> &'a Metadata {
        self.metadata
    }
}

/// Which event a layout is.
pub fn key(layout: &EventLayout) -> EventKey {
    (layout.stream_id, layout.id)
}

/// The value of an integer.
pub fn integer(value: Option<Value<'_>>) -> Option<i64> {
    match value? {
        Value::Signed(number) => Some(number),
        Value::Unsigned(number) => i64::try_from(number).ok(),
        Value::Text(_) | Value::Integers(_) => None,
    }
}

/// The value of an integer as its 64 bits: of an address, say.
pub fn bits(value: Option<Value<'_>>) -> Option<u64> {
    match value? {
        Value::Signed(number) => Some(number as u64),
        Value::Unsigned(number) => Some(number),
        Value::Text(_) | Value::Integers(_) => None,
    }
}

/// The value of a text.
pub fn text(value: Option<Value<'_>>) -> Option<&[u8]> {
    match value? {
        Value::Text(text) => Some(text),
        _ => None,
    }
}
