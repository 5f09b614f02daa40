// SPDX-License-Identifier: GPL-2.0

//! Merges all streams of a trace in order of time. A window of each stream is in memory, and one file of each is
//! open.
//!
//! A heap has the time of each stream's next item. The stream at its top gives the next item of the trace. If two
//! streams have the same time, the first of those given to [`Merge::new`] comes first.

use crate::damage::Damage;
use crate::item::Item;
use crate::metadata::Metadata;
use crate::stream::StreamReader;
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::BinaryHeap;
use std::path::PathBuf;
use std::slice;
use system::Result;

/// The items of a trace by time.
#[derive(Debug)]
pub struct Merge<'a> {
    streams: Vec<Stream<'a>>,
    /// The time of the next item, for each stream that has not ended.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    /// The stream of the last item.
    last: Option<usize>,
}

impl<'a> Merge<'a> {
    /// Merges streams, each of these files in their order. Opens the first file of each now, and each other file when
    /// the one before it has been read.
    pub fn new(
        metadata: &'a Metadata,
        streams: impl IntoIterator<Item = &'a [PathBuf]>,
    ) -> Result<Self> {
        let streams: Vec<_> = streams
            .into_iter()
            .map(|files| Stream::new(files, metadata))
            .collect::<Result<_>>()?;
        // If packets are missing before the first packet of a stream, they are missing from the beginning on.
        let queue = (0..streams.len()).map(|stream| Reverse((0, stream)));
        Ok(Self {
            queue: queue.collect(),
            streams,
            last: None,
        })
    }

    /// The next item, and the number of its stream among those given to [`Self::new`]. [`None`]: the trace ends.
    ///
    /// The first packets of all streams come first; only damage before them comes earlier. After an error there are
    /// no more items.
    pub fn next_item(&mut self) -> Result<Option<(usize, Item<'_>)>> {
        let Some(mut top) = self.queue.peek_mut() else {
            return Ok(None);
        };
        let Reverse((time, number)) = *top;
        if let Some(reader) = self
            .last
            .replace(number)
            .filter(|last| *last != number)
            .and_then(|last| self.streams[last].reader.as_mut())
        {
            reader.trim();
        }
        match self.streams[number].next_item(time) {
            Ok((item, Some(next))) => {
                *top = Reverse((next, number));
                Ok(Some((number, item)))
            }
            Ok((item, None)) => {
                PeekMut::pop(top);
                Ok(Some((number, item)))
            }
            Err(error) => {
                drop(top);
                self.queue.clear();
                Err(error)
            }
        }
    }
}

/// The kind of the next item of a stream.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// The next packet, or the stream's end.
    Packet,
    /// The begin of a packet, before which packets are missing.
    Begin,
    /// An event of the packet.
    Event,
    /// The end of a packet, up to which events are missing.
    End,
}

/// A stream, and its next item.
#[derive(Debug)]
struct Stream<'a> {
    metadata: &'a Metadata,
    /// The files after the one that is being read.
    files: slice::Iter<'a, PathBuf>,
    /// [`None`]: the stream has no files.
    reader: Option<StreamReader<'a>>,
    next: Next,
    /// The end of the packet that is being read.
    end: u64,
    /// Whether events of the packet are missing.
    is_lossy: bool,
    /// The damage, if the last item was damage.
    damage: Option<Damage>,
    /// Bytes of incomplete last packets.
    partial: u64,
}

impl<'a> Stream<'a> {
    fn new(files: &'a [PathBuf], metadata: &'a Metadata) -> Result<Self> {
        let mut stream = Self {
            metadata,
            files: files.iter(),
            reader: None,
            next: Next::Packet,
            end: 0,
            is_lossy: false,
            damage: None,
            partial: 0,
        };
        stream.next_file()?;
        Ok(stream)
    }

    /// Continues in the next file. Returns whether there is one.
    fn next_file(&mut self) -> Result<bool> {
        let Some(path) = self.files.next() else {
            return Ok(false);
        };
        let last = self.reader.as_ref().and_then(StreamReader::last);
        self.reader = Some(StreamReader::open(path, self.metadata)?.after(last));
        Ok(true)
    }

    /// The next item, whose time is `now`, and the time of the following item. [`None`]: the stream ends.
    fn next_item(&mut self, now: u64) -> Result<(Item<'_>, Option<u64>)> {
        match self.next {
            Next::Packet => self.packet(now),
            Next::Event => self.event(now),
            Next::Begin => {
                let time = self.behind();
                Ok((Item::Whole { timestamp: now }, Some(time)))
            }
            Next::End => {
                self.next = Next::Packet;
                Ok((Item::Whole { timestamp: now }, Some(now)))
            }
        }
    }

    /// The next packet, of any file.
    fn packet(&mut self, now: u64) -> Result<(Item<'_>, Option<u64>)> {
        loop {
            let Some(reader) = &mut self.reader else {
                return Ok((Item::End { partial: 0 }, None));
            };
            match reader.next_packet() {
                Ok(Some(_)) => break,
                Ok(None) => {}
                Err(error) => {
                    let damage = reader.damage(error)?;
                    return Ok((self.damaged(damage, now), Some(now)));
                }
            }
            self.partial += reader.partial();
            if !self.next_file()? {
                let partial = self.partial;
                return Ok((Item::End { partial }, None));
            }
        }
        let Some(packet) = self.reader.as_ref().and_then(StreamReader::packet) else {
            return Ok((Item::End { partial: 0 }, None));
        };
        let header = packet.at.header;
        let is_lossy = packet.events_lost > 0;
        let is_behind_loss = packet.packets_lost > 0 || packet.after_damage;
        self.end = header.timestamp_end;
        self.is_lossy = is_lossy;
        let time = if is_behind_loss && !is_lossy {
            self.next = Next::Begin;
            header.timestamp_begin
        } else {
            self.behind()
        };
        let packet = self.reader.as_ref().and_then(StreamReader::packet);
        let item = packet.map_or(Item::End { partial: 0 }, Item::Packet);
        Ok((item, Some(time)))
    }

    fn event(&mut self, now: u64) -> Result<(Item<'_>, Option<u64>)> {
        let whole = Item::Whole { timestamp: now };
        let Some(reader) = &mut self.reader else {
            return Ok((whole, None));
        };
        let found = match reader.find() {
            Ok(found) => found,
            Err(error) => {
                let damage = reader.damage(error)?;
                self.next = Next::End;
                let end = self.end;
                return Ok((self.damaged(damage, now), Some(end)));
            }
        };
        let time = self.behind();
        let reader = self.reader.as_ref();
        let event = found.and_then(|(found, from)| reader?.event(found, from));
        Ok((event.map_or(whole, Item::Event), Some(time)))
    }

    fn damaged(&mut self, damage: Damage, timestamp: u64) -> Item<'_> {
        let damage = self.damage.insert(damage);
        Item::Damaged { damage, timestamp }
    }

    /// Sets the kind of the next item in the packet. Returns its time.
    fn behind(&mut self) -> u64 {
        let event = self.reader.as_ref().and_then(StreamReader::next_time);
        self.next = match event {
            Some(_) => Next::Event,
            None if self.is_lossy => Next::End,
            None => Next::Packet,
        };
        event.unwrap_or(self.end)
    }
}
