// SPDX-License-Identifier: GPL-2.0

//! The traces that are found in memory that outlived its kernel.

use ctf::StreamReader;
use recovery::recovered::{self, Recovered};
use recovery::region::Region;
use rtrace_abi::header::Layout;
use rtrace_abi::packet::PacketHeader;
use rtrace_abi::region::{RegionHeader, METADATA_AT, VERSION};
use std::fs;
use std::path::Path;
use store::Trace;
use synthetic::{metadata, region, PacketBuilder, Slot, UUID};
use system::access::Access;

const BEGIN: u64 = 1 << 40;

/// Packet `sequence` of CPU 3, with this number of records. It begins `sequence` thousand ticks later.
fn packet(sequence: u64, records: u64) -> PacketBuilder {
    let begin = BEGIN + 1000 * sequence;
    let packet = PacketBuilder::new(Layout::Large, 3, sequence, begin);
    (0..records).fold(packet, |packet, n| packet.softirq(begin + n, 1))
}

fn closed(sequence: u64, records: u64) -> Vec<u8> {
    packet(sequence, records).close(BEGIN + 1000 * sequence + 999, 4096)
}

/// The size of header and events of a packet of [`packet`] with this number of records.
fn content(records: u64) -> u64 {
    let softirq = (closed_content(1) - closed_content(0)) as u64;
    PacketHeader::SIZE as u64 + records * softirq
}

fn closed_content(records: u64) -> usize {
    let bytes = closed(0, records);
    let word: [u8; 8] = bytes[48..56].try_into().unwrap();
    (u64::from_le_bytes(word) / 8) as usize
}

fn of_slots(slots: Vec<Slot>) -> Vec<u8> {
    region(&metadata(UUID, Layout::Large), &[(3, slots)])
}

fn open(sequence: u64, records: u64) -> Slot {
    // The old contents of the memory follow.
    let mut bytes = packet(sequence, records + 5).close(BEGIN - 1, 4096);
    bytes[48..64].fill(0xff);
    Slot::Open(bytes, content(records), records)
}

/// The numbers of packets, their events, and the missing parts.
fn found(bytes: &[u8]) -> (Vec<(u64, usize)>, usize, u64) {
    let region = Region::parse(bytes).unwrap();
    let stream = &region.streams()[&3];
    let softirq = (content(1) - content(0)) as usize;
    let packets = stream.packets.iter();
    let packets = packets.map(|packet| {
        let header = packet.header;
        (header.packet_seq_num, packet.events.len() / softirq)
    });
    (packets.collect(), stream.damaged.len(), stream.torn)
}

fn refusal(bytes: &[u8]) -> String {
    Region::parse(bytes).unwrap_err().to_string()
}

/// Writes the region's trace and reads it. Returns what was written, and the number of events read.
fn read_back(bytes: &[u8], dir: &Path) -> (Recovered, usize) {
    let region = Region::parse(bytes).unwrap();
    let written = recovered::write(&region, dir, Access::default()).unwrap();
    let trace = Trace::open(dir).unwrap();
    let mut events = 0;
    for path in &trace.streams {
        let mut stream = StreamReader::open(path, &trace.metadata).unwrap();
        while let Some(packet) = stream.next_packet().unwrap() {
            events += packet.events().map(Result::unwrap).count();
        }
        assert_eq!(stream.partial(), 0);
    }
    (written, events)
}

#[test]
fn finished_packets_and_the_open_one_in_order() {
    let slots = vec![
        open(7, 9),
        Slot::Finished(closed(4, 3)),
        Slot::Complete(closed(6, 5)),
        Slot::Finished(closed(5, 1)),
    ];
    let bytes = of_slots(slots);
    let expected = vec![(4, 3), (5, 1), (6, 5), (7, 9)];
    assert_eq!(found(&bytes), (expected, 0, 0));
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("trace");
    let (written, events) = read_back(&bytes, &dir);
    assert_eq!((written.packets, written.bytes, events), (4, 4 * 4096, 18));
    let text = fs::read_to_string(dir.join("metadata")).unwrap();
    assert_eq!(text, metadata(UUID, Layout::Large));
    // An existing trace is not overwritten.
    let region = Region::parse(&bytes).unwrap();
    let again = recovered::write(&region, &dir, Access::default());
    assert!(again.unwrap_err().to_string().contains("holds a trace"));
}

