// SPDX-License-Identifier: GPL-2.0

//! Taking packets out: the paper's Algorithms 5, 6 and 7.

use super::exchange::Bank;
use super::platform::{Local, Platform, Shared};
use super::reference::Reference;
use super::Ring;

/// How often a get looks again when the writer moves under it.
const RETRIES: usize = 16;

/// The reader's side of one ring: its own sub-buffer, and the packet it holds.
///
/// # Invariants
///
/// - The memory `spare` belongs to the reader, and so does the held packet's.
/// - `spare` is of `bank`, except after a get and put during an [exchange](Ring::exchange).
/// - There is one `Reader` to a ring, made by [`Ring::reader`].
pub struct Reader {
    /// Index of the memory that stands in, or will stand in, for the packet taken.
    pub(super) spare: u64,
    /// The bank of memory that the slots have, or get by an exchange.
    pub(super) bank: Bank,
    /// Whether a slot may still have memory of the other bank.
    pub(super) is_exchanging: bool,
    /// Where the packets begin that are too late for the exchange.
    pub(super) end: Option<u64>,
    held: Option<Held>,
}

struct Held {
    packet: Packet,
    /// The slot's reference before the exchange.
    reference: Reference,
}

/// A packet that the reader holds. Nobody writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Where it begins, in the buffer's memory.
    pub memory: u64,
    /// Its position.
    pub position: u64,
    /// Records in it.
    pub records: u64,
}

/// Why there is no packet to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// None is finished.
    Empty,
    /// The writer went round under the reader each time it looked.
    Busy,
}

impl<P: Platform> Ring<P> {
    /// The reader of a new ring. Its own sub-buffer is the memory behind those of the slots.
    pub fn reader(&self) -> Reader {
        Reader {
            spare: self.geometry.count(),
            bank: Bank::First,
            is_exchanging: false,
            end: None,
            held: None,
        }
    }

    /// Whether a packet is finished and unread (equation 2). Any CPU.
    pub fn is_readable(&self) -> bool {
        let read = self.rcnt.load();
        self.slot(read)
            .is_some_and(|slot| self.geometry.is_ready(read, slot.commit_seq.load()))
    }

    /// Whether the writer is in the last free sub-buffer, or has none: read soon. Any CPU.
    pub fn is_almost_full(&self) -> bool {
        self.geometry
            .is_full(self.geometry.next(self.wcnt.load()), self.rcnt.load())
    }

    /// Bytes of the sub-buffers from the oldest unread packet's to that before the writer's: what is
    /// finished, padding included, or soon will be. Any CPU; on the writer's it is never too few.
    pub fn unread(&self) -> u64 {
        // A reader may move `rcnt` on meanwhile: what is seen of it is the past, which is more.
        let read = self.rcnt.load();
        self.geometry
            .distance(read, self.geometry.start(self.wcnt.load()))
    }

    /// Takes the oldest finished packet (Algorithm 6). Gives the held one again if there is
    /// one.
    ///
    /// Context: any CPU; may sleep if [`Platform::promote`] does.
    pub fn get(&self, reader: &mut Reader) -> Result<Packet, Unavailable> {
        if let Some(held) = &reader.held {
            return Ok(held.packet);
        }
        for _ in 0..RETRIES {
            let read = self.rcnt.load();
            let Some(slot) = self.slot(read) else {
                return Err(Unavailable::Empty);
            };
            if !self.geometry.is_ready(read, slot.commit_seq.load()) {
                if self.rcnt.load() == read {
                    return Err(Unavailable::Empty);
                }
                continue;
            }
            // R1: pairs with W1. From here on everything of that packet is visible.
            self.platform.promote();
            if self.geometry.is_being_written(self.wcnt.load(), read) {
                return Err(Unavailable::Empty);
            }
            let reference = slot.reference();
            let expected = Reference::packet(reference.index(), self.geometry.lap(read));
            if reference != expected {
                continue;
            }
            let records = slot.packet_records.load();
            // R2: pairs with W3, in both directions: the writer that takes the slot next finds
            // the spare, whose old packet has been read; and what is read from now on was not
            // touched by it.
            if !slot
                .reference
                .compare_exchange(reference.word(), Reference::idle(reader.spare).word())
            {
                continue;
            }
            let packet = Packet {
                memory: self.geometry.memory(reference.index()),
                position: read,
                records,
            };
            reader.held = Some(Held { packet, reference });
            return Ok(packet);
        }
        Err(Unavailable::Busy)
    }

    /// Gives the held packet's memory back (Algorithm 7). Returns the packet, or [`None`] if
    /// none was held.
    ///
    /// In overwrite mode the writer may have pushed `rcnt` on meanwhile: then there is nothing
    /// to move.
    pub fn put(&self, reader: &mut Reader) -> Option<Packet> {
        let Held { packet, reference } = reader.held.take()?;
        reader.spare = reference.index();
        // R3: pairs with W2.
        let _moved = self
            .rcnt
            .compare_exchange(packet.position, self.geometry.next(packet.position));
        Some(packet)
    }

    /// Puts the held packet back unread, for a reader that goes away between get and put.
    ///
    /// In overwrite mode the writer may have used the slot meanwhile: then the packet's records
    /// are lost, and counted so.
    pub fn unget(&self, reader: &mut Reader) {
        let Some(Held { packet, reference }) = reader.held.take() else {
            return;
        };
        let Some(slot) = self.slot(packet.position) else {
            return;
        };
        let spare = Reference::idle(reader.spare).word();
        if !slot.reference.compare_exchange(spare, reference.word()) {
            reader.spare = reference.index();
            self.count_dropped(packet.records);
        }
    }

    /// Counts records of a packet that the reader took and could not give back.
    pub(super) fn count_dropped(&self, records: u64) {
        loop {
            let dropped = self.dropped.load();
            if self
                .dropped
                .compare_exchange(dropped, dropped.wrapping_add(records))
            {
                return;
            }
        }
    }
}
