// SPDX-License-Identifier: GPL-2.0

//! The items of a stream. Each has a time that is not before that of the previous item.

use crate::damage::Damage;
use crate::event::Event;
use crate::stream::Packet;

/// An item of a trace.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// A packet was read. Its time is the end of the previous packet. If the packet has losses, events of the stream
    /// may be missing from here up to [`Item::Whole`].
    Packet(Packet<'a>),
    /// From here on no event of the stream is missing. The item comes at the begin of a packet if packets before it
    /// were lost or damaged. It comes at the end of a packet if events were discarded or damaged, because their place
    /// in the packet is unknown.
    Whole {
        /// The time.
        timestamp: u64,
    },
    /// An event.
    Event(Event<'a>),
    /// Bytes of the stream cannot be read. From here on events of the stream may be missing, up to [`Item::Whole`],
    /// or to the stream's end.
    Damaged {
        /// The bytes.
        damage: &'a Damage,
        /// The time of the last item before them.
        timestamp: u64,
    },
    /// The stream ends.
    End {
        /// Bytes of an incomplete last packet.
        partial: u64,
        /// The number of events that the merge has counted and not returned, by their id in the stream's class.
        skipped: &'a [(u32, u64)],
    },
}
