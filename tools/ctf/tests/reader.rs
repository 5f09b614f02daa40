// SPDX-License-Identifier: GPL-2.0

//! The CTF reader on synthetic and on damaged traces.

use ctf::{StreamReader, Value};
use proptest::prelude::*;
use rtrace_abi::header::Layout;
use rtrace_abi::packet::PacketHeader;
use std::fs;
use std::path::Path;
use store::Trace;
use synthetic::{Channel, PacketBuilder};
use system::Error;

const LAYOUTS: [Layout; 2] = [Layout::Compact, Layout::Large];

/// All events of a trace, by the files of CPUs: each event's name and time.
fn read(dir: &Path) -> system::Result<Vec<(String, u64)>> {
    let trace = Trace::open(dir)?;
    let mut events = Vec::new();
    for path in &trace.streams {
        let mut reader = StreamReader::open(path, &trace.metadata)?;
        while let Some(packet) = reader.next_packet()? {
            for event in packet.events() {
                let event = event?;
                for field in 0..=event.layout.fields.len() {
                    let value = event.value(field);
                    assert_eq!(value.is_some(), field < event.layout.fields.len());
                }
                events.push((event.layout.name.clone(), event.timestamp));
            }
        }
    }
    Ok(events)
}

fn sample(layout: Layout) -> Vec<u8> {
    let one = PacketBuilder::new(layout, 0, 0, 1 << 40)
        .switch((1 << 40) + 5, (0, "swapper/0"), (7, "make"))
        .exec((1 << 40) + 6, "/bin/true", 7)
        .close((1 << 40) + 9, 512);
    let two = PacketBuilder::new(layout, 0, 1, (1 << 40) + 10)
        .softirq((1 << 40) + 10, 3)
        .read((1 << 40) + 11, 0xffff_8000_0000_0000)
        .close((1 << 40) + 12, 512);
    [one, two].concat()
}

#[test]
fn times_wrap_at_any_width() {
    for layout in LAYOUTS {
        let dir = tempfile::tempdir().unwrap();
        // The steps are near the maximum of the short time, from a start just below a wrap.
        let mut time = (3 << 33) - 2;
        let mut packet = PacketBuilder::new(layout, 0, 0, time);
        let mut expected = Vec::new();
        for step in [
            0,
            1,
            1,
            1,
            (1 << 27) - 1,
            1 << 27,
            (1 << 32) - 1,
            1 << 32,
            (1 << 32) + 1,
            0,
        ] {
            time += step;
            packet = packet.softirq(time, 0);
            expected.push(("irq_softirq_entry".to_owned(), time));
        }
        packet = packet.event(synthetic::FAR, time, &[]);
        expected.push(("far".to_owned(), time));
        synthetic::write(dir.path(), layout, &[(0, vec![packet.close(time, 8)])]).unwrap();
        assert_eq!(read(dir.path()).unwrap(), expected, "{layout:?}");
    }
}

#[test]
fn values() {
    let dir = tempfile::tempdir().unwrap();
    let packet = PacketBuilder::new(Layout::Compact, 0, 0, 0)
        .switch(1, (-1, "a"), (7, "sixteen-byte-com"))
        .exec(2, "/bin/true", -5)
        .read(3, u64::MAX);
    synthetic::write(
        dir.path(),
        Layout::Compact,
        &[(0, vec![packet.close(3, 4096)])],
    )
    .unwrap();
    let trace = Trace::open(dir.path()).unwrap();
    let path = &trace.streams[0];
    let mut reader = StreamReader::open(path, &trace.metadata).unwrap();
    let packet = reader.next_packet().unwrap().unwrap();
    let events: Vec<_> = packet.events().map(Result::unwrap).collect();
    let value = |event: usize, name| {
        let field = events[event].layout.field(name).unwrap();
        events[event].value(field).unwrap()
    };
    assert_eq!(value(0, "prev_comm"), Value::Text(b"a"));
    assert_eq!(value(0, "prev_tid"), Value::Signed(-1));
    assert_eq!(value(0, "next_comm"), Value::Text(b"sixteen-byte-com"));
    assert_eq!(value(0, "next_tid"), Value::Signed(7));
    assert_eq!(value(1, "filename"), Value::Text(b"/bin/true"));
    assert_eq!(value(1, "tid"), Value::Signed(-5));
    assert_eq!(value(2, "buf"), Value::Unsigned(u64::MAX));
}

