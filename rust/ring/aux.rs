// SPDX-License-Identifier: GPL-2.0

//! An AUX area: which bytes of a ring of raw bytes belong to whom. Positions only.
//!
//! Beside its buffer a CPU may have an area for large chunks that some producer writes itself: the
//! driver of a hardware tracer, or what copies a firmware's log. It asks for a piece of the area
//! ([`Aux::begin`]), has it written, and says how much that was ([`Aux::end`]). What it wrote are the
//! next bytes of the area's stream.
//!
//! *Positions* are bytes since the beginning of the trace; the area has the last of them. There is
//! one *chunk* at a time: `open` says so. It is contiguous, so it ends where the area does.
//!
//! # Words
//!
//! | word | written by | how |
//! | --- | --- | --- |
//! | `open` | who begins and ends a chunk | shared cmpxchg |
//! | `head` | the producer, at the end of a chunk | shared cmpxchg |
//! | `tail` | the reader; the producer (push, overwrite mode) | shared cmpxchg |
//! | `collisions` | producers on the area's CPU | local add |
//! | the other counters | who has `open` | store |
//!
//! # Invariants
//!
//! - A1. `tail <= head`, and a chunk that was begun at `head` ends at most `size` behind `tail`.
//! - A2. While `tail` is held ([`HELD`]) only the reader moves it. So the bytes from there to `head`
//!   stay as they are. In discard mode it is always held.
//! - A3. Every byte up to `head` is read, counted as overwritten, or still in the area.
//!
//! # Barriers
//!
//! | label | where | orders | partner |
//! | --- | --- | --- | --- |
//! | X1 | [`Aux::end`]: cmpxchg of `head` | the chunk's bytes before `head` | X2 |
//! | X2 | [`Aux::head`]: load-acquire | `head` before reading the bytes | X1 |
//! | X3 | [`Aux::begin`]: load-acquire or cmpxchg of `tail` | `tail` before the bytes are written | X4 |
//! | X4 | [`Aux::free`], [`Aux::release`]: cmpxchg of `tail` | reading before freeing | X3 |
//! | X5 | [`Aux::begin`]: cmpxchg of `open` | the chunk before, whoever wrote it | X6 |
//! | X6 | [`Aux::end`]: cmpxchg of `open` | `head` and counters before the next chunk | X5 |

use super::platform::{Local, Platform, Shared};
use super::Mode;

/// The bit of `tail` that says that a reader has what follows.
const HELD: u64 = 1 << 63;

/// The positions of one CPU's area.
///
/// # Invariants
///
/// `size` is a power of two; A1 to A3 of the [module](self).
pub struct Aux<P: Platform> {
    size: u64,
    mode: Mode,
    /// Not 0 while there is a chunk.
    open: P::Shared,
    /// The position behind the last chunk.
    head: P::Shared,
    /// The position of the oldest byte that is there, and [`HELD`].
    tail: P::Shared,
    collisions: P::Local,
    chunks: P::Shared,
    overwritten: P::Shared,
    refused: P::Shared,
    lost: P::Shared,
    /// What of the last three counters chunks have told.
    told: [P::Shared; 3],
}

/// A piece of the area that is the producer's, until [`Aux::end`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The position of its first byte.
    pub position: u64,
    /// Its bytes; not 0.
    pub len: u64,
}

/// What there is to tell of a chunk that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Bytes that were asked for since the chunk before, and not given.
    pub lost: u64,
    /// Whether there was no room for what was to come before it.
    pub truncated: bool,
    /// Whether somebody asked while there was a chunk already.
    pub collision: bool,
}

/// What an area has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Chunks that ended.
    pub chunks: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Of these, those that are there no more because others took their place.
    pub overwritten: u64,
    /// How often there was no room.
    pub refused: u64,
    /// Bytes that were lost so, where the producer said how many it had, and those of chunks that
    /// nobody records any more.
    pub lost: u64,
    /// How often there was a chunk already.
    pub collisions: u64,
}

