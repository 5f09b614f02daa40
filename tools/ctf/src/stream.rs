// SPDX-License-Identifier: GPL-2.0

//! Reads one stream, packet by packet.

use crate::arrived::{Arrived, Content};
use crate::damage::Damage;
use crate::event::{Event, Events, Fault, Position, Scan, LONGEST_HEADER};
use crate::foreign::Pulled;
use crate::found::FoundEvent;
use crate::header::{PacketAt, PacketHeaders};
use crate::link::Link;
use crate::metadata::{Metadata, StreamClass};
use crate::selection::Selected;
use rtrace_abi::packet::PacketHeader;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
pub struct StreamReader<'a, M = &'a Metadata> {
    metadata: M,
    headers: PacketHeaders<'a, Content>,
    /// The packet that was read last.
    last: Option<Last>,
    /// Whether damage came before it.
    after_damage: bool,
    /// The packet before the first one.
    earlier: Option<PacketAt>,
    /// Whether bytes after the last packet could not be read.
    is_damaged: bool,
    /// The offset and the number of the bytes that the last error skipped.
    skipped: (u64, u64),
    /// Bytes of events. The events of the last packet begin at index `base`.
    window: Vec<u8>,
    base: usize,
    /// The index in the last packet's events of the byte at `base`.
    begin: usize,
    /// Usual length of the window.
    length: usize,
}

/// A packet, and the position in its events.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: PacketAt,
    link: Link,
    position: Position,
}

/// The place of a packet's next event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// In the window.
    Event(FoundEvent),
    /// The packet has no more events.
    End,
    /// The event needs a window that is longer than the limit.
    Long,
}

/// A packet in memory.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Its header and place.
    pub at: &'a PacketAt,
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
    /// The packet `at` of the stream `path`, with the bytes of its events. [`None`]: the trace does not have its
    /// stream class.
    pub(super) fn new(
        path: &'a Path,
        metadata: &'a Metadata,
        at: &'a PacketAt,
        link: &Link,
        content: &'a [u8],
        after_damage: bool,
    ) -> Option<Self> {
        Some(Self {
            at,
            packets_lost: link.packets_lost,
            events_lost: link.events_lost,
            after_damage,
            path,
            class: metadata.stream(at.header.stream_id)?,
            content,
        })
    }

    /// Its events, if all of it is in memory. A [`StreamReader`] has [`WINDOW`] bytes in memory, and
    /// [`StreamReader::next_event`] for the others.
    pub fn events(&self) -> Events<'a> {
        Events::new(self.path, self.class, self.at, self.content)
    }
}

impl<'a> StreamReader<'a> {
    /// Opens the file `path`, which must be a regular one. Dropping the reader closes it.
    pub fn open(path: &'a Path, metadata: &'a Metadata) -> Result<Self> {
        let headers = PacketHeaders::new(path, content(path, metadata)?, Some(metadata.uuid))?;
        Ok(Self::new(headers, metadata))
    }
}

/// Opens the stream `path` of a trace.
fn content(path: &Path, metadata: &Metadata) -> Result<Content> {
    Ok(match &metadata.foreign {
        None => Content::File(regular_file::open(path).map_err(Error::read(path))?),
        Some(foreign) => Content::Pulled(Pulled::new(foreign.open(path)?)),
    })
}

/// The time of the last event in the file `path`, or the begin of its last packet if that has no event. Skips damaged
/// places. [`None`]: no packet can be read.
pub fn last_time(path: &Path, metadata: &Metadata) -> Result<Option<u64>> {
    let (mut last, mut time) = (None, None);
    // The smallest window, because only the last packet's events are needed.
    let mut reader = StreamReader::open(path, metadata)?.window(0);
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => last = Some(*packet.at),
            Ok(None) => break,
            Err(error) => drop(reader.damage(error)?),
        }
    }
    let Some(last) = last else { return Ok(None) };
    let mut reader = StreamReader::open(path, metadata)?;
    reader.headers.go_to(last.offset);
    if reader.next_packet()?.is_some() {
        time = Some(last.header.timestamp_begin);
    }
    loop {
        match reader.next_event() {
            Ok(Some(event)) => time = Some(event.timestamp),
            Ok(None) => return Ok(time),
            Err(error) => drop(reader.damage(error)?),
        }
    }
}

