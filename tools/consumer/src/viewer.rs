// SPDX-License-Identifier: GPL-2.0

//! The sink that passes on a trace while it is recorded, event by event, in order of time.
//!
//! Every [`PERIOD`] the consumer flushes all buffers. The viewer then passes on the events that had arrived before this
//! flush, because they are older than any event that can still arrive. So it passes on an event after at most
//! two periods, even if other CPUs are silent. If a writer was interrupted in a packet that a flush closed, that packet
//! may arrive one period later.
//!
//! The header of a packet has the losses before its end. If a buffer was full, they are known when its next packet has
//! arrived.

use crate::sink::Sink;
use crate::source::Stream;
use crate::state::State;
use crate::transfer::{Failure, Transfer};
use ctf::{Feed, Item, Metadata, StreamName};
use rtrace_abi::ioctl::Packet;
use std::fmt;
use std::time::{Duration, Instant};
use system::{Error, Result};

/// The interval of passing on events.
pub const PERIOD: Duration = Duration::from_millis(40);

/// If more bytes are in memory, events are passed on at once.
const MOST: usize = 64 << 20;

/// The receiver of a live trace.
pub trait View: Send {
    /// Gets the trace's description, before everything else, and each time it has changed.
    fn describe(&mut self, metadata: &Metadata) -> Result<()>;

    /// Gets the next item, of the stream with this number.
    fn item(&mut self, stream: usize, item: &Item<'_>) -> Result<()>;

    /// No more items for the moment. All events up to the clock value `time` have arrived.
    fn pause(&mut self, time: u64) -> Result<()>;

    /// No more items at all.
    fn end(&mut self) -> Result<()>;
}

/// Takes the packets of a trace, and hands its events to a [`View`].
pub struct Viewer<V> {
    view: V,
    feed: Feed,
    transfer: Transfer,
    /// The time up to which everything had arrived at the last turn.
    complete: u64,
    next_turn: Instant,
}

impl<V: View> Viewer<V> {
    /// Makes a sink for this view.
    pub fn new(view: V) -> Result<Self> {
        Ok(Self {
            view,
            feed: Feed::default(),
            transfer: Transfer::new().map_err(Error::system("cannot make a pipe"))?,
            complete: 0,
            next_turn: Instant::now() + PERIOD,
        })
    }

    /// Passes on the items up to the clock value `until`.
    fn hand_on(&mut self, until: u64) -> Result<()> {
        while let Some((stream, item)) = self.feed.next_item(until)? {
            self.view.item(stream, &item)?;
        }
        self.view.pause(until.min(self.feed.newest()))
    }
}

impl<V> fmt::Debug for Viewer<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Viewer")
            .field("feed", &self.feed)
            .finish_non_exhaustive()
    }
}

impl<V: View> Sink for Viewer<V> {
    fn resumed(&self) -> bool {
        false
    }

    fn describe(&mut self, metadata: &str) -> Result<()> {
        self.view.describe(self.feed.describe(metadata)?)
    }

    fn open(&mut self, stream: &StreamName) -> Result<usize> {
        self.feed.open(stream)
    }

    fn last(&self, stream: usize) -> Option<u64> {
        self.feed.last(stream)
    }

    fn packet(&mut self, number: usize, packet: &Packet, from: &mut dyn Stream) -> Result<()> {
        let read = self.transfer.read_packet(from, packet.size);
        let bytes = read.map_err(|failure| match failure {
            Failure::Stream(cause) => Error::Stream {
                stream: self.name(number),
                action: "splice",
                cause,
            },
            Failure::Output(cause) => Error::system("cannot read a pipe")(cause),
        })?;
        self.feed.push(number, bytes)
    }

    fn name(&self, stream: usize) -> String {
        self.feed.name(stream).display().to_string()
    }

    fn deadline(&self) -> Option<Instant> {
        let now = Instant::now;
        Some(if self.feed.bytes() > MOST {
            now()
        } else {
            self.next_turn
        })
    }

    fn turn(&mut self, _stats: &dyn Fn() -> Result<String>) -> Result<()> {
        self.hand_on(self.complete)?;
        self.complete = self.feed.newest();
        self.next_turn = Instant::now() + PERIOD;
        Ok(())
    }

    /// Everything has arrived.
    fn sync(&mut self) -> Result<()> {
        self.hand_on(u64::MAX)
    }

    fn end(mut self: Box<Self>, _state: State, _unwritten: u64, _stats: &str) -> Result<()> {
        self.view.end()
    }

    fn discard(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
