// SPDX-License-Identifier: GPL-2.0

//! Exchange of the memory of all slots at once, for a snapshot.
//!
//! A buffer has one bank of memory, and two during a snapshot ([`Bank`]). A bank has a sub-buffer
//! for every slot and one for the reader. The exchange does to every slot what a get does to one
//! (the paper's Algorithm 6), with the sub-buffers of the new bank as spares. Afterwards the writer
//! uses the new bank. The reader owns the old bank with the packets in it.
//!
//! The exchange runs on the writer's CPU, in an interrupt. So it sees all that the writer stored,
//! in program order. The writer does not run meanwhile, except in a context that interrupts the
//! exchange (NMI). For an isolated CPU, the deputy runs the exchange elsewhere, while no context of
//! that CPU is inside the gate. The exchange may have interrupted a context that is writing a packet. The
//! slot of that packet keeps the old memory, and the caller calls the exchange again later. The exchange is
//! complete once each slot has been exchanged.

use super::consume::{Reader, TakenPacket};
use super::platform::{Local, Platform, Shared};
use super::reference::Reference;
use super::slot::Slot;
use super::Ring;

/// One of the two areas for a buffer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bank {
    /// The memory that a buffer has initially.
    First,
    /// The other memory. Its sub-buffers are numbered after those of the first.
    Second,
}

impl Bank {
    /// Returns the other bank.
    pub const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

/// A packet that an exchange took. The reader owns its memory, in addition to the spare sub-buffer of the
/// [`Reader`].
#[derive(Debug)]
#[must_use]
pub struct Taken {
    packet: TakenPacket,
    reference: Reference,
    is_late: bool,
}

impl Taken {
    /// Returns the packet.
    pub fn packet(&self) -> TakenPacket {
        self.packet
    }

    /// Returns whether older packets may be in the ring. Then the caller must
    /// [restore](Ring::restore) this packet. A packet is late if it was begun after the exchange, or an older packet
    /// was restored.
    pub fn is_late(&self) -> bool {
        self.is_late
    }
}

/// A bank whose sub-buffers are in no slot and with no reader. Its memory may be freed after the packets
/// taken from it are read.
#[derive(Debug)]
#[must_use]
pub struct Vacated {
    bank: Bank,
}

impl Vacated {
    /// Returns which bank it is.
    pub fn bank(&self) -> Bank {
        self.bank
    }
}

impl Reader {
    /// Returns the bank of memory that the slots have, or get by the current exchange.
    pub fn bank(&self) -> Bank {
        self.bank
    }
}

impl<P: Platform> Ring<P> {
    /// Gives the ring memory for the bank that the reader does not use. `base` is the writers'
    /// address of its first byte. That bank must be vacated. Later exchanges move the slots to it.
    pub fn add_bank(&self, reader: &mut Reader, base: u64) {
        reader.bank = reader.bank.other();
        reader.is_exchanging = true;
        reader.end = None;
        reader.spare = self.first(reader.bank).wrapping_add(self.geometry.count());
        let word = match reader.bank {
            Bank::First => &self.base,
            Bank::Second => &self.second_base,
        };
        word.store(base);
    }

    /// Returns whether the packet being written is in the bank that an exchange empties. Then the
    /// caller must close the packet, so that the exchange can take it.
    ///
    /// Context: as for [`exchange`](Self::exchange).
    pub fn writes_old_bank(&self, reader: &Reader) -> bool {
        let position = self.wcnt.load();
        self.geometry.offset(position) != 0
            && self
                .slot(position)
                .is_some_and(|slot| self.bank(slot.reference().index()) != reader.bank)
    }

    /// Exchanges the memory of each slot that still has memory of the old bank and is not being
    /// written. Passes the unread packets to `taken`, from the oldest to the newest.
    ///
    /// Returns [`None`] in two cases:
    /// - A slot was being written: call again.
    /// - No bank was [added](Self::add_bank) since the last one was vacated.
    ///
    /// Only for a ring in overwrite mode, while the reader holds no packet.
    ///
    /// Context: the buffer's CPU, in an interrupt sent for this, interrupts disabled. For an
    /// offline CPU, the caller that keeps it offline. For an isolated CPU, its deputy.
    pub fn exchange(&self, reader: &mut Reader, mut taken: impl FnMut(Taken)) -> Option<Vacated> {
        if !reader.is_exchanging {
            return None;
        }
        let geometry = &self.geometry;
        let first = self.first(reader.bank);
        let end = geometry.start(self.wcnt.load());
        reader.end.get_or_insert(end);
        let mut is_vacated = true;
        // The sub-buffer of the new bank that is in no slot.
        let mut spare = geometry.sum_of_indexes(first);
        for ago in (1..=geometry.count()).rev() {
            let back = ago.wrapping_mul(geometry.size());
            let position = geometry.advance(end, back.wrapping_neg());
            let slot = self.slot(position)?;
            let index = slot.reference().index();
            if self.bank(index) == reader.bank {
                spare = spare.wrapping_sub(index);
                continue;
            }
            let fresh = first.wrapping_add(geometry.index(position));
            match self.exchange_slot(slot, position, fresh) {
                Ok(packet) => {
                    spare = spare.wrapping_sub(fresh);
                    if let Some((packet, reference)) = packet {
                        taken(Taken {
                            packet,
                            reference,
                            is_late: !self.is_before(position, reader.end),
                        });
                    }
                }
                Err(BeingWritten) => is_vacated = false,
            }
        }
        is_vacated.then(|| {
            // A reader that got and put a packet meanwhile has a sub-buffer of the old bank as its
            // spare.
            reader.spare = spare;
            reader.is_exchanging = false;
            Vacated {
                bank: reader.bank.other(),
            }
        })
    }

