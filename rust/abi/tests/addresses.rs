// SPDX-License-Identifier: GPL-2.0

//! The addresses in a packet are set to 0, and the rest is unchanged.

use proptest::collection::vec;
use proptest::prelude::*;
use rtrace_abi::addresses::blank;
use rtrace_abi::header::Layout;
use rtrace_abi::packet::PacketHeader;
use rtrace_abi::records::{Malformed, Records};
use rtrace_abi::schema::{Field, FieldType, Integer};

/// Contexts of the streams here: a number, and a kernel stack.
const CONTEXTS: [Field<'static>; 3] = [
    Field::new("tid", FieldType::signed(32)),
    Field::new("length", FieldType::unsigned(32)),
    Field::new("stack", FieldType::Sequence(Integer::address(), "length")),
];

/// Events, by number.
const EVENTS: [&[Field<'static>]; 5] = [
    &[],
    &[Field::new("address", FieldType::address())],
    &[
        Field::new("name", FieldType::String),
        Field::new("address", FieldType::address()),
        Field::new("flags", FieldType::hex(64)),
    ],
    &[
        Field::new("low", FieldType::Integer(Integer::unsigned(8).bit_field(3))),
        Field::new(
            "high",
            FieldType::Integer(Integer::unsigned(8).bit_field(2)),
        ),
        Field::new("count", FieldType::unsigned(8)),
        Field::new("bytes", FieldType::Sequence(Integer::hex(16), "count")),
        Field::new("all", FieldType::Sequence(Integer::address(), "count")),
        Field::new("text", FieldType::text(5)),
    ],
    &[
        Field::new("pair", FieldType::Array(Integer::address(), 2)),
        Field::new("value", FieldType::signed(64)),
    ],
];

struct Described {
    layout: Layout,
    /// Number of the first event.
    first: u32,
}

impl Records for Described {
    fn layout(&self) -> Layout {
        self.layout
    }
    fn context(&self, place: usize) -> Option<Field<'static>> {
        CONTEXTS.get(place).copied()
    }
    fn has(&self, number: u32) -> bool {
        self.event(number).is_some()
    }
    fn field(&self, number: u32, place: usize) -> Option<Field<'_>> {
        self.event(number)?.get(place).copied()
    }
}

impl Described {
    fn event(&self, number: u32) -> Option<&'static [Field<'static>]> {
        EVENTS
            .get(number.checked_sub(self.first)? as usize)
            .copied()
    }
}

/// A packet, and its expected content afterwards.
#[derive(Clone, Debug, Default)]
struct Packet {
    given: Vec<u8>,
    expected: Vec<u8>,
}

impl Packet {
    fn new() -> Self {
        let header = vec![0xaa; PacketHeader::SIZE];
        Self {
            given: header.clone(),
            expected: header,
        }
    }
    fn put(&mut self, bytes: &[u8]) {
        self.given.extend(bytes);
        self.expected.extend(bytes);
    }
    fn put_addresses(&mut self, count: u8) {
        for _ in 0..count {
            self.given.extend(0xffff_ffff_8123_4567_u64.to_le_bytes());
            self.expected.extend([0; 8]);
        }
    }

    /// Adds a record of an event. `count` is the number of addresses and bytes, where that is free.
    fn record(&mut self, described: &Described, event: u32, count: u8, is_extended: bool) {
        let id = event + described.first;
        match (described.layout, is_extended) {
            (Layout::Compact, false) if id < 31 => self.put(&(0xfeed_ffe0 | id).to_le_bytes()),
            (Layout::Compact, _) => {
                self.put(&[0xff]);
                self.put(&id.to_le_bytes());
                self.put(&[0xee; 8]);
            }
            (Layout::Large, false) if id < 65535 => {
                self.put(&(id as u16).to_le_bytes());
                self.put(&[0xee; 4]);
            }
            (Layout::Large, _) => {
                self.put(&[0xff; 2]);
                self.put(&id.to_le_bytes());
                self.put(&[0xee; 8]);
            }
        }
        self.put(&[1; 4]);
        self.put(&u32::from(count).to_le_bytes());
        self.put_addresses(count);
        match event {
            0 => {}
            1 => self.put_addresses(1),
            2 => {
                self.put(&vec![b'x'; count.into()]);
                self.put(&[0]);
                self.put_addresses(1);
                self.put(&[0x55; 8]);
            }
            3 => {
                self.put(&[0x1f, count]);
                self.put(&vec![0x66; 2 * usize::from(count)]);
                self.put_addresses(count);
                self.put(b"text\0");
            }
            4 => {
                self.put_addresses(2);
                self.put(&[0x77; 8]);
            }
            _ => unreachable!("there is no such event"),
        }
    }
}

proptest! {
    #[test]
    fn addresses_are_blanked_and_nothing_else(
        is_large: bool,
        first in prop_oneof![Just(0_u32), 25..35_u32, 65530..65540_u32],
        records in vec((0..5_u32, 0..4_u8, any::<bool>()), 0..20),
    ) {
        let layout = if is_large { Layout::Large } else { Layout::Compact };
        let described = Described { layout, first };
        let mut packet = Packet::new();
        for (event, count, is_extended) in records {
            packet.record(&described, event, count, is_extended);
        }
        prop_assert_eq!(blank(&mut packet.given, &described), Ok(()));
        prop_assert_eq!(packet.given, packet.expected);
    }

    /// Any content: no panic. A truncated packet is not reported as complete.
    #[test]
    fn what_is_no_packet_is_found(
        bytes in vec(any::<u8>(), 0..200),
        records in vec((0..5_u32, 0..4_u8), 1..5),
        cut in 1..12_usize,
    ) {
        let described = Described { layout: Layout::Compact, first: 0 };
        let mut random = vec![0; PacketHeader::SIZE];
        random.extend(bytes);
        let _ = blank(&mut random, &described);

        let mut packet = Packet::new();
        for (event, count) in records {
            packet.record(&described, event, count, true);
        }
        // The shortest record is longer than the part that is cut off.
        packet.given.truncate(packet.given.len() - cut);
        prop_assert_eq!(blank(&mut packet.given, &described), Err(Malformed));
    }
}

#[test]
fn an_unknown_event_is_found() {
    let described = Described {
        layout: Layout::Large,
        first: 3,
    };
    let mut packet = Packet::new();
    packet.record(&described, 0, 1, false);
    packet.put(&[0; 30]);
    assert_eq!(blank(&mut packet.given, &described), Err(Malformed));
}
