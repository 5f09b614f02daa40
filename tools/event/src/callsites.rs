// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The callsites of the crate `tracing`, and their events.

use crate::event::Event;
use crate::names;
use crate::record::Record;
use crate::shapes::Shape;
use std::ffi::CString;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;
use tracing_core::callsite::Identifier;
use tracing_core::Metadata;

/// Size of the table: more than the events of a process.
const SIZE: usize = 2048;

/// Places where a callsite may be.
const TRIES: usize = 64;

/// The callsites, by the hash of their address. A place is filled once.
static TABLE: [OnceLock<Callsite>; SIZE] = [const { OnceLock::new() }; SIZE];

/// A place of the program that makes events or spans.
pub(crate) struct Callsite {
    metadata: &'static Metadata<'static>,
    id: Identifier,
    /// Its events, or those that begin its spans.
    first: OnceLock<Box<Known>>,
    /// Event that ends a span.
    end: Option<&'static Event>,
}

/// The event of a shape.
struct Known {
    shape: Shape,
    event: &'static Event,
    next: OnceLock<Box<Known>>,
}

/// A hash of the few bytes of an address.
struct Fold(u64);

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0 >> 32
    }
}

/// The places of a callsite, in the order in which they are tried.
fn places(id: &Identifier) -> impl Iterator<Item = &'static OnceLock<Callsite>> {
    let mut hash = Fold(0);
    id.hash(&mut hash);
    let first = hash.finish() as usize;
    (0..TRIES).map(move |n| &TABLE[(first + n) % SIZE])
}

/// The callsite, if it is known.
pub(crate) fn find(metadata: &Metadata<'_>) -> Option<&'static Callsite> {
    let id = metadata.callsite();
    let mut known = places(&id).map_while(OnceLock::get);
    known.find(|callsite| callsite.id == id)
}

/// The callsite, which is known from now on. [`None`]: there are too many.
pub(crate) fn of(metadata: &'static Metadata<'static>) -> Option<&'static Callsite> {
    let id = metadata.callsite();
    let mut places = places(&id).map(|place| place.get_or_init(|| Callsite::new(metadata)));
    places.find(|callsite| callsite.id == id)
}

impl Callsite {
    fn new(metadata: &'static Metadata<'static>) -> Self {
        let end = metadata.is_span().then(|| {
            let name = names::of(metadata);
            registered(format!("{name}_end u64 {SPAN}"))
        });
        Self {
            metadata,
            id: metadata.callsite(),
            first: OnceLock::new(),
            end,
        }
    }

    /// Whether its records are recorded, or may be: the first one says which fields the event has.
    #[inline]
    pub(crate) fn is_recorded(&self) -> bool {
        let mut known = self.known().peekable();
        known.peek().is_none()
            || known.any(|known| known.event.is_recorded())
            || self.end.is_some_and(Event::is_recorded)
    }

    /// Records an event, or the begin of a span, with fields of this shape.
    pub(crate) fn record(&self, shape: &Shape, record: &mut Record) {
        let mut place = &self.first;
        let known = loop {
            let known = place.get_or_init(|| self.learn(shape));
            if known.shape == *shape {
                break known;
            }
            place = &known.next;
        };
        if known.event.is_recorded() {
            known.event.record(record);
        }
    }

    /// Records the end of a span.
    pub(crate) fn record_end(&self, span: u64) {
        if let Some(end) = self.end.filter(|end| end.is_recorded()) {
            let mut record = Record::new();
            record.put(&span.to_ne_bytes());
            end.record(&mut record);
        }
    }

    fn known(&self) -> impl Iterator<Item = &Known> {
        let first = self.first.get().map(Box::as_ref);
        std::iter::successors(first, |known| known.next.get().map(Box::as_ref))
    }

    /// Registers the event of a new shape.
    #[cold]
    fn learn(&self, shape: &Shape) -> Box<Known> {
        Box::new(Known {
            shape: *shape,
            event: registered(self.describe(shape)),
            next: OnceLock::new(),
        })
    }

    /// The text that registers the event of a shape.
    pub(crate) fn describe(&self, shape: &Shape) -> String {
        let name = names::of(self.metadata);
        let (suffix, before): (_, &[&str]) = match self.metadata.is_span() {
            true => ("_begin", &[SPAN, PARENT]),
            false => ("", &[]),
        };
        let fields = shape.describe(before, self.metadata.fields());
        format!("{name}{suffix} {fields}")
    }
}

/// Names of the fields that identify spans.
const SPAN: &str = "span_id";
const PARENT: &str = "parent_id";

/// The event of a text, registered. It stays.
fn registered(text: String) -> &'static Event {
    let text = CString::new(text).unwrap_or_default();
    let event: &'static Event = Box::leak(Box::new(Event::of(Box::leak(text.into_boxed_c_str()))));
    event.register();
    event
}
