// SPDX-License-Identifier: GPL-2.0

//! Rings: a model of programs that write, interleaved with the reader.

use proptest::prelude::*;
use rtrace_program::merge::{choose, Bound, Choice, Source};
use rtrace_program::position::{BadHead, Position, RingPiece};
use rtrace_program::reader::{Checks, RingReader};
use rtrace_program::record::{NoRecord, Record, HEADER, LONGEST_RECORD};
use rtrace_program::shape::{measure, ShapePart};

/// Event 0 has a number, event 1 a number and a text.
struct Events;

impl Checks for Events {
    fn shape(&mut self, event: u32) -> Option<&[ShapePart]> {
        match event {
            0 => Some(&[ShapePart::Fixed(8)]),
            1 => Some(&[ShapePart::Fixed(4), ShapePart::Text]),
            _ => None,
        }
    }

    fn is_cpu(&self, cpu: u32) -> bool {
        cpu < 4
    }
}

fn tag(words: usize, event: u64, thread: u64, cpu: u64) -> u64 {
    words as u64 | (event << 10) | (thread << 26) | (cpu << 48)
}

/// The bytes of a record of event 0.
fn number(time: u64, cpu: u64, number: u64) -> Vec<u8> {
    [time, tag(3, 0, 7, cpu), number]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect()
}

/// The bytes of a record of event 1.
fn text(time: u64) -> Vec<u8> {
    let mut bytes = [time, tag(4, 1, 7, 0)].map(u64::to_le_bytes).concat();
    bytes.extend(b"1234abcd\0xxxxxxx");
    bytes
}

/// A ring as a program and the reader see it.
struct Ring {
    memory: Vec<u8>,
    head: u64,
    limit: u64,
    lost: u64,
    reader: RingReader,
    copy: Vec<u8>,
    /// The clock at a copy.
    now: u64,
}

impl Ring {
    fn new(size: usize) -> Self {
        let reader = RingReader::new(size).unwrap();
        Self {
            memory: vec![0; size],
            head: 0,
            limit: reader.limit(),
            lost: 0,
            reader,
            copy: Vec::new(),
            now: u64::MAX,
        }
    }

    /// Writes as the header for programs does.
    fn write(&mut self, bytes: &[u8]) -> bool {
        let new = self.head.wrapping_add(bytes.len() as u64);
        if new.wrapping_sub(self.limit) as i64 > 0 {
            self.lost += 1;
            return false;
        }
        for (at, byte) in bytes.iter().enumerate() {
            let place = (self.head as usize).wrapping_add(at) % self.memory.len();
            self.memory[place] = *byte;
        }
        self.head = new;
        true
    }

    /// One copy.
    fn take(&mut self, horizon: u64, room: usize) {
        let head = self.head;
        if let Some(piece) = self.reader.take(head, horizon, room) {
            let size = self.memory.len();
            assert!(piece.len <= size && piece.len <= room && piece.from < size);
            self.copy = (0..piece.len)
                .map(|at| self.memory[(piece.from + at) % size])
                .collect();
            self.reader.copied(&self.copy, piece, head, self.now);
        }
        self.limit = self.reader.limit();
    }

    /// Copies, and reads the times of the copy.
    fn read_all(&mut self, times: &mut Vec<u64>, now: u64, room: usize) {
        self.take(now, room);
        while let Source::Next(time) = self.source() {
            times.push(time);
            self.read();
        }
    }

    fn source(&mut self) -> Source {
        match self.reader.peek(&self.copy, &mut Events) {
            Some(valid) => Source::Next(valid.time),
            None => Source::UsedUp(self.reader.bound()),
        }
    }

    /// Reads the next record of the copy.
    fn read(&mut self) -> (u64, u32, Vec<u8>) {
        let valid = self.reader.peek(&self.copy, &mut Events).unwrap();
        let read = (valid.time, valid.cpu, valid.fields.to_vec());
        self.reader.advance(&valid);
        read
    }
}

#[test]
fn positions() {
    assert_eq!(Position::new(24), None);
    assert_eq!(Position::new(8), None);
    let mut position = Position::new(64).unwrap();
    assert_eq!((position.limit(), position.half()), (64, 32));
    let piece = |from, len, is_cut| Ok(RingPiece { from, len, is_cut });
    assert_eq!(position.written(0, 32), piece(0, 0, false));
    assert_eq!(position.written(48, 32), piece(0, 32, true));
    position.free(32);
    assert_eq!(position.limit(), 96);
    // Around the end of the memory.
    assert_eq!(position.written(96, 64), piece(32, 64, false));
    for bad in [104, 24, 33, u64::MAX, 1 << 63] {
        let mut position = position;
        assert_eq!(position.written(bad, 64), Err(BadHead), "{bad}");
        assert_eq!(
            position.written(bad & !7, 64),
            piece((bad & 63 & !7) as usize, 0, false)
        );
    }
}

