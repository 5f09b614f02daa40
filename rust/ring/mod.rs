// SPDX-License-Identifier: GPL-2.0

//! The ring: which bytes of a buffer belong to whom. Positions only.
//!
//! This is the algorithm of section 4 of Desnoyers and Dagenais, "Lockless Multi-Core
//! High-Throughput Buffering Scheme for Kernel Tracing", completed where the paper leaves
//! a gap. It knows no pointer, no kernel and no payload: it hands out positions in a
//! buffer and says when they may be read. kbuild compiles these files into the module;
//! cargo compiles the same files for the tests.
//!
//! # Vocabulary
//!
//! - *Buffer*: the memory of one CPU in one channel. A power of two of *sub-buffers*, each
//!   a power of two of bytes, and one more sub-buffer that belongs to the reader.
//! - *Position*: bytes since the beginning of time, wrapping. Its low bits are the offset in
//!   a sub-buffer, the next the slot, the rest the *lap*.
//! - *Slot*: a place in the order of sub-buffers ([`slot::Slot`]). Which memory stands there is
//!   said by the slot's *reference*, so that the reader can exchange it for its own.
//! - *Reserve*: move `wcnt`, which makes the bytes between the old and the new value the caller's.
//! - *Commit*: take from the slot's `left` what was written. When nothing is left of a lap, the
//!   sub-buffer holds a finished *packet* and is *delivered*.
//! - *Switch*: close the packet being written before it is full.
//!
//! # A sub-buffer's life
//!
//! ```text
//!            reserve at its first byte                last commit of the lap
//!   idle  ------------------------------>  written  ------------------------>  finished
//!    ^     (takes the reference: HELD)               (reference: IDLE|PACKET,     |   |
//!    |                                                tag; then commit_seq)       |   |
//!    |                                                                            |   |
//!    |   get: the reader's spare stands here instead, its packet is the reader's  |   |
//!    +----------------------------------------------------------------------------+   |
//!    |   overwrite mode: the writer takes it back unread, its records are lost        |
//!    +--------------------------------------------------------------------------------+
//! ```
//!
//! # Who runs where
//!
//! Everything of the *writer* ([`reserve`], [`commit`], [`switch`]) runs on the buffer's CPU, with
//! preemption disabled, in any context. A nested context (interrupt, NMI) runs to its end
//! before the one below goes on, so writers nest like function calls. For a CPU that is
//! offline, one caller that keeps it offline stands in for it. The *reader* ([`consume`]) runs on
//! any CPU; there is one at a time. Its [`exchange`] runs on the writer's CPU.
//!
//! # Words
//!
//! | word | written by | how |
//! | --- | --- | --- |
//! | `wcnt` | writer | local cmpxchg |
//! | `rcnt` | reader (put), writer (push, overwrite mode) | shared cmpxchg |
//! | `left` (slot) | writer | local subtraction that tells whether nothing is left; store at delivery |
//! | `commit_seq` (slot) | writer, at delivery | store; one deliverer per lap |
//! | `reference` (slot) | writer (hold, deliver), reader (get, unget, exchange) | shared cmpxchg; store while held |
//! | the open slot; `last`, `to_memory` (slot) | writer | store; what they say does not change while it matters |
//! | `records`, lost counters | writer | local add |
//!
//! # Invariants
//!
//! - I1. `wcnt` only grows, and a record never crosses a sub-buffer's end.
//! - I2. The bytes reserved in a slot in one lap, headers and padding included, add up to the
//!   sub-buffer's size. So nothing is `left` exactly when the lap is complete, and the one
//!   commit that finds it so delivers.
//! - I3. No byte of a lap is reserved in a slot before its previous lap was delivered
//!   (equation 3). So while a slot is being closed or delivered nobody else writes it.
//! - I4. A writer writes only memory whose reference is held (without
//!   [`IDLE`](reference::IDLE)): it has held it itself, or the open slot is the one it reserved
//!   in, which says that some context has. A reference stays held until the packet is complete,
//!   and the reader exchanges only those that are idle. So they never touch the same memory.
//! - I5. In discard mode `wcnt` never passes `rcnt` by more than the buffer (equation 1). In
//!   overwrite mode `rcnt` is pushed, and the references keep I4.
//! - I6. Every record is counted once: committed in a packet, or lost for one reason; a
//!   committed record is read, or overwritten, or still in the buffer.
//!
//! # Barriers
//!
//! | label | where | orders | partner |
//! | --- | --- | --- | --- |
//! | W1 | [`commit`]: `publish` before `commit_seq` | payload, header, reference before `commit_seq` | R1 |
//! | W2 | [`reserve`]: `rcnt` load-acquire, discard mode | `rcnt` before writes to the freed memory | R3 |
//! | W3 | [`reserve`]: cmpxchg of the reference to held | taking before writing | R2 |
//! | R1 | [`consume`]: `promote` after `commit_seq` | `commit_seq` before reference and payload | W1 |
//! | R2 | [`consume`]: cmpxchg of the reference | exchange before reading; reading the old packet before giving its memory as spare | W3 |
//! | R3 | [`consume`]: cmpxchg of `rcnt` in put | reading before freeing | W2 |
//!
//! W1 with R1 is where the paper promotes: the writer's side may be only a compiler
//! barrier if the reader makes the writer's CPU execute a full barrier (an IPI) between
//! two full barriers of its own (Algorithm 6). The [`platform::Platform`] decides which of
//! the two it is; see `publish` and `promote` there.
//!
//! # Where this differs from the paper
//!
//! - Algorithm 3 adds to a commit counter, then reads it: a nested commit in between delivers
//!   twice. Here the counter of a lap counts down, and one instruction takes from it and tells
//!   whether that was the last (I2). Complete laps are counted at delivery.
//! - Algorithm 1, equation (3): `wcnt` may be stale when `commit_seq` is read; it is read again
//!   before a record is called lost.
//! - A sub-buffer is opened by the first record in it, never in advance: neither a switch nor an
//!   exact fill opens the next one, so idle buffers stay empty and there is no special
//!   first sub-buffer.
//! - Whoever closes a packet has the time and the lost count for its header from the same
//!   `wcnt` cmpxchg, and writes them before committing the padding. So the header is complete
//!   before the packet can be delivered, whoever delivers.
//! - The reference says whether the memory holds an unread packet. Taking it back is one
//!   cmpxchg, and the winner knows whether records were overwritten: counts are exact.
//! - PUSHREADER pushes until there is room, testing each time. One push is not always enough:
//!   a nested record may open the next sub-buffer before the context below it, which opened
//!   one too, has pushed. `rcnt` would stay one sub-buffer behind for ever, at a slot that is
//!   being written, and nothing could be read any more.
//! - A reader that goes away between get and put gives the packet back ([`Ring::unget`]).
//! - A snapshot exchanges the memory of all slots at once, in an interrupt on the writer's CPU
//!   ([`exchange`]).

