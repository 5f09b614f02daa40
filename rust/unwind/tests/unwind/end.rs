// SPDX-License-Identifier: GPL-2.0

//! The reasons for the end of a stack, as numbers and texts.

use rtrace_unwind::end::{StackEnd, GUESSED};

#[test]
fn have_these_numbers() {
    let numbers = StackEnd::ALL.map(|end| end as u8);
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(StackEnd::NoTable as u8, 3);
    assert_eq!(GUESSED, 16);
    assert_eq!(StackEnd::from_raw(0), Some((StackEnd::Whole, false)));
    assert_eq!(StackEnd::from_raw(19), Some((StackEnd::NoTable, true)));
    for end in StackEnd::ALL {
        for is_guessed in [false, true] {
            let raw = end.to_raw(is_guessed);
            assert_eq!(StackEnd::from_raw(raw), Some((end, is_guessed)));
            assert_eq!(raw, end as u8 + if is_guessed { 16 } else { 0 });
        }
    }
    for raw in (8..16).chain(24..=255) {
        assert_eq!(StackEnd::from_raw(raw), None);
    }
}

#[test]
fn have_texts() {
    assert_eq!(StackEnd::Whole.name(), "whole");
    let names = StackEnd::ALL.map(StackEnd::name);
    for (number, name) in names.iter().enumerate().skip(1) {
        assert!(name.starts_with("cut: "), "{name}");
        assert!(!names[..number].contains(name), "{name}");
    }
}