impl StreamReader<'static, Arc<Metadata>> {
    /// Opens the file `path` as [`StreamReader::open`] does.
    pub(super) fn open_shared(path: PathBuf, metadata: Arc<Metadata>) -> Result<Self> {
        let content = content(&path, &metadata)?;
        let headers = PacketHeaders::new(path, content, Some(metadata.uuid))?;
        Ok(Self::new(headers, metadata))
    }

    /// Reads the packets that [arrive](Self::push).
    pub(super) fn arriving(path: PathBuf, metadata: Arc<Metadata>) -> Result<Self> {
        let packets = Content::Arrived(Arrived::default());
        let headers = PacketHeaders::new(path, packets, Some(metadata.uuid))?;
        Ok(Self::new(headers, metadata))
    }

    /// Adds a packet that has arrived, with its content.
    pub(super) fn push(&mut self, at: &PacketAt, content: Vec<u8>) {
        if let Content::Arrived(packets) = self.headers.file_mut() {
            packets.push(at, content);
            self.headers.grow(at.end());
        }
    }

    /// Bytes of the packets that have arrived and were not begun.
    pub(super) fn unread(&self) -> usize {
        match self.headers.file() {
            Content::Arrived(packets) => packets.unread(),
            Content::File(_) | Content::Pulled(_) => 0,
        }
    }

    /// Replaces the description by one that contains it.
    pub(super) fn describe(&mut self, metadata: Arc<Metadata>) {
        self.metadata = metadata;
    }
}

impl<'a, M: Deref<Target = Metadata>> StreamReader<'a, M> {
    fn new(headers: PacketHeaders<'a, Content>, metadata: M) -> Self {
        Self {
            metadata,
            headers,
            last: None,
            earlier: None,
            after_damage: false,
            is_damaged: false,
            skipped: (0, 0),
            window: Vec::new(),
            base: 0,
            begin: 0,
            length: WINDOW,
        }
    }

    /// Makes `before` the packet before the first one in the file.
    pub fn after(mut self, before: Option<PacketAt>) -> Self {
        self.earlier = before;
        self
    }

    /// Reads only these bytes of the file, at whose beginning a packet begins.
    pub(super) fn within(mut self, range: Range<u64>) -> Result<Self> {
        match self.headers.file_mut() {
            Content::Pulled(packets) => packets.within(&range)?,
            Content::File(_) | Content::Arrived(_) => self.headers.within(range),
        }
        Ok(self)
    }

    /// Sets another window than [`WINDOW`].
    pub fn window(mut self, bytes: usize) -> Self {
        self.length = bytes.max(LONGEST_HEADER);
        self
    }

    /// The last packet that was read, or the one before the first.
    pub fn last(&self) -> Option<PacketAt> {
        self.last.map(|last| last.at).or(self.earlier)
    }