#![forbid(unsafe_code)]

pub mod aux;
pub mod commit;
pub mod consume;
pub mod exchange;
pub mod geometry;
pub mod image;
pub mod lost;
pub mod platform;
pub mod reference;
pub mod reserve;
pub mod slot;
pub mod switch;

use core::ops::Deref;
use geometry::Geometry;
use lost::LostCounters;
use platform::{Local, Platform, Shared};
use slot::{Slot, Slots};

/// What happens when there is no free sub-buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// New records are refused and counted; what is in the buffer stays.
    Discard,
    /// The oldest packet is overwritten and its records counted: a flight recorder.
    Overwrite,
}

/// The write side's state of one buffer, and what it shares with the reader.
///
/// # Invariants
///
/// - There are `geometry.count()` slots.
/// - Positions obey I1-I6 of the [module](self).
// The writer's words come first and together: they are what the hot path touches.
#[repr(C)]
pub struct Ring<P: Platform> {
    wcnt: P::Local,
    geometry: Geometry<P>,
    slots: P::Slots,
    /// The position of writers that is the first byte of the first bank of memory.
    base: P::Shared,
    /// The position of the first packet.
    origin: u64,
    /// Bytes in front of the first record of every packet.
    header: u64,
    /// Bytes of the largest record.
    largest: u64,
    /// The distance from `rcnt` at which no sub-buffer is free for a new packet: that of equation
    /// (1) in discard mode, never reached in overwrite mode.
    full_at: u64,
    mode: Mode,
    lost: LostCounters<P>,
    /// Discarded records as told in the last closed packet. A nested close may leave an older
    /// value here: then [`Ring::report_losses`] tells the same once more.
    reported: P::Local,
    platform: P,
    /// Own cache line: the reader writes it, the writer looks only when it switches.
    rcnt: OwnLine<P::Shared>,
    /// Records the reader could not give back ([`Ring::unget`], [`Ring::restore`]).
    dropped: P::Shared,
    /// The same as `base` of the second bank ([`exchange`]).
    second_base: P::Shared,
}

