// SPDX-License-Identifier: GPL-2.0

//! The streams of a trace, merged by time.

use ctf::{Item, Merge, Wanted};
use proptest::prelude::*;
use rtrace_abi::header::Layout;
use std::path::Path;
use store::Trace;
use synthetic::{PacketBuilder, IRQ_EXIT, SOFTIRQ, SOFTIRQ_EXIT};
use system::Result;

/// The items of a trace, each with its stream, as short texts.
fn items(dir: &Path) -> Result<Vec<(usize, String)>> {
    texts(Trace::open(dir)?.merge()?)
}

/// The items of a merge, each with its stream, as short texts.
fn texts(mut merge: Merge) -> Result<Vec<(usize, String)>> {
    let mut items = Vec::new();
    while let Some((stream, item)) = merge.next_item()? {
        let text = match item {
            Item::Packet(packet) => format!("packet {}", { packet.at.header.packet_seq_num }),
            Item::Whole { timestamp } => format!("whole {timestamp}"),
            Item::Event(event) => format!("event {}", event.timestamp),
            Item::Damaged { damage, timestamp } => format!(
                "damaged {timestamp}, {}+{}: {}",
                damage.offset, damage.bytes, damage.what
            ),
            Item::End { partial, .. } => format!("end {partial}"),
        };
        items.push((stream, text));
    }
    Ok(items)
}

fn packet(cpu: u32, number: u64, begin: u64) -> PacketBuilder {
    PacketBuilder::new(Layout::Compact, cpu, number, begin)
}

fn write(dir: &Path, streams: &[(u32, Vec<Vec<u8>>)]) {
    synthetic::write(dir, Layout::Compact, streams).unwrap();
}

#[test]
fn items_come_in_order_of_time() {
    let dir = tempfile::tempdir().unwrap();
    let zero = vec![
        packet(0, 0, 10).softirq(11, 0).softirq(20, 0).close(25, 8),
        packet(0, 1, 40).softirq(40, 0).close(41, 8),
    ];
    let one = vec![
        packet(1, 0, 5).softirq(15, 0).softirq(20, 0).close(30, 8),
        packet(1, 1, 30).softirq(39, 0).close(50, 8),
    ];
    write(dir.path(), &[(0, zero), (1, one), (2, vec![])]);
    let expected = [
        (0, "packet 0"),
        (1, "packet 0"),
        (2, "end 0"),
        (0, "event 11"),
        (1, "event 15"),
        (0, "event 20"),
        (1, "event 20"),
        (0, "packet 1"),
        (1, "packet 1"),
        (1, "event 39"),
        (0, "event 40"),
        (0, "end 0"),
        (1, "end 0"),
    ];
    let expected = expected.map(|(stream, text)| (stream, text.to_owned()));
    assert_eq!(items(dir.path()).unwrap(), expected);
}

/// The reader knows where events are missing before it returns anything later.
#[test]
fn losses_have_a_begin_and_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let zero = vec![
        // Packets before this one were overwritten.
        packet(0, 2, 10).softirq(11, 0).close(20, 8),
        // Events were discarded between 20 and 40.
        packet(0, 3, 30)
            .discarded(5)
            .softirq(31, 0)
            .softirq(33, 0)
            .close(40, 8),
        // A packet is missing between 40 and 50.
        packet(0, 5, 50).discarded(5).softirq(51, 0).close(60, 8),
        // Both happened.
        packet(0, 7, 70).discarded(6).close(80, 8),
    ];
    let ticks: Vec<u64> = (1..=21).map(|n| n * 4).collect();
    let one = ticks
        .iter()
        .fold(packet(1, 0, 0), |packet, &time| packet.softirq(time, 0));
    write(dir.path(), &[(0, zero), (1, vec![one.close(90, 8)])]);
    let items = items(dir.path()).unwrap();
    let at = |text: &str| {
        let item = (0, text.to_owned());
        items.iter().position(|other| *other == item).expect(text)
    };
    let tick = |time: u64| {
        let item = (1, format!("event {time}"));
        items
            .iter()
            .position(|other| *other == item)
            .expect("a tick")
    };
    for (before, item, behind) in [
        (4, "event 11", 12),
        (8, "whole 10", 12),
        (16, "packet 3", 24),
        (28, "event 31", 32),
        (36, "whole 40", 44),
        (36, "packet 5", 44),
        (48, "whole 50", 52),
        (56, "packet 7", 64),
        (76, "whole 80", 80),
    ] {
        // At equal times the first stream comes first.
        assert!(tick(before) < at(item) && at(item) < tick(behind), "{item}");
    }
    assert_eq!(at("packet 2"), 0);
    let whole = items.iter().filter(|(_, text)| text.starts_with("whole"));
    assert_eq!(whole.count(), 4);
}

