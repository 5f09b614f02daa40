// SPDX-License-Identifier: GPL-2.0

//! Rings of programs: steps of a program, each a little-endian 16-bit number and bytes. The program writes these bytes at
//! its `head`, and advances it by that number of words.
//!
//! Each record that the reader returns has the shape of its event and a time within the bounds. Each byte that the
//! program has written is part of a record, or is counted.

use rtrace_program::merge::Source;
use rtrace_program::reader::{Checks, RingReader};
use rtrace_program::record::HEADER;
use rtrace_program::shape::{fits, ShapePart};

/// Size of the ring in bytes.
const SIZE: usize = 4096;
/// Bytes of a step that the program writes, at most.
const STEP: usize = 1024;
const NOW: u64 = 1 << 60;

struct Events;

impl Checks for Events {
    fn shape(&mut self, event: u32) -> Option<&[ShapePart]> {
        match event {
            0 => Some(&[ShapePart::Fixed(8)]),
            1 => Some(&[ShapePart::Fixed(4), ShapePart::Text]),
            2 => Some(&[ShapePart::Elements(2), ShapePart::Text, ShapePart::Fixed(1)]),
            3 => Some(&[]),
            _ => None,
        }
    }

    fn is_cpu(&self, cpu: u32) -> bool {
        cpu < 4
    }
}

pub fn check(data: &[u8]) {
    let mut memory = vec![0_u8; SIZE];
    let mut reader = RingReader::new(SIZE).expect("a power of two");
    let (mut head, mut written, mut last) = (0_u64, 0_u64, 0);
    let mut rest = data;
    while let Some((words, after)) = rest.split_first_chunk::<2>() {
        let words = u16::from_le_bytes(*words);
        let bytes = &after[..after.len().min(usize::from(words) * 8).min(STEP)];
        rest = &after[bytes.len()..];
        for (at, byte) in bytes.iter().enumerate() {
            memory[(head as usize + at) % SIZE] = *byte;
        }
        // A small part of the numbers is no multiple of 8, or further than the ring is long.
        let step = match words {
            0x8000.. => u64::from(words - 0x8000),
            _ => u64::from(words) * 8,
        };
        head = head.wrapping_add(step);
        let bad_heads = reader.bad_heads();
        let mut is_first = true;
        loop {
            let room = if words % 2 == 0 { STEP } else { SIZE };
            let Some(piece) = reader.take(head, 5, room) else {
                break;
            };
            assert!(piece.len <= room && piece.from % 8 == 0 && piece.from < SIZE);
            if is_first {
                written += step;
                is_first = false;
            }
            let copy: Vec<u8> = (0..piece.len)
                .map(|at| memory[(piece.from + at) % SIZE])
                .collect();
            reader.copied(&copy, piece, head, NOW);
            while let Some(valid) = reader.peek(&copy, &mut Events) {
                assert!((last..=NOW).contains(&valid.time));
                last = valid.time;
                assert!(valid.cpu < 4);
                let mut events = Events;
                let shape = events.shape(valid.event).expect("a known event");
                assert!(fits(shape, valid.fields));
                written -= (HEADER + valid.fields.len().next_multiple_of(8)) as u64;
                reader.advance(&valid);
            }
            assert!(
                matches!(Source::UsedUp(reader.bound()), Source::UsedUp(bound) if bound.0 <= NOW)
            );
        }
        assert_eq!(reader.garbage(), written);
        if reader.bad_heads() != bad_heads {
            head &= !7;
        }
        // After any step, the program may write a ring's size from the reader's position.
        assert_eq!(reader.limit(), head.wrapping_add(SIZE as u64));
    }
}
