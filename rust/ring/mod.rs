// SPDX-License-Identifier: GPL-2.0

//! The ring: decides which bytes of a buffer belong to the writer and which to the reader.
//!
//! This is the algorithm of section 4 of Desnoyers and Dagenais, "Lockless Multi-Core
//! High-Throughput Buffering Scheme for Kernel Tracing", completed where the paper leaves a gap.
//! The code has no pointer, no kernel call and no payload. It returns positions in a buffer and
//! says when the bytes there may be read. kbuild compiles these files into the module; cargo
//! compiles the same files for the tests.
//!
//! Documentation/internals/ring.md has the vocabulary, the states of a slot, the equations, and each difference
//! from the paper with its reason. In short:
//!
//! - *Position*: number of bytes since the buffer began, wrapping. The low bits are the offset in a sub-buffer,
//!   the next bits the slot, the rest the *lap*.
//! - *Slot*: a place in the order of sub-buffers ([`slot::Slot`]). Its *reference* names the memory that it
//!   uses, so the reader can exchange that memory for its own.
//! - *Reserve*: advance `wcnt`. *Commit*: subtract the written bytes from the slot's `left`. When `left`
//!   reaches 0, the *packet* is *delivered*. *Switch*: close the packet before it is full.
//!
//! # Contexts
//!
//! The *writer* ([`reserve`], [`commit`], [`switch`]) runs on the buffer's CPU with preemption
//! disabled, in any context. A nested context (interrupt, NMI) returns before the interrupted
//! context continues, so writers nest like function calls. For an offline CPU, one caller that
//! keeps the CPU offline runs the writer's functions instead. For an isolated CPU, the deputy of
//! the CPU's gate may run [`switch`] elsewhere, while no context is inside the gate. The *reader*
//! ([`consume`]) runs on any CPU. There is one reader at a time. The reader's [`exchange`] runs
//! where [`switch`] may run.
//!
//! # Words
//!
//! | word | written by | how |
//! | --- | --- | --- |
//! | `wcnt` | writer | local cmpxchg |
//! | `rcnt` | reader (put), writer (push, overwrite mode) | shared cmpxchg |
//! | `left` (slot) | writer | local subtraction that returns whether 0 is left; store at delivery |
//! | `commit_seq` (slot) | writer, at delivery | store; one deliverer per lap |
//! | `reference` (slot) | writer (hold, deliver), reader (get, unget, exchange) | shared cmpxchg; store while held |
//! | the open slot; `last`, `to_memory` (slot) | writer | store; the values do not change while a writer uses them |
//! | `records`, lost counters | writer | local add |
//!
//! # Invariants
//!
//! - I1. `wcnt` only grows, and a record never crosses a sub-buffer's end.
//! - I2. The bytes reserved in a slot in one lap, headers and padding included, add up to the
//!   sub-buffer's size. So `left` is 0 exactly when the lap is complete. The one commit that brings
//!   `left` to 0 delivers the packet.
//! - I3. No byte of a lap is reserved in a slot before the slot's previous lap was delivered
//!   (equation 3). So while one context closes or delivers a packet, no other context writes the
//!   slot.
//! - I4. A writer writes only memory whose reference is held (without [`IDLE`](reference::IDLE)).
//!   Either the writer has held the reference itself, or it reserved in the open slot, whose
//!   reference some context has held. A reference stays held until the packet is complete, and the
//!   reader exchanges only idle references. So writer and reader never access the same memory.
//! - I5. In discard mode `wcnt` never passes `rcnt` by more than the buffer (equation 1). In
//!   overwrite mode the writer pushes `rcnt`, and the references keep I4.
//! - I6. Every record is counted once: committed in a packet, or lost for one reason. A committed
//!   record is read, or overwritten, or still in the buffer.
//!
//! # Barriers
//!
//! | label | where | orders | partner |
//! | --- | --- | --- | --- |
//! | W1 | [`commit`]: `publish` before `commit_seq` | payload, header, reference before `commit_seq` | R1 |
//! | W2 | [`reserve`]: `rcnt` load-acquire, discard mode | `rcnt` before writes to the freed memory | R3 |
//! | W3 | [`reserve`]: cmpxchg of the reference to held | taking before writing | R2 |
//! | R1 | [`consume`]: `promote` after `commit_seq` | `commit_seq` before reference and payload | W1 |
//! | R2 | [`consume`]: cmpxchg of the reference | exchange before reading; reading before memory becomes spare | W3 |
//! | R3 | [`consume`]: cmpxchg of `rcnt` in put | reading before freeing | W2 |
//!
//! The paper's promotion is the pair W1 and R1. The writer's side may be only a compiler barrier if
//! the reader makes the writer's CPU execute a full barrier (by an IPI), between two full barriers
//! of its own (Algorithm 6). The [`platform::Platform`] chooses between this and an ordinary pair
//! of barriers; see `publish` and `promote` there.

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

