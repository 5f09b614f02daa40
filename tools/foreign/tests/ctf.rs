// SPDX-License-Identifier: GPL-2.0

//! Traces in CTF 1.8 and CTF 2, in the shapes that tracers write, and damaged ones.

mod writer;

use std::fs;
use tempfile::tempdir;
use writer::*;

const SWITCH: &str = r#"
event { name = "sched_switch"; id = 0; stream_id = 0; fields := struct {
	integer { size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; } _prev_comm[16];
	integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _prev_tid;
}; };
event { name = "block_rq_issue"; id = 1; stream_id = 0; fields := struct {
	integer { size = 32; align = 8; signed = 0; base = 10; } _rwbs;
	integer { size = 32; align = 8; signed = 0; base = 10; } __cmd_length;
	integer { size = 8; align = 8; signed = 0; base = 16; } _cmd[ __cmd_length ];
}; };
event { name = softirq_entry; id = 70000; stream_id = 0; fields := struct { uint32_t _vec; }; };
"#;

fn switch(bits: &mut Bits) {
    bits.bytes(b"bash\0\0\0\0\0\0\0\0\0\0\0\0");
    bits.word(-7_i64 as u64, 32);
}

fn issue(bits: &mut Bits) {
    bits.word(0x21, 32);
    bits.word(3, 32);
    bits.bytes(&[1, 2, 255]);
}

fn softirq(bits: &mut Bits) {
    bits.word(9, 32);
}

fn packet(begin: u64, end: u64) -> Packet {
    Packet {
        is_big: false,
        is_compact: true,
        begin,
        end,
        number: 0,
        discarded: 0,
        cpu: 3,
    }
}

#[test]
fn lttngs_kernel_traces_have_rtraces_names_in_both_orders_of_bytes() {
    for (is_big, is_compact) in [(false, true), (false, false), (true, true), (true, false)] {
        let dir = tempdir().unwrap();
        let order = if is_big { "be" } else { "le" };
        let header = if is_compact { "compact" } else { "large" };
        let text = lttng_text(order, header, SWITCH);
        let packet = Packet {
            is_big,
            is_compact,
            ..packet(1000, 1 << 40)
        };
        let far = 1000 + (5 << 32);
        let events: [Written<'_>; 4] = [
            (0, 1001, &switch),
            (1, 1002, &issue),
            (70_000, 1003, &softirq),
            (0, far, &switch),
        ];
        let bytes = packet.bytes(&events, 100);
        write(
            dir.path(),
            &packetized(&text, is_big),
            &[("channel0_3", bytes)],
        );
        let all = read(dir.path()).unwrap();
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let switched = vec![field("prev_comm", "bash"), field("prev_tid", "-7")];
        let expected: Vec<Read> = vec![
            (1001, "sched_switch".to_owned(), switched.clone()),
            (
                1002,
                "block_rq_issue".to_owned(),
                vec![
                    field("rwbs", "WS"),
                    field("_cmd_length", "3"),
                    field("cmd", "[1,2,255]"),
                ],
            ),
            (
                1003,
                "irq_softirq_entry".to_owned(),
                vec![field("vec", "9")],
            ),
            (far, "sched_switch".to_owned(), switched),
        ];
        assert_eq!(all.events, expected, "{order} {header}");
        assert_eq!((all.cpus, all.damages.len()), (vec![3], 0));
        let metadata = all.metadata.unwrap();
        assert_eq!(metadata.clock.offset, 1_361_203_559_332_331_489);
        assert_eq!(metadata.env["hostname"], "box");
    }
}

