// SPDX-License-Identifier: GPL-2.0

//! Merges all streams of a trace in order of time. Two windows of each stream are in memory, and one file of each is
//! open.
//!
//! A stream gives its items one after the other, each at a time that is not before that of the previous item. A heap
//! has the time of each stream's next item. The stream at its top gives the next item of the trace. If two streams
//! have the same time, the first of those given to [`Merge::new`] comes first.
//!
//! Items are decoded in batches. When a stream needs a second batch, the threads of a [`Pool`] begin to fill the next
//! batch of each stream while its last one is read. On a machine with one CPU there is no pool.

use crate::batch::{Batch, ItemKind, Limits, Rest};
use crate::header::PacketAt;
use crate::item::Item;
use crate::layouts::EventLayout;
use crate::metadata::Metadata;
use crate::pool::{Filled, Job, Pool};
use crate::selection::{Selection, Wanted};
use crate::source::Source;
use crate::stream::Packet;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::sync::Arc;
use std::thread;
use system::{Error, Result};

/// Maximum number of threads that decode.
const THREADS: usize = 8;

/// The items of a trace by time.
#[derive(Debug)]
pub struct Merge {
    metadata: Arc<Metadata>,
    streams: Vec<Stream>,
    threads: Threads,
    /// The time of the next item of each stream that has not ended, except the stream of the last item.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    /// The stream of the last item.
    last: Option<usize>,
}

impl Merge {
    /// Merges streams, each of these files in their order. Opens the first file of each now, and each other file when
    /// the one before it has been read.
    pub fn new<'a>(
        metadata: &Arc<Metadata>,
        streams: impl IntoIterator<Item = &'a [PathBuf]>,
    ) -> Result<Self> {
        let streams = streams.into_iter();
        Self::of(metadata, streams.map(|files| (files.into(), Vec::new())))
    }

    /// Merges parts of streams: of each file, the packets in a range of its bytes, at whose beginning a packet begins.
    pub fn of_ranges(
        metadata: &Arc<Metadata>,
        streams: impl IntoIterator<Item = Vec<(PathBuf, Range<u64>)>>,
    ) -> Result<Self> {
        let streams = streams.into_iter().map(|parts| {
            let (files, ranges): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
            (files.into(), ranges)
        });
        Self::of(metadata, streams)
    }

    fn of(
        metadata: &Arc<Metadata>,
        streams: impl Iterator<Item = (Arc<[PathBuf]>, Vec<Range<u64>>)>,
    ) -> Result<Self> {
        let streams: Vec<_> = streams.collect();
        let limits = Limits::of(streams.len());
        let threads = Threads::of(streams.len());
        let streams: Vec<_> = streams
            .into_iter()
            .map(|(files, ranges)| {
                let metadata = Arc::clone(metadata);
                Source::new(files, ranges, metadata, limits).map(Stream::new)
            })
            .collect::<Result<_>>()?;
        // If packets are missing before the first packet of a stream, they are missing from the beginning on.
        let queue = (0..streams.len()).map(|stream| Reverse((0, stream)));
        Ok(Self {
            metadata: Arc::clone(metadata),
            queue: queue.collect(),
            streams,
            threads,
            last: None,
        })
    }

    /// Merges streams whose packets arrive later.
    pub(super) fn live(metadata: Arc<Metadata>) -> Self {
        Self {
            metadata,
            streams: Vec::new(),
            threads: Threads {
                count: 0,
                pool: None,
            },
            queue: BinaryHeap::new(),
            last: None,
        }
    }

    /// Adds a stream of packets that arrive later.
    pub(super) fn open(&mut self, name: PathBuf) -> Result<()> {
        let source = Source::live(name, Arc::clone(&self.metadata), Limits::of(1))?;
        self.streams.push(Stream::new(source));
        Ok(())
    }

    /// Adds the next packet of a stream, with its content.
    pub(super) fn push(&mut self, number: usize, at: &PacketAt, content: Vec<u8>) {
        let stream = &mut self.streams[number];
        if let Some(source) = &mut stream.source {
            source.push(at, content);
        }
        if stream.batch.rest == Rest::Waiting {
            stream.batch.rest = Rest::More;
        }
        if std::mem::take(&mut stream.is_idle) {
            self.queue.push(Reverse((stream.batch.time, number)));
        }
    }

    /// Bytes of the packets that have arrived and were not begun.
    pub(super) fn unread(&self) -> usize {
        let sources = self.streams.iter().flat_map(|stream| &stream.source);
        sources.map(|source| source.unread()).sum()
    }

    /// The description.
    pub(super) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Replaces the description by one that contains it.
    pub(super) fn describe(&mut self, metadata: Arc<Metadata>) {
        for source in self
            .streams
            .iter_mut()
            .flat_map(|stream| &mut stream.source)
        {
            source.describe(&metadata);
        }
        self.metadata = metadata;
    }

    /// Skips events that are not wanted, except those that do not fit a window. The end of each stream
    /// has their numbers. All other items are the same. Call it before the first item.
    pub fn only(mut self, wanted: impl Fn(&EventLayout) -> Wanted) -> Self {
        let selection = Selection::of(&self.metadata, wanted);
        for stream in &mut self.streams {
            if let Some(source) = &mut stream.source {
                source.select(selection.clone());
            }
        }
        self
    }

    /// Lets no packet end after `time`, whatever its header says. Call it before the first item.
    pub fn until(mut self, time: u64) -> Self {
        for stream in &mut self.streams {
            if let Some(source) = &mut stream.source {
                source.until(time);
            }
        }
        self
    }

    /// The next item, and the number of its stream among those given to [`Self::new`]. [`None`]: the trace ends.
    ///
    /// The first packets of all streams come first; only damage before them comes earlier. After an error there are
    /// no more items.
    pub fn next_item(&mut self) -> Result<Option<(usize, Item<'_>)>> {
        self.next_until(u64::MAX)
    }

    /// The next item that is not after `until`.
    pub(super) fn next_until(&mut self, until: u64) -> Result<Option<(usize, Item<'_>)>> {
        let Some(number) = self.next_stream(until) else {
            return Ok(None);
        };
        let stream = &mut self.streams[number];
        stream.load(&mut self.threads);
        if let Some(error) = stream.failed() {
            self.queue.clear();
            return Err(error);
        }
        self.last = Some(number);
        let item = stream.next_item();
        Ok(item.map(|item| (number, item)))
    }

    /// The stream of the next item, if that is not after `until`. Removes it from the queue.
    fn next_stream(&mut self, until: u64) -> Option<usize> {
        let last = self.last.take();
        let next = last.and_then(|last| Some((self.streams[last].time(&mut self.threads)?, last)));
        let top = self.queue.peek().map(|Reverse(top)| *top);
        let Some(next) = next else {
            top.filter(|(time, _)| *time <= until)?;
            let Reverse((_, number)) = self.queue.pop()?;
            return Some(number);
        };
        if top.map_or(next, |top| top.min(next)).0 > until {
            self.queue.push(Reverse(next));
            return None;
        }
        match self.queue.peek_mut() {
            // Another stream comes first. This one replaces it in the queue.
            Some(mut top) if top.0 < next => {
                let Reverse((_, number)) = std::mem::replace(&mut *top, Reverse(next));
                Some(number)
            }
            _ => Some(next.1),
        }
    }
}