impl<P: Platform> Aux<P> {
    /// An empty area of so many bytes. [`None`]: that is no power of two.
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

    /// Where in the area a position is.
    pub fn offset(&self, position: u64) -> u64 {
        position & self.size.wrapping_sub(1)
    }

    /// Begins a chunk of up to `wanted` bytes (0: as many as there are). It may be shorter: it ends
    /// where the area does, where the reader is, or where what is held begins. In overwrite mode so many
    /// bytes of the oldest are gone then.
    ///
    /// [`None`]: there is no room, or there is a chunk; that is counted. On the area's CPU, in any
    /// context, NMI included.
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

    /// Of `len` bytes from `head` on those that are free now, or can be overwritten.
    fn make_room(&self, head: u64, len: u64) -> u64 {
        loop {
            // X3. A push that fails has met a reader, who takes hold or lets go once for each.
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

    /// Ends a chunk, of which the first `written` bytes were written, at most all. Any CPU, any context,
    /// NMI included.
    pub fn end(&self, chunk: Chunk, written: u64) -> Told {
        let Chunk { position, len } = chunk;
        let told = self.tell();
        add(&self.chunks, 1);
        // X1. Nobody else writes it.
        let end = position.wrapping_add(written.min(len));
        self.head.compare_exchange(position, end);
        self.close();
        told
    }

    /// Ends a chunk that nobody wants any more: its bytes, of which `written` were written, are lost.
    /// As [`end`](Self::end).
    pub fn abandon(&self, written: u64) {
        add(&self.lost, written);
        self.close();
    }

    /// Counts somebody who came while there was a chunk. On the area's CPU, in any context, NMI included.
    pub fn count_collision(&self) {
        self.collisions.increment();
    }

    /// X6.
    fn close(&self) {
        self.open.compare_exchange(1, 0);
    }

    /// What happened since it was told before.
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

    /// The position behind the last chunk: what is before may be read once it is held. Any CPU.
    pub fn head(&self) -> u64 {
        // X2.
        self.head.load_acquire()
    }

    /// Has the reader hold what is there from now on, if it does not yet. Returns the position of the
    /// oldest byte. The one reader.
    pub fn hold(&self) -> u64 {
        loop {
            let tail = self.tail.load_acquire();
            if tail & HELD != 0 || self.tail.compare_exchange(tail, tail | HELD) {
                return tail & !HELD;
            }
        }
    }

    /// The position of the oldest byte, if the reader holds it. The one reader.
    pub fn held(&self) -> Option<u64> {
        let tail = self.tail.load();
        (tail & HELD != 0).then_some(tail & !HELD)
    }

    /// Gives the bytes before `position` back; the reader holds on to what follows. It holds them, and
    /// they are before the head. The one reader.
    pub fn free(&self, position: u64) {
        let tail = self.tail.load();
        // X4. While it is held nobody else writes it (A2).
        self.tail.compare_exchange(tail, position | HELD);
    }

    /// In overwrite mode: lets the rest be overwritten again. The one reader.
    pub fn release(&self) {
        if self.mode == Mode::Overwrite {
            let tail = self.tail.load();
            // X4, as above.
            self.tail.compare_exchange(tail, tail & !HELD);
        }
    }

    /// Bytes that are there. Any CPU; exact while nobody writes.
    pub fn unread(&self) -> u64 {
        // In this order there are never fewer than none.
        let tail = self.tail.load_acquire() & !HELD;
        self.head().wrapping_sub(tail)
    }

    /// What was counted. Any CPU; exact while nobody writes.
    pub fn counts(&self) -> Counts {
        Counts {
            chunks: self.chunks.load(),
            bytes: self.head.load(),
            overwritten: self.overwritten.load(),
            refused: self.refused.load(),
            lost: self.lost.load(),
            collisions: self.collisions.load(),
        }
    }
}

/// Adds to a counter that nobody else writes now.
fn add(counter: &impl Shared, value: u64) {
    counter.store(counter.load().wrapping_add(value));
}
