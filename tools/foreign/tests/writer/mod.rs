// SPDX-License-Identifier: GPL-2.0

//! Writes traces of other tracers for the tests, bit by bit, without the code that reads them.

#![allow(dead_code)]

use ctf::{Event, Item, Merge, Metadata, StreamReader, Value};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The trace's id.
pub const UUID: &str = "2a1bda29-ffc3-4248-8053-81ccaf830d2f";

pub fn uuid() -> [u8; 16] {
    uuid::Uuid::parse_str(UUID).unwrap().into_bytes()
}

/// Bits of a packet. A big-endian trace fills each byte from its highest bit.
#[derive(Clone, Debug, Default)]
pub struct Bits {
    bits: Vec<bool>,
    pub is_big: bool,
}

impl Bits {
    pub fn new(is_big: bool) -> Self {
        Self {
            bits: Vec::new(),
            is_big,
        }
    }

    pub fn len(&self) -> usize {
        self.bits.len()
    }

    pub fn align(&mut self, align: usize) {
        while self.bits.len() % align != 0 {
            self.bits.push(false);
        }
    }

    /// An integer of this many bits.
    pub fn put(&mut self, value: u64, bits: usize) {
        for place in 0..bits {
            let bit = if self.is_big { bits - 1 - place } else { place };
            self.bits.push((value >> bit) & 1 != 0);
        }
    }

    /// An integer at a byte.
    pub fn word(&mut self, value: u64, bits: usize) {
        self.align(8);
        self.put(value, bits);
    }

    pub fn text(&mut self, text: &[u8]) {
        self.align(8);
        for byte in text {
            self.put(u64::from(*byte), 8);
        }
        self.put(0, 8);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.align(8);
        bytes.iter().for_each(|byte| self.put(u64::from(*byte), 8));
    }

    pub fn set(&mut self, at: usize, value: u64, bits: usize) {
        let mut word = Self::new(self.is_big);
        word.put(value, bits);
        self.bits[at..at + bits].copy_from_slice(&word.bits);
    }

    pub fn into_bytes(mut self) -> Vec<u8> {
        self.align(8);
        let bytes = self.bits.chunks(8).map(|bits| {
            let order: Vec<_> = match self.is_big {
                true => bits.iter().collect(),
                false => bits.iter().rev().collect(),
            };
            order
                .into_iter()
                .fold(0, |byte, bit| (byte << 1) | u8::from(*bit))
        });
        bytes.collect()
    }
}

/// Splits the text of a description into packets.
pub fn packetized(text: &str, is_big: bool) -> Vec<u8> {
    let mut all = Vec::new();
    for part in text.as_bytes().chunks(1000) {
        let mut packet = Bits::new(is_big);
        packet.put(0x75D1_1D57, 32);
        packet.bytes(&uuid());
        packet.put(0, 32);
        packet.put(8 * (37 + part.len()) as u64, 32);
        packet.put(8 * 4096, 32);
        packet.bytes(&[0, 0, 0, 1, 8]);
        packet.bytes(part);
        let mut bytes = packet.into_bytes();
        bytes.resize(4096, 0);
        all.extend(bytes);
    }
    all
}

/// An event to write: its id, its time, and the function that writes its fields.
pub type Written<'a> = (u64, u64, &'a dyn Fn(&mut Bits));

/// An event that was read: its time, name, and fields as text.
pub type Read = (u64, String, Vec<(String, String)>);

/// A trace as it was read.
#[derive(Debug, Default)]
pub struct All {
    pub events: Vec<Read>,
    pub damages: Vec<String>,
    pub lost: u64,
    pub packets_lost: u64,
    pub cpus: Vec<u32>,
    pub notes: Vec<String>,
    pub metadata: Option<Arc<Metadata>>,
    pub packets: Vec<(u64, u64)>,
}

/// Reads a trace.
pub fn read(dir: &Path) -> system::Result<All> {
    let opened = foreign::open(dir)?.expect("a known format");
    let metadata = Arc::new(opened.metadata);
    let streams: Vec<_> = opened
        .streams
        .iter()
        .map(|name| vec![name.clone()])
        .collect();
    let mut merge = Merge::new(&metadata, streams.iter().map(Vec::as_slice))?;
    let mut all = All {
        notes: opened.notes,
        metadata: Some(Arc::clone(&metadata)),
        ..All::default()
    };
    while let Some((_, item)) = merge.next_item()? {
        match item {
            Item::Event(event) => all.events.push(row(&event)),
            Item::Packet(packet) => {
                all.lost += packet.events_lost;
                all.packets_lost += packet.packets_lost;
                all.cpus.push(packet.at.header.cpu_id);
                all.packets.push((packet.at.offset, packet.at.size()));
            }
            Item::Damaged { damage, .. } => all.damages.push(damage.to_string()),
            Item::Whole { .. } | Item::End { .. } => {}
        }
    }
    let mut searched = search(&opened.streams, &metadata);
    searched.sort();
    let mut found = all.events.clone();
    found.sort();
    assert_eq!(found, searched, "events are where the packets tell");
    Ok(all)
}

/// All events, as a reader finds them that does not use the places that a packet tells.
fn search(streams: &[PathBuf], metadata: &Metadata) -> Vec<Read> {
    let mut all = Vec::new();
    for name in streams {
        let mut reader = StreamReader::open(name, metadata).unwrap();
        loop {
            match reader.next_packet() {
                Ok(None) => break,
                Ok(Some(_)) => {
                    while let Some(event) = reader.next_event().unwrap() {
                        all.push(row(&event));
                    }
                }
                Err(error) => drop(reader.damage(error).unwrap()),
            }
        }
    }
    all
}