/// The threads that decode.
#[derive(Debug)]
struct Threads {
    /// The number of threads of the pool. 0: there is no pool.
    count: usize,
    /// Started when a stream needs its second batch.
    pool: Option<Pool>,
}

impl Threads {
    /// The threads for this number of streams: one for each CPU except that of the merge.
    fn of(streams: usize) -> Self {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        Self {
            count: (cpus - 1).min(streams).min(THREADS),
            pool: None,
        }
    }

    fn pool(&mut self) -> Option<&Pool> {
        if self.count > 0 && self.pool.is_none() {
            self.pool = Some(Pool::new(self.count));
        }
        self.pool.as_ref()
    }
}

/// A stream, and its items.
#[derive(Debug)]
struct Stream {
    files: Arc<[PathBuf]>,
    /// The description by which `batch` was decoded.
    metadata: Arc<Metadata>,
    /// [`None`] while a thread fills the next batch.
    source: Option<Box<Source>>,
    /// The channel through which that batch arrives. Only the job has the sender, so the channel closes if the thread
    /// panics.
    coming: Option<Receiver<Filled>>,
    /// The decoded items.
    batch: Batch,
    /// The number of returned events; `marks`: of other returned items.
    events: usize,
    marks: usize,
    /// Whether `batch` is the first one.
    is_first: bool,
    /// Whether it has no next item until a packet arrives, and is not in the queue.
    is_idle: bool,
    /// The class of the last packet.
    class: u32,
}

