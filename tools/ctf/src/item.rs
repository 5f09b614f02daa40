// SPDX-License-Identifier: GPL-2.0

//! The items of a stream. Each has a time that is not before that of the previous item.

use crate::damage::Damage;
use crate::event::{Event, Events, Position};
use crate::stream::Packet;
use system::Result;

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

/// The kind of the next item in a stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// The next packet, or the stream's end.
    Packet,
    /// The begin of a packet before which others were lost.
    Begin,
    /// The event at this position of the packet.
    Event(Position),
    /// The end of a packet up to which events were lost.
    End,
}

impl Next {
    /// The item at the time `now` in a packet, or at its begin. Also the kind and the time of the following item.
    pub(super) fn item(self, packet: Packet<'_>, now: u64) -> Result<(Item<'_>, Self, u64)> {
        let whole = Item::Whole { timestamp: now };
        let (item, (next, time)) = match self {
            Self::Packet if packet.packets_lost > 0 && packet.events_lost == 0 => {
                let begin = (Self::Begin, packet.at.header.timestamp_begin);
                (Item::Packet(packet), begin)
            }
            Self::Packet => {
                let behind = Self::behind(&packet, &packet.events());
                (Item::Packet(packet), behind)
            }
            Self::Begin => (whole, Self::behind(&packet, &packet.events())),
            Self::Event(position) => {
                let mut events = packet.events_from(position);
                let item = events.next().transpose()?.map_or(whole, Item::Event);
                (item, Self::behind(&packet, &events))
            }
            Self::End => (whole, (Self::Packet, now)),
        };
        Ok((item, next, time))
    }

    /// The kind and the time of the item after the events that have been read.
    fn behind(packet: &Packet<'_>, events: &Events<'_>) -> (Self, u64) {
        match events.next_time() {
            Some(time) => (Self::Event(events.position()), time),
            None if packet.events_lost > 0 => (Self::End, packet.at.header.timestamp_end),
            None => (Self::Packet, packet.at.header.timestamp_end),
        }
    }
}
