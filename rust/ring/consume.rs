// SPDX-License-Identifier: GPL-2.0

//! Reading packets: the paper's Algorithms 5, 6 and 7.

use super::exchange::Bank;
use super::platform::{Local, Platform, Shared};
use super::reference::Reference;
use super::Ring;

/// Maximum number of attempts of a get while the writer overtakes it.
const RETRIES: usize = 16;

/// The reader's state of one ring: its own sub-buffer, and the packet that it holds.
///
/// # Invariants
///
/// - The reader owns the memory `spare` and the held packet's memory.
/// - `spare` is of `bank`, except after a get and put during an [exchange](Ring::exchange).
/// - A ring has one `Reader`, made by [`Ring::reader`].
pub struct Reader {
    /// Index of the reader's own memory, which a get exchanges for the memory of a packet.
    pub(super) spare: u64,
    /// The bank of memory that the slots have, or get by the current exchange.
    pub(super) bank: Bank,
    /// Whether a slot may still have memory of the other bank.
    pub(super) is_exchanging: bool,
    /// Position of the first packet that is too late for the exchange.
    pub(super) end: Option<u64>,
    held: Option<Held>,
}

struct Held {
    packet: TakenPacket,
    /// The slot's reference before the exchange.
    reference: Reference,
}

/// A packet that the reader holds. No context writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenPacket {
    /// Offset of its first byte in the buffer's memory.
    pub memory: u64,
    /// Its position.
    pub position: u64,
    /// Records in it.
    pub records: u64,
}

/// Reason for which a get returns no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// No packet is finished.
    Empty,
    /// The writer overtook the reader in each attempt.
    Busy,
}

impl<P: Platform> Ring<P> {
    /// Makes the reader of a new ring. Its own sub-buffer is the memory after that of the slots.
    pub fn reader(&self) -> Reader {
        Reader {
            spare: self.geometry.count(),
            bank: Bank::First,
            is_exchanging: false,
            end: None,
            held: None,
        }
    }

    /// Returns whether a packet is finished and unread (equation 2). Any CPU.
    pub fn is_readable(&self) -> bool {
        let read = self.rcnt.load();
        self.slot(read)
            .is_some_and(|slot| self.geometry.is_ready(read, slot.commit_seq.load()))
    }

    /// Returns whether the writer is in the last free sub-buffer, or has none: read soon. Any CPU.
    pub fn is_almost_full(&self) -> bool {
        self.geometry
            .is_full(self.geometry.next(self.wcnt.load()), self.rcnt.load())
    }

    /// Bytes of the sub-buffers from the oldest unread packet to the writer's sub-buffer, without that one.
    /// Their packets are finished, padding included, or soon will be. Any CPU; on the writer's CPU the
    /// result is never too small.
    pub fn unread(&self) -> u64 {
        // A reader may advance `rcnt` meanwhile. An older value gives a larger result.
        let read = self.rcnt.load();
        self.geometry
            .distance(read, self.geometry.start(self.wcnt.load()))
    }

    /// Takes the oldest finished packet (Algorithm 6). Returns the held packet again if there is
    /// one.
    ///
    /// Context: any CPU; may sleep if [`Platform::promote`] does.
    pub fn get(&self, reader: &mut Reader) -> Result<TakenPacket, Unavailable> {
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
            // R1: pairs with W1. From here on the whole packet is visible.
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
            // R2: pairs with W3, in both directions. The writer that takes the slot next finds the
            // spare, whose old packet has been read. The writer does not touch the memory that the
            // reader reads from now on.
            if !slot
                .reference
                .compare_exchange(reference.word(), Reference::idle(reader.spare).word())
            {
                continue;
            }
            let packet = TakenPacket {
                memory: self.geometry.memory(reference.index()),
                position: read,
                records,
            };
            reader.held = Some(Held { packet, reference });
            return Ok(packet);
        }
        Err(Unavailable::Busy)
    }

    /// Frees the held packet's memory (Algorithm 7). Returns the packet, or [`None`] if none was
    /// held.
    ///
    /// In overwrite mode the writer may have pushed `rcnt` meanwhile. Then `rcnt` stays as it is.
    pub fn put(&self, reader: &mut Reader) -> Option<TakenPacket> {
        let Held { packet, reference } = reader.held.take()?;
        reader.spare = reference.index();
        // R3: pairs with W2.
        let _moved = self
            .rcnt
            .compare_exchange(packet.position, self.geometry.next(packet.position));
        Some(packet)
    }

    /// Puts the held packet back unread, for a reader that is closed between get and put.
    ///
    /// In overwrite mode the writer may have used the slot meanwhile. Then the packet's records are
    /// lost, and counted as overwritten.
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

    /// Counts the records of a packet that the reader took and could not return.
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