    /// Places sub-buffer `fresh` in a slot, whose last packet is at `position`. Returns that packet if
    /// it is unread.
    fn exchange_slot(
        &self,
        slot: &Slot<P>,
        position: u64,
        fresh: u64,
    ) -> Result<Option<(TakenPacket, Reference)>, BeingWritten> {
        // An interrupted context may have reserved in the slot and not held the memory yet. Then this
        // lap is not complete, and no later packet may be taken before it.
        let is_complete = self.geometry.is_ready(position, slot.commit_seq.load());
        let reference = slot.reference();
        let index = reference.index();
        let packet = Reference::packet(index, self.geometry.lap(position));
        if !is_complete || reference != packet && reference != Reference::idle(index) {
            return Err(BeingWritten);
        }
        let records = slot.packet_records.load();
        // R2, as in `get`.
        if !slot
            .reference
            .compare_exchange(reference.word(), Reference::idle(fresh).word())
        {
            return Err(BeingWritten);
        }
        let packet = TakenPacket {
            memory: self.geometry.memory(index),
            position,
            records,
        };
        Ok(reference.is_packet().then_some((packet, reference)))
    }

    /// Marks a taken packet as read, like a put. All earlier packets are read or lost.
    pub fn release(&self, taken: &Taken) {
        let TakenPacket { position, .. } = taken.packet;
        // As in `put`: the writer may have pushed `rcnt`.
        let _moved = self
            .rcnt
            .compare_exchange(position, self.geometry.next(position));
    }

    /// Returns the memory to copy a taken packet to, before it is [restored](Self::restore). [`None`]: the
    /// reader has no sub-buffer of the new bank.
    pub fn room(&self, reader: &Reader) -> Option<u64> {
        (self.bank(reader.spare) == reader.bank).then(|| self.geometry.memory(reader.spare))
    }

    /// Puts back a taken packet unread, from the copy that the caller made in the reader's
    /// [`room`](Self::room). The caller must also put back all newer packets.
    ///
    /// Returns whether the packet can be read again. If the writer has used the slot meanwhile, the
    /// packet's records are counted as overwritten instead.
    pub fn restore(&self, reader: &mut Reader, taken: Taken) -> bool {
        let Taken {
            packet, reference, ..
        } = taken;
        let position = packet.position;
        let fresh = self
            .first(reader.bank)
            .wrapping_add(self.geometry.index(position));
        let lap = self.geometry.lap(position);
        // A packet before `rcnt` is never read.
        let is_ahead =
            || self.geometry.distance(self.rcnt.load(), position) < self.geometry.buffer_size();
        let copy = Reference::packet(reader.spare, lap);
        debug_assert!(reference == Reference::packet(reference.index(), lap));
        let is_restored = self.room(reader).is_some()
            && is_ahead()
            && self.slot(position).is_some_and(|slot| {
                // As in `unget`.
                slot.reference
                    .compare_exchange(Reference::idle(fresh).word(), copy.word())
            });
        // If the exchange is not complete, it may take more packets from this position on. These packets are late.
        if self.is_before(position, reader.end) {
            reader.end = Some(position);
        }
        if is_restored {
            reader.spare = fresh;
        } else {
            self.count_dropped(packet.records);
        }
        is_restored
    }

    /// Splits a readers' memory position into its bank and the offset there.
    pub fn place(&self, memory: u64) -> (Bank, u64) {
        let bytes = self.geometry.memory(self.first(Bank::Second));
        if memory < bytes {
            (Bank::First, memory)
        } else {
            (Bank::Second, memory.wrapping_sub(bytes))
        }
    }

    /// Number of the packet in its stream.
    pub fn sequence(&self, packet: &TakenPacket) -> u64 {
        self.geometry.sequence(self.origin, packet.position)
    }

    /// Returns whether a packet lies before `end`.
    fn is_before(&self, position: u64, end: Option<u64>) -> bool {
        let ahead = end.map(|end| self.geometry.distance(position, end));
        ahead.is_some_and(|ahead| ahead.wrapping_sub(1) < self.geometry.buffer_size())
    }

    /// Index of a bank's first sub-buffer.
    fn first(&self, bank: Bank) -> u64 {
        match bank {
            Bank::First => 0,
            Bank::Second => self.geometry.count().wrapping_add(1),
        }
    }

    /// Bank of a sub-buffer.
    fn bank(&self, index: u64) -> Bank {
        if index > self.geometry.count() {
            Bank::Second
        } else {
            Bank::First
        }
    }

    /// Writers' address of the first byte of sub-buffer `index`.
    pub(super) fn address(&self, index: u64) -> u64 {
        let bank = self.bank(index);
        let base = match bank {
            Bank::First => self.base.load(),
            Bank::Second => self.second_base.load(),
        };
        let offset = self.geometry.memory(index.wrapping_sub(self.first(bank)));
        base.wrapping_add(offset)
    }
}

/// The slot cannot be exchanged now.
struct BeingWritten;
