// SPDX-License-Identifier: GPL-2.0

//! What a stream gives one after the other, each at a time that is not before the last one's.

use crate::damage::Damage;
use crate::event::{Event, Events, Position};
use crate::stream::Packet;
use system::Result;

/// Something in a trace.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// A packet was read. This comes where the packet before it ended: if the packet has losses,
    /// events of the stream may be missing from here on, up to [`Item::Whole`].
    Packet(Packet<'a>),
    /// From here on no event of the stream is missing. This comes where a packet begins before which
    /// packets were lost or damaged, or ends, if events were discarded or damaged: where in it, is not
    /// known.
    Whole {
        /// When.
        timestamp: u64,
    },
    /// An event.
    Event(Event<'a>),
    /// Bytes of the stream cannot be read. From here on events of the stream may be missing, up to
    /// [`Item::Whole`], or to the stream's end.
    Damaged {
        /// Which bytes.
        damage: &'a Damage,
        /// When the last thing before them was.
        timestamp: u64,
    },
    /// The stream ends.
    End {
        /// Bytes of a last packet that is not whole.
        partial: u64,
    },
}

/// What comes next in a stream.
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
    /// What this is at the time `now` in a packet, or at its begin; what comes behind it, and when.
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

    /// What comes behind the events that have been read of a packet, and when.
    fn behind(packet: &Packet<'_>, events: &Events<'_>) -> (Self, u64) {
        match events.next_time() {
            Some(time) => (Self::Event(events.position()), time),
            None if packet.events_lost > 0 => (Self::End, packet.at.header.timestamp_end),
            None => (Self::Packet, packet.at.header.timestamp_end),
        }
    }
}
