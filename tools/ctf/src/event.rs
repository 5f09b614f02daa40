// SPDX-License-Identifier: GPL-2.0

//! Parses a packet, event by event.

use crate::field::{Cursor, Value};
use crate::header::PacketAt;
use crate::metadata::{EventLayout, FieldLayout, StreamClass};
use rtrace_abi::header::{
    Layout, COMPACT_ESCAPE, COMPACT_ID_BITS, COMPACT_TIME_BITS, LARGE_ESCAPE, LARGE_TIME_BITS,
};
use rtrace_abi::packet::PacketHeader;
use std::ops::Range;
use std::path::Path;
use system::{Error, Result};

/// A recorded event.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Clock value.
    pub timestamp: u64,
    /// Its description.
    pub layout: &'a EventLayout,
    /// Its stream class.
    pub class: &'a StreamClass,
    contexts: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Event<'a> {
    /// The value of the field with this number in the layout.
    pub fn value(&self, field: usize) -> Option<Value<'a>> {
        fields(self.layout, self.payload).nth(field)
    }

    /// The value of the context with this number in the class.
    pub fn context(&self, context: usize) -> Option<Value<'a>> {
        contexts(self.class, self.contexts).nth(context)
    }

    /// All fields with their values, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&'a FieldLayout, Value<'a>)> {
        with_values(&self.layout.fields, fields(self.layout, self.payload))
    }

    /// All contexts with their values, in order.
    pub fn contexts(&self) -> impl Iterator<Item = (&'a FieldLayout, Value<'a>)> {
        with_values(&self.class.contexts, contexts(self.class, self.contexts))
    }
}

fn with_values<'a>(
    fields: &'a [FieldLayout],
    mut values: Cursor<'a>,
) -> impl Iterator<Item = (&'a FieldLayout, Value<'a>)> {
    let mut fields = fields.iter();
    std::iter::from_fn(move || Some((fields.next()?, values.next_value()?)))
}

fn fields<'a>(layout: &'a EventLayout, bytes: &'a [u8]) -> Cursor<'a> {
    Cursor::new(&layout.fields, layout.has_sequence, bytes)
}

fn contexts<'a>(class: &'a StreamClass, bytes: &'a [u8]) -> Cursor<'a> {
    Cursor::new(&class.contexts, class.context_size.is_none(), bytes)
}

fn unsigned(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, &byte| (value << 8) | u64::from(byte))
}

/// The position in the events of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// The number of bytes of events before it.
    at: usize,
    /// The clock at the last event, or at the packet's begin.
    now: u64,
}

impl Position {
    /// The number of bytes of events before it.
    pub(super) fn at(self) -> usize {
        self.at
    }

    /// The position before the first event of a packet.
    pub(super) fn begin(packet: &PacketAt) -> Self {
        Self {
            at: 0,
            now: packet.header.timestamp_begin,
        }
    }
}

/// The parts of an event, as ranges of the bytes in which it was found.
#[derive(Clone, Debug)]
pub(super) struct Found<'m> {
    timestamp: u64,
    layout: &'m EventLayout,
    contexts: Range<usize>,
    payload: Range<usize>,
}

/// The reason why no event can be read.
#[derive(Debug)]
pub(super) enum Fault {
    /// The bytes end before the event does.
    Short(String),
    /// The event contradicts the format.
    Bad(String),
}

impl Fault {
    /// The text for the user.
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Short(text) | Self::Bad(text) => text,
        }
    }
}

/// The maximum length of an event header.
pub(super) const LONGEST_HEADER: usize = 16;

/// Finds the events of a packet one after the other, in the bytes that the caller has of the packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scan<'m> {
    class: &'m StreamClass,
    position: Position,
    /// The clock at the packet's end.
    end: u64,
}

impl<'m> Scan<'m> {
    /// Begins at a position in a packet.
    pub(super) fn new(class: &'m StreamClass, packet: &PacketAt, position: Position) -> Self {
        Self {
            class,
            position,
            end: packet.header.timestamp_end,
        }
    }

    /// The position after the last event.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// Skips the rest of a packet with `total` bytes of events.
    pub(super) fn leave(&mut self, total: usize) {
        self.position.at = total;
    }

    /// The time of the next event, which begins with `rest`. [`None`]: `rest` is empty. If the event is corrupt, the
    /// time of the previous event.
    pub(super) fn next_time(&self, mut rest: &[u8]) -> Option<u64> {
        if rest.is_empty() {
            return None;
        }
        let header = self.header(&mut rest);
        let is_valid = |time: &u64| (self.position.now..=self.end).contains(time);
        let time = header.map(|(_, time)| time).filter(is_valid);
        Some(time.unwrap_or(self.position.now))
    }

