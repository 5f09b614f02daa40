// SPDX-License-Identifier: GPL-2.0

//! `rtrace export perfetto`. The tests read the file by the numbers of Perfetto's schema, repeated here.

use super::{bytes, known, packet, write, IDLE, S, SHELL, US};
use tempfile::TempDir;

/// A message: its fields by number, in their order.
type Message<'a> = Vec<(u64, Field<'a>)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

fn message(mut bytes: &[u8]) -> Message<'_> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(value)
            }
            wire => panic!("wire type {wire}"),
        };
        fields.push((tag >> 3, field));
    }
    fields
}

/// Returns all messages in a field.
fn inner<'a>(message: &Message<'a>, number: u64) -> Vec<Message<'a>> {
    let fields = message.iter().filter(|(field, _)| *field == number);
    fields
        .map(|(_, field)| match field {
            Field::Bytes(bytes) => self::message(bytes),
            Field::Number(_) => panic!("{field:?}"),
        })
        .collect()
}

fn number(message: &Message<'_>, number: u64) -> Option<u64> {
    let field = message.iter().find(|(field, _)| *field == number)?.1;
    match field {
        Field::Number(value) => Some(value),
        Field::Bytes(_) => panic!("{field:?}"),
    }
}

fn text<'a>(message: &Message<'a>, number: u64) -> Option<&'a str> {
    let field = message.iter().find(|(field, _)| *field == number)?.1;
    match field {
        Field::Bytes(bytes) => Some(std::str::from_utf8(bytes).unwrap()),
        Field::Number(_) => panic!("{field:?}"),
    }
}

/// Returns the packets.
fn packets(bytes: &[u8]) -> Vec<Message<'_>> {
    let trace = message(bytes);
    assert!(trace.iter().all(|(field, _)| *field == 1));
    let packets = inner(&trace, 1);
    let is_from_us = |packet: &Message<'_>| number(packet, 10) == Some(1);
    assert!(packets.iter().all(is_from_us));
    packets
}

/// Returns the bundles of events of a CPU.
fn bundles<'a>(packets: &[Message<'a>], cpu: u64) -> Vec<Message<'a>> {
    let bundles = packets.iter().flat_map(|packet| inner(packet, 1));
    bundles
        .filter(|bundle| number(bundle, 1) == Some(cpu))
        .collect()
}

/// Returns time, thread and kind of the events of a bundle.
fn kinds(bundle: &Message<'_>) -> Vec<(u64, Option<u64>, u64)> {
    let events = inner(bundle, 2);
    events
        .iter()
        .map(|event| {
            let kind = event.iter().find(|(field, _)| ![1, 2].contains(field));
            (number(event, 1).unwrap(), number(event, 2), kind.unwrap().0)
        })
        .collect()
}

/// Microseconds of second 1 in nanoseconds.
fn at(us: u64) -> u64 {
    1_000_000_000 + us * 1000
}

#[test]
fn events_are_those_that_perfetto_draws() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let bytes = bytes(&["perfetto"], dir.path());
    let packets = packets(&bytes);
    let [zero] = &bundles(&packets, 0)[..] else {
        panic!("{packets:?}");
    };
    // sched_waking, sched_switch, sys_enter, sys_exit, sched_process_fork
    let expected = [
        (at(5), Some(0), 20),
        (at(10), Some(0), 4),
        (at(20), Some(7), 329),
        (at(40), Some(7), 330),
        (at(50), Some(7), 239),
        (at(60), Some(7), 4),
    ];
    assert_eq!(kinds(zero), expected);
    let events = inner(zero, 2);
    let waking = &inner(&events[0], 20)[0];
    assert_eq!((text(waking, 1), number(waking, 2)), (Some("sh"), Some(7)));
    assert_eq!((number(waking, 3), number(waking, 5)), (Some(120), Some(0)));
    let switch = &inner(&events[5], 4)[0];
    assert_eq!(
        (text(switch, 1), text(switch, 5)),
        (Some("sh"), Some("swapper/0"))
    );
    let numbers = [2, 3, 4, 6, 7].map(|field| number(switch, field));
    assert_eq!(numbers, [7, 120, 1, 0, 120].map(Some));
    let enter = &inner(&events[2], 329)[0];
    assert_eq!(number(enter, 1), Some(257));
    let exit = &inner(&events[3], 330)[0];
    assert_eq!(number(exit, 1), Some(257));
    assert_eq!(number(exit, 2), Some(-2_i64 as u64));
    let fork = &inner(&events[4], 239)[0];
    assert_eq!((text(fork, 1), number(fork, 2)), (Some("sh"), Some(7)));
    assert_eq!(
        (text(fork, 3), number(fork, 4)),
        (Some("a \"b\", c"), Some(8))
    );
}