/// All ways to write two lengths of records into a small ring and to read from it, around the wrap of positions.
#[test]
fn all_interleavings_of_a_small_ring() {
    const STEPS: u32 = 8;
    for origin in [0, u64::MAX - 39] {
        for steps in 0..4_u32.pow(STEPS) {
            let mut ring = Ring::new(64);
            if origin != 0 {
                // The reader cannot know this head. It counts it, and continues there.
                ring.head = origin;
                ring.take(0, 64);
                assert_eq!(ring.reader.bad_heads(), 1);
            }
            let (mut written, mut read) = (Vec::new(), Vec::new());
            for step in 0..STEPS {
                let time = u64::from(step) + 1;
                let record = match steps / 4_u32.pow(step) % 4 {
                    0 => number(time, 1, time),
                    1 => text(time),
                    room => {
                        ring.read_all(&mut read, time, if room == 2 { 32 } else { 64 });
                        continue;
                    }
                };
                if ring.write(&record) {
                    written.push(time);
                }
                // The rest of the memory is never written.
                assert!(ring.head.wrapping_sub(ring.limit) as i64 <= 0);
            }
            for _ in 0..3 {
                ring.read_all(&mut read, 100, 32);
            }
            assert_eq!(read, written, "{steps:o}");
            assert_eq!(ring.head, ring.limit.wrapping_sub(64));
            assert_eq!((ring.reader.garbage(), ring.reader.late()), (0, 0));
        }
    }
}

#[test]
fn records_have_a_form() {
    let bytes = number(5, 3, 9);
    let (record, len) = Record::first(&bytes).unwrap();
    assert_eq!(
        (record.time, record.event, record.thread, record.cpu),
        (5, 0, 7, 3)
    );
    assert_eq!((record.padded, len), (&9_u64.to_le_bytes()[..], 24));
    for (words, expected) in [
        (0, NoRecord::Garbage),
        (1, NoRecord::Garbage),
        (4, NoRecord::Cut),
        (128, NoRecord::Cut),
        (129, NoRecord::Garbage),
        (1023, NoRecord::Garbage),
    ] {
        let mut bytes = bytes.clone();
        bytes[8..16].copy_from_slice(&tag(words, 0, 0, 0).to_le_bytes());
        assert_eq!(Record::first(&bytes), Err(expected), "{words}");
    }
    assert_eq!(Record::first(&bytes[..15]), Err(NoRecord::Cut));
}

#[test]
fn wrong_records_are_garbage() {
    let with = |tag: u64, fields: &[u8]| {
        let mut bytes = [1_u64, tag].map(u64::to_le_bytes).concat();
        bytes.extend(fields);
        bytes
    };
    for (bytes, is_valid) in [
        (with(tag(3, 0, 0, 3), &[0; 8]), true),
        (with(tag(3, 0, 0, 4), &[0; 8]), false),
        (with(tag(3, 2, 0, 0), &[0; 8]), false),
        (with(tag(2, 0, 0, 0), &[]), false),
        (with(tag(4, 0, 0, 0), &[0; 16]), false),
        (with(tag(3, 1, 0, 0), b"1234ab\0\xff"), true),
        (with(tag(3, 1, 0, 0), b"1234\0\xff\xff\xff"), true),
        (with(tag(3, 1, 0, 0), b"1234abcd"), false),
        (with(tag(4, 1, 0, 0), b"1234abcd\0xxxxxxx"), true),
        (with(tag(4, 1, 0, 0), b"1234abc\0xxxxxxxx"), false),
    ] {
        let mut ring = Ring::new(256);
        assert!(ring.write(&number(1, 0, 0)) && ring.write(&bytes) && ring.write(&number(2, 0, 0)));
        ring.take(9, 256);
        let mut read = 0;
        while let Source::Next(_) = ring.source() {
            ring.read();
            read += 1;
        }
        assert_eq!(read, if is_valid { 3 } else { 1 }, "{bytes:x?}");
        let dropped = if is_valid { 0 } else { bytes.len() as u64 + 24 };
        assert_eq!(ring.reader.garbage(), dropped);
        // The next records are found again.
        assert!(ring.write(&number(3, 0, 0)));
        ring.take(9, 256);
        assert_eq!(ring.source(), Source::Next(3));
    }
}

#[test]
fn a_time_is_bounded() {
    let mut ring = Ring::new(256);
    for time in [10, 5, 1000, 20] {
        assert!(ring.write(&number(time, 0, 0)));
    }
    ring.now = 50;
    ring.take(0, 256);
    assert_eq!([(); 4].map(|()| ring.read().0), [10, 10, 50, 50]);
    assert_eq!(ring.reader.late(), 3);
}

