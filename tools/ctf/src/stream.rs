// SPDX-License-Identifier: GPL-2.0

//! Reads one stream, packet by packet.

use crate::damage::Damage;
use crate::event::{Event, Events, Fault, Found, Position, Scan, LONGEST_HEADER};
use crate::header::{PacketAt, PacketHeaders};
use crate::link::Link;
use crate::metadata::{Metadata, StreamClass};
use rtrace_abi::packet::PacketHeader;
use std::fs::File;
use std::path::Path;
use system::{regular_file, Error, Result};

/// The number of bytes of a packet that a [`StreamReader`] has in memory at a time, unless an event is longer.
pub const WINDOW: usize = 1 << 16;

/// The maximum accepted length of an event.
pub const LONGEST_EVENT: usize = 16 << 20;

/// Reads a stream file, through a window of [`WINDOW`] bytes.
///
/// An error of [`Self::next_packet`] or [`Self::next_event`] may be a damaged place. The next call then continues
/// after it: [`Self::damage`] tells.
#[derive(Debug)]
pub struct StreamReader<'a> {
    path: &'a Path,
    metadata: &'a Metadata,
    headers: PacketHeaders<'a, File>,
    /// The packet that was read last, and the position in its events.
    last: Option<(PacketAt, Link<'a>, Scan<'a>)>,
    /// Whether damage came before it.
    after_damage: bool,
    /// The packet before the first one.
    earlier: Option<PacketAt>,
    /// Whether bytes after the last packet could not be read.
    is_damaged: bool,
    /// The offset and the number of the bytes that the last error skipped.
    skipped: (u64, u64),
    /// Bytes of the packet's events.
    window: Vec<u8>,
    /// The index in the events of the window's first byte.
    begin: usize,
    /// Usual length of the window.
    length: usize,
}

/// A packet in memory.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Its header and place.
    pub at: PacketAt,
    /// The number of packets missing between the previous packet, or number 0, and this one.
    pub packets_lost: u64,
    /// The number of events discarded from the end of the previous packet, or from the trace's begin, to this one's
    /// end.
    pub events_lost: u64,
    /// Whether bytes between the previous packet and this one are damaged.
    pub after_damage: bool,
    path: &'a Path,
    class: &'a StreamClass,
    content: &'a [u8],
}

impl<'a> Packet<'a> {
    /// The packet `at` of the stream `path`, with the bytes of its events.
    pub(super) fn new(
        path: &'a Path,
        at: PacketAt,
        link: Link<'a>,
        content: &'a [u8],
        after_damage: bool,
    ) -> Self {
        Self {
            at,
            packets_lost: link.packets_lost,
            events_lost: link.events_lost,
            after_damage,
            path,
            class: link.class,
            content,
        }
    }

    /// Its events, if all of it is in memory. A [`StreamReader`] has [`WINDOW`] bytes in memory, and
    /// [`StreamReader::next_event`] for the others.
    pub fn events(&self) -> Events<'a> {
        self.events_from(Position::begin(&self.at))
    }

    /// Its events from a position on that was reached before.
    pub(super) fn events_from(&self, position: Position) -> Events<'a> {
        Events::new(self.path, self.class, &self.at, self.content, position)
    }
}

impl<'a> StreamReader<'a> {
    /// Opens the file `path`, which must be a regular one. Dropping the reader closes it.
    pub fn open(path: &'a Path, metadata: &'a Metadata) -> Result<Self> {
        let file = regular_file::open(path).map_err(Error::read(path))?;
        let headers = PacketHeaders::new(path, file, Some(metadata.uuid))?;
        Ok(Self {
            path,
            metadata,
            headers,
            last: None,
            earlier: None,
            after_damage: false,
            is_damaged: false,
            skipped: (0, 0),
            window: Vec::new(),
            begin: 0,
            length: WINDOW,
        })
    }

    /// Makes `before` the packet before the first one in the file.
    pub fn after(mut self, before: Option<PacketAt>) -> Self {
        self.earlier = before;
        self
    }

    /// Sets another window than [`WINDOW`].
    pub fn window(mut self, bytes: usize) -> Self {
        self.length = bytes.max(LONGEST_HEADER);
        self
    }

    /// The last packet that was read, or the one before the first.
    pub fn last(&self) -> Option<PacketAt> {
        self.last.map(|(at, ..)| at).or(self.earlier)
    }

