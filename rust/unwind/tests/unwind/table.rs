// SPDX-License-Identifier: GPL-2.0

//! Tables whose answers are known, and tables with one mistake.

use super::made::{rows, sp, Parts};
use rtrace_unwind::head::Head;
use rtrace_unwind::processor::Processor;
use rtrace_unwind::rule::Rule;
use rtrace_unwind::table::{UnwindTable, WrongTable};
use std::collections::BTreeMap;

fn check(bytes: &[u8]) -> Result<(), WrongTable> {
    UnwindTable::check(bytes).map(|_| ())
}

#[test]
fn finds_the_row_at_or_before_an_address() {
    let rows = BTreeMap::from([
        (0x1010, sp(8)),
        (0x1011, sp(16)),
        (0x10ff, sp(24)),
        (0x1300, sp(32)),
        // The areas in between have no row.
        (0x51234, Rule::End),
        (0x51235, Rule::None),
    ]);
    let bytes = Parts::of(&rows).bytes();
    let table = UnwindTable::check(&bytes).unwrap();
    assert_eq!(table.head().indexed, 2);
    for (at, rule) in [
        (0, Rule::None),
        (0xfff, Rule::None),
        (0x1000, Rule::None),
        (0x100f, Rule::None),
        (0x1010, sp(8)),
        (0x1011, sp(16)),
        (0x10fe, sp(16)),
        (0x10ff, sp(24)),
        (0x1100, sp(24)),
        (0x12ff, sp(24)),
        (0x1300, sp(32)),
        (0x1_1000, sp(32)),
        (0x2_0fff, sp(32)),
        (0x5_1233, sp(32)),
        (0x5_1234, Rule::End),
        (0x5_1235, Rule::None),
        (0x5_12ff, Rule::None),
        (0x5_1300, Rule::None),
        (u64::MAX, Rule::None),
    ] {
        assert_eq!(table.rule(at), rule, "{at:#x}");
        let again = UnwindTable::of_checked(&bytes).unwrap();
        assert_eq!(again.rule(at), rule, "{at:#x}");
    }
}

#[test]
fn ends_after_the_last_block() {
    let rows = BTreeMap::from([(0x1010, sp(8))]);
    let bytes = Parts::of(&rows).bytes();
    let table = UnwindTable::check(&bytes).unwrap();
    assert_eq!(table.rule(0x10ff), sp(8));
    assert_eq!(table.rule(0x1100), Rule::None);
}

#[test]
fn has_an_area_with_a_row_at_each_byte() {
    let rows: BTreeMap<_, _> = (0..0x10100)
        .map(|at| (at, sp(8 + (at % 7) as i32)))
        .collect();
    let bytes = Parts::of(&rows).bytes();
    let table = UnwindTable::check(&bytes).unwrap();
    for at in 0..0x10100 {
        assert_eq!(table.rule(at), rows[&at], "{at:#x}");
    }
}

#[test]
fn finds_rare_rules() {
    let rows = rows(0x700, 400);
    let bytes = Parts::of(&rows).bytes();
    let table = UnwindTable::check(&bytes).unwrap();
    assert_eq!(table.head().rare, 145);
    for (at, rule) in &rows {
        assert_eq!(table.rule(*at), *rule);
    }
    for (at, rule) in rows.iter().take(399) {
        assert_eq!(table.rule(*at + 99), *rule);
    }
}

#[test]
fn may_be_empty() {
    let bytes = Parts::of(&BTreeMap::new()).bytes();
    let table = UnwindTable::check(&bytes).unwrap();
    assert_eq!(bytes.len(), 72);
    assert_eq!((table.rule(0), table.rule(255)), (Rule::None, Rule::None));
}

#[test]
fn has_the_header_that_it_describes() {
    let bytes = Parts::of(&rows(0x700, 400)).bytes();
    let head = Head::read(&bytes).unwrap();
    assert_eq!(head.to_bytes(), bytes[..64]);
    assert_eq!(head.needed_size(), bytes.len() as u64);
    assert_eq!(head.processor, Processor::X86_64);
    let mut arm = bytes.clone();
    arm[5] = 2;
    let table = UnwindTable::check(&arm).unwrap();
    assert_eq!(table.processor(), Processor::Arm64);
    assert_eq!(table.head().to_bytes(), arm[..64]);
}

