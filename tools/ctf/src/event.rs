// SPDX-License-Identifier: GPL-2.0

//! Parses a packet, event by event.

use crate::field::{Cursor, Value};
use crate::found::FoundEvent;
use crate::header::PacketAt;
use crate::layouts::{EventLayout, FieldLayout};
use crate::metadata::StreamClass;
use rtrace_abi::header::{
    Layout, COMPACT_ESCAPE, COMPACT_ID_BITS, COMPACT_TIME_BITS, LARGE_ESCAPE, LARGE_TIME_BITS,
};
use rtrace_abi::packet::PacketHeader;
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
    Cursor::new(&layout.fields, &layout.places, bytes)
}

fn contexts<'a>(class: &'a StreamClass, bytes: &'a [u8]) -> Cursor<'a> {
    Cursor::new(&class.contexts, &class.context_places, bytes)
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

    /// Skips the rest of a packet with `total` bytes of events.
    pub(super) fn leave(&mut self, total: usize) {
        self.at = total;
    }

    /// The position after an event, whose places are those in the packet's content.
    pub(super) fn after(event: &FoundEvent) -> Self {
        Self {
            at: event.end as usize,
            now: event.timestamp,
        }
    }

    /// The position before the first event of a packet.
    pub(super) fn begin(packet: &PacketAt) -> Self {
        Self {
            at: 0,
            now: packet.header.timestamp_begin,
        }
    }
}

impl FoundEvent {
    /// The bytes of its contexts, in the bytes in which it was found.
    pub(super) fn contexts<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        bytes.get(self.contexts as usize..self.payload as usize)
    }

    /// The event of a stream of this class, in the bytes in which it was found.
    pub(super) fn event<'a>(&self, class: &'a StreamClass, bytes: &'a [u8]) -> Option<Event<'a>> {
        Some(Event {
            timestamp: self.timestamp,
            layout: class.events.at(self.layout)?,
            class,
            contexts: self.contexts(bytes)?,
            payload: bytes.get(self.payload as usize..self.end as usize)?,
        })
    }
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
    #[inline]
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

    /// The next event, which begins at `from` in `bytes`. After a fault the position is the same as before.
    pub(super) fn find(
        &mut self,
        bytes: &[u8],
        from: usize,
    ) -> std::result::Result<FoundEvent, Fault> {
        let ends = || Fault::Short("the packet ends within an event".to_owned());
        let mut rest = bytes.get(from..).unwrap_or_default();
        let length = from + rest.len();
        let (id, timestamp) = self.header(&mut rest).ok_or_else(ends)?;
        if timestamp < self.position.now || timestamp > self.end {
            return Err(Fault::Bad(format!(
                "an event at clock {timestamp}, outside of {} to {}",
                self.position.now, self.end
            )));
        }
        let unknown = || Fault::Bad(format!("an event of unknown id {id}"));
        let place = self.class.events.place(id).ok_or_else(unknown)?;
        let layout = self.class.events.at(place).ok_or_else(unknown)?;
        let size = match self.class.context_size {
            Some(size) => size,
            None => contexts(self.class, rest).size_of_all().ok_or_else(ends)?,
        };
        let begin = length - rest.len();
        let rest = rest.get(size..).ok_or_else(ends)?;
        let payload = begin + size;
        let ends = || Fault::Short(format!("the packet ends within an event `{}`", layout.name));
        let size = match layout.size {
            Some(size) => size,
            None => fields(layout, rest).size_of_all().ok_or_else(ends)?,
        };
        if size > rest.len() {
            return Err(ends());
        }
        let end = payload + size;
        // No packet has 4 GiB.
        let narrow = |at: usize| u32::try_from(at).map_err(|_| ends());
        let found = FoundEvent {
            timestamp,
            layout: place,
            contexts: narrow(begin)?,
            payload: narrow(payload)?,
            end: narrow(end)?,
        };
        self.position = Position {
            at: self.position.at + (end - from),
            now: timestamp,
        };
        Ok(found)
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
                let word = u64::from(u32::from_le_bytes(take(rest)?));
                Some((id, self.time(word >> COMPACT_ID_BITS, COMPACT_TIME_BITS)))
            }
            Layout::Large => {
                let id = u32::from(u16::from_le_bytes(take(rest)?));
                if id == LARGE_ESCAPE {
                    return extended(rest);
                }
                let low = u64::from(u32::from_le_bytes(take(rest)?));
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
    ) -> Self {
        Self {
            path,
            scan: Scan::new(class, packet, Position::begin(packet)),
            base: packet.offset + PacketHeader::SIZE as u64,
            bytes,
        }
    }

    /// The position after the last event.
    pub(super) fn position(&self) -> Position {
        self.scan.position
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Result<Event<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let from = self.scan.position.at;
        if from >= self.bytes.len() {
            return None;
        }
        let offset = self.base + from as u64;
        Some(match self.scan.find(self.bytes, from) {
            Ok(found) => Ok(found.event(self.scan.class, self.bytes)?),
            Err(fault) => {
                // The end of this event is unknown, and so is the begin of the next.
                self.scan.position.leave(self.bytes.len());
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
    let id = u32::from_le_bytes(take(rest)?);
    Some((id, u64::from_le_bytes(take(rest)?)))
}

/// Takes bytes off the front.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}