#[test]
fn values_of_every_type() {
    let dir = tempfile::tempdir().unwrap();
    let packet = PacketBuilder::new(Layout::Compact, 0, 0, 0)
        .every_type(1)
        .every_type(2)
        .close(2, 4096);
    synthetic::write(dir.path(), Layout::Compact, &[(0, vec![packet])]).unwrap();
    let trace = Trace::open(dir.path()).unwrap();
    let path = &trace.streams[0];
    let mut reader = StreamReader::open(path, &trace.metadata).unwrap();
    let packet = reader.next_packet().unwrap().unwrap();
    let events: Vec<_> = packet.events().map(Result::unwrap).collect();
    assert_eq!(events.len(), 2);
    for event in events {
        let layouts = event.layout.fields.iter().zip(0..);
        let one_by_one = layouts.map(|(layout, number)| (layout, event.value(number).unwrap()));
        assert!(event.fields().eq(one_by_one));
        let value = |name| event.value(event.layout.field(name).unwrap()).unwrap();
        let values = |name| match value(name) {
            Value::Integers(integers) => integers.collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        let unsigned =
            |values: &[u64]| -> Vec<_> { values.iter().copied().map(Value::Unsigned).collect() };
        assert_eq!(value("ready"), Value::Unsigned(1));
        assert_eq!(value("level"), Value::Signed(-3));
        assert_eq!(value("mask"), Value::Unsigned(0x1abc));
        assert_eq!(value("kind"), Value::Unsigned(4));
        assert_eq!(value("wide"), Value::Unsigned(0x8123_4567_89ab_cdef));
        assert_eq!(value("state"), Value::Signed(5));
        assert_eq!(values("uuid"), unsigned(&[0xde, 0xad, 0xbe, 0xef]));
        assert_eq!(values("pairs"), unsigned(&[1, 2, 3, 0, 1]));
        assert_eq!(value("name_length"), Value::Unsigned(2));
        assert_eq!(value("name"), Value::Text(b"ab"));
        assert_eq!(values("cpus"), [Value::Signed(-1), Value::Signed(7)]);
        assert_eq!(value("path"), Value::Text(b"/p"));
    }
}

/// Two channels with different event headers and the same event.
fn two_channels(dir: &Path) {
    let small = PacketBuilder::new(Layout::Compact, 0, 0, 5)
        .softirq(6, 1)
        .close(9, 512);
    let large = PacketBuilder::new(Layout::Large, 0, 0, 5)
        .stream(1)
        .read(7, 2)
        .softirq(8, 1)
        .close(9, 512);
    let channels = [
        ("channel0", Layout::Compact, [(0, vec![small])]),
        ("calls", Layout::Large, [(0, vec![large])]),
    ];
    let channels = channels.each_ref().map(|(name, layout, streams)| Channel {
        name,
        layout: *layout,
        streams,
    });
    synthetic::write_channels(dir, &channels).unwrap();
}

#[test]
fn the_packet_says_which_header_its_events_have() {
    let dir = tempfile::tempdir().unwrap();
    two_channels(dir.path());
    let names = |path: &Path| path.file_name().unwrap().to_owned();
    let trace = Trace::open(dir.path()).unwrap();
    let found: Vec<_> = trace.streams.iter().map(|path| names(path)).collect();
    assert_eq!(found, ["calls_cpu0", "channel0_cpu0"]);
    let expected = [
        ("syscall_entry_read".to_owned(), 7),
        ("irq_softirq_entry".to_owned(), 8),
        ("irq_softirq_entry".to_owned(), 6),
    ];
    assert_eq!(read(dir.path()).unwrap(), expected);
}

/// Makes the metadata give these contexts to each event of the first stream.
fn declare_contexts(dir: &Path, contexts: &str) {
    let path = dir.join("metadata");
    let text = fs::read_to_string(&path).unwrap();
    let declared = format!("\tevent.context := struct {{\n{contexts}\t}};\n\tpacket.context");
    fs::write(&path, text.replacen("\tpacket.context", &declared, 1)).unwrap();
}

#[test]
fn contexts_stand_before_the_fields() {
    let dir = tempfile::tempdir().unwrap();
    let packet = PacketBuilder::new(Layout::Compact, 0, 0, 0)
        .event(synthetic::READ, 1, &[7, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0])
        .close(2, 512);
    synthetic::write(dir.path(), Layout::Compact, &[(0, vec![packet])]).unwrap();
    let tid = "\t\tinteger { size = 32; align = 8; signed = true; } _tid;\n";
    declare_contexts(dir.path(), tid);
    let trace = Trace::open(dir.path()).unwrap();
    let path = &trace.streams[0];
    let mut reader = StreamReader::open(path, &trace.metadata).unwrap();
    let packet = reader.next_packet().unwrap().unwrap();
    let events: Vec<_> = packet.events().map(Result::unwrap).collect();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].value(0), Some(Value::Unsigned(9)));
    let tid = events[0].class.context("tid").unwrap();
    assert_eq!(events[0].context(tid), Some(Value::Signed(7)));
    assert_eq!(events[0].class.context("pid"), None);
    assert_eq!(events[0].context(1), None);
    let contexts: Vec<_> = events[0].contexts().collect();
    assert_eq!(contexts, [(&events[0].class.contexts[0], Value::Signed(7))]);
}

