// SPDX-License-Identifier: GPL-2.0

//! Faults that a test can switch on, to show that it finds them. The module has none of this.
//!
//! Each is a mistake that was made, in print or on the way here. A test's platform says
//! which is on ([`Platform::fault`]); where in the ring it strikes is marked by
//! `#[cfg(not(MODULE))]`, and the wrong code stands here. Some strike outside the ring,
//! in what the tests have in the place of the module: those say so.

use super::commit::Complete;
use super::consume::Reader;
use super::lost::Lost;
use super::platform::{Local, Platform, Shared};
use super::reference::Reference;
use super::reserve::{Reserved, Stamp, Switched};
use super::slot::Slot;
use super::switch::Closed;
use super::{Mode, Ring};

macro_rules! faults {
    ($($(#[doc = $text:expr])+ $name:ident,)+) => {
        /// A mistake in the ring.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault {
            $($(#[doc = $text])+ $name,)+
        }

        impl Fault {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// What is wrong.
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($text,)+).trim_start(),)+
                }
            }
        }
    };
}

faults! {
    /// K42: a packet counts as complete when its last byte is committed, whatever of it was
    /// reserved before and is still being written.
    ProducedCount,
    /// Algorithm 3 as printed: a lap is delivered only if its count is larger than the last,
    /// compared unsigned.
    UnsignedCount,
    /// Algorithm 3 as printed: adding to the commit count and reading it are two steps.
    AddThenLoad,
    /// Equation (3) is not tested.
    NoEquation3,
    /// Equation (3) is tested once: `wcnt` is not read again before a record is called lost.
    NoRetest,
    /// Equation (1) goes by an `rcnt` that was read relaxed (no W2).
    RelaxedRcnt,
    /// The reader takes a packet where the reference says that a writer is at the memory.
    NoWriterCheck,
    /// The reader takes a packet of whatever lap.
    NoTagCheck,
    /// The tag has one bit.
    NarrowTag,
    /// `commit_seq` is stored before the reference.
    SeqBeforeFlag,
    /// A writer takes a slot's memory by a load and a store.
    HoldByStore,
    /// Only the context that opened a packet takes its memory.
    OnlyOpenerHolds,
    /// PUSHREADER stores `rcnt`.
    PushByStore,
    /// PUSHREADER tests equation (1) once, then pushes whatever `rcnt` has become.
    PushWithoutRetest,
    /// PUSHREADER pushes once, as printed.
    PushOnce,
    /// The clock is read once, before the loop around the cmpxchg of `wcnt`.
    TimeOutsideLoop,
    /// A packet's end time is taken after the cmpxchg that closed it.
    LateEndTime,
    /// A packet's count of losses is taken after the cmpxchg that closed it.
    LateLosses,
    /// A switch makes a packet of nothing.
    SwitchOfEmpty,
    /// A record that never fits is said to find the buffer full.
    FullBeforeTooLarge,
    /// The exchange of Algorithm 6 is one-way: a reader that dies gives nothing back.
    OneWayExchange,
    /// The reader reads in place: its spare is not exchanged for the packet's memory.
    NoExchange,
    /// Poll goes by equation (4) alone, as printed.
    PollByEquation4,
    /// Neither side executes a barrier at delivery (no W1, no R1). Strikes in the platform.
    NoBarrier,
    /// The reader's CPU switches the packet, not the writer's. Strikes in the reader.
    SwitchElsewhere,
}

/// A time and size that were taken before the loop began.
pub(super) fn early<P: Platform>(stamp: impl Fn() -> Stamp) -> impl Fn() -> Stamp {
    let early = P::fault(Fault::TimeOutsideLoop).then(&stamp);
    move || early.unwrap_or_else(&stamp)
}

/// As [`early`], of a clock that may fail.
pub(super) fn early_once<P: Platform>(
    now: impl FnOnce() -> Option<u64>,
) -> impl FnOnce() -> Option<u64> {
    let (early, now) = if P::fault(Fault::TimeOutsideLoop) {
        (now(), None)
    } else {
        (None, Some(now))
    };
    move || now.map_or(early, |now| now())
}

/// What a reference says of a packet's lap.
pub(super) fn tag<P: Platform>(lap: u64) -> u64 {
    if P::fault(Fault::NarrowTag) {
        lap & 1
    } else {
        lap
    }
}

/// The reference that the reader expects, where it has found `reference`.
pub(super) fn expected<P: Platform>(
    reference: Reference,
    expected: Reference,
    lap: u64,
) -> Reference {
    if P::fault(Fault::NarrowTag) {
        return Reference::packet(reference.index(), tag::<P>(lap));
    }
    let taken = reference.is_packet() && P::fault(Fault::NoTagCheck)
        || !reference.is_idle() && P::fault(Fault::NoWriterCheck);
    if taken {
        reference
    } else {
        expected
    }
}

/// Makes the memory of `reference` its own spare.
pub(super) fn keep_in_place<P: Platform>(reader: &mut Reader, reference: Reference) {
    if P::fault(Fault::NoExchange) {
        reader.spare = reference.index();
    }
}

