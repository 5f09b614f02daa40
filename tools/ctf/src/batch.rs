// SPDX-License-Identifier: GPL-2.0

//! Consecutive items of a stream, decoded at once.

use crate::damage::Damage;
use crate::event::Found;
use crate::header::PacketAt;
use crate::link::Link;
use crate::stream::WINDOW;
use std::ops::Range;
use system::Error;

/// Bytes of the windows of all streams together, in one of the two batches of each, unless there are so many
/// streams that each has the least window.
const WINDOWS: usize = 16 << 20;

/// The least window.
const LEAST_WINDOW: usize = 1 << 12;

/// Bytes of a window for each event of a batch: the usual size of an event, and about that of a [`Found`].
const EVENT: usize = 32;

/// Maximum size of the batches of a stream.
///
/// A batch has a window of `bytes` bytes, and `events` places: one for each event, and [`MARK`] for each other item.
/// So a stream has two batches in memory, of at most three windows each: 384 KiB, with 256 streams and more 96 MiB
/// in all, and with very many streams 24 KiB each. These numbers depend neither on the sizes of packets nor on the
/// number of events. In addition one event of all streams may have up to [`LONGEST_EVENT`](crate::LONGEST_EVENT).
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes of events.
    pub bytes: usize,
    /// Events.
    pub events: usize,
}

/// Size of a [`Mark`] in events.
const MARK: usize = 8;

impl Limits {
    /// Of each of so many streams.
    pub fn of(streams: usize) -> Self {
        let bytes = (WINDOWS / streams.max(1)).clamp(LEAST_WINDOW, WINDOW);
        Self {
            bytes,
            events: bytes / EVENT,
        }
    }
}

/// Items of a stream, one after the other.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Bytes of the events.
    pub bytes: Vec<u8>,
    /// The events.
    pub events: Vec<Found>,
    /// The other items.
    pub marks: Vec<Mark>,
    /// What follows.
    pub rest: Rest,
    /// When that is.
    pub time: u64,
}

/// What follows a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rest {
    /// Another batch.
    #[default]
    More,
    /// An event that does not fit a window.
    Long,
    /// Nothing.
    Over,
}

/// An item other than an event.
#[derive(Debug)]
pub(super) struct Mark {
    /// Number of events in the batch before it.
    pub events: usize,
    /// When it is.
    pub time: u64,
    /// The item.
    pub kind: Kind,
}

/// Which item.
#[derive(Debug)]
pub(super) enum Kind {
    /// A packet begins.
    Packet {
        /// Its header and place.
        at: PacketAt,
        /// How it goes on from the one before it.
        link: Link,
        /// Whether damage was before it.
        after_damage: bool,
        /// The number of its file among the stream's.
        file: usize,
        /// Those of its bytes that are in the batch.
        content: Range<usize>,
    },
    /// From here on nothing is missing.
    Whole,
    /// Bytes that cannot be read.
    Damaged(Damage),
    /// The stream's end, with bytes of last packets that are not whole.
    End(u64),
    /// The stream cannot be read any further.
    Failed(Option<Error>),
}

impl Batch {
    /// Removes all items.
    pub fn clear(&mut self) {
        self.events.clear();
        self.marks.clear();
        self.rest = Rest::More;
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.marks.is_empty()
    }

    /// Number of events for which there is room.
    pub fn room(&self, limits: &Limits) -> usize {
        let used = self.events.len() + MARK * self.marks.len();
        limits.events.saturating_sub(used)
    }

    /// Adds an item.
    pub fn mark(&mut self, time: u64, kind: Kind) {
        self.marks.push(Mark {
            events: self.events.len(),
            time,
            kind,
        });
    }
}