#[test]
fn a_stream_is_of_one_cpu() {
    let dir = tempfile::tempdir().unwrap();
    let packets = vec![packet(0, 0, 0).close(1, 512), packet(1, 1, 2).close(3, 512)];
    write(dir.path(), &[(0, packets)]);
    let texts: Vec<_> = items(dir.path()).unwrap();
    let expected = [
        "packet 0",
        "damaged 1, 512+512: a packet of CPU 1 in the stream of CPU 0",
        "end 0",
    ];
    assert_eq!(texts, expected.map(|text| (0, text.to_owned())));
}

#[test]
fn a_damaged_event_hides_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let bad = [
        packet(0, 0, 0)
            .softirq(9, 0)
            .event(30, 10, &[])
            .close(20, 512),
        packet(0, 1, 30).softirq(31, 0).close(40, 512),
    ];
    let good = packet(1, 0, 0).softirq(5, 0).softirq(15, 0).close(20, 8);
    write(dir.path(), &[(0, bad.to_vec()), (1, vec![good])]);
    let offset = rtrace_abi::packet::PacketHeader::SIZE + 8;
    let damaged = format!("damaged 10, {offset}+4: an event of unknown id 30");
    let expected = [
        (0, "packet 0"),
        (1, "packet 0"),
        (1, "event 5"),
        (0, "event 9"),
        (0, damaged.as_str()),
        (1, "event 15"),
        (0, "whole 20"),
        (0, "packet 1"),
        (1, "end 0"),
        (0, "event 31"),
        (0, "end 0"),
    ];
    let expected = expected.map(|(stream, text)| (stream, text.to_owned()));
    assert_eq!(items(dir.path()).unwrap(), expected);
}

/// A stream of packets of 512 bytes, with an event at each of these times.
fn six_packets() -> Vec<u8> {
    let packets = (0..6).map(|number| {
        let begin = 100 + 100 * number;
        packet(0, number, begin)
            .softirq(begin + 10, 0)
            .softirq(begin + 20, 0)
            .close(begin + 90, 512)
    });
    packets.flatten().collect()
}

/// All events are there in order, except those of the packet with this number. If one is missing, the reader reports
/// it.
fn only_this_one_is_damaged(bytes: Vec<u8>, number: u64, what: &str) {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &[(0, vec![bytes])]);
    let texts: Vec<_> = items(dir.path()).unwrap();
    let events: Vec<u64> = texts
        .iter()
        .filter_map(|(_, text)| text.strip_prefix("event ")?.parse().ok())
        .collect();
    let expected = (0..6).filter(|other| *other != number);
    let expected: Vec<u64> = expected
        .flat_map(|number| [110 + 100 * number, 120 + 100 * number])
        .collect();
    let own = 100 + 100 * number..200 + 100 * number;
    let others: Vec<_> = events.iter().filter(|time| !own.contains(time)).collect();
    assert_eq!(
        others,
        expected.iter().collect::<Vec<_>>(),
        "{what}: {texts:?}"
    );
    assert!(events.is_sorted(), "{what}: {texts:?}");
    // A last packet with a wrong size looks like an incomplete one.
    let is_said = |text: &str| text.starts_with("damaged") || text == "end 512";
    let is_said = texts.iter().any(|(_, text)| is_said(text));
    assert!(is_said || events.len() == 12, "{what}: {texts:?}");
}

#[test]
fn a_damaged_page_hides_nothing_else() {
    let whole = six_packets();
    for number in 0..6 {
        let mut bytes = whole.clone();
        bytes[number * 512..(number + 1) * 512].fill(0);
        only_this_one_is_damaged(bytes, number as u64, "zeros");
    }
}

#[test]
fn a_damaged_byte_hides_nothing_else() {
    let whole = six_packets();
    for at in 0..whole.len() {
        for change in [0xff, 0x01, 0x80] {
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            only_this_one_is_damaged(bytes, at as u64 / 512, &format!("{at} ^ {change}"));
        }
    }
}

