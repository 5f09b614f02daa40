// SPDX-License-Identifier: GPL-2.0

//! Consecutive items of a stream, decoded at once.

use crate::damage::Damage;
use crate::found::FoundEvent;
use crate::header::PacketAt;
use crate::link::Link;
use crate::stream::WINDOW;
use std::ops::Range;
use system::Error;

/// The total size of the windows of all streams, in one of the two batches of each. With very many streams each has
/// the least window instead.
const WINDOWS: usize = 16 << 20;

/// The least window.
const LEAST_WINDOW: usize = 1 << 12;

/// The number of bytes of a window for each event of a batch: the usual size of an event, and about that of a
/// [`FoundEvent`].
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
    /// The limits of each stream, for this number of streams.
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
    /// The bytes of the events.
    pub bytes: Vec<u8>,
    /// The events.
    pub events: Vec<FoundEvent>,
    /// The other items.
    pub marks: Vec<Mark>,
    /// The kind of the item after the batch.
    pub rest: Rest,
    /// The time of that item.
    pub time: u64,
}

/// The kind of the item after a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rest {
    /// Another batch.
    #[default]
    More,
    /// An event that does not fit a window.
    Long,
    /// No item, until another packet arrives.
    Waiting,
    /// No item: the stream is over.
    Over,
}

/// An item other than an event.
#[derive(Debug)]
pub(super) struct Mark {
    /// Number of events in the batch before it.
    pub events: usize,
    /// The time of the item.
    pub time: u64,
    /// The item.
    pub kind: ItemKind,
}

/// The kind of an item.
#[derive(Debug)]
pub(super) enum ItemKind {
    /// A packet begins.
    Packet {
        /// Its header and place.
        at: PacketAt,
        /// Its link to the previous packet.
        link: Link,
        /// Whether damage came before it.
        after_damage: bool,
        /// The number of its file among the stream's.
        file: usize,
        /// The range of its bytes in the batch.
        content: Range<usize>,
    },
    /// From here on no event is missing.
    Whole,
    /// Bytes that cannot be read.
    Damaged(Damage),
    /// The stream's end.
    End {
        /// Bytes of incomplete last packets.
        partial: u64,
        /// The skipped events by id, with their numbers.
        skipped: Vec<(u32, u64)>,
    },
    /// The rest of the stream cannot be read.
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
    pub fn mark(&mut self, time: u64, kind: ItemKind) {
        self.marks.push(Mark {
            events: self.events.len(),
            time,
            kind,
        });
    }
}
