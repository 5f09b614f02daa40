// SPDX-License-Identifier: GPL-2.0

//! The sink that hands a trace on while it is recorded, event by event, in order of time.
//!
//! Every [`PERIOD`] it has the consumer flush all buffers. What the packets had brought until the flush
//! before is older than anything that can still come: it is handed on. So an event is handed on after at
//! most two periods, also where other CPUs are silent; and a packet that a flush closed, and whose writer
//! was interrupted in it, has a period of grace.
//!
//! Losses are in the header of the packet that ends behind them: where a buffer ran full they are known
//! when its next packet has come.

use crate::sink::Sink;
use crate::source::Stream;
use crate::state::State;
use crate::transfer::{Failure, Transfer};
use ctf::{Feed, Item, Metadata, StreamName};
use rtrace_abi::ioctl::Packet;
use std::fmt;
use std::time::{Duration, Instant};
use system::{Error, Result};

/// How often what has come is handed on.
pub const PERIOD: Duration = Duration::from_millis(40);

/// Bytes in memory above which that is done at once.
const MOST: usize = 64 << 20;

/// Who looks at a trace.
pub trait View: Send {
    /// The trace's description, before anything else, and when it has changed.
    fn describe(&mut self, metadata: &Metadata) -> Result<()>;

    /// The next item, of the stream with this number.
    fn item(&mut self, stream: usize, item: &Item<'_>) -> Result<()>;

    /// For the moment there is no more. All that happened up to the clock value `time` has come.
    fn pause(&mut self, time: u64) -> Result<()>;

    /// Nothing comes any more.
    fn end(&mut self) -> Result<()>;
}

/// Takes the packets of a trace, and hands its events to a [`View`].
pub struct Viewer<V> {
    view: V,
    feed: Feed,
    transfer: Transfer,
    /// Up to when everything had come at the last turn.
    complete: u64,
    next_turn: Instant,
}

impl<V: View> Viewer<V> {
    /// For this view.
    pub fn new(view: V) -> Result<Self> {
        Ok(Self {
            view,
            feed: Feed::default(),
            transfer: Transfer::new().map_err(Error::system("cannot make a pipe"))?,
            complete: 0,
            next_turn: Instant::now() + PERIOD,
        })
    }

    /// Hands on what has come up to the clock value `until`.
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
        Ok(self.feed.open(stream))
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

    /// All that there is has come.
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
