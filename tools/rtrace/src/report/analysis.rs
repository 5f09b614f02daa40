// SPDX-License-Identifier: GPL-2.0

//! A question that is asked of a trace: what every one of them is to the [pass](super::pass) that
//! reads the trace for all of them.

use super::interrupts::Interrupt;
use super::schedule::{Schedule, Span};
use super::schedule_events::Switch;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;
use trace::ctf::{Event, EventLayout, Metadata, StreamClass, Value};

/// Which event: its stream class, and its id there.
pub type EventKey = (u32, u32);

/// Gathers the answer to a question from a trace's events, which come in order of time. Each takes
/// what it needs.
pub trait Analysis {
    /// The events that it is given. Each is known by its place in this list.
    fn events(&self) -> Vec<EventKey> {
        Vec::new()
    }

    /// Whether it is given all events, too.
    fn wants_all(&self) -> bool {
        false
    }

    /// An event of any kind. The schedule does not have it yet.
    fn any(&mut self, _event: &Event<'_>, _now: &Moment<'_>) {}

    /// One of these events.
    fn event(&mut self, _which: usize, _event: &Event<'_>, _now: &Moment<'_>) {}

    /// A CPU went from one task to another. The schedule has it already.
    fn switch(&mut self, _switch: &Switch<'_>, _now: &Moment<'_>) {}

    /// The trace has events of this CPU.
    fn cpu(&mut self, _number: u32) {}

    /// What a thread did for a while has ended, or is not known any more.
    fn span(&mut self, _span: &Span, _schedule: &Schedule) {}

    /// Whether it is given interrupts.
    fn wants_interrupts(&self) -> bool {
        false
    }

    /// An interrupt was handled.
    fn interrupt(&mut self, _interrupt: &Interrupt<'_>, _schedule: &Schedule) {}

    /// On a CPU events may be missing from here on. The schedule knows which.
    fn lost(&mut self, _schedule: &Schedule) {}

    /// Events of a stream may be missing: that is over, or the trace is.
    fn gap(&mut self, _gap: &Gap) {}

    /// The answer: the trace is over, after so many clock ticks.
    fn answer(self: Box<Self>, ticks: u64) -> Box<dyn Answer>;
}

/// What is known when an event comes.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The clock.
    pub time: u64,
    /// The place of the event's CPU in the schedule.
    pub cpu: usize,
    /// Who runs where.
    pub schedule: &'a Schedule,
}

/// Where events of a stream may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The number of its CPU.
    pub cpu: u32,
    /// From this time.
    pub from: u64,
    /// To that.
    pub to: u64,
    /// Events that were discarded there.
    pub events: u64,
    /// Packets that are missing.
    pub packets: u64,
}

/// The answer to a question.
pub trait Answer {
    /// What it is called in a JSON object.
    fn name(&self) -> &'static str;

    /// As a JSON value. Times are in nanoseconds.
    fn json(&self) -> serde_json::Result<Json>;

    /// As text, with at most `rows` rows in a table.
    fn text(&self, out: &mut String, rows: usize) -> fmt::Result;
}

/// The trace lacks what a question is about.
#[derive(Debug, thiserror::Error)]
#[error(
    "{option} needs {events}, which the trace does not have; record them: `rtrace record {record}`"
)]
pub struct Missing {
    /// The option that asks the question.
    pub option: &'static str,
    /// Which events, in words.
    pub events: &'static str,
    /// Options to record them.
    pub record: &'static str,
}

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

    /// Whether the trace tells who runs on each CPU.
    pub fn has_switches(&self) -> bool {
        self.event("sched_switch").is_some()
    }

    /// Whether it tells when threads are woken.
    pub fn has_wakeups(&self) -> bool {
        let mut names = ["sched_waking", "sched_wakeup"].iter();
        names.any(|name| self.event(name).is_some())
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