#[test]
fn a_context_may_be_of_any_length() {
    let dir = tempfile::tempdir().unwrap();
    let record = |stack: &[u64], buf: u64| {
        let mut record = (stack.len() as u32).to_le_bytes().to_vec();
        record.extend(stack.iter().flat_map(|address| address.to_le_bytes()));
        record.extend(buf.to_le_bytes());
        record
    };
    let packet = PacketBuilder::new(Layout::Compact, 0, 0, 0)
        .event(synthetic::READ, 1, &record(&[0xffff_ffff_8100_0000, 5], 9))
        .event(synthetic::READ, 2, &record(&[], 10))
        // The length is larger than the packet.
        .event(synthetic::READ, 3, &[0xff, 0xff, 0xff, 0xff])
        .close(4, 512);
    synthetic::write(dir.path(), Layout::Compact, &[(0, vec![packet])]).unwrap();
    let stack =
        "\t\tinteger { size = 32; align = 8; signed = false; } __callstack_kernel_length;\n\
        \t\tinteger { size = 64; align = 8; signed = false; base = 16; } \
        _callstack_kernel[__callstack_kernel_length];\n";
    declare_contexts(dir.path(), stack);
    let trace = Trace::open(dir.path()).unwrap();
    let path = &trace.streams[0];
    let mut reader = StreamReader::open(path, &trace.metadata).unwrap();
    let packet = reader.next_packet().unwrap().unwrap();
    let mut events = packet.events();
    for (stack, buf) in [(&[0xffff_ffff_8100_0000, 5][..], 9), (&[], 10)] {
        let event = events.next().unwrap().unwrap();
        assert_eq!(event.value(0), Some(Value::Unsigned(buf)));
        let context = event.class.context("callstack_kernel").unwrap();
        let Some(Value::Integers(addresses)) = event.context(context) else {
            panic!("{:?}", event.context(context));
        };
        let expected = stack.iter().map(|&address| Value::Unsigned(address));
        assert!(addresses.eq(expected));
    }
    match events.next() {
        Some(Err(Error::Corrupt { what, .. })) => {
            assert_eq!(what, "the packet ends within an event");
        }
        other => panic!("{other:?}"),
    }
    assert!(events.next().is_none());
}