#[test]
fn refuses_other_headers() {
    let bytes = Parts::of(&rows(0x700, 300)).bytes();
    let changed = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        check(&bytes)
    };
    assert_eq!(check(&bytes), Ok(()));
    assert_eq!(check(&[]), Err(WrongTable::Size));
    assert_eq!(check(&bytes[..63]), Err(WrongTable::Size));
    assert_eq!(check(&bytes[..64]), Err(WrongTable::Size));
    assert_eq!(check(&bytes[..bytes.len() - 1]), Err(WrongTable::Size));
    assert_eq!(check(&[&bytes[..], &[0]].concat()), Err(WrongTable::Size));
    for at in 0..4 {
        assert_eq!(changed(at, 0), Err(WrongTable::Magic));
    }
    assert_eq!(changed(4, 2), Err(WrongTable::Version));
    assert_eq!(changed(5, 0), Err(WrongTable::Processor));
    assert_eq!(changed(5, 3), Err(WrongTable::Processor));
    for at in [6, 7].into_iter().chain(40..64) {
        assert_eq!(changed(at, 1), Err(WrongTable::Padding));
    }
    assert_eq!(changed(8, 1), Err(WrongTable::Begin));
    // Blocks, rows, rules, rare rows, areas of the index, size.
    for at in [18, 20, 24, 28, 32, 36, 39] {
        assert_eq!(
            changed(at, bytes[at] ^ 1),
            Err(WrongTable::Size),
            "byte {at}"
        );
    }
    for bytes in [&bytes[..63], &[0; 100]] {
        assert!(UnwindTable::of_checked(bytes).is_none());
    }
}

#[test]
fn refuses_a_place_beyond_the_largest_address() {
    let mut parts = Parts::of(&BTreeMap::from([(0x1010, sp(8))]));
    parts.begin = u64::MAX - 255;
    assert_eq!(check(&parts.bytes()), Err(WrongTable::Begin));
    parts.begin -= 256;
    assert_eq!(check(&parts.bytes()), Ok(()));
    let bytes = parts.bytes();
    let table = UnwindTable::check(&bytes).unwrap();
    assert_eq!(table.rule(u64::MAX - 256), sp(8));
    assert_eq!(table.rule(u64::MAX), Rule::None);
}

/// Parts with three areas with rows, one without, and rare rules.
fn parts() -> Parts {
    let mut all = rows(0x700, 300);
    all.extend(rows(0x3_0600, 20));
    let parts = Parts::of(&all);
    assert_eq!(parts.areas.len(), 5);
    assert_eq!(check(&parts.bytes()), Ok(()));
    parts
}

#[test]
fn refuses_wrong_areas() {
    let wrong = |change: fn(&mut Parts)| {
        let mut parts = parts();
        change(&mut parts);
        check(&parts.bytes()).unwrap_err()
    };
    assert_eq!(wrong(|p| p.areas[0].0 = 1), WrongTable::Areas);
    assert_eq!(wrong(|p| p.areas[0].1 = 256), WrongTable::IndexPlace);
    assert_eq!(wrong(|p| p.areas[1].0 = 400), WrongTable::Areas);
    assert_eq!(wrong(|p| p.areas[1].0 = 302), WrongTable::Areas);
    assert_eq!(wrong(|p| p.areas[2].0 = 0), WrongTable::Areas);
    assert_eq!(wrong(|p| p.areas[2].1 = 0), WrongTable::IndexPlace);
    assert_eq!(wrong(|p| p.areas[2].1 = 300), WrongTable::IndexPlace);
    assert_eq!(wrong(|p| p.areas[4].0 = 319), WrongTable::Index);
    assert_eq!(wrong(|p| p.areas[4].0 = 0), WrongTable::Areas);
    assert_eq!(wrong(|p| p.areas[4].1 = 256), WrongTable::IndexPlace);
    // Rows that no area has.
    let more = wrong(|p| {
        p.lows.push(0);
        p.numbers.push(0);
    });
    assert_eq!(more, WrongTable::Areas);
    // Areas in the index that no area has.
    assert_eq!(wrong(|p| p.index.extend([0; 256])), WrongTable::IndexPlace);
    let mut empty = Parts::of(&BTreeMap::new());
    empty.areas[0].0 = 1;
    assert_eq!(check(&empty.bytes()), Err(WrongTable::Areas));
    empty.areas[0] = (0, 1);
    assert_eq!(check(&empty.bytes()), Err(WrongTable::IndexPlace));
}

#[test]
fn refuses_a_wrong_index() {
    let wrong = |change: fn(&mut Parts)| {
        let mut parts = parts();
        change(&mut parts);
        check(&parts.bytes()).unwrap_err()
    };
    assert_eq!(wrong(|p| p.index[0] = 1), WrongTable::Index);
    assert_eq!(wrong(|p| p.index[100] += 100), WrongTable::Index);
    assert_eq!(wrong(|p| p.index[255] = 0), WrongTable::Index);
    assert_eq!(wrong(|p| p.index[255] = u16::MAX), WrongTable::Index);
    // The last area has rows in its first blocks only.
    assert_eq!(wrong(|p| p.index[767] -= 1), WrongTable::Index);
    assert_eq!(wrong(|p| p.index[767] += 1), WrongTable::Index);
    // More rows of a block than bytes.
    assert_eq!(wrong(|p| p.index[9..256].fill(300)), WrongTable::Addresses);
    assert_eq!(wrong(|p| p.index[9] += 2), WrongTable::Addresses);
    assert_eq!(wrong(|p| p.blocks = 3 * 256 + 1), WrongTable::Index);
    assert_eq!(wrong(|p| p.blocks -= 1), WrongTable::Index);
}

