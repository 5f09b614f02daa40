// SPDX-License-Identifier: GPL-2.0

//! All streams of a trace as one, in order of time. One packet of each stream is in memory, and one
//! file of each is open.
//!
//! A stream gives its items one after the other, each at a time that is not before the last one's.
//! A heap has the time of each stream's next item; the stream at its top gives the next item of the
//! trace. Where two streams have the same time, the first of [`Trace::streams_by_name`] goes first.

use super::item::{Item, Next};
use super::metadata::Metadata;
use super::stream::StreamReader;
use super::trace::Trace;
use crate::error::Result;
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::BinaryHeap;
use std::path::PathBuf;
use std::slice;

/// The items of a trace by time.
#[derive(Debug)]
pub struct Merge<'a> {
    streams: Vec<Stream<'a>>,
    /// When each stream that has not ended has its next item.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<'a> Merge<'a> {
    /// Merges the streams of a trace. Of each the first file is opened now, the others when those
    /// before them have been read.
    pub fn new(trace: &'a Trace) -> Result<Self> {
        let streams = trace.streams_by_name();
        let streams: Vec<_> = streams
            .map(|files| Stream::new(files, &trace.metadata))
            .collect::<Result<_>>()?;
        // What is missing before the first packet of a stream is missing from the beginning on.
        let queue = (0..streams.len()).map(|stream| Reverse((0, stream)));
        Ok(Self {
            queue: queue.collect(),
            streams,
        })
    }

    /// The next item, and the number of its stream among [`Trace::streams_by_name`]; none at the trace's
    /// end.
    ///
    /// The packets of all streams that are the first of theirs come before all else. After an
    /// error nothing comes any more.
    pub fn next_item(&mut self) -> Result<Option<(usize, Item<'_>)>> {
        let Some(mut top) = self.queue.peek_mut() else {
            return Ok(None);
        };
        let Reverse((time, number)) = *top;
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

/// A stream, and what comes next in it.
#[derive(Debug)]
struct Stream<'a> {
    metadata: &'a Metadata,
    /// Those that come behind what is being read.
    files: slice::Iter<'a, PathBuf>,
    /// None if it has no files at all.
    reader: Option<StreamReader<'a>>,
    next: Next,
    /// Bytes of last packets that are not whole.
    partial: u64,
}

impl<'a> Stream<'a> {
    fn new(files: &'a [PathBuf], metadata: &'a Metadata) -> Result<Self> {
        let mut stream = Self {
            metadata,
            files: files.iter(),
            reader: None,
            next: Next::Packet,
            partial: 0,
        };
        stream.next_file()?;
        Ok(stream)
    }

    /// Goes on in the next file. Returns whether there is one.
    fn next_file(&mut self) -> Result<bool> {
        let Some(path) = self.files.next() else {
            return Ok(false);
        };
        let last = self.reader.as_ref().and_then(StreamReader::last);
        self.reader = Some(StreamReader::open(path, self.metadata)?.after(last));
        Ok(true)
    }

    /// Reads the next packet, of whatever file. Returns whether there is one.
    fn read(&mut self) -> Result<bool> {
        loop {
            let Some(reader) = &mut self.reader else {
                return Ok(false);
            };
            if reader.next_packet()?.is_some() {
                return Ok(true);
            }
            self.partial += reader.partial();
            if !self.next_file()? {
                return Ok(false);
            }
        }
    }

    /// The next item, whose time is `now`, and the time of the one behind it; none at the end.
    fn next_item(&mut self, now: u64) -> Result<(Item<'_>, Option<u64>)> {
        let end = |partial| Ok((Item::End { partial }, None));
        if matches!(self.next, Next::Packet) && !self.read()? {
            return end(self.partial);
        }
        let Some(packet) = self.reader.as_ref().and_then(StreamReader::packet) else {
            return end(self.partial);
        };
        let (item, next, time) = self.next.item(packet, now)?;
        self.next = next;
        Ok((item, Some(time)))
    }
}