#[test]
fn a_stream_has_one_class() {
    let dir = tempfile::tempdir().unwrap();
    two_channels(dir.path());
    let mut bytes = fs::read(dir.path().join("channel0_cpu0")).unwrap();
    let other = PacketBuilder::new(Layout::Large, 0, 1, 10)
        .stream(1)
        .close(11, 512);
    bytes.extend(other);
    fs::write(dir.path().join("channel0_cpu0"), bytes).unwrap();
    match read(dir.path()) {
        Err(Error::Corrupt {
            offset: 512, what, ..
        }) => assert_eq!(what, "a packet of stream class 1 in a stream of class 0"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_truncated_packet_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let whole = sample(Layout::Large);
    for length in 512..whole.len() {
        synthetic::write(
            dir.path(),
            Layout::Large,
            &[(0, vec![whole[..length].to_vec()])],
        )
        .unwrap();
        assert_eq!(read(dir.path()).unwrap().len(), 2, "{length}");
    }
}

/// Replaces a number in a field of the second packet's header.
fn patched(offset: usize, value: u64) -> system::Result<Vec<(String, u64)>> {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = sample(Layout::Compact);
    bytes[512 + offset..512 + offset + 8].copy_from_slice(&value.to_le_bytes());
    synthetic::write(dir.path(), Layout::Compact, &[(0, vec![bytes])]).unwrap();
    read(dir.path())
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (offset, value, words) in [
        (0, 0, "no packet begins here"),
        (4, 0, "another trace"),
        (20, 7, "unknown stream class"),
        (32, 0, "timestamp_begin is 0"),
        (40, 0, "ends at 0"),
        (48, 0, "less than a packet header"),
        (48, u64::MAX - 7, "of content in a packet"),
        (48, 4097, "not whole bytes"),
        (56, u64::MAX - 7, "a packet of"),
        (64, 0, "packet_seq_num is 0"),
    ] {
        match patched(offset, value) {
            Err(Error::Corrupt {
                offset: 512, what, ..
            }) => {
                assert!(what.contains(words), "{offset}: {what}");
            }
            other => panic!("{offset}: {other:?}"),
        }
    }
    // The first event of the second packet.
    match patched(PacketHeader::SIZE, u64::MAX) {
        Err(Error::Corrupt { offset, .. }) => assert_eq!(offset, 512 + PacketHeader::SIZE as u64),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_missing_trace_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let error = Trace::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("metadata"), "{error}");
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let dir = tempfile::tempdir().unwrap();
        synthetic::write(dir.path(), Layout::Compact, &[(0, vec![bytes])]).unwrap();
        let _ = read(dir.path());
    }

    #[test]
    fn a_damaged_trace_is_answered(
        large in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let layout = LAYOUTS[usize::from(large)];
        let mut bytes = sample(layout);
        for (at, with) in changes {
            let at = at.index(bytes.len());
            bytes[at] = with;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        synthetic::write(dir.path(), layout, &[(0, vec![bytes])]).unwrap();
        let _ = read(dir.path());
    }

    /// Headers are intact, and events random, so the test reaches the decoder.
    #[test]
    fn random_events_are_answered(large in any::<bool>(), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let dir = tempfile::tempdir().unwrap();
        let layout = LAYOUTS[usize::from(large)];
        let mut packet = PacketBuilder::new(layout, 0, 0, 0).event(0, 0, &bytes).close(u64::MAX, 8);
        // Removes the event's header again.
        let at = PacketHeader::SIZE;
        packet[at..].rotate_left(if large { 6 } else { 4 });
        synthetic::write(dir.path(), layout, &[(0, vec![packet])]).unwrap();
        let _ = read(dir.path());
    }
}

#[test]
fn other_files_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), Layout::Compact, &[(10, vec![]), (9, vec![])]).unwrap();
    fs::write(dir.path().join(".hidden"), "x").unwrap();
    fs::create_dir(dir.path().join("index")).unwrap();
    let trace = Trace::open(dir.path()).unwrap();
    let names: Vec<_> = trace
        .streams
        .iter()
        .map(|p| p.file_name().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["channel0_cpu9", "channel0_cpu10"]);
    assert_eq!(read(dir.path()).unwrap(), []);
}