#[test]
fn refuses_addresses_out_of_order() {
    let mut parts = parts();
    let (first, second) = (parts.lows[1], parts.lows[2]);
    assert!(first < second);
    parts.lows[2] = first;
    assert_eq!(check(&parts.bytes()), Err(WrongTable::Addresses));
    parts.lows[2] = first - 1;
    assert_eq!(check(&parts.bytes()), Err(WrongTable::Addresses));
    parts.lows[2] = first + 1;
    assert_eq!(check(&parts.bytes()), Ok(()));
}

#[test]
fn refuses_unknown_rules() {
    let mut parts = Parts::of(&rows(0, 10));
    parts.numbers[9] = 10;
    assert_eq!(check(&parts.bytes()), Err(WrongTable::RuleNumber));
    parts.numbers[9] = 254;
    assert_eq!(check(&parts.bytes()), Err(WrongTable::RuleNumber));
    parts.numbers[9] = 0;
    let mut bytes = parts.bytes();
    assert_eq!(check(&bytes), Ok(()));
    bytes[64 + 9 * 16] = 10;
    assert_eq!(check(&bytes), Err(WrongTable::Rule));
}

#[test]
fn refuses_too_many_rules() {
    let mut parts = parts();
    parts.rules = vec![sp(8); 65_535];
    assert_eq!(check(&parts.bytes()), Ok(()));
    parts.rules.push(sp(8));
    assert_eq!(check(&parts.bytes()), Err(WrongTable::TooManyRules));
}

#[test]
fn refuses_a_wrong_list_of_rare_rules() {
    let wrong = |change: fn(&mut Parts)| {
        let mut parts = parts();
        change(&mut parts);
        check(&parts.bytes()).unwrap_err()
    };
    assert_eq!(wrong(|p| p.rare[0].0 = 0), WrongTable::Rare);
    assert_eq!(wrong(|p| p.rare.swap(3, 4)), WrongTable::Rare);
    assert_eq!(wrong(|p| p.rare[0].1 = 300), WrongTable::RuleNumber);
    assert_eq!(wrong(|p| p.rare.truncate(44)), WrongTable::Rare);
    assert_eq!(wrong(|p| p.rare.push((319, 0))), WrongTable::Rare);
    assert_eq!(wrong(|p| p.numbers[0] = 255), WrongTable::Rare);
    assert_eq!(wrong(|p| p.numbers[270] = 0), WrongTable::Rare);
}

/// A look-up by a table that was not checked ends all the same.
#[test]
fn has_no_rule_where_the_list_of_rare_rules_has_none() {
    let mut parts = parts();
    for row in [0, 100, 310] {
        parts.numbers[row] = 255;
    }
    let bytes = parts.bytes();
    let table = UnwindTable::of_checked(&bytes).unwrap();
    let starts: Vec<u64> = rows(0x700, 300)
        .into_keys()
        .chain(rows(0x3_0600, 20).into_keys())
        .collect();
    for row in [0, 100, 310] {
        assert_eq!(table.rule(starts[row]), Rule::None, "{row}");
    }
    assert_eq!(table.rule(starts[256]), sp(8 * 257));
    parts.rare.clear();
    let bytes = parts.bytes();
    let table = UnwindTable::of_checked(&bytes).unwrap();
    assert_eq!(table.rule(starts[256]), Rule::None);
    assert_eq!(table.rule(starts[1]), sp(16));
}

#[test]
fn says_each_mistake_in_a_sentence() {
    let texts = [
        WrongTable::Magic,
        WrongTable::Version,
        WrongTable::Processor,
        WrongTable::Padding,
        WrongTable::Size,
        WrongTable::Begin,
        WrongTable::TooManyRules,
        WrongTable::Rule,
        WrongTable::Areas,
        WrongTable::IndexPlace,
        WrongTable::Index,
        WrongTable::Addresses,
        WrongTable::RuleNumber,
        WrongTable::Rare,
    ]
    .map(|wrong| wrong.to_string());
    for (number, text) in texts.iter().enumerate() {
        assert!(text.contains("unwind table"), "{text}");
        assert!(!texts[..number].contains(text), "{text}");
    }
}
