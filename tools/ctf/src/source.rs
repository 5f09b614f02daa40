// SPDX-License-Identifier: GPL-2.0

//! The items of one stream, in batches.

use crate::batch::{Batch, ItemKind, Limits, Rest};
use crate::header::PacketAt;
use crate::metadata::Metadata;
use crate::selection::{Selected, Selection};
use crate::stream::{Step, StreamReader};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use system::Result;

/// A stream, and the kind of its next item.
#[derive(Debug)]
pub(super) struct Source {
    metadata: Arc<Metadata>,
    files: Arc<[PathBuf]>,
    /// The bytes of each file to read. Empty: all.
    ranges: Vec<Range<u64>>,
    /// Whether packets may still arrive.
    is_live: bool,
    /// The number of files that were opened.
    opened: usize,
    /// [`None`]: the stream has no files.
    reader: Option<StreamReader<'static, Arc<Metadata>>>,
    limits: Limits,
    /// The events that are returned.
    selected: Selected,
    /// The latest end of packets.
    until: u64,
    next: Next,
    /// The time of the next item.
    time: u64,
    /// The end of the packet that is being read.
    end: u64,
    /// Whether events of the packet are missing.
    is_lossy: bool,
    /// Bytes of incomplete last packets.
    partial: u64,
}

/// The next item of a stream.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// The next packet, or the stream's end.
    Packet,
    /// An event of the packet.
    Event,
    /// The end of a packet up to which events are missing.
    End,
}

impl Source {
    /// Makes the stream of these files, or of these ranges of them. Opens the first file.
    pub fn new(
        files: Arc<[PathBuf]>,
        ranges: Vec<Range<u64>>,
        metadata: Arc<Metadata>,
        limits: Limits,
    ) -> Result<Self> {
        let mut source = Self::empty(files, metadata, limits);
        source.ranges = ranges;
        source.next_file()?;
        Ok(source)
    }

    /// Makes the stream of packets that [arrive](Self::push), with this name.
    pub fn live(name: PathBuf, metadata: Arc<Metadata>, limits: Limits) -> Result<Self> {
        let reader = StreamReader::arriving(name.clone(), Arc::clone(&metadata))?;
        let mut source = Self::empty(Arc::from([name]), metadata, limits);
        source.reader = Some(reader.window(limits.bytes));
        source.opened = 1;
        source.is_live = true;
        Ok(source)
    }

    fn empty(files: Arc<[PathBuf]>, metadata: Arc<Metadata>, limits: Limits) -> Self {
        Self {
            metadata,
            files,
            ranges: Vec::new(),
            is_live: false,
            opened: 0,
            reader: None,
            limits,
            selected: Selected::default(),
            until: u64::MAX,
            next: Next::Packet,
            // If packets are missing before the first packet of a stream, they are missing from the beginning on.
            time: 0,
            end: 0,
            is_lossy: false,
            partial: 0,
        }
    }

    /// Adds a packet that has arrived, with its content.
    pub fn push(&mut self, at: &PacketAt, content: Vec<u8>) {
        if let Some(reader) = &mut self.reader {
            reader.push(at, content);
        }
    }

    /// Bytes of the packets that have arrived and were not begun.
    pub fn unread(&self) -> usize {
        self.reader.as_ref().map_or(0, StreamReader::unread)
    }

    /// The description.
    pub fn metadata(&self) -> &Arc<Metadata> {
        &self.metadata
    }

    /// Replaces the description by one that contains it.
    pub fn describe(&mut self, metadata: &Arc<Metadata>) {
        self.metadata = Arc::clone(metadata);
        if let Some(reader) = &mut self.reader {
            reader.describe(Arc::clone(metadata));
        }
    }

    /// Whether packets may still arrive.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// The files.
    pub fn files(&self) -> &Arc<[PathBuf]> {
        &self.files
    }

    /// Applies a selection, before the first item is read.
    pub fn select(&mut self, selection: Option<Arc<Selection>>) {
        self.selected.select(selection);
    }

    /// Lets no packet end after `time`, before the first item is read.
    pub fn until(&mut self, time: u64) {
        self.until = time;
    }

    /// Continues in the next file. Returns whether there is one.
    fn next_file(&mut self) -> Result<bool> {
        let Some(path) = self.files.get(self.opened) else {
            return Ok(false);
        };
        let last = self.reader.as_ref().and_then(StreamReader::last);
        let mut reader = StreamReader::open_shared(path.clone(), Arc::clone(&self.metadata))?;
        if let Some(range) = self.ranges.get(self.opened) {
            reader = reader.within(range.clone())?;
        }
        self.reader = Some(reader.after(last).window(self.limits.bytes));
        self.opened += 1;
        Ok(true)
    }

    /// Fills a batch with the next items. Leaves an event that does not fit the window to [`Self::fill_long`].
    pub fn fill(&mut self, batch: &mut Batch) {
        self.fill_within(batch, self.limits.bytes);
    }

    /// Fills a batch with the next item, which is an event that does not fit the window, or damage.
    pub fn fill_long(&mut self, batch: &mut Batch) {
        self.fill_within(batch, usize::MAX);
    }