    /// The next complete packet. Skips unread events of the previous packet.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>> {
        let Some((at, link)) = self.next_header()? else {
            return Ok(None);
        };
        let scan = Scan::new(link.class, &at, Position::begin(&at));
        self.after_damage = std::mem::take(&mut self.is_damaged);
        self.last = Some((at, link, scan));
        self.window.clear();
        self.begin = 0;
        self.load(LONGEST_HEADER).inspect_err(|_| {
            self.leave();
            self.is_damaged = true;
            self.skipped = (at.offset, at.size());
        })?;
        Ok(self.packet())
    }

    /// The packet that was read last, with the part in the window.
    pub(super) fn packet(&self) -> Option<Packet<'_>> {
        let (at, link, _) = self.last?;
        let window = &self.window;
        Some(Packet::new(self.path, at, link, window, self.after_damage))
    }

    /// The next event of the packet that was read last.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>> {
        match self.find()? {
            Some((found, from)) => Ok(self.event(found, from)),
            None => Ok(None),
        }
    }

    /// The damage that caused an error, if this reader continues after it; otherwise the error.
    pub fn damage(&mut self, error: Error) -> Result<Damage> {
        let (begin, bytes) = std::mem::take(&mut self.skipped);
        match error {
            Error::Corrupt { path, offset, what } => Ok(Damage {
                path,
                offset,
                bytes,
                what,
            }),
            Error::Read { path, cause } if bytes > 0 => Ok(Damage {
                path,
                offset: begin,
                bytes,
                what: format!("cannot read: {cause}"),
            }),
            error => Err(error),
        }
    }

    /// The header of the next complete packet, and its link to the last one.
    fn next_header(&mut self) -> Result<Option<(PacketAt, Link<'a>)>> {
        let begin = self.headers.at();
        let end = self.headers.length();
        let at = match self.headers.next_whole() {
            Ok(Some(at)) => at,
            Ok(None) => {
                // The last packet is incomplete; or a size is wrong, and other packets follow.
                let found = match self.headers.partial() {
                    0 => None,
                    _ => self.headers.find(begin + 1, end),
                };
                return match found {
                    None => Ok(None),
                    Some(next) => {
                        let what = "a packet that ends behind the file's end".to_owned();
                        Err(self.skip(begin, next.offset, what))
                    }
                };
            }
            Err(Error::Corrupt { what, .. }) => {
                let next = self.headers.find(begin + 1, end);
                let next = next.map_or(end, |next| next.offset);
                return Err(self.skip(begin, next, what));
            }
            Err(error @ Error::Read { .. }) => {
                let next = self.headers.find(begin + 1, end);
                let next = next.map_or(end, |next| next.offset);
                self.skip(begin, next, String::new());
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        let next = self.headers.peek(at.end());
        if next.is_none() && !self.headers.ends_at(at.end()) {
            let inner = self.headers.find(at.offset + 1, at.end());
            if let Some(inner) = inner.filter(|inner| self.link(Some(at), inner).is_ok()) {
                let what = format!(
                    "another packet begins within this one of {} bytes",
                    at.size()
                );
                return Err(self.skip(at.offset, inner.offset, what));
            }
        }
        let link = match self.link(self.last(), &at) {
            Ok(link) => link,
            Err(Error::Corrupt { what, .. }) => return Err(self.skip(at.offset, at.end(), what)),
            Err(error) => return Err(error),
        };
        if next.is_some_and(|next| self.is_outvoted(&at, &next)) {
            let what = "a header that contradicts those around it".to_owned();
            return Err(self.skip(at.offset, at.end(), what));
        }
        Ok(Some((at, link)))
    }

    /// Whether the header `at` is wrong, and not `next`: two other headers agree with each other and not with `at`.
    fn is_outvoted(&self, at: &PacketAt, next: &PacketAt) -> bool {
        // Whether a packet fits between the two, with a number between theirs.
        let fits = |before, at: &PacketAt| {
            let link = self.link(before, at);
            link.is_ok_and(|link| link.packets_lost > 0)
        };
        if self.link(Some(*at), next).is_ok() || !fits(self.last(), next) {
            return false;
        }
        match self.headers.peek(next.end()) {
            Some(second) => !fits(Some(*at), &second) && self.link(Some(*next), &second).is_ok(),
            None => self.last().is_some(),
        }
    }

    fn link(&self, before: Option<PacketAt>, at: &PacketAt) -> Result<Link<'a>> {
        Link::new(self.path, self.metadata, before, at)
    }

    /// Skips the bytes from `offset` to `end`. Returns the error about them.
    fn skip(&mut self, offset: u64, end: u64, what: String) -> Error {
        self.is_damaged = true;
        self.skipped = (offset, end.saturating_sub(offset));
        self.headers.seek(end);
        Error::Corrupt {
            path: self.path.to_owned(),
            offset,
            what,
        }
    }

    /// The size of the last packet's events in bytes.
    fn total(&self) -> usize {
        let content = self.last.map_or(0, |(at, ..)| at.content() as usize);
        content.saturating_sub(PacketHeader::SIZE)
    }

    /// Skips the unread events of the last packet.
    fn leave(&mut self) {
        let total = self.total();
        if let Some((_, _, scan)) = &mut self.last {
            scan.leave(total);
        }
        self.window.clear();
        self.begin = total;
    }

    /// Loads at least `least` bytes of events from the next event on into the window, or all remaining bytes.
    fn load(&mut self, least: usize) -> Result<()> {
        let Some((at, _, scan)) = self.last else {
            return Ok(());
        };
        let (total, position) = (self.total(), scan.position().at());
        let end = self.begin + self.window.len();
        if end == total || end >= position + least {
            return Ok(());
        }
        let size = least.max(self.length).min(total - position);
        self.window.clear();
        if self.window.capacity() > 2 * size.max(self.length) {
            self.window.shrink_to(size);
        }
        self.window.resize(size, 0);
        self.begin = position;
        let offset = at.offset + (PacketHeader::SIZE + position) as u64;
        self.headers.read_exact_at(&mut self.window, offset)
    }

    /// Finds the next event, and the begin of its bytes in the window. The window also has the header of the event
    /// after it.
    pub(super) fn find(&mut self) -> Result<Option<(Found<'a>, usize)>> {
        let mut least = LONGEST_HEADER;
        loop {
            let total = self.total();
            let Some((at, _, mut scan)) = self.last else {
                return Ok(None);
            };
            let position = scan.position().at();
            if position >= total {
                return Ok(None);
            }
            let loaded = self.load(least);
            let offset = at.offset + (PacketHeader::SIZE + position) as u64;
            if let Err(error) = loaded {
                self.leave();
                self.skipped = (offset, at.offset + at.content() - offset);
                return Err(error);
            }
            let from = position - self.begin;
            let end = self.begin + self.window.len();
            let fault = match scan.find(&self.window[from..]) {
                Ok(found) => {
                    let next = scan.position().at();
                    if end == total || end - next >= LONGEST_HEADER {
                        self.last = self.last.map(|(at, link, _)| (at, link, scan));
                        return Ok(Some((found, from)));
                    }
                    least = next - position + LONGEST_HEADER;
                    continue;
                }
                Err(Fault::Short(_)) if end < total => {
                    let size = end - position;
                    if size < LONGEST_EVENT {
                        least = (2 * size.max(self.length)).min(LONGEST_EVENT);
                        continue;
                    }
                    Fault::Bad(format!("an event of more than {LONGEST_EVENT} bytes"))
                }
                Err(fault) => fault,
            };
            self.leave();
            self.skipped = (offset, at.offset + at.content() - offset);
            return Err(Error::Corrupt {
                path: self.path.to_owned(),
                offset,
                what: fault.into_text(),
            });
        }
    }

    /// The event that was found at this index of the window.
    pub(super) fn event(&self, found: Found<'a>, from: usize) -> Option<Event<'_>> {
        let (_, _, scan) = self.last?;
        Some(scan.event(found, &self.window[from..]))
    }

    /// The time of the next event of the last packet. [`None`]: no event is left.
    pub(super) fn next_time(&self) -> Option<u64> {
        let (_, _, scan) = self.last?;
        let from = scan.position().at().checked_sub(self.begin)?;
        scan.next_time(self.window.get(from..)?)
    }

    /// Frees the memory of the window beyond its usual length.
    pub(super) fn trim(&mut self) {
        if self.window.capacity() > 2 * self.length {
            let (_, _, scan) = match self.last {
                Some(last) => last,
                None => return,
            };
            self.window = Vec::new();
            self.begin = scan.position().at();
        }
    }

    /// Bytes of an incomplete last packet, after [`Self::next_packet`] has returned [`None`].
    pub fn partial(&self) -> u64 {
        self.headers.partial()
    }
}
