// SPDX-License-Identifier: GPL-2.0

//! The shape of records.

use proptest::prelude::*;
use rtrace_program::shape::{fits, ShapePart, LONGEST};

#[test]
fn each_part_has_its_bytes() {
    for (parts, bytes, expected) in [
        (&[][..], &[][..], true),
        (&[], b"a", false),
        (&[ShapePart::Fixed(4)], b"abcd", true),
        (&[ShapePart::Fixed(4)], b"abc", false),
        (&[ShapePart::Fixed(4)], b"abcde", false),
        (&[ShapePart::Fixed(0)], b"", true),
        (&[ShapePart::Text], b"\0", true),
        (&[ShapePart::Text], b"text\0", true),
        (&[ShapePart::Text], b"text", false),
        (&[ShapePart::Text], b"text\0\0", false),
        (&[ShapePart::Text, ShapePart::Text], b"\0\0", true),
        (
            &[ShapePart::Text, ShapePart::Fixed(2), ShapePart::Text],
            b"a\0\0\0b\0",
            true,
        ),
        (
            &[ShapePart::Text, ShapePart::Fixed(2), ShapePart::Text],
            b"a\0\0\0b",
            false,
        ),
        (&[ShapePart::Elements(1)], b"\x03\0\0\0abc", true),
        (&[ShapePart::Elements(1)], b"\x03\0\0\0ab", false),
        (&[ShapePart::Elements(1)], b"\x03\0\0", false),
        (&[ShapePart::Elements(8)], b"\0\0\0\0", true),
        (
            &[ShapePart::Elements(2), ShapePart::Fixed(1)],
            b"\x01\0\0\0abc",
            true,
        ),
        // A count whose bytes are more than there can be.
        (
            &[ShapePart::Elements(8)],
            b"\xff\xff\xff\xffabcdefgh",
            false,
        ),
        (
            &[ShapePart::Fixed(u32::MAX), ShapePart::Text],
            b"a\0",
            false,
        ),
    ] {
        assert_eq!(fits(parts, bytes), expected, "{parts:?} {bytes:?}");
    }
}

#[test]
fn long_records_are_refused() {
    for (parts, before) in [
        (vec![ShapePart::Fixed(LONGEST as u32)], 0),
        (vec![ShapePart::Elements(1)], 4),
    ] {
        let count = (LONGEST - before) as u32;
        let mut bytes = [
            &count.to_le_bytes()[..before],
            &[1].repeat(LONGEST - before),
        ]
        .concat();
        assert!(fits(&parts, &bytes), "{parts:?}");
        bytes.push(1);
        let longer = [&(count + 1).to_le_bytes()[..before], &bytes[before..]].concat();
        let parts = match parts[0] {
            ShapePart::Fixed(size) => vec![ShapePart::Fixed(size + 1)],
            part => vec![part],
        };
        assert!(!fits(&parts, &longer), "{parts:?}");
    }
}

fn part() -> impl Strategy<Value = ShapePart> {
    prop_oneof![
        (0_u32..20).prop_map(ShapePart::Fixed),
        Just(ShapePart::Text),
        prop_oneof![Just(1_u8), Just(2), Just(4), Just(8)].prop_map(ShapePart::Elements),
    ]
}

/// Bytes of a part.
fn bytes_of(part: ShapePart, value: u8) -> Vec<u8> {
    match part {
        ShapePart::Fixed(size) => vec![value; size as usize],
        ShapePart::Text => [vec![value.max(1); usize::from(value) % 7], vec![0]].concat(),
        ShapePart::Elements(size) => {
            let count = u32::from(value) % 5;
            let elements = vec![value; count as usize * usize::from(size)];
            [&count.to_le_bytes()[..], &elements].concat()
        }
    }
}

proptest! {
    #[test]
    fn written_parts_fit(parts in proptest::collection::vec((part(), any::<u8>()), 0..12)) {
        let bytes: Vec<u8> = parts.iter().flat_map(|&(part, value)| bytes_of(part, value)).collect();
        let parts: Vec<ShapePart> = parts.iter().map(|&(part, _)| part).collect();
        prop_assert_eq!(fits(&parts, &bytes), bytes.len() <= LONGEST);
        // A byte more never fits, and a byte less fits only if the last byte was no part of the record.
        let mut longer = bytes.clone();
        longer.push(1);
        prop_assert!(!fits(&parts, &longer));
        if let Some((_, shorter)) = bytes.split_last() {
            prop_assert!(!fits(&parts, shorter));
        }
    }

    #[test]
    fn any_bytes_are_judged(parts in proptest::collection::vec(part(), 0..12), bytes: Vec<u8>) {
        let _ = fits(&parts, &bytes);
    }
}