/// Inserts bytes between packets, or removes some.
#[test]
fn a_stream_is_found_again() {
    let whole = six_packets();
    for (from, to) in [(512, 700), (1100, 1300)] {
        let mut bytes = whole.clone();
        bytes.drain(from..to);
        let number = from as u64 / 512;
        only_this_one_is_damaged(bytes, number, "a part is missing");
    }
    let mut bytes = whole.clone();
    bytes.splice(1024..1024, [0x55; 70_000]);
    only_this_one_is_damaged(bytes, 9, "rubbish between packets");
}

/// Packets for each CPU, as the intervals between the events of each.
fn streams() -> impl Strategy<Value = Vec<Vec<Vec<u64>>>> {
    let events = prop::collection::vec(0_u64..20, 0..8);
    let packets = prop::collection::vec(events, 0..5);
    prop::collection::vec(packets, 1..6)
}

proptest! {
    #[test]
    fn events_are_sorted(streams in streams()) {
        let dir = tempfile::tempdir().unwrap();
        let (mut written, mut expected) = (Vec::new(), Vec::new());
        for (cpu, packets) in (0_u32..).zip(&streams) {
            let (mut time, mut bytes) = (0, Vec::new());
            for (number, events) in (0_u64..).zip(packets) {
                let mut builder = packet(cpu, number, time);
                for distance in events {
                    time += distance;
                    builder = builder.softirq(time, 0);
                    expected.push((time, cpu as usize));
                }
                bytes.push(builder.close(time, 8));
            }
            written.push((cpu, bytes));
        }
        write(dir.path(), &written);
        // The sort is stable: of one CPU and time the first stays first, and of several CPUs the lowest.
        expected.sort();
        let merged = items(dir.path()).unwrap();
        let events = merged.iter().filter_map(|(stream, text)| {
            let time = text.strip_prefix("event ")?;
            Some((time.parse::<u64>().unwrap(), *stream))
        });
        prop_assert_eq!(events.collect::<Vec<_>>(), expected);
    }

    /// For any bytes the reader returns, and time does not decrease.
    #[test]
    fn a_damaged_trace_is_answered(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut bytes = [
            packet(0, 0, 10).softirq(11, 0).exec(12, "/bin/true", 7).close(20, 8),
            packet(0, 1, 30).softirq(31, 0).discarded(1).close(40, 8),
        ]
        .concat();
        for (at, with) in changes {
            let at = at.index(bytes.len());
            bytes[at] = with;
        }
        let other = packet(1, 0, 0).softirq(15, 0).softirq(32, 0).close(50, 8);
        write(dir.path(), &[(0, vec![bytes]), (1, vec![other])]);
        let Ok(trace) = Trace::open(dir.path()) else { return Ok(()) };
        let mut merge = trace.merge().unwrap();
        let mut now = 0;
        while let Ok(Some((_, item))) = merge.next_item() {
            let Item::Event(event) = item else { continue };
            prop_assert!(event.timestamp >= now);
            now = event.timestamp;
        }
    }
}

/// A merge that skips an event returns all other items, and the number of the skipped ones.
#[test]
fn skipped_events_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let many = |number: u64, begin: u64| {
        let packet = packet(0, number, begin);
        let packet = (0..5000).fold(packet, |packet, n| {
            let time = begin + 2 * n;
            match n % 7 {
                0 => packet.softirq(time, 0),
                _ => packet.exec(time, "/bin/true", 7),
            }
        });
        packet.discarded(number).close(begin + 10_000, 8)
    };
    let zero = vec![many(0, 0), many(1, 20_000), many(4, 40_000)];
    let long = "a".repeat(2 * ctf::WINDOW);
    let one = packet(1, 0, 0)
        .exec(11_000, &long, 7)
        .softirq(11_001, 0)
        .exec(12_000, "/bin/true", 7)
        .softirq(22_003, 0)
        .close(60_000, 8);
    write(dir.path(), &[(0, zero), (1, vec![one])]);
    let trace = Trace::open(dir.path()).unwrap();
    let is_wanted = |name: &str| name.starts_with("irq_softirq");
    let mut merge = trace.merge().unwrap();
    let (mut expected, mut counts) = (Vec::new(), [0; 2]);
    let all = texts(trace.merge().unwrap()).unwrap();
    for text in all {
        let (stream, item) = merge.next_item().unwrap().expect("as many items");
        match item {
            // The long event does not fit a window.
            Item::Event(event) if !is_wanted(&event.layout.name) && event.timestamp != 11_000 => {
                counts[stream] += 1;
            }
            _ => expected.push(text),
        }
    }
    assert_eq!(counts, [3 * 4285, 1]);
    let only = || {
        let merge = trace.merge().unwrap();
        merge.only(|layout| match is_wanted(&layout.name) {
            true => Wanted::Each,
            false => Wanted::Never,
        })
    };
    assert_eq!(texts(only()).unwrap(), expected);
    let mut merge = only();
    while let Some((stream, item)) = merge.next_item().unwrap() {
        if let Item::End { skipped, .. } = item {
            assert_eq!(skipped.len(), 1);
            assert_eq!(skipped[0].1, counts[stream]);
        }
    }
}