#[test]
fn calls_of_an_old_lttng_have_rtraces_names() {
    let dir = tempdir().unwrap();
    let events = ["sys_open", "compat_sys_open", "exit_syscall"];
    let events = (0..).zip(events).map(|(id, name)| {
        format!(
            "event {{ name = \"{name}\"; id = {id}; stream_id = 0; fields := struct {{ uint32_t _ret; }}; }};\n"
        )
    });
    let text = lttng_text("le", "compact", &events.collect::<String>());
    let events: Vec<Written<'_>> = vec![(0, 1, &softirq), (2, 2, &softirq), (1, 3, &softirq)];
    let bytes = packet(0, 10).bytes(&events, 0);
    write(dir.path(), text.as_bytes(), &[("channel0_3", bytes)]);
    let all = read(dir.path()).unwrap();
    let names: Vec<_> = all
        .events
        .iter()
        .map(|(_, name, _)| name.as_str())
        .collect();
    let expected = [
        "syscall_entry_open",
        "exit_syscall",
        "compat_syscall_entry_open",
    ];
    assert_eq!(names, expected);
}

#[test]
fn events_that_perf_converted_have_rtraces_names() {
    let dir = tempdir().unwrap();
    let events = r#"
event { name = "sched:sched_switch"; id = 0; stream_id = 0; fields := struct {
	uint32_t _perf_tid; string _prev_comm; uint32_t _prev_pid; uint32_t _next_pid;
}; };
event { name = "irq:softirq_entry"; id = 1; stream_id = 0; fields := struct { uint32_t _vec; }; };
event { name = "cpu-clock"; id = 2; stream_id = 0; fields := struct { uint32_t _perf_tid; }; };
"#;
    let text = lttng_text("le", "compact", events).replace("lttng-modules", "perf");
    let switch = |bits: &mut Bits| {
        bits.word(7, 32);
        bits.bytes(b"bash\0");
        bits.word(7, 32);
        bits.word(8, 32);
    };
    let written: [Written<'_>; 3] = [(0, 1001, &switch), (1, 1002, &softirq), (2, 1003, &softirq)];
    let bytes = packet(1000, 2000).bytes(&written, 0);
    write(dir.path(), text.as_bytes(), &[("perf_stream_0", bytes)]);
    let all = read(dir.path()).unwrap();
    let names: Vec<_> = all.events.iter().map(|event| event.1.as_str()).collect();
    assert_eq!(names, ["sched_switch", "irq_softirq_entry", "cpu-clock"]);
    let fields: Vec<_> = all.events[0]
        .2
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(fields, ["perf_tid", "prev_comm", "prev_tid", "next_tid"]);
}

#[test]
fn losses_are_counted_where_they_are() {
    let dir = tempdir().unwrap();
    let text = lttng_text("le", "compact", SWITCH);
    let mut stream = Vec::new();
    for (number, discarded) in [(0, 0), (1, 5), (4, 5)] {
        let begin = 1000 * (number + 1);
        let packet = Packet {
            number,
            discarded,
            ..packet(begin, begin + 900)
        };
        stream.extend(packet.bytes(&[(0, begin + 1, &switch)], 0));
    }
    write(dir.path(), text.as_bytes(), &[("channel0_3", stream)]);
    let all = read(dir.path()).unwrap();
    assert_eq!((all.events.len(), all.lost, all.packets_lost), (3, 5, 2));
}

#[test]
fn packets_after_the_one_with_the_highest_number_are_read() {
    let dir = tempdir().unwrap();
    let mut bytes = Vec::new();
    for (number, begin) in [(u64::MAX, 1000), (0, 2000)] {
        let packet = Packet {
            number,
            ..packet(begin, begin + 900)
        };
        bytes.extend(packet.bytes(&[(0, begin + 1, &switch)], 0));
    }
    let text = lttng_text("le", "compact", SWITCH);
    write(dir.path(), text.as_bytes(), &[("channel0_3", bytes)]);
    let all = read(dir.path()).unwrap();
    assert_eq!(all.damages, Vec::<String>::new());
    assert_eq!(all.events.len(), 2);
    assert_eq!(all.packets_lost, u64::MAX);
}

#[test]
fn a_large_packet_is_read_in_parts_and_each_part_alone() {
    let dir = tempdir().unwrap();
    let text = lttng_text("le", "compact", SWITCH);
    let events: Vec<Written<'_>> = (0..30_000)
        .map(|at| (0, 1000 + at, &switch as &dyn Fn(&mut Bits)))
        .collect();
    let bytes = packet(1000, 50_000).bytes(&events, 17);
    let length = bytes.len() as u64;
    write(dir.path(), text.as_bytes(), &[("channel0_3", bytes)]);
    let all = read(dir.path()).unwrap();
    let times: Vec<_> = all.events.iter().map(|event| event.0).collect();
    assert_eq!(times, (1000..31_000).collect::<Vec<_>>());
    assert!(all.packets.len() > 5, "{} parts", all.packets.len());
    // The parts have all bytes of the file, without gaps.
    let mut end = 0;
    for (offset, size) in &all.packets {
        assert_eq!(*offset, end);
        end += size;
    }
    assert_eq!(end, length);
    let opened = foreign::open(dir.path()).unwrap().unwrap();
    let reader = opened.metadata.foreign.unwrap();
    for (offset, size) in all.packets {
        let mut packets = reader.open(&opened.streams[0]).unwrap();
        packets.seek(offset).unwrap();
        let mut content = Vec::new();
        let at = packets
            .next(&mut content, &mut Vec::new())
            .unwrap()
            .unwrap();
        assert_eq!((at.offset, at.size()), (offset, size));
        assert_eq!(at.content(), 84 + content.len() as u64);
    }
}

#[test]
fn packets_that_overlap_keep_their_events() {
    let dir = tempdir().unwrap();
    let text = lttng_text("le", "compact", SWITCH);
    // The first packet was closed after the second one began.
    let mut stream = packet(1000, 2500).bytes(&[(0, 1001, &switch)], 0);
    stream.extend(
        Packet {
            number: 1,
            ..packet(2000, 3000)
        }
        .bytes(&[(0, 2001, &switch)], 0),
    );
    write(dir.path(), text.as_bytes(), &[("channel0_3", stream)]);
    let all = read(dir.path()).unwrap();
    assert_eq!(
        (all.events.len(), all.damages.len()),
        (2, 0),
        "{:?}",
        all.damages
    );
}

#[test]
fn damage_is_said_with_file_and_offset() {
    let dir = tempdir().unwrap();
    let text = lttng_text("le", "compact", SWITCH);
    let good = packet(1000, 2000).bytes(&[(0, 1001, &switch), (0, 1002, &switch)], 8);
    let second = Packet {
        number: 1,
        ..packet(2000, 3000)
    };
    let second = second.bytes(&[(0, 2001, &switch)], 0);
    // An event of an unknown id: the rest of its packet is left out, and the next packet is read.
    let mut bad = good.clone();
    bad[76 + 24] = 7;
    bad.extend(&second);
    let path = dir.path().join("channel0_3");
    write(dir.path(), text.as_bytes(), &[("channel0_3", bad)]);
    let all = read(dir.path()).unwrap();
    assert_eq!(all.events.len(), 2);
    let what = format!(
        "{}: at byte 100: an event of unknown id 7; damaged: 32 bytes are left out",
        path.display()
    );
    assert_eq!(all.damages, [what]);
    // A packet of another trace, and one that is cut off.
    for (change, expected) in [
        (Some((5, 0xff)), "a packet of another trace"),
        (Some((0, 0)), "no packet begins here"),
        (None, "a packet that ends after the end of the file"),
    ] {
        let mut bytes = good.clone();
        match change {
            Some((at, byte)) => bytes[at] = byte,
            None => bytes.truncate(bytes.len() - 1),
        }
        fs::write(&path, bytes).unwrap();
        let all = read(dir.path()).unwrap();
        assert_eq!(all.events.len(), 0);
        assert!(
            all.damages[0].contains("at byte 0") && all.damages[0].contains(expected),
            "{:?}",
            all.damages
        );
    }
}

#[test]
fn reading_continues_at_the_packet_after_a_damaged_header() {
    for is_big in [false, true] {
        let dir = tempdir().unwrap();
        let text = lttng_text(if is_big { "be" } else { "le" }, "compact", SWITCH);
        let packets: Vec<_> = (0..3)
            .map(|number| {
                let begin = 1000 * (number + 1);
                let packet = Packet {
                    is_big,
                    number,
                    ..packet(begin, begin + 900)
                };
                packet.bytes(&[(0, begin + 1, &switch)], 8)
            })
            .collect();
        let (size, whole) = (packets[0].len() as u64, packets.concat());
        let path = dir.path().join("channel0_3");
        // Magic number, id of the trace, class of the stream, size.
        for at in [0, 5, 23, SIZE_BYTE] {
            let mut bytes = whole.clone();
            bytes[size as usize + at] ^= 0x7f;
            // The bytes of a magic number are not enough for a packet.
            let end = 2 * size as usize;
            bytes.copy_within(..4, end - 4);
            write(dir.path(), text.as_bytes(), &[("channel0_3", bytes)]);
            let all = read(dir.path()).unwrap();
            let times: Vec<_> = all.events.iter().map(|event| event.0).collect();
            assert_eq!(times, [1001, 3001], "byte {at}: {:?}", all.damages);
            assert_eq!(all.packets_lost, 1);
            let (begin, end) = (
                format!("{}: at byte {size}: ", path.display()),
                format!("damaged: {size} bytes are left out"),
            );
            let [damage] = all.damages.as_slice() else {
                panic!("{:?}", all.damages)
            };
            assert!(
                damage.starts_with(&begin) && damage.ends_with(&end),
                "{damage}"
            );
            // The last packet alone.
            let opened = foreign::open(dir.path()).unwrap().unwrap();
            let reader = opened.metadata.foreign.unwrap();
            let mut packets = reader.open(&opened.streams[0]).unwrap();
            packets.seek(2 * size).unwrap();
            let at = packets
                .next(&mut Vec::new(), &mut Vec::new())
                .unwrap()
                .unwrap();
            assert_eq!(at.offset, 2 * size);
        }
    }
}

#[test]
fn wrong_descriptions_are_refused_with_their_line() {
    let good = lttng_text("le", "compact", SWITCH);
    for (from, to, expected) in [
        ("minor = 8", "minor = 9", "CTF of version 1.9"),
        ("byte_order = le", "byte_order = pdp", "no valid byte_order"),
        ("freq = 1000000000", "freq = 0", "a clock of frequency 0"),
        (
            "uint32_t _vec",
            "uint33_t _vec",
            "an unknown type `uint33_t`",
        ),
        (
            "[ __cmd_length ]",
            "[ __cmd_size ]",
            "refers to `__cmd_size`, which is no earlier integer",
        ),
        (
            "stream_id = 0; fields := struct { uint32_t",
            "stream_id = 4; fields := struct { uint32_t",
            "an unknown stream 4",
        ),
        ("id = 70000", "id = 1", "have the same id 1"),
        (
            "size = 5; align = 1",
            "size = 65; align = 1",
            "an integer of no size from 1 to 64",
        ),
        (
            "size = 5; align = 1",
            "size = 5; align = 3",
            "an alignment that is no power of two",
        ),
    ] {
        let dir = tempdir().unwrap();
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        write(dir.path(), text.as_bytes(), &[]);
        let error = read(dir.path()).unwrap_err().to_string();
        assert!(
            error.contains(expected) && error.contains("metadata: line "),
            "{error}"
        );
    }
    // Metadata of two traces, and of a cut file.
    let dir = tempdir().unwrap();
    let mut packets = packetized(&good, false);
    packets[4096 + 5] ^= 1;
    write(dir.path(), &packets, &[]);
    let error = read(dir.path()).unwrap_err().to_string();
    assert!(
        error.contains("at byte 4096: a packet of metadata of another trace"),
        "{error}"
    );
    let text = good.replace(UUID, "2a1bda29-ffc3-4248-8053-81ccaf830d20");
    write(dir.path(), &packetized(&text, true), &[]);
    let error = read(dir.path()).unwrap_err().to_string();
    assert!(error.contains("another uuid than the trace"), "{error}");
}

const TYPES: &str = r#"
typedef integer { size = 16; align = 16; signed = true; } short_t;
event { name = "every type"; id = 0; stream_id = 0; fields := struct {
	integer { size = 3; align = 1; } three;
	integer { size = 12; align = 1; signed = true; } twelve;
	integer { size = 35; align = 1; base = x; } hex;
	floating_point { exp_dig = 8; mant_dig = 24; align = 32; } single;
	floating_point { exp_dig = 11; mant_dig = 53; align = 8; } double;
	string { encoding = UTF8; } text;
	short_t several[3];
	enum : integer { size = 8; align = 8; signed = true; } { LOW = -3 ... -1, ZERO, ONE, "two words" = 5 } choice;
	struct {
		integer { size = 8; } inner;
		integer { size = 8; } count;
		struct { short_t x; string y; } align(16) items[count];
	} align(32) nested;
	enum tag : integer { size = 8; } { number = 0, letters = 1 } tag;
	variant <tag> { integer { size = 32; } number; string letters; } value;
	integer { size = 5; align = 1; } bits[4];
	integer { size = 8; } odd_length;
	integer { size = 5; align = 1; } odd[odd_length];
}; };
"#;

fn every_type(bits: &mut Bits, tag: u64) {
    // The largest alignment in the structure.
    bits.align(32);
    bits.put(5, 3);
    bits.put(-9_i64 as u64, 12);
    bits.put(0x7_1234_5678, 35);
    bits.align(32);
    bits.put(u64::from(1.5_f32.to_bits()), 32);
    bits.put((-0.25_f64).to_bits(), 64);
    bits.text("grüße".as_bytes());
    bits.align(16);
    for value in [1_i64, -2, 3] {
        bits.put(value as u64, 16);
    }
    bits.put(-2_i64 as u64, 8);
    bits.align(32);
    bits.put(7, 8);
    bits.put(2, 8);
    for (x, y) in [(-1_i64, "a"), (300, "b \"c\"")] {
        bits.align(16);
        bits.put(x as u64, 16);
        bits.text(y.as_bytes());
    }
    bits.put(tag, 8);
    match tag {
        0 => bits.word(77, 32),
        _ => bits.text(b"xyz"),
    }
    for value in [1, 2, 3, 31] {
        bits.put(value, 5);
    }
    bits.word(2, 8);
    bits.put(9, 5);
    bits.put(10, 5);
}

#[test]
fn every_type_is_read_in_both_orders_of_bits() {
    for is_big in [false, true] {
        let dir = tempdir().unwrap();
        let order = if is_big { "be" } else { "le" };
        let text = lttng_text(order, "large", TYPES);
        let packet = Packet {
            is_big,
            is_compact: false,
            ..packet(1000, 2000)
        };
        let events: [Written<'_>; 2] = [
            (0, 1001, &|bits| every_type(bits, 0)),
            (0, 1002, &|bits| every_type(bits, 1)),
        ];
        write(
            dir.path(),
            text.as_bytes(),
            &[("c_0", packet.bytes(&events, 0))],
        );
        let all = read(dir.path()).unwrap();
        assert_eq!(all.damages, [""; 0], "{order}");
        assert_eq!(all.events.len(), 2);
        for (event, value) in all
            .events
            .iter()
            .zip(["{ number = 77 }", "{ letters = \"xyz\" }"])
        {
            let shown: Vec<_> = event
                .2
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            assert_eq!(
                shown,
                [
                    "three=5",
                    "twelve=-9",
                    "hex=30370190968",
                    "single=1.5",
                    "double=-0.25",
                    "text=grüße",
                    "several=[1,-2,3]",
                    "choice=LOW",
                    "nested.inner=7",
                    "nested.count=2",
                    "nested.items=[ [0] = { x = -1, y = \"a\" }, [1] = { x = 300, y = \"b \\\"c\\\"\" } ]",
                    &format!("tag={}", if value.contains("77") { "number" } else { "letters" }),
                    &format!("value={value}"),
                    "bits=[1,2,3,31]",
                    "odd_length=2",
                    "odd=[9,10]",
                ],
                "{order}"
            );
        }
    }
}

#[test]
fn a_trace_without_headers_clock_and_ids_is_read() {
    let dir = tempdir().unwrap();
    let text = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };
        event { name = \"only\"; fields := struct { integer { size = 8; } a; string b; }; };";
    let mut bits = Bits::new(false);
    for at in 0..3 {
        bits.word(at, 8);
        bits.text(b"text");
    }
    write(
        dir.path(),
        text.as_bytes(),
        &[("stream", bits.into_bytes())],
    );
    let all = read(dir.path()).unwrap();
    let values: Vec<_> = all
        .events
        .iter()
        .map(|event| event.2[0].1.as_str())
        .collect();
    assert_eq!(values, ["0", "1", "2"]);
    assert!(
        all.notes.iter().any(|note| note.contains("no clock")),
        "{:?}",
        all.notes
    );
    assert!(
        all.notes.iter().any(|note| note.contains("CPU")),
        "{:?}",
        all.notes
    );
}

#[test]
fn a_session_is_one_trace_of_the_kernel_and_of_programs() {
    let dir = tempdir().unwrap();
    let kernel = lttng_text("le", "compact", SWITCH);
    let user = kernel
        .replace("domain = \"kernel\"", "domain = \"ust\"")
        .replace("lttng-modules", "lttng-ust")
        .replace(UUID, "2a1bda29-ffc3-4248-8053-81ccaf830d20")
        // The offset of the clock was measured anew.
        .replace("1361203559332331489", "1361203559332339999")
        .replace("sched_switch", "app:step");
    write(
        &dir.path().join("kernel"),
        kernel.as_bytes(),
        &[(
            "channel0_3",
            packet(1000, 3000).bytes(&[(0, 1001, &switch), (0, 1003, &switch)], 0),
        )],
    );
    let user_packet = packet(1000, 3000).bytes(&[(0, 1002, &switch)], 0);
    let user_packet = [
        &user_packet[..4],
        uuid::Uuid::parse_str("2a1bda29-ffc3-4248-8053-81ccaf830d20")
            .unwrap()
            .as_bytes(),
        &user_packet[20..],
    ]
    .concat();
    write(
        &dir.path().join("ust/uid/1000/64-bit"),
        user.as_bytes(),
        &[("channel0_3", user_packet)],
    );
    fs::create_dir_all(dir.path().join("kernel/index")).unwrap();
    fs::write(dir.path().join("kernel/index/channel0_3.idx"), b"no stream").unwrap();
    let all = read(dir.path()).unwrap();
    let events: Vec<_> = all
        .events
        .iter()
        .map(|event| (event.0, event.1.as_str()))
        .collect();
    assert_eq!(
        events,
        [
            (1001, "sched_switch"),
            (1002, "app:step"),
            (1003, "sched_switch")
        ]
    );
    // Two machines are not one trace.
    let other = user.replace("hostname = \"box\"", "hostname = \"other\"");
    fs::write(dir.path().join("ust/uid/1000/64-bit/metadata"), other).unwrap();
    let error = read(dir.path()).unwrap_err().to_string();
    assert!(error.contains("several machines (box, other)"), "{error}");
}

const JSON: &[&str] = &[
    r#"{"type":"preamble","version":2,"uuid":[42,27,218,41,255,195,66,72,128,83,129,204,175,131,13,47]}"#,
    r#"{"type":"trace-class","environment":{"hostname":"box","domain":"kernel","tracer_name":"lttng-modules","tracer_major":2},
      "packet-header-field-class":{"type":"structure","member-classes":[
      {"name":"magic","field-class":{"type":"fixed-length-unsigned-integer","length":32,"byte-order":"little-endian","alignment":8,"roles":["packet-magic-number"]}},
      {"name":"uuid","field-class":{"type":"static-length-blob","length":16,"roles":["metadata-stream-uuid"]}},
      {"name":"stream_id","field-class":{"type":"fixed-length-unsigned-integer","length":32,"byte-order":"little-endian","alignment":8,"roles":["data-stream-class-id"]}}]}}"#,
    r#"{"type":"clock-class","id":"monotonic","frequency":1000000000,"offset-from-origin":{"seconds":0,"cycles":1361203559332331489},"origin":"unix-epoch"}"#,
    r#"{"type":"field-class-alias","name":"u64","field-class":{"type":"fixed-length-unsigned-integer","length":64,"byte-order":"little-endian","alignment":8}}"#,
    r#"{"type":"data-stream-class","id":0,"default-clock-class-id":"monotonic",
      "packet-context-field-class":{"type":"structure","member-classes":[
      {"name":"timestamp_begin","field-class":{"type":"fixed-length-unsigned-integer","length":64,"byte-order":"little-endian","alignment":8,"roles":["default-clock-timestamp"]}},
      {"name":"timestamp_end","field-class":{"type":"fixed-length-unsigned-integer","length":64,"byte-order":"little-endian","alignment":8,"roles":["packet-end-default-clock-timestamp"]}},
      {"name":"content_size","field-class":{"type":"fixed-length-unsigned-integer","length":64,"byte-order":"little-endian","alignment":8,"roles":["packet-content-length"]}},
      {"name":"packet_size","field-class":{"type":"fixed-length-unsigned-integer","length":64,"byte-order":"little-endian","alignment":8,"roles":["packet-total-length"]}},
      {"name":"number","field-class":{"type":"fixed-length-unsigned-integer","length":64,"byte-order":"little-endian","alignment":8,"roles":["packet-sequence-number"]}},
      {"name":"discarded","field-class":{"type":"fixed-length-unsigned-integer","length":64,"byte-order":"little-endian","alignment":8,"roles":["discarded-event-record-counter-snapshot"]}},
      {"name":"cpu_id","field-class":{"type":"fixed-length-unsigned-integer","length":32,"byte-order":"little-endian","alignment":8}}]},
      "event-record-header-field-class":{"type":"structure","minimum-alignment":8,"member-classes":[
      {"name":"id","field-class":{"type":"fixed-length-unsigned-integer","length":5,"byte-order":"little-endian","alignment":1,"roles":["event-record-class-id"],"mappings":{"compact":[[0,30]],"extended":[[31,31]]}}},
      {"name":"v","field-class":{"type":"variant","selector-field-location":{"origin":"event-record-header","path":["id"]},"options":[
       {"name":"compact","selector-field-ranges":[[0,30]],"field-class":{"type":"structure","member-classes":[{"name":"timestamp","field-class":{"type":"fixed-length-unsigned-integer","length":27,"byte-order":"little-endian","alignment":1,"roles":["default-clock-timestamp"]}}]}},
       {"name":"extended","selector-field-ranges":[[31,31]],"field-class":{"type":"structure","member-classes":[
        {"name":"id","field-class":{"type":"fixed-length-unsigned-integer","length":32,"byte-order":"little-endian","alignment":8,"roles":["event-record-class-id"]}},
        {"name":"timestamp","field-class":{"type":"fixed-length-unsigned-integer","length":64,"byte-order":"little-endian","alignment":8,"roles":["default-clock-timestamp"]}}]}}]}}]}}"#,
    r#"{"type":"event-record-class","id":0,"data-stream-class-id":0,"name":"sched_switch","payload-field-class":{"type":"structure","member-classes":[
      {"name":"prev_comm","field-class":{"type":"static-length-string","length":16}},
      {"name":"prev_tid","field-class":{"type":"fixed-length-signed-integer","length":32,"byte-order":"little-endian","alignment":8}}]}}"#,
    r#"{"type":"event-record-class","id":70000,"data-stream-class-id":0,"name":"more","payload-field-class":{"type":"structure","member-classes":[
      {"name":"long","field-class":"u64"},
      {"name":"leb","field-class":{"type":"variable-length-signed-integer"}},
      {"name":"has","field-class":{"type":"fixed-length-boolean","length":8,"byte-order":"little-endian","alignment":8}},
      {"name":"maybe","field-class":{"type":"optional","selector-field-location":{"origin":"event-record-payload","path":["has"]},"field-class":{"type":"null-terminated-string"}}},
      {"name":"length","field-class":{"type":"fixed-length-unsigned-integer","length":8,"byte-order":"little-endian","alignment":8}},
      {"name":"dynamic","field-class":{"type":"dynamic-length-string","length-field-location":{"origin":"event-record-payload","path":["length"]}}},
      {"name":"blob","field-class":{"type":"static-length-blob","length":2}}]}}"#,
];