/// Keeps a word of the reader's out of the writer's cache lines.
#[repr(align(64))]
struct OwnLine<T>(T);

impl<T> Deref for OwnLine<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<P: Platform> Ring<P> {
    /// Makes an empty ring whose counters start at `origin`, a multiple of the buffer size.
    ///
    /// `origin` is 0 but in tests, which start just below a wrap. `slots` are made by
    /// [`Slot::new`], one for each sub-buffer, in order.
    ///
    /// `base` is what writers call the first byte of the memory, such as its address; readers call
    /// it 0.
    ///
    /// Returns [`None`] if `slots` does not fit `geometry`, if `origin` does not lie on a lap's
    /// first byte, or if `header` leaves no room for a record or is 0: what is committed must
    /// count.
    pub fn new(
        geometry: Geometry<P>,
        mode: Mode,
        header: u64,
        origin: u64,
        base: u64,
        slots: P::Slots,
        platform: P,
    ) -> Option<Self> {
        if slots.all().len() as u64 != geometry.count()
            || geometry.buffer_offset(origin) != 0
            || header == 0
            || header >= geometry.size()
        {
            return None;
        }
        Some(Self {
            wcnt: P::Local::new(origin),
            geometry,
            slots,
            base: P::Shared::new(base),
            origin,
            header,
            largest: geometry.size() - header,
            full_at: match mode {
                Mode::Discard => geometry.buffer_size(),
                Mode::Overwrite => u64::MAX,
            },
            mode,
            lost: LostCounters::new(),
            reported: P::Local::new(0),
            platform,
            rcnt: OwnLine(P::Shared::new(origin)),
            dropped: P::Shared::new(0),
            second_base: P::Shared::new(0),
        })
    }

    /// The sizes.
    #[inline(always)]
    pub fn geometry(&self) -> &Geometry<P> {
        &self.geometry
    }

    /// Discard or overwrite.
    #[inline(always)]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What the ring runs on.
    pub fn platform(&self) -> &P {
        &self.platform
    }

    /// Counters of lost records. Any CPU may read them.
    #[inline(always)]
    pub fn lost(&self) -> &LostCounters<P> {
        &self.lost
    }

    /// Records committed since the ring was made. Any CPU; exact when the writer is quiet.
    pub fn recorded(&self) -> u64 {
        self.slots
            .all()
            .iter()
            .fold(0, |sum, slot| sum.wrapping_add(slot.records.load()))
    }

    /// Records overwritten before they were read. Any CPU; exact when the writer is quiet.
    pub fn overwritten(&self) -> u64 {
        self.lost.overwritten().wrapping_add(self.dropped.load())
    }

    /// The slot in which `position` lies.
    ///
    /// [`None`] cannot happen (invariant of [`Ring`]); it is passed on because the hot path
    /// must not have a panic in it.
    #[inline(always)]
    fn slot(&self, position: u64) -> Option<&Slot<P>> {
        self.slots.all().get(self.geometry.index(position) as usize)
    }
}