/// Policy for a record for which no sub-buffer is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Refuses and counts the new record; the buffer's content stays.
    Discard,
    /// Overwrites the oldest packet and counts its records: a flight recorder.
    Overwrite,
}

/// State of one buffer's write side, with the words that the writer shares with the reader.
///
/// # Invariants
///
/// - There are `geometry.count()` slots.
/// - Positions obey I1-I6 of the [module](self).
// The writer's words come first and together, because the hot path uses them.
#[repr(C)]
pub struct Ring<P: Platform> {
    wcnt: P::Local,
    geometry: Geometry<P>,
    slots: P::Slots,
    /// Writers' address of the first byte of the first bank of memory.
    base: P::Shared,
    /// The position of the first packet.
    origin: u64,
    /// Size in bytes of a packet header, which precedes the first record.
    header: u64,
    /// Size in bytes of the largest record.
    largest: u64,
    /// Distance of a new packet's start from `rcnt` at which no sub-buffer is free for the packet. In
    /// discard mode it is that of equation (1); in overwrite mode it is never reached.
    full_at: u64,
    mode: Mode,
    lost: LostCounters<P>,
    /// Value of `discarded` in the last closed packet. A nested close may leave an older value
    /// here; then [`Ring::report_losses`] reports the same losses once more.
    reported: P::Local,
    platform: P,
    /// On its own cache line, because the reader writes it. The writer reads it only when it switches packets.
    rcnt: OwnLine<P::Shared>,
    /// Records of packets that the reader could not return ([`Ring::unget`], [`Ring::restore`]).
    dropped: P::Shared,
    /// Like `base`, for the second bank ([`exchange`]).
    second_base: P::Shared,
}

/// Keeps a word that the reader writes out of the writer's cache lines.
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
    /// `origin` is 0 except in tests, which start just below a wrap. `slots` holds one slot for
    /// each sub-buffer, in order, made by [`Slot::new`].
    ///
    /// `base` is the writers' address of the first byte of the memory. Readers address that byte as
    /// 0.
    ///
    /// Returns [`None`] in each of these cases:
    /// - `slots` does not fit `geometry`;
    /// - `origin` is not the first position of a lap;
    /// - `header` leaves no room for a record;
    /// - `header` is 0: every commit must reduce `left`.
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

    /// Sizes of the buffer.
    #[inline(always)]
    pub fn geometry(&self) -> &Geometry<P> {
        &self.geometry
    }

    /// Discard or overwrite.
    #[inline(always)]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Platform that the ring runs on.
    pub fn platform(&self) -> &P {
        &self.platform
    }

    /// Counters of lost records. Any CPU may read them.
    #[inline(always)]
    pub fn lost(&self) -> &LostCounters<P> {
        &self.lost
    }

    /// Number of records committed since the ring was made. Any CPU; exact while the writer is
    /// idle.
    pub fn recorded(&self) -> u64 {
        self.slots
            .all()
            .iter()
            .fold(0, |sum, slot| sum.wrapping_add(slot.records.load()))
    }

    /// Number of records overwritten before they were read. Any CPU; exact while the writer is
    /// idle.
    pub fn overwritten(&self) -> u64 {
        self.lost.overwritten().wrapping_add(self.dropped.load())
    }

    /// The slot in which `position` lies.
    ///
    /// [`None`] cannot happen (invariant of [`Ring`]). It is returned anyway, because the hot path
    /// must not contain a panic.
    #[inline(always)]
    fn slot(&self, position: u64) -> Option<&Slot<P>> {
        self.slots.all().get(self.geometry.index(position) as usize)
    }
}