fn more(bits: &mut Bits) {
    bits.word(1 << 40, 64);
    // -129 in three bytes of seven bits would be two.
    bits.bytes(&[0xff, 0x7e]);
    bits.bytes(&[1]);
    bits.text(b"there");
    bits.bytes(&[4]);
    bits.bytes(b"abcd");
    bits.bytes(&[0xde, 0xad]);
}

#[test]
fn a_description_in_json_is_read() {
    let dir = tempdir().unwrap();
    let text = JSON.iter().fold(String::new(), |text, fragment| {
        text + "\x1e" + fragment + "\n"
    });
    let bytes = packet(1000, 1 << 40).bytes(&[(0, 1001, &switch), (70_000, 1002, &more)], 0);
    write(dir.path(), text.as_bytes(), &[("channel0_3", bytes)]);
    let all = read(dir.path()).unwrap();
    assert_eq!(all.damages, [""; 0]);
    let shown = all.events.iter().map(|(time, name, fields)| {
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        format!("{time} {name} {}", fields.join(" "))
    });
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            "1001 sched_switch prev_comm=bash prev_tid=-7",
            "1002 more long=1099511627776 leb=-129 has=1 maybe={ value = \"there\" } length=4 dynamic=abcd blob=[222,173]",
        ]
    );
    assert_eq!(all.cpus, [3]);
    for (from, to, expected) in [
        ("\"version\":2", "\"version\":3", "an unknown version"),
        (
            "\"path\":[\"length\"]",
            "\"path\":[\"none\"]",
            "no earlier integer",
        ),
        (
            "static-length-blob\",\"length\":2",
            "strange\",\"length\":2",
            "an unknown field class `strange`",
        ),
        ("\"u64\"}", "\"u65\"}", "an unknown field class alias `u65`"),
        (
            "\"length\":5",
            "\"length\":65",
            "an integer of no length from 1 to 64",
        ),
    ] {
        let wrong = text.replacen(from, to, 1);
        assert_ne!(wrong, text, "{from}");
        fs::write(dir.path().join("metadata"), wrong).unwrap();
        let error = read(dir.path()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn no_changed_byte_causes_a_panic() {
    let dir = tempdir().unwrap();
    let text = lttng_text(
        "le",
        "compact",
        &(SWITCH.replace("id = 0; stream_id", "id = 2; stream_id") + TYPES),
    );
    let events: [Written<'_>; 3] = [
        (0, 1001, &|bits| every_type(bits, 0)),
        (1, 1002, &issue),
        (0, 1003, &|bits| every_type(bits, 1)),
    ];
    let bytes = packet(1000, 1 << 40).bytes(&events, 3);
    write(
        dir.path(),
        text.as_bytes(),
        &[("channel0_3", bytes.clone())],
    );
    assert_eq!(read(dir.path()).unwrap().events.len(), 3);
    for at in 0..bytes.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] ^= change;
            fs::write(dir.path().join("channel0_3"), bytes).unwrap();
            let _ = read(dir.path());
        }
    }
    fs::write(dir.path().join("channel0_3"), bytes).unwrap();
    let text = text.as_bytes();
    for at in (0..text.len()).step_by(7) {
        for change in [0x01, 0x10] {
            let mut text = text.to_vec();
            text[at] ^= change;
            fs::write(dir.path().join("metadata"), text).unwrap();
            let _ = read(dir.path());
        }
    }
}

#[test]
fn a_short_description_cannot_name_endless_types() {
    let mut text = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };
        typealias integer { size = 8; } := t0;\n"
        .to_owned();
    for at in 0..40 {
        let next = at + 1;
        text +=
            &format!("struct s{at} {{ t{at} a; t{at} b; }}; typealias struct s{at} := t{next};\n");
    }
    let dir = tempdir().unwrap();
    write(dir.path(), text.as_bytes(), &[]);
    let error = read(dir.path()).unwrap_err().to_string();
    assert!(error.contains("types of more than"), "{error}");
}