#[test]
fn empty_slots_and_a_packet_without_a_record() {
    let slots = vec![Slot::Empty, Slot::Finished(closed(0, 2))];
    assert_eq!(found(&of_slots(slots)), (vec![(0, 2)], 0, 0));
    // Only its header was committed, or not even that.
    for committed in [0, content(0)] {
        let slots = vec![
            Slot::Finished(closed(0, 2)),
            Slot::Open(closed(1, 4), committed, 0),
        ];
        assert_eq!(found(&of_slots(slots)), (vec![(0, 2)], 0, 0));
    }
}

#[test]
fn a_torn_record_takes_its_packet_along() {
    // The committed bytes are those of three records, but one more record lies among them. The last two come after
    // it.
    for (committed, records) in [(content(3) - 1, 3), (content(3), 2), (content(3), 4)] {
        let slots = vec![
            Slot::Finished(closed(0, 2)),
            Slot::Open(closed(1, 4), committed, records),
        ];
        assert_eq!(found(&of_slots(slots)), (vec![(0, 2)], 0, records));
    }
    let mut torn = closed(1, 4);
    torn[content(1) as usize] = 0xee;
    let slots = vec![
        Slot::Finished(closed(0, 2)),
        Slot::Open(torn, content(4), 4),
    ];
    assert_eq!(found(&of_slots(slots)), (vec![(0, 2)], 0, 4));
}

#[test]
fn damaged_packets_are_said() {
    for (at, byte) in [
        (0, 0),
        (4, 1),
        (20, 1),
        (24, 1),
        (55, 1),
        (50, 0x80),
        (80, 1),
    ] {
        let mut packet = closed(1, 2);
        packet[at] ^= byte.max(1);
        let slots = vec![Slot::Finished(closed(0, 2)), Slot::Finished(packet)];
        assert_eq!(found(&of_slots(slots)), (vec![(0, 2)], 1, 0), "byte {at}");
    }
    // The same packet twice.
    let slots = vec![Slot::Finished(closed(0, 2)), Slot::Finished(closed(0, 2))];
    assert_eq!(found(&of_slots(slots)), (vec![(0, 2)], 1, 0));
}

#[test]
fn what_is_no_region_is_refused() {
    let sound = of_slots(vec![Slot::Empty, Slot::Empty]);
    assert!(refusal(&[]).contains("there is no trace"));
    let change = |at: usize| {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        bytes
    };
    assert!(refusal(&change(0)).contains("there is no trace"));
    let other = format!("version {} of", VERSION ^ 1);
    assert!(refusal(&change(8)).contains(&other));
    assert!(refusal(&change(20)).contains("header is damaged"));
    assert!(refusal(&change(METADATA_AT as usize + 8)).contains("metadata are damaged"));
    assert!(refusal(&change(2 * 4096 + 5)).contains("metadata are damaged"));
    assert!(refusal(&sound[..sound.len() - 4096]).contains("bytes, and has"));
    // No text was written.
    let mut bytes = sound.clone();
    bytes[METADATA_AT as usize] = 0;
    assert!(refusal(&bytes).contains("metadata are damaged"));
}

#[test]
fn sizes_are_not_believed() {
    let sound = of_slots(vec![Slot::Empty, Slot::Empty]);
    let header = RegionHeader::parse(&sound).unwrap();
    let refused = [
        RegionHeader {
            subbuf_size: 0,
            ..header
        },
        RegionHeader {
            subbuf_size: 4095,
            ..header
        },
        RegionHeader {
            subbuf_size: 1 << 63,
            ..header
        },
        RegionHeader {
            subbuf_count: 0,
            ..header
        },
        RegionHeader {
            subbuf_count: 3,
            ..header
        },
        RegionHeader {
            table_at: 0,
            ..header
        },
        RegionHeader {
            table_at: u64::MAX,
            ..header
        },
        RegionHeader {
            table_at: 2 * header.subbuf_size,
            ..header
        },
        RegionHeader {
            metadata_at: u64::MAX,
            ..header
        },
        RegionHeader {
            metadata_room: 0,
            ..header
        },
        RegionHeader {
            uuid: [1; 16],
            ..header
        },
    ];
    for header in refused {
        let mut bytes = sound.clone();
        bytes[..RegionHeader::SIZE].copy_from_slice(&header.to_bytes());
        assert!(Region::parse(&bytes).is_err(), "{header:?}");
    }
    let empty = [
        RegionHeader {
            subbuf_count: 1 << 62,
            ..header
        },
        RegionHeader {
            table_room: u64::MAX,
            ..header
        },
    ];
    for header in empty {
        let mut bytes = sound.clone();
        bytes[..RegionHeader::SIZE].copy_from_slice(&header.to_bytes());
        let region = Region::parse(&bytes).unwrap();
        let streams = region.streams();
        assert!(streams.values().all(|stream| stream.packets.is_empty()));
    }
}
