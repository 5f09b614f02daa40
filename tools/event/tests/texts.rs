// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The texts of `event!`, and what it evaluates.

use rtrace_event::{__text, event};
use rtrace_input::program::EventDefinition;

#[test]
fn rtrace_knows_the_texts() {
    for (text, expected) in [
        (__text!(shop start), "shop:start\0"),
        (__text!(shop one u8 a), "shop:one u8 a\0"),
        (
            __text!(shop all u8 a u16 b u32 c u64 d s8 e s16 f s32 g s64 h x8 i x16 j x32 k x64 l string m),
            "shop:all u8 a; u16 b; u32 c; u64 d; s8 e; s16 f; s32 g; s64 h; x8 i; x16 j; x32 k; x64 l; string m\0",
        ),
    ] {
        assert_eq!(text, expected);
        let parsed = EventDefinition::parse(text.trim_end_matches('\0'));
        assert_eq!(parsed.map(|_| ()), Ok(()), "{text}");
    }
}

#[test]
fn values_are_evaluated_only_while_somebody_records() {
    let mut evaluated = 0;
    event!(texts:nobody, number: u64 = { evaluated += 1; evaluated }, text: string = "");
    assert_eq!(evaluated, 0);
    assert_eq!(rtrace_event::lost(), 0);
}