    /// Fills a batch. The window may have `most` bytes for one event.
    fn fill_within(&mut self, batch: &mut Batch, most: usize) {
        batch.clear();
        let mut bytes = std::mem::take(&mut batch.bytes);
        // The memory of a long event is not kept.
        if bytes.capacity() > 2 * self.limits.bytes {
            bytes = Vec::new();
        }
        if let Some(reader) = &mut self.reader {
            reader.set_window(bytes);
        }
        while self.add(batch, most) && batch.room(&self.limits) > 0 {}
        batch.time = self.time;
        if let Some(reader) = &mut self.reader {
            batch.bytes = reader.take_window();
        }
        if most > self.limits.bytes && batch.events.is_empty() {
            batch.bytes = Vec::new();
        }
    }

    /// Adds the next item, or several events. Returns whether the batch may get more.
    fn add(&mut self, batch: &mut Batch, most: usize) -> bool {
        match self.next {
            Next::Packet => self.packet(batch),
            Next::Event => self.events(batch, most),
            Next::End => {
                batch.mark(self.time, ItemKind::Whole);
                self.next = Next::Packet;
                true
            }
        }
    }

    /// The next packet, of any file.
    fn packet(&mut self, batch: &mut Batch) -> bool {
        loop {
            let Some(reader) = &mut self.reader else {
                return self.end(batch);
            };
            let (filled, _) = reader.filled();
            let room = self.limits.bytes.saturating_sub(filled);
            if !batch.is_empty() && room < self.limits.bytes / 4 {
                return false;
            }
            match reader.go_to_next(room) {
                Ok(true) => break,
                Ok(false) if self.is_live => {
                    batch.rest = Rest::Waiting;
                    return false;
                }
                // The next file has a new window, so the batch ends here.
                Ok(false) if !batch.is_empty() => return false,
                Ok(false) => {}
                Err(error) => {
                    return match reader.damage(error) {
                        Ok(damage) => {
                            batch.mark(self.time, ItemKind::Damaged(damage));
                            true
                        }
                        Err(error) => self.over(batch, ItemKind::Failed(Some(error))),
                    };
                }
            }
            self.partial += reader.partial();
            match self.next_file() {
                Ok(true) => {}
                Ok(false) => return self.end(batch),
                Err(error) => return self.over(batch, ItemKind::Failed(Some(error))),
            }
        }
        let reader = self.reader.as_ref();
        let Some((reader, (mut at, link, after_damage))) =
            reader.and_then(|reader| Some((reader, reader.link()?)))
        else {
            return self.end(batch);
        };
        let header = &mut at.header;
        header.timestamp_end = header
            .timestamp_end
            .min(self.until.max(header.timestamp_begin));
        let (filled, begin) = reader.filled();
        let kind = ItemKind::Packet {
            at,
            link,
            after_damage,
            file: self.opened - 1,
            content: begin..filled,
        };
        batch.mark(self.time, kind);
        self.selected.begin(at.header.stream_id);
        self.end = at.header.timestamp_end;
        self.is_lossy = link.events_lost > 0;
        if (link.packets_lost > 0 || after_damage) && !self.is_lossy {
            batch.mark(at.header.timestamp_begin, ItemKind::Whole);
        }
        self.behind();
        true
    }

    /// The next events of the packet.
    fn events(&mut self, batch: &mut Batch, most: usize) -> bool {
        let Some(reader) = &mut self.reader else {
            return self.end(batch);
        };
        let room = batch.events.len() + batch.room(&self.limits);
        reader.find_loaded(&mut batch.events, room, &mut self.selected);
        if let Some(time) = reader.next_time() {
            // No event is later, except a damaged one.
            self.time = time.min(self.until);
        }
        if batch.events.len() == room {
            self.behind();
            return false;
        }
        // The window has only a part of the event, or the event is damaged.
        if !reader.is_loaded() && !batch.is_empty() {
            return false;
        }
        match reader.find(most) {
            Ok(Step::Event(found)) => {
                // The merge expects an item for a long event.
                let is_long = most > self.limits.bytes;
                if is_long || self.selected.takes(&found, reader.bytes()) {
                    batch.events.push(found);
                }
                self.behind();
                most == self.limits.bytes
            }
            Ok(Step::End) => {
                self.behind();
                true
            }
            Ok(Step::Long) => {
                batch.rest = Rest::Long;
                false
            }
            Err(error) => match reader.damage(error) {
                Ok(damage) => {
                    batch.mark(self.time, ItemKind::Damaged(damage));
                    self.next = Next::End;
                    self.time = self.end;
                    most == self.limits.bytes
                }
                Err(error) => self.over(batch, ItemKind::Failed(Some(error))),
            },
        }
    }

    /// Adds the end of the stream.
    fn end(&self, batch: &mut Batch) -> bool {
        let partial = self.partial;
        let last = self.reader.as_ref().and_then(StreamReader::last);
        let class = last.and_then(|last| self.metadata.stream(last.header.stream_id));
        let skipped = self.selected.skipped(class);
        self.over(batch, ItemKind::End { partial, skipped })
    }

    /// Adds the last item.
    fn over(&self, batch: &mut Batch, kind: ItemKind) -> bool {
        batch.mark(self.time, kind);
        batch.rest = Rest::Over;
        false
    }

    /// Sets the kind and the time of the next item in the packet.
    fn behind(&mut self) {
        let event = self.reader.as_ref().and_then(StreamReader::next_time);
        self.next = match event {
            Some(_) => Next::Event,
            None if self.is_lossy => Next::End,
            None => Next::Packet,
        };
        self.time = event.unwrap_or(self.end);
    }
}