impl Stream {
    fn new(source: Source) -> Self {
        Self {
            files: Arc::clone(source.files()),
            metadata: Arc::clone(source.metadata()),
            is_idle: source.is_live(),
            source: Some(Box::new(source)),
            coming: None,
            batch: Batch::default(),
            events: 0,
            marks: 0,
            is_first: true,
            class: 0,
        }
    }

    /// The time of the next item of the batch.
    fn next_time(&self) -> Option<u64> {
        match self.batch.marks.get(self.marks) {
            Some(mark) if mark.events == self.events => Some(mark.time),
            _ => Some(self.batch.events.get(self.events)?.timestamp),
        }
    }

    /// The time of the next item. [`None`]: the stream ends.
    fn time(&mut self, threads: &mut Threads) -> Option<u64> {
        loop {
            if let Some(time) = self.next_time() {
                return Some(time);
            }
            match self.batch.rest {
                Rest::More => self.next_batch(threads),
                Rest::Long => return Some(self.batch.time),
                Rest::Waiting => {
                    self.is_idle = true;
                    return None;
                }
                Rest::Over => return None,
            }
        }
    }

    /// Loads batches until one has the next item.
    fn load(&mut self, threads: &mut Threads) {
        while self.next_time().is_none() && matches!(self.batch.rest, Rest::More | Rest::Long) {
            self.next_batch(threads);
        }
    }

    /// Replaces a batch whose items were all returned.
    fn next_batch(&mut self, threads: &mut Threads) {
        let is_first = std::mem::take(&mut self.is_first);
        let mut spare = Batch::default();
        (self.events, self.marks) = (0, 0);
        match &mut self.source {
            Some(source) if self.batch.rest == Rest::Long => source.fill_long(&mut self.batch),
            Some(source) => source.fill(&mut self.batch),
            None => {
                let coming = self.coming.take().zip(threads.pool.as_ref());
                let Some(filled) = coming.and_then(|(coming, pool)| pool.wait(&coming)) else {
                    return self.fail();
                };
                self.source = Some(filled.source);
                spare = std::mem::replace(&mut self.batch, filled.batch);
            }
        }
        if let Some(source) = &self.source {
            self.metadata = Arc::clone(source.metadata());
        }
        if is_first || self.batch.rest != Rest::More {
            return;
        }
        let Some(pool) = threads.pool() else { return };
        if let Some(source) = self.source.take() {
            let (to, coming) = mpsc::sync_channel(1);
            self.coming = Some(coming);
            pool.post(Job {
                filled: Filled {
                    source,
                    batch: spare,
                },
                to,
            });
        }
    }

    /// Ends the stream, because its thread has panicked.
    fn fail(&mut self) {
        self.batch.clear();
        let error = Error::Read {
            path: self.files.first().cloned().unwrap_or_default(),
            cause: io::Error::other("the thread that decodes it has ended"),
        };
        self.batch
            .mark(self.batch.time, ItemKind::Failed(Some(error)));
        self.batch.rest = Rest::Over;
    }

    /// The error, if the next item is one.
    fn failed(&mut self) -> Option<Error> {
        let mark = self.batch.marks.get_mut(self.marks)?;
        match &mut mark.kind {
            ItemKind::Failed(error) if mark.events == self.events => error.take(),
            _ => None,
        }
    }

    /// The next item of the batch.
    fn next_item(&mut self) -> Option<Item<'_>> {
        let metadata = &*self.metadata;
        let mark = self.batch.marks.get(self.marks);
        let Some(mark) = mark.filter(|mark| mark.events == self.events) else {
            let found = self.batch.events.get(self.events)?;
            self.events += 1;
            let class = metadata.stream(self.class)?;
            return Some(Item::Event(found.event(class, &self.batch.bytes)?));
        };
        self.marks += 1;
        let timestamp = mark.time;
        Some(match &mark.kind {
            ItemKind::Packet {
                at,
                link,
                after_damage,
                file,
                content,
            } => {
                self.class = at.header.stream_id;
                let path = self.files.get(*file)?;
                let content = self.batch.bytes.get(content.clone())?;
                let packet = Packet::new(path, metadata, at, link, content, *after_damage);
                Item::Packet(packet?)
            }
            ItemKind::Whole => Item::Whole { timestamp },
            ItemKind::Damaged(damage) => Item::Damaged { damage, timestamp },
            ItemKind::End { partial, skipped } => Item::End {
                partial: *partial,
                skipped,
            },
            ItemKind::Failed(_) => return None,
        })
    }
}