#[test]
fn losses_are_in_the_bundle_behind_them() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let bytes = bytes(&["perfetto"], dir.path());
    let [before, behind] = &bundles(&packets(&bytes), 1)[..] else {
        panic!("{bytes:?}");
    };
    // softirq_entry, softirq_exit
    assert_eq!(kinds(before), [(at(11), None, 24), (at(16), None, 25)]);
    assert_eq!(number(before, 3), None);
    assert_eq!(number(&inner(&inner(before, 2)[0], 24)[0], 1), Some(1));
    assert_eq!(kinds(behind), [(at(80), Some(0), 4)]);
    assert_eq!(number(behind, 3), Some(1));
}

#[test]
fn clock_kernel_and_processes_are_told() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let bytes = bytes(&["perfetto"], dir.path());
    let packets = packets(&bytes);
    let clocks = inner(&inner(&packets[0], 6)[0], 1);
    let clocks: Vec<_> = clocks
        .iter()
        .map(|clock| (number(clock, 1).unwrap(), number(clock, 2).unwrap()))
        .collect();
    // BOOTTIME and REALTIME
    let second = 1_000_000_000;
    assert_eq!(clocks, [(6, second), (1, 1_700_000_001 * second)]);
    assert_eq!(number(&inner(&packets[0], 6)[0], 2), Some(6));
    let utsname = &inner(&inner(&packets[1], 45)[0], 1)[0];
    assert_eq!(text(utsname, 3), Some("7.2.12"));
    assert_eq!(text(utsname, 4), Some("x86_64"));
    let trees = packets.iter().filter(|packet| !inner(packet, 2).is_empty());
    let trees: Vec<_> = trees
        .map(|packet| {
            let process = &inner(&inner(packet, 2)[0], 1)[0];
            let pid = number(process, 1).unwrap();
            (
                number(packet, 8).unwrap(),
                pid,
                number(process, 2),
                text(process, 3),
            )
        })
        .collect();
    let child = Some("a \"b\", c");
    assert_eq!(
        trees,
        [(at(50), 7, None, Some("sh")), (at(50), 8, Some(7), child),]
    );
}

#[test]
fn other_events_keep_their_fields() {
    let dir = TempDir::new().unwrap();
    let mut one = packet(0, 0, S).switch(S + US, IDLE, SHELL);
    // One bundle has no room for all of these events.
    for time in 0..1000 {
        one = one.every_type(S + 2 * US + time);
    }
    write(dir.path(), &[(0, vec![one.close(2 * S, 8)])]);
    let bytes = bytes(&["perfetto", "-e", "every_type"], dir.path());
    let bundles = bundles(&packets(&bytes), 0);
    assert!(bundles.len() > 1);
    let events: Vec<_> = bundles.iter().flat_map(|bundle| inner(bundle, 2)).collect();
    assert_eq!(events.len(), 1000);
    for event in &events {
        assert_eq!(number(event, 2), Some(7));
        let generic = &inner(event, 327)[0];
        assert_eq!(text(generic, 1), Some("every_type"));
        let fields = inner(generic, 2);
        let field = |name: &str| {
            let found = fields.iter().find(|field| text(field, 1) == Some(name));
            found.unwrap_or_else(|| panic!("{name}"))
        };
        assert_eq!(number(field("level"), 4), Some(-3_i64 as u64));
        assert_eq!(number(field("wide"), 5), Some(0x8123_4567_89ab_cdef));
        assert_eq!(text(field("kind"), 3), Some("HIGH"));
        assert_eq!(text(field("cpus"), 3), Some("{-1,7}"));
        assert_eq!(text(field("path"), 3), Some("/p"));
    }
}