/// Events that are wanted for their contexts are returned where the contexts change, and at the begin of a packet.
#[test]
fn new_contexts_are_returned() {
    let dir = tempfile::tempdir().unwrap();
    let of = |packet: PacketBuilder, time: u64, id: u32, tid: i32| {
        let size = if id == IRQ_EXIT { 8 } else { 4 };
        packet.event(id, time, &[&tid.to_le_bytes(), &[0; 8][..size]].concat())
    };
    let events = [
        (1, SOFTIRQ, 7),
        (2, SOFTIRQ, 7),
        (3, SOFTIRQ, 8),
        (4, SOFTIRQ, 8),
        // Wanted themselves: their contexts count.
        (5, SOFTIRQ_EXIT, 8),
        (6, SOFTIRQ, 8),
        (7, SOFTIRQ_EXIT, 9),
        (8, SOFTIRQ, 9),
        (9, SOFTIRQ, 7),
        (10, IRQ_EXIT, 5),
        (11, SOFTIRQ, 7),
    ];
    let zero = events
        .into_iter()
        .fold(packet(0, 0, 0), |packet, (time, id, tid)| {
            of(packet, time, id, tid)
        });
    let one = of(of(packet(0, 1, 20), 21, SOFTIRQ, 7), 22, SOFTIRQ, 7);
    write(
        dir.path(),
        &[(0, vec![zero.close(20, 8), one.close(30, 8)])],
    );
    let path = dir.path().join("metadata");
    let text = std::fs::read_to_string(&path).unwrap();
    let contexts =
        "\tevent.context := struct {\n\t\tinteger { size = 32; align = 8; signed = true; } _tid;\n\
                    \t};\n\tpacket.context";
    std::fs::write(&path, text.replacen("\tpacket.context", contexts, 1)).unwrap();
    let trace = Trace::open(dir.path()).unwrap();
    let merge = trace.merge().unwrap();
    let mut merge = merge.only(|layout| match layout.name.as_str() {
        "irq_softirq_entry" => Wanted::NewContexts,
        "irq_softirq_exit" => Wanted::Each,
        _ => Wanted::Never,
    });
    let (mut times, mut counts) = (Vec::new(), Vec::new());
    while let Some((_, item)) = merge.next_item().unwrap() {
        match item {
            Item::Event(event) => times.push(event.timestamp),
            Item::End { skipped, .. } => counts.extend_from_slice(skipped),
            _ => {}
        }
    }
    assert_eq!(times, [1, 3, 5, 7, 9, 21]);
    counts.sort_unstable();
    assert_eq!(counts, [(SOFTIRQ, 6), (IRQ_EXIT, 1)]);
}

/// A trace in chunks gives the same items as in one piece: a stream continues in its next file.
#[test]
fn a_stream_goes_on_in_the_next_chunk() {
    let zero = |from: usize, to: usize| -> Vec<Vec<u8>> {
        let packets = [
            packet(0, 0, 10).softirq(11, 0).close(25, 8),
            packet(0, 1, 40).discarded(3).softirq(40, 0).close(41, 8),
            packet(0, 2, 60).discarded(3).softirq(61, 0).close(70, 8),
            packet(0, 4, 80).discarded(4).softirq(81, 0).close(90, 8),
        ];
        packets[from..to].to_vec()
    };
    let one = |from: usize, to: usize| -> Vec<Vec<u8>> {
        let packets = [
            packet(1, 0, 5).softirq(15, 0).close(30, 8),
            packet(1, 1, 45).softirq(65, 0).close(85, 8),
        ];
        packets[from..to].to_vec()
    };
    let dir = tempfile::tempdir().unwrap();
    let (whole, chunks) = (dir.path().join("whole"), dir.path().join("chunks"));
    write(&whole, &[(0, zero(0, 4)), (1, one(0, 2))]);
    for (chunk, zero, one) in [
        (1, zero(0, 1), one(0, 1)),
        (2, zero(1, 3), one(1, 1)),
        (3, zero(3, 4), one(1, 2)),
    ] {
        let dir = chunks.join(format!("chunk-{chunk:06}"));
        write(&dir, &[(0, zero), (1, one)]);
    }
    let expected = items(&whole).unwrap();
    assert_eq!(expected.len(), 6 + 6 + 2 + 2);
    assert_eq!(items(&chunks).unwrap(), expected);
}