fn row(event: &Event<'_>) -> Read {
    let values = event.contexts().chain(event.fields());
    let values = values.map(|(field, value)| {
        let name = field.ty.value_name(value).map(|name| name.into_owned());
        (field.name.clone(), name.unwrap_or_else(|| shown(value)))
    });
    (event.timestamp, event.layout.name.clone(), values.collect())
}

pub fn shown(value: Value<'_>) -> String {
    match value {
        Value::Unsigned(number) => number.to_string(),
        Value::Signed(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Integers(integers) => {
            let integers: Vec<_> = integers.map(shown).collect();
            format!("[{}]", integers.join(","))
        }
    }
}

/// Writes the files of a trace.
pub fn write(dir: &Path, metadata: &[u8], streams: &[(&str, Vec<u8>)]) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("metadata"), metadata).unwrap();
    for (name, bytes) in streams {
        fs::write(dir.join(name), bytes).unwrap();
    }
}

/// A description like LTTng's, with this event header and these events.
pub fn lttng_text(order: &str, header: &str, events: &str) -> String {
    format!(
        r#"/* CTF 1.8 */
typealias integer {{ size = 8; align = 8; signed = false; }} := uint8_t;
typealias integer {{ size = 16; align = 8; signed = false; }} := uint16_t;
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := unsigned long;
typealias integer {{ size = 5; align = 1; signed = false; }} := uint5_t;
trace {{
	major = 1; minor = 8; uuid = "{UUID}"; byte_order = {order};
	packet.header := struct {{ uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; }};
}};
env {{ hostname = "box"; domain = "kernel"; tracer_name = "lttng-modules"; tracer_major = 2; }};
clock {{
	name = "monotonic"; uuid = "74715693-28c1-4d0d-bee9-24790a4942b0";
	freq = 1000000000; /* Hz */
	offset = 1361203559332331489; // since the epoch
}};
typealias integer {{ size = 27; align = 1; signed = false; map = clock.monotonic.value; }} := uint27_clock_monotonic_t;
typealias integer {{ size = 32; align = 8; signed = false; map = clock.monotonic.value; }} := uint32_clock_monotonic_t;
typealias integer {{ size = 64; align = 8; signed = false; map = clock.monotonic.value; }} := uint64_clock_monotonic_t;
struct packet_context {{
	uint64_clock_monotonic_t timestamp_begin;
	uint64_clock_monotonic_t timestamp_end;
	uint64_t content_size;
	uint64_t packet_size;
	uint64_t packet_seq_num;
	unsigned long events_discarded;
	uint32_t cpu_id;
}};
struct event_header_compact {{
	enum : uint5_t {{ compact = 0...30, extended = 31 }} id;
	variant <id> {{
		struct {{ uint27_clock_monotonic_t timestamp; }} compact;
		struct {{ uint32_t id; uint64_clock_monotonic_t timestamp; }} extended;
	}} v;
}} align(8);
struct event_header_large {{
	enum : uint16_t {{ compact = 0 ... 65534, extended = 65535 }} id;
	variant <id> {{
		struct {{ uint32_clock_monotonic_t timestamp; }} compact;
		struct {{ uint32_t id; uint64_clock_monotonic_t timestamp; }} extended;
	}} v;
}} align(8);
stream {{
	id = 0;
	event.header := struct event_header_{header};
	packet.context := struct packet_context;
}};
{events}"#
    )
}

/// A packet like LTTng's.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub is_big: bool,
    pub is_compact: bool,
    pub begin: u64,
    pub end: u64,
    pub number: u64,
    pub discarded: u64,
    pub cpu: u32,
}

/// The number of bits of a packet's header and context.
const SIZES: usize = 8 * (24 + 16);

/// A byte of a packet's size whose change makes it longer than its file.
pub const SIZE_BYTE: usize = SIZES / 8 + 8 + 3;

impl Packet {
    /// The packet with these events: an id, a time, and the function that writes the fields.
    pub fn bytes(&self, events: &[Written<'_>], padding: usize) -> Vec<u8> {
        let mut bits = Bits::new(self.is_big);
        bits.put(0xC1FC_1FC1, 32);
        bits.bytes(&uuid());
        bits.put(0, 32);
        for word in [self.begin, self.end, 0, 0, self.number, self.discarded] {
            bits.put(word, 64);
        }
        bits.put(u64::from(self.cpu), 32);
        let mut last = self.begin;
        for (id, time, fields) in events {
            bits.align(8);
            let (id_bits, time_bits) = if self.is_compact { (5, 27) } else { (16, 32) };
            if (time - last) >> time_bits == 0 && *id < (1 << id_bits) - 1 {
                bits.put(*id, id_bits);
                bits.put(*time, time_bits);
            } else {
                bits.put((1 << id_bits) - 1, id_bits);
                bits.word(*id, 32);
                bits.put(*time, 64);
            }
            last = *time;
            fields(&mut bits);
        }
        let content = bits.len();
        bits.align(8);
        bits.bytes(&vec![0; padding]);
        let size = bits.len();
        bits.set(SIZES, content as u64, 64);
        bits.set(SIZES + 64, size as u64, 64);
        bits.into_bytes()
    }
}