    /// The next complete packet. Skips unread events of the previous packet.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>> {
        self.window.clear();
        match self.go_to_next(self.length)? {
            true => Ok(self.packet()),
            false => Ok(None),
        }
    }

    /// Goes to the next complete packet, if there is one. Appends at most `room` bytes of its events to the window,
    /// but at least the first event's header.
    pub(super) fn go_to_next(&mut self, room: usize) -> Result<bool> {
        let Some((at, link)) = self.next_header()? else {
            return Ok(false);
        };
        if let Content::Arrived(packets) = self.headers.file_mut() {
            packets.begin(at.offset);
        }
        let position = Position::begin(&at);
        self.after_damage = std::mem::take(&mut self.is_damaged);
        self.last = Some(Last { at, link, position });
        self.append(LONGEST_HEADER.max(room)).inspect_err(|_| {
            self.leave();
            self.is_damaged = true;
            self.skipped = (at.offset, at.size());
        })?;
        Ok(true)
    }

    /// The packet that was read last, with the part in the window.
    fn packet(&self) -> Option<Packet<'_>> {
        let Last { at, link, .. } = self.last.as_ref()?;
        let content = &self.window[self.base..];
        let path = self.headers.path();
        Packet::new(path, &self.metadata, at, link, content, self.after_damage)
    }

    /// The packet that was read last, its link to the previous packet, and whether damage was between them.
    pub(super) fn link(&self) -> Option<(PacketAt, Link, bool)> {
        let Last { at, link, .. } = self.last?;
        Some((at, link, self.after_damage))
    }

    /// The next event of the packet that was read last.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>> {
        let Step::Event(found) = self.find(usize::MAX)? else {
            return Ok(None);
        };
        let class = self.class();
        Ok(class.and_then(|class| found.event(class, &self.window)))
    }

    /// The class of the packet that was read last.
    fn class(&self) -> Option<&StreamClass> {
        self.metadata.stream(self.last?.at.header.stream_id)
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
    fn next_header(&mut self) -> Result<Option<(PacketAt, Link)>> {
        if let Content::Pulled(packets) = self.headers.file_mut() {
            return match packets.next() {
                Ok(None) => Ok(None),
                Ok(Some(at)) => {
                    let link = self.link_after(self.last(), &at).inspect_err(|_| {
                        self.is_damaged = true;
                        self.skipped = (at.offset, at.size());
                    })?;
                    Ok(Some((at, link)))
                }
                Err(Damage {
                    path,
                    offset,
                    bytes,
                    what,
                }) => {
                    self.is_damaged = true;
                    self.skipped = (offset, bytes);
                    Err(Error::Corrupt { path, offset, what })
                }
            };
        }
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
                        let what = "a packet that ends after the end of the file".to_owned();
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
            if let Some(inner) = inner.filter(|inner| self.link_after(Some(at), inner).is_ok()) {
                let what = format!(
                    "another packet begins within this one of {} bytes",
                    at.size()
                );
                return Err(self.skip(at.offset, inner.offset, what));
            }
        }
        let link = match self.link_after(self.last(), &at) {
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
            let link = self.link_after(before, at);
            link.is_ok_and(|link| link.packets_lost > 0)
        };
        if self.link_after(Some(*at), next).is_ok() || !fits(self.last(), next) {
            return false;
        }
        match self.headers.peek(next.end()) {
            Some(second) => {
                !fits(Some(*at), &second) && self.link_after(Some(*next), &second).is_ok()
            }
            None => self.last().is_some(),
        }
    }

    fn link_after(&self, before: Option<PacketAt>, at: &PacketAt) -> Result<Link> {
        Link::new(self.headers.path(), &self.metadata, before, at)
    }

    /// Skips the bytes from `offset` to `end`. Returns the error about them.
    fn skip(&mut self, offset: u64, end: u64, what: String) -> Error {
        self.is_damaged = true;
        self.skipped = (offset, end.saturating_sub(offset));
        self.headers.seek(end);
        Error::Corrupt {
            path: self.headers.path().to_owned(),
            offset,
            what,
        }
    }

    /// The size of the last packet's events in bytes.
    fn total(&self) -> usize {
        let content = self.last.map_or(0, |last| last.at.content() as usize);
        content.saturating_sub(PacketHeader::SIZE)
    }

    /// The number of bytes of the last packet's events up to the window's end.
    fn loaded(&self) -> usize {
        self.begin + (self.window.len() - self.base)
    }

    /// The number of bytes of the last packet's events that were read.
    fn position(&self) -> usize {
        self.last.map_or(0, |last| last.position.at())
    }

    /// Skips the unread events of the last packet.
    fn leave(&mut self) {
        let total = self.total();
        if let Some(last) = &mut self.last {
            last.position.leave(total);
        }
        self.base = self.window.len();
        self.begin = total;
    }

    /// Appends up to `size` bytes of events to the window, from the next event on.
    fn append(&mut self, size: usize) -> Result<()> {
        let Some(Last { at, position, .. }) = self.last else {
            return Ok(());
        };
        let position = position.at();
        self.base = self.window.len();
        self.begin = position;
        let size = size.min(self.total() - position);
        let offset = at.offset + (PacketHeader::SIZE + position) as u64;
        if let Content::Pulled(packets) = self.headers.file() {
            let bytes = packets.bytes_at(offset, size);
            let bytes = bytes.map_err(Error::read(self.headers.path()))?;
            self.window.extend_from_slice(bytes);
            return Ok(());
        }
        self.window.resize(self.base + size, 0);
        let events = &mut self.window[self.base..];
        let read = self.headers.read_exact_at(events, offset);
        read.inspect_err(|_| self.window.truncate(self.base))
    }

    /// Loads at least `least` bytes of events from the next event on into the window, or all remaining bytes.
    fn load(&mut self, least: usize) -> Result<()> {
        let end = self.loaded();
        if end == self.total() || end >= self.position() + least {
            return Ok(());
        }
        let size = least.max(self.length);
        self.window.clear();
        if self.window.capacity() > 2 * size {
            self.window.shrink_to(size);
        }
        self.append(size)
    }

    /// Finds the next event, and loads the header of the event after it into the window. The window may have `most`
    /// bytes for that.
    pub(super) fn find(&mut self, most: usize) -> Result<Step> {
        let mut least = LONGEST_HEADER;
        loop {
            let (total, position) = (self.total(), self.position());
            if position >= total {
                return Ok(Step::End);
            }
            if least > most {
                return Ok(Step::Long);
            }
            let loaded = self.load(least);
            let Some(Last { at, .. }) = self.last else {
                return Ok(Step::End);
            };
            let offset = at.offset + (PacketHeader::SIZE + position) as u64;
            if let Err(error) = loaded {
                self.leave();
                self.skipped = (offset, at.offset + at.content() - offset);
                return Err(error);
            }
            let end = self.loaded();
            let Some((mut scan, from)) = self.scan() else {
                return Ok(Step::End);
            };
            let fault = match scan.find(&self.window, from) {
                Ok(found) => {
                    let position_behind = scan.position();
                    let next = position_behind.at();
                    if end == total || end - next >= LONGEST_HEADER {
                        self.last = self.last.map(|last| Last {
                            position: position_behind,
                            ..last
                        });
                        return Ok(Step::Event(found));
                    }
                    least = next - position + LONGEST_HEADER;
                    continue;
                }
                Err(Fault::Short(_)) if end < total => {
                    let size = end - position;
                    if size < self.length {
                        least = self.length;
                        continue;
                    }
                    if size < LONGEST_EVENT {
                        least = (2 * size).min(LONGEST_EVENT);
                        continue;
                    }
                    Fault::Bad(format!("an event of more than {LONGEST_EVENT} bytes"))
                }
                Err(fault) => fault,
            };
            self.leave();
            self.skipped = (offset, at.offset + at.content() - offset);
            return Err(Error::Corrupt {
                path: self.headers.path().to_owned(),
                offset,
                what: fault.into_text(),
            });
        }
    }

    /// Appends the next selected events to `found`, until it has `most`. Takes only events that are complete in the
    /// window, together with the header of the event after them. The packets of another format have the places of their
    /// events.
    pub(super) fn find_loaded(
        &mut self,
        found: &mut Vec<FoundEvent>,
        most: usize,
        selected: &mut Selected,
    ) {
        let (loaded, total) = (self.loaded(), self.total());
        let last = match loaded == total {
            true => total,
            false => loaded.saturating_sub(LONGEST_HEADER),
        };
        if let Content::Pulled(packets) = self.headers.file() {
            let position = self.last.as_mut().map(|last| &mut last.position);
            let Some(position) = position else { return };
            for event in packets.events_after(position.at()) {
                if found.len() >= most || event.end as usize > last {
                    break;
                }
                let in_window = event.moved(self.begin, self.base);
                if selected.takes(&in_window, &self.window) {
                    found.push(in_window);
                }
                *position = Position::after(event);
            }
            return;
        }
        let Some((mut scan, mut from)) = self.scan() else {
            return;
        };
        let mut position = scan.position();
        while found.len() < most && position.at() < last {
            let Ok(event) = scan.find(&self.window, from) else {
                break;
            };
            let next = scan.position();
            if next.at() > last {
                break;
            }
            if selected.takes(&event, &self.window) {
                found.push(event);
            }
            from += next.at() - position.at();
            position = next;
        }
        if let Some(last) = &mut self.last {
            last.position = position;
        }
    }

    /// A scan at the next event of the last packet, and the index in the window of its first byte.
    fn scan(&self) -> Option<(Scan<'_>, usize)> {
        let Last { at, position, .. } = self.last?;
        let from = self.base + position.at().checked_sub(self.begin)?;
        Some((Scan::new(self.class()?, &at, position), from))
    }

    /// The time of the next event of the last packet. [`None`]: the window has none.
    pub(super) fn next_time(&self) -> Option<u64> {
        let (scan, from) = self.scan()?;
        scan.next_time(self.window.get(from..)?)
    }

    /// Whether the window reaches to the end of the last packet.
    pub(super) fn is_loaded(&self) -> bool {
        self.loaded() == self.total()
    }

    /// Begins an empty window, in this memory, at the next event.
    pub(super) fn set_window(&mut self, bytes: Vec<u8>) {
        self.window = bytes;
        self.window.clear();
        self.base = 0;
        self.begin = self.position();
    }

    /// Returns the window. Call [`Self::set_window`] after this.
    pub(super) fn take_window(&mut self) -> Vec<u8> {
        (self.base, self.begin) = (0, self.position());
        std::mem::take(&mut self.window)
    }

    /// The bytes of the window.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.window
    }

    /// The number of bytes of the window, and the index in it of the last packet's first byte.
    pub(super) fn filled(&self) -> (usize, usize) {
        (self.window.len(), self.base)
    }

    /// Bytes of an incomplete last packet, after [`Self::next_packet`] has returned [`None`].
    pub fn partial(&self) -> u64 {
        self.headers.partial()
    }
}
