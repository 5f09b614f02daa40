// SPDX-License-Identifier: GPL-2.0

//! An AUX area: decides which bytes of a ring of raw bytes belong to the producer and which to the
//! reader. This file handles positions only, no bytes.
//!
//! In addition to its buffer, a CPU may have an area for large chunks that a producer writes
//! itself. A producer is the driver of a hardware tracer, or code that copies a firmware's log. It
//! requests a piece of the area ([`Aux::begin`]), writes it, and reports how many bytes it wrote
//! ([`Aux::end`]). These are the next bytes of the area's stream.
//!
//! A *position* is a number of bytes since the beginning of the trace. The area has the last `size`
//! bytes before `head`. There is at most one *chunk* at a time, recorded in `open`. A chunk is
//! contiguous, so it ends at the area's end at the latest.
//!
//! # Words
//!
//! | word | written by | how |
//! | --- | --- | --- |
//! | `open` | the producer, when it begins and ends a chunk | shared cmpxchg |
//! | `head` | the producer, at the end of a chunk | shared cmpxchg |
//! | `tail` | the reader; the producer (push, overwrite mode) | shared cmpxchg |
//! | `collisions` | producers on the area's CPU | local add |
//! | the other counters | the producer whose chunk is open | store |
//!
//! # Invariants
//!
//! - A1. `tail <= head`, and a chunk that begins at `head` ends at most `size` after `tail`.
//! - A2. While `tail` is held ([`HELD`]), only the reader moves it. So the bytes from `tail` to
//!   `head` do not change. In discard mode it is always held.
//! - A3. Every byte before `head` is read, counted as overwritten, or still in the area.
//!
//! # Barriers
//!
//! | label | where | orders | partner |
//! | --- | --- | --- | --- |
//! | X1 | [`Aux::end`]: cmpxchg of `head` | the chunk's bytes before `head` | X2 |
//! | X2 | [`Aux::head`]: load-acquire | `head` before reading the bytes | X1 |
//! | X3 | [`Aux::begin`]: load-acquire or cmpxchg of `tail` | `tail` before the bytes are written | X4 |
//! | X4 | [`Aux::free`], [`Aux::release`]: cmpxchg of `tail` | reading before freeing | X3 |
//! | X5 | [`Aux::begin`]: cmpxchg of `open` | the previous chunk, from any producer | X6 |
//! | X6 | [`Aux::end`]: cmpxchg of `open` | `head` and counters before the next chunk | X5 |

use super::platform::{Local, Platform, Shared};
use super::Mode;

/// Bit of `tail` that is set while the reader holds the bytes from there on.
const HELD: u64 = 1 << 63;

/// The positions of one CPU's area.
///
/// # Invariants
///
/// `size` is a power of two; A1 to A3 of the [module](self).
pub struct Aux<P: Platform> {
    size: u64,
    mode: Mode,
    /// Non-zero while a chunk is open.
    open: P::Shared,
    /// Position after the last chunk.
    head: P::Shared,
    /// Position of the oldest byte in the area, with [`HELD`].
    tail: P::Shared,
    collisions: P::Local,
    chunks: P::Shared,
    overwritten: P::Shared,
    refused: P::Shared,
    lost: P::Shared,
    /// The values of `refused`, `lost` and `collisions` that ended chunks have reported.
    told: [P::Shared; 3],
}

/// A piece of the area that the producer owns until [`Aux::end`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Position of the first byte.
    pub position: u64,
    /// Size in bytes; not 0.
    pub len: u64,
}

/// Losses to report with a chunk that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Bytes lost since the previous chunk: see [`AuxCounts::lost`].
    pub lost: u64,
    /// Whether there was no room for an earlier request.
    pub truncated: bool,
    /// Whether a request found an open chunk.
    pub collision: bool,
}

/// Counters of an area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuxCounts {
    /// Number of chunks that ended.
    pub chunks: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Number of these bytes that later bytes have overwritten.
    pub overwritten: u64,
    /// Number of requests for which there was no room.
    pub refused: u64,
    /// Bytes of refused requests that name a number of bytes, and bytes of abandoned chunks.
    pub lost: u64,
    /// Number of requests that found an open chunk.
    pub collisions: u64,
}

impl<P: Platform> Aux<P> {
    /// Makes an empty area of `size` bytes. [`None`]: `size` is no power of two.
    pub fn new(size: u64, mode: Mode) -> Option<Self> {
        if !size.is_power_of_two() || size >= HELD {
            return None;
        }
        let held = match mode {
            Mode::Discard => HELD,
            Mode::Overwrite => 0,
        };
        let zero = || P::Shared::new(0);
        Some(Self {
            size,
            mode,
            open: zero(),
            head: zero(),
            tail: P::Shared::new(held),
            collisions: P::Local::new(0),
            chunks: zero(),
            overwritten: zero(),
            refused: zero(),
            lost: zero(),
            told: [zero(), zero(), zero()],
        })
    }

    /// Bytes of the area.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Discard or overwrite.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Offset of a position in the area.
    pub fn offset(&self, position: u64) -> u64 {
        position & self.size.wrapping_sub(1)
    }