#[test]
fn a_merge_waits_for_the_earliest_bound() {
    let choices = |sources: &[Source], until| choose(sources.iter().copied(), Bound(until));
    let (next, used_up) = (Source::Next, |bound| Source::UsedUp(Bound(bound)));
    for (sources, until, expected) in [
        (&[][..], 5, Choice::Wait(Bound(5))),
        (&[next(3), next(2), next(2)], 5, Choice::Pass(1)),
        (&[next(3)], 2, Choice::Wait(Bound(2))),
        (&[next(3)], 3, Choice::Pass(0)),
        (&[next(3), used_up(2)], 5, Choice::Wait(Bound(2))),
        (&[used_up(3), next(3), used_up(9)], 5, Choice::Pass(1)),
        (&[used_up(3), used_up(9)], 5, Choice::Wait(Bound(3))),
    ] {
        assert_eq!(choices(sources, until), expected, "{sources:?} {until}");
    }
}

proptest! {
    /// Each record is read once, or was counted as lost, whatever the sizes of the copies are. The merge is in order of
    /// time.
    #[test]
    fn records_are_read_or_lost(steps in prop::collection::vec((0..3_usize, 0..6_u8, 1..12_usize), 1..300)) {
        let mut rings = [Ring::new(256), Ring::new(128), Ring::new(64)];
        let (mut clock, mut tried, mut merged) = (0_u64, 0_u64, Vec::new());
        let drain = |rings: &mut [Ring; 3], clock: u64, room: usize, merged: &mut Vec<u64>| {
            for ring in rings.iter_mut() {
                if ring.reader.is_used_up() {
                    ring.take(clock, room);
                }
            }
            loop {
                let sources = rings.each_mut().map(|ring| ring.source());
                match choose(sources.into_iter(), Bound(clock)) {
                    Choice::Pass(index) => merged.push(rings[index].read().0),
                    Choice::Wait(_) => break,
                }
            }
        };
        for (ring, step, room) in steps {
            clock += 1;
            if step < 4 {
                tried += 1;
                rings[ring].write(&number(clock, 0, clock));
            } else {
                drain(&mut rings, clock, 24 * room, &mut merged);
            }
        }
        for _ in 0..40 {
            clock += 1;
            drain(&mut rings, clock, 24 * 4, &mut merged);
        }
        let lost: u64 = rings.iter().map(|ring| ring.lost).sum();
        prop_assert_eq!(merged.len() as u64 + lost, tried);
        prop_assert!(merged.windows(2).all(|pair| pair[0] < pair[1]));
        for ring in &rings {
            prop_assert_eq!((ring.reader.garbage(), ring.reader.bad_heads(), ring.reader.late()), (0, 0, 0));
        }
    }

    /// For any bytes of a program: each byte is part of a valid record, or is counted.
    #[test]
    fn any_bytes_are_records_or_counted(
        memory in prop::collection::vec(any::<u8>(), 256),
        lengths in prop::collection::vec(0..6_u64, 32),
        heads in prop::collection::vec((any::<u64>(), 0..40_u64, any::<bool>()), 1..20),
    ) {
        let mut ring = Ring::new(256);
        ring.memory = memory;
        ring.now = 1000;
        for (at, length) in (0..).step_by(8).zip(lengths) {
            // Lengths that fit are more interesting.
            ring.memory[at] = length as u8;
            ring.memory[at + 1] &= 0x04;
            ring.memory[at + 2] = 0;
        }
        let mut bytes = 0;
        let mut last = 0;
        for (head, step, is_wild) in heads {
            ring.head = if is_wild { head } else { ring.limit.wrapping_sub(256).wrapping_add(step * 8) };
            let bad_heads = ring.reader.bad_heads();
            let written = ring.head.wrapping_sub(ring.limit.wrapping_sub(256));
            ring.take(1000, 1024);
            if ring.reader.bad_heads() == bad_heads {
                bytes += written;
            }
            while let Source::Next(time) = ring.source() {
                prop_assert!((last..=1000).contains(&time));
                let (time, cpu, fields) = ring.read();
                last = time;
                prop_assert!(cpu < 4 && fields.len() <= LONGEST_RECORD - HEADER);
                bytes -= (fields.len().next_multiple_of(8) + HEADER) as u64;
            }
            prop_assert_eq!(ring.reader.garbage(), bytes);
        }
    }

    /// A measured prefix has the shape.
    #[test]
    fn a_prefix_is_measured(bytes in prop::collection::vec(0..3_u8, 0..64)) {
        let parts = [ShapePart::Fixed(2), ShapePart::Text, ShapePart::Elements(2)];
        if let Some(size) = measure(&parts, &bytes) {
            prop_assert!(rtrace_program::shape::fits(&parts, &bytes[..size]));
        }
    }
}