impl<P: Platform> Ring<P> {
    /// In the place of [`Ring::commit`]: complete is what ends where the packet does.
    pub(super) fn commit_produced<'a>(&self, record: Reserved<'a, P>) -> Option<Complete<'a, P>> {
        let slot = record.slot;
        slot.left.add(record.len.wrapping_neg());
        let end = record.memory.wrapping_add(record.len);
        (self.geometry.offset(end) == 0).then_some(Complete { slot })
    }

    /// As [`commit_produced`](Self::commit_produced), of padding.
    pub(super) fn pad_produced<'a>(
        &self,
        slot: &'a Slot<P>,
        padding: u64,
    ) -> Option<Complete<'a, P>> {
        slot.left.add(padding.wrapping_neg());
        Some(Complete { slot })
    }

    /// In the place of [`Ring::commit_bytes`]: the paper's counter, which goes on from lap to lap.
    pub(super) fn commit_in_two_steps<'a>(
        &self,
        slot: &'a Slot<P>,
        bytes: u64,
    ) -> Option<Complete<'a, P>> {
        slot.left.add(bytes.wrapping_neg());
        (self.geometry.offset(slot.left.load()) == 0).then_some(Complete { slot })
    }

    /// Whether a complete packet is not delivered, because its count is not larger than the last.
    pub(super) fn stays_undelivered(&self, slot: &Slot<P>) -> bool {
        P::fault(Fault::UnsignedCount) && {
            let commit_seq = slot.commit_seq.load();
            self.geometry.advance(commit_seq, self.geometry.size()) <= commit_seq
        }
    }

    /// Says that a packet is finished before its reference does.
    pub(super) fn deliver_early(&self, slot: &Slot<P>, commit_seq: u64) {
        if P::fault(Fault::SeqBeforeFlag) {
            self.platform.publish();
            slot.commit_seq
                .store(self.geometry.advance(commit_seq, self.geometry.size()));
        }
    }

    /// In the place of [`Ring::may_open`].
    pub(super) fn may_open_wrongly(&self, start: u64, slot: &Slot<P>) -> Option<Result<(), Lost>> {
        let (no_equation, relaxed) = (P::fault(Fault::NoEquation3), P::fault(Fault::RelaxedRcnt));
        if !no_equation && !relaxed {
            return None;
        }
        let geometry = &self.geometry;
        if !no_equation && !geometry.is_fully_committed(start, slot.commit_seq.load()) {
            return Some(Err(Lost::Wrapped));
        }
        let read = if relaxed {
            self.rcnt.load()
        } else {
            self.rcnt.load_acquire()
        };
        let full = self.mode == Mode::Discard && geometry.is_full(start, read);
        Some(if full { Err(Lost::Full) } else { Ok(()) })
    }

    /// In the place of [`Ring::push_reader`]. Returns whether it is done.
    pub(super) fn push_wrongly(&self, start: u64) -> bool {
        let wrongly = [
            Fault::PushByStore,
            Fault::PushOnce,
            Fault::PushWithoutRetest,
        ];
        if !wrongly.into_iter().any(P::fault) {
            return false;
        }
        let read = self.rcnt.load();
        let full = self.geometry.is_full(start, read);
        let next = self.geometry.next(read);
        if P::fault(Fault::PushByStore) {
            if full {
                self.rcnt.store(next);
            }
            return !full;
        }
        if P::fault(Fault::PushOnce) {
            if full {
                let _pushed = self.rcnt.compare_exchange(read, next);
            }
            return true;
        }
        if full {
            let mut read = read;
            while !self.rcnt.compare_exchange(read, self.geometry.next(read)) {
                read = self.rcnt.load();
            }
        }
        !full
    }

    /// What a reservation in an open packet is, if its memory is not looked after.
    pub(super) fn reserved_unheld<'a>(
        &self,
        slot: &'a Slot<P>,
        stamp: Stamp,
        position: u64,
        discarded: u64,
    ) -> Switched<'a, P> {
        let Stamp { time, len } = stamp;
        let geometry = &self.geometry;
        let base = geometry.memory(slot.reference().index());
        let fills = geometry.offset(geometry.advance(position, len)) == 0;
        Switched {
            closed: None,
            opened: None,
            filled: fills.then(|| Closed::new(base, geometry.size(), time, discarded, slot)),
            record: Reserved {
                memory: base | geometry.offset(position),
                len,
                time,
                slot,
            },
        }
    }

    /// Why a record of `len` bytes that never fits is lost, if "full" is looked for first.
    pub(super) fn lost_wrongly(&self, old: u64, len: u64) -> Option<Lost> {
        if !P::fault(Fault::FullBeforeTooLarge) || len <= self.largest {
            return None;
        }
        let next = self.geometry.advance(old, self.geometry.size() - 1);
        let start = self.geometry.start(next);
        self.may_open(start, self.slot(start)?).err()
    }

    /// What is told of a packet that was closed: its end time, and the losses until then.
    pub(super) fn told_late(&self, told: (u64, u64), now: impl Fn() -> u64) -> (u64, u64) {
        let (time, discarded) = told;
        if P::fault(Fault::LateEndTime) {
            return (now(), discarded);
        }
        if P::fault(Fault::LateLosses) {
            return (time, self.lost.discarded());
        }
        told
    }

    /// A packet with nothing in it, if the writer is at a packet's beginning.
    pub(super) fn switch_of_empty(&self, now: impl Fn() -> u64) -> Option<Closed<'_, P>> {
        if !P::fault(Fault::SwitchOfEmpty) {
            return None;
        }
        let old = self.wcnt.load();
        if self.geometry.offset(old) != 0 {
            return None;
        }
        let slot = self.slot(old)?;
        self.may_open(old, slot).ok()?;
        let time = now();
        if !self.wcnt.compare_exchange(old, self.geometry.next(old)) {
            return None;
        }
        self.push_reader(old);
        self.hold(slot, old);
        let _more = self.commit_bytes(slot, self.header);
        let memory = self.geometry.memory(slot.reference().index());
        let discarded = self.lost.discarded();
        Some(Closed::new(memory, self.header, time, discarded, slot))
    }
}