    /// Begins a chunk of up to `wanted` bytes (0: as many as possible). The chunk may be shorter.
    /// It ends at the latest at the end of the area, at the reader's position, or where held bytes
    /// begin. In overwrite mode it overwrites as many of the oldest bytes as it needs.
    ///
    /// Returns [`None`] if there is no room, or a chunk is open. Both are counted.
    ///
    /// Context: the area's CPU, in any context, NMI included.
    pub fn begin(&self, wanted: u64) -> Option<Chunk> {
        // X5.
        if !self.open.compare_exchange(0, 1) {
            self.count_collision();
            return None;
        }
        let position = self.head.load();
        let contiguous = self.size.wrapping_sub(self.offset(position));
        let len = match wanted {
            0 => contiguous,
            _ => contiguous.min(wanted),
        };
        let len = self.make_room(position, len);
        if len == 0 {
            add(&self.refused, 1);
            add(&self.lost, wanted);
            self.close();
            return None;
        }
        Some(Chunk { position, len })
    }

    /// Returns how many of the `len` bytes from `head` on are free, or can be overwritten.
    fn make_room(&self, head: u64, len: u64) -> u64 {
        loop {
            // X3. A push fails only if the reader held or released `tail` meanwhile. Each change of the
            // reader causes at most one more round.
            let tail = self.tail.load_acquire();
            let oldest = tail & !HELD;
            let room = self.size.wrapping_sub(head.wrapping_sub(oldest));
            if len <= room || tail & HELD != 0 {
                return len.min(room);
            }
            let pushed = head.wrapping_add(len).wrapping_sub(self.size);
            if self.tail.compare_exchange(tail, pushed) {
                add(&self.overwritten, pushed.wrapping_sub(oldest));
                return len;
            }
        }
    }

    /// Ends a chunk whose first `written` bytes were written (at most its size counts). Any CPU, any
    /// context, NMI included.
    pub fn end(&self, chunk: Chunk, written: u64) -> Told {
        let Chunk { position, len } = chunk;
        let told = self.tell();
        add(&self.chunks, 1);
        // X1. No other context writes `head` here.
        let end = position.wrapping_add(written.min(len));
        self.head.compare_exchange(position, end);
        self.close();
        told
    }

    /// Ends a chunk without recording its bytes, and counts the `written` bytes as lost. Context:
    /// as [`end`](Self::end).
    pub fn abandon(&self, written: u64) {
        add(&self.lost, written);
        self.close();
    }

    /// Counts a request that found an open chunk. On the area's CPU, in any context, NMI included.
    pub fn count_collision(&self) {
        self.collisions.increment();
    }

    /// X6.
    fn close(&self) {
        self.open.compare_exchange(1, 0);
    }

    /// Returns the losses since the last call.
    fn tell(&self) -> Told {
        let news = |told: &P::Shared, now: u64| {
            let new = now.wrapping_sub(told.load());
            told.store(now);
            new
        };
        let [refused, lost, collisions] = &self.told;
        Told {
            lost: news(lost, self.lost.load()),
            truncated: news(refused, self.refused.load()) != 0,
            collision: news(collisions, self.collisions.load()) != 0,
        }
    }

    /// Position after the last chunk. Bytes before it may be read while the reader holds them. Any
    /// CPU.
    pub fn head(&self) -> u64 {
        // X2.
        self.head.load_acquire()
    }

    /// Holds the bytes in the area for the reader, if it does not hold them yet. Returns the
    /// position of the oldest byte. Called by the one reader.
    pub fn hold(&self) -> u64 {
        loop {
            let tail = self.tail.load_acquire();
            if tail & HELD != 0 || self.tail.compare_exchange(tail, tail | HELD) {
                return tail & !HELD;
            }
        }
    }

    /// Position of the oldest byte, if the reader holds it. Called by the one reader.
    pub fn held(&self) -> Option<u64> {
        let tail = self.tail.load();
        (tail & HELD != 0).then_some(tail & !HELD)
    }

    /// Frees the bytes before `position`; the reader keeps the rest. The reader holds these bytes,
    /// and they are before the head. Called by the one reader.
    pub fn free(&self, position: u64) {
        let tail = self.tail.load();
        // X4. While `tail` is held, no other context writes it (A2).
        self.tail.compare_exchange(tail, position | HELD);
    }

    /// In overwrite mode, allows the producer to overwrite the bytes not yet freed. Called by the one
    /// reader.
    pub fn release(&self) {
        if self.mode == Mode::Overwrite {
            let tail = self.tail.load();
            // X4, as above.
            self.tail.compare_exchange(tail, tail & !HELD);
        }
    }

    /// Number of unread bytes. Any CPU; exact while no producer writes.
    pub fn unread(&self) -> u64 {
        // `tail` first: with the other order the difference could be negative.
        let tail = self.tail.load_acquire() & !HELD;
        self.head().wrapping_sub(tail)
    }

    /// Returns the counters. Any CPU; exact while no producer writes.
    pub fn counts(&self) -> AuxCounts {
        AuxCounts {
            chunks: self.chunks.load(),
            bytes: self.head.load(),
            overwritten: self.overwritten.load(),
            refused: self.refused.load(),
            lost: self.lost.load(),
            collisions: self.collisions.load(),
        }
    }
}

/// Adds to a counter. The caller is the only context that writes it now.
fn add(counter: &impl Shared, value: u64) {
    counter.store(counter.load().wrapping_add(value));
}