/// Streams of many windows, which other threads decode: the items are those that one thread would give.
#[test]
fn long_streams_come_in_order_of_time() {
    let dir = tempfile::tempdir().unwrap();
    let long = "x".repeat(200_000);
    // Of each stream: events in a packet, and packets.
    let shapes = [(50_000, 2), (3, 9_000), (700, 40), (0, 600), (20_000, 3)];
    let (mut streams, mut expected) = (Vec::new(), Vec::new());
    for (cpu, (events, packets)) in (0_u32..).zip(shapes) {
        let (mut time, mut bytes) = (u64::from(cpu), Vec::new());
        for number in 0..packets {
            let mut builder = packet(cpu, number, time);
            for event in 0..events {
                time += u64::from(cpu) + event % 3;
                builder = match event {
                    // Longer than a window, in the middle of a packet and at its end.
                    300 | 699 if number % 7 == 1 => builder.exec(time, &long, 7),
                    _ => builder.softirq(time, 0),
                };
                expected.push((time, cpu as usize));
            }
            time += 10;
            bytes.push(builder.close(time, 8));
        }
        streams.push((cpu, bytes));
    }
    write(dir.path(), &streams);
    expected.sort();
    let merged = items(dir.path()).unwrap();
    let packets = |stream: usize| {
        let of = merged.iter().filter(move |(other, _)| *other == stream);
        of.filter_map(|(_, text)| text.strip_prefix("packet ")?.parse::<u64>().ok())
    };
    for (stream, (_, count)) in shapes.into_iter().enumerate() {
        assert!(packets(stream).eq(0..count), "{stream}");
    }
    let events = merged.iter().filter_map(|(stream, text)| {
        let time = text.strip_prefix("event ")?;
        Some((time.parse::<u64>().unwrap(), *stream))
    });
    assert!(events.eq(expected), "events are missing or not in order");
    let ends = merged.iter().filter(|(_, text)| text == "end 0");
    assert_eq!(ends.count(), shapes.len());
}

/// Damage far from a stream's begin is where it is, and hides nothing else.
#[test]
fn damage_in_a_long_stream_hides_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    const EVENTS: u64 = 5_000;
    let stream = |cpu: u32| {
        let packets = (0..20).map(move |number| {
            let begin = number * 10 * EVENTS;
            let events = packet(cpu, number, begin);
            let events = (1..EVENTS).fold(events, |all, n| match (cpu, number, n) {
                (1, 13, 2_500) => all.event(30, begin + n, &[]),
                _ => all.softirq(begin + n, 0),
            });
            events.close(begin + EVENTS, 8)
        });
        packets.collect::<Vec<_>>()
    };
    write(dir.path(), &[(0, stream(0)), (1, stream(1))]);
    let items = items(dir.path()).unwrap();
    let begin = 13 * 10 * EVENTS;
    let at = |text: &str| {
        let place = items
            .iter()
            .position(|(stream, other)| *stream == 1 && other == text);
        place.unwrap_or_else(|| panic!("no {text}"))
    };
    let damage = items
        .iter()
        .position(|(_, text)| text.starts_with("damaged"));
    let damage = damage.expect("damage");
    let what = "an event of unknown id 30";
    assert!(items[damage]
        .1
        .starts_with(&format!("damaged {}, ", begin + 2_500)));
    assert!(items[damage].1.ends_with(what));
    assert!(at(&format!("event {}", begin + 2_499)) < damage);
    let whole = at(&format!("whole {}", begin + EVENTS));
    assert!(damage < whole && whole < at("packet 14"));
    let events = |stream: usize| {
        let of = items.iter().filter(move |(other, _)| *other == stream);
        of.filter(|(_, text)| text.starts_with("event")).count() as u64
    };
    assert_eq!(events(0), 20 * (EVENTS - 1));
    assert_eq!(events(1), 20 * (EVENTS - 1) - 2_500);
}