    /// The next event, which begins with `bytes`.
    pub(super) fn find(&mut self, bytes: &[u8]) -> std::result::Result<Found<'m>, Fault> {
        let ends = || Fault::Short("the packet ends within an event".to_owned());
        let mut rest = bytes;
        let (id, timestamp) = self.header(&mut rest).ok_or_else(ends)?;
        if timestamp < self.position.now || timestamp > self.end {
            return Err(Fault::Bad(format!(
                "an event at clock {timestamp}, outside of {} to {}",
                self.position.now, self.end
            )));
        }
        let layout = self
            .class
            .events
            .get(&id)
            .ok_or_else(|| Fault::Bad(format!("an event of unknown id {id}")))?;
        let size = match self.class.context_size {
            Some(size) => size,
            None => contexts(self.class, rest).size_of_all().ok_or_else(ends)?,
        };
        let begin = bytes.len() - rest.len();
        let contexts = begin..begin + size;
        let (_, rest) = rest.split_at_checked(size).ok_or_else(ends)?;
        let ends = || Fault::Short(format!("the packet ends within an event `{}`", layout.name));
        let size = match layout.size {
            Some(size) => size,
            None => fields(layout, rest).size_of_all().ok_or_else(ends)?,
        };
        if size > rest.len() {
            return Err(ends());
        }
        let payload = contexts.end..contexts.end + size;
        self.position = Position {
            at: self.position.at + payload.end,
            now: timestamp,
        };
        Ok(Found {
            timestamp,
            layout,
            contexts,
            payload,
        })
    }

    /// The event that was found in `bytes`.
    pub(super) fn event<'a>(&self, found: Found<'m>, bytes: &'a [u8]) -> Event<'a>
    where
        'm: 'a,
    {
        Event {
            timestamp: found.timestamp,
            layout: found.layout,
            class: self.class,
            contexts: &bytes[found.contexts],
            payload: &bytes[found.payload],
        }
    }

    /// Removes an event header from the front: id and time.
    fn header(&self, rest: &mut &[u8]) -> Option<(u32, u64)> {
        match self.class.layout {
            Layout::Compact => {
                // The extended form has its escape id only in the first byte.
                let first = u32::from(*rest.first()?);
                let id = first & ((1 << COMPACT_ID_BITS) - 1);
                if id == COMPACT_ESCAPE {
                    *rest = &rest[1..];
                    return extended(rest);
                }
                let word = number(rest, 4)?;
                Some((id, self.time(word >> COMPACT_ID_BITS, COMPACT_TIME_BITS)))
            }
            Layout::Large => {
                let id = number(rest, 2)? as u32;
                if id == LARGE_ESCAPE {
                    return extended(rest);
                }
                let low = number(rest, 4)?;
                Some((id, self.time(low, LARGE_TIME_BITS)))
            }
        }
    }

    /// The first clock value from now on that ends with these low bits.
    fn time(&self, low: u64, bits: u32) -> u64 {
        let wrap = 1_u64 << bits;
        let now = self.position.now;
        let time = now & !(wrap - 1) | low;
        if time < now {
            time.saturating_add(wrap)
        } else {
            time
        }
    }
}

/// The events of a packet that is in memory.
#[derive(Debug)]
pub struct Events<'a> {
    path: &'a Path,
    scan: Scan<'a>,
    /// The offset in the file of the packet's events.
    base: u64,
    bytes: &'a [u8],
}

impl<'a> Events<'a> {
    pub(super) fn new(
        path: &'a Path,
        class: &'a StreamClass,
        packet: &PacketAt,
        bytes: &'a [u8],
        position: Position,
    ) -> Self {
        Self {
            path,
            scan: Scan::new(class, packet, position),
            base: packet.offset + PacketHeader::SIZE as u64,
            bytes,
        }
    }

    /// The position after the last event.
    pub(super) fn position(&self) -> Position {
        self.scan.position
    }

    /// The time of the next event. [`None`]: there is none. If the event is corrupt, the time of the previous event.
    pub(super) fn next_time(&self) -> Option<u64> {
        self.scan.next_time(self.rest())
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.scan.position.at..).unwrap_or_default()
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Result<Event<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        let offset = self.base + self.scan.position.at as u64;
        Some(match self.scan.find(rest) {
            Ok(found) => Ok(self.scan.event(found, rest)),
            Err(fault) => {
                // The end of this event is unknown, and so is the begin of the next.
                self.scan.leave(self.bytes.len());
                Err(Error::Corrupt {
                    path: self.path.to_owned(),
                    offset,
                    what: fault.into_text(),
                })
            }
        })
    }
}

fn extended(rest: &mut &[u8]) -> Option<(u32, u64)> {
    Some((number(rest, 4)? as u32, number(rest, 8)?))
}

fn number(rest: &mut &[u8], bytes: usize) -> Option<u64> {
    let (head, tail) = rest.split_at_checked(bytes)?;
    *rest = tail;
    Some(unsigned(head))
}
