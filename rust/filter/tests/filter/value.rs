// SPDX-License-Identifier: GPL-2.0

//! Single values of a record.

use super::directed::{moment, record, FIELDS};
use super::{FilterContext, FilterNames, FilterReason, CONTEXTS, CPUS};
use rtrace_abi::schema::{Field, FieldType, Integer, Shown};
use rtrace_filter::compile::find;
use rtrace_filter::value::{FixedPlace, Value, MAX_TEXT_WORDS};

fn value(name: &str, fields: &[Field<'_>], hides_addresses: bool) -> Result<Value, FilterReason> {
    let contexts = CONTEXTS.map(|(name, id, ty)| FilterContext { name, id, ty });
    let names = FilterNames {
        fields: fields.iter().copied(),
        contexts: &contexts,
        cpus: CPUS,
        hides_addresses,
    };
    find(name, names)
}

fn number(name: &str) -> Option<i64> {
    let value = value(name, &FIELDS, false).unwrap();
    Some(value.number(&record(), &moment())? as i64)
}

/// The text, with all bytes of its words.
fn text(name: &str, record: &[u8]) -> Option<Vec<u8>> {
    let value = value(name, &FIELDS, false).unwrap();
    let mut words = vec![u64::MAX; value.words()];
    value.text(record, &moment(), &mut words)?;
    Some(words.iter().flat_map(|word| word.to_le_bytes()).collect())
}

#[test]
fn numbers_have_their_sign() {
    assert_eq!(number("prio"), Some(-5));
    assert_eq!(number("flags"), Some(0xffff_8000_0000_0001_u64 as i64));
    assert_eq!(number("level"), Some(200));
    assert_eq!(number("high"), Some(-3));
    // After fields of variable size.
    assert_eq!(number("last"), Some(0x1234));
    // Contexts, also by ftrace's name.
    assert_eq!((number("cpu"), number("CPU")), (Some(3), Some(3)));
    assert_eq!(number("tid"), Some(-1));
    // This moment has none; a text is no number.
    assert_eq!((number("nice"), number("comm")), (None, None));
    let signed = value("high", &FIELDS, false).unwrap().integer();
    assert_eq!(signed, Some(Integer::signed(16)));
}

#[test]
fn texts_end_at_a_nul() {
    let padded = |text: &str, words: usize| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(8 * words, 0);
        Some(bytes)
    };
    let record = record();
    assert_eq!(text("next_comm", &record), padded("kworker", 1));
    assert_eq!(
        text("filename", &record),
        padded("/etc/passwd", MAX_TEXT_WORDS)
    );
    assert_eq!(text("data", &record), padded("ab", MAX_TEXT_WORDS));
    assert_eq!(text("comm", &record), padded("bash", 2));
    assert_eq!(text("prio", &record), None);
}

#[test]
fn long_texts_are_cut() {
    let fields = [
        Field::new("wide", FieldType::text(100)),
        Field::new("after", FieldType::unsigned(8)),
    ];
    let value = |name| value(name, &fields, false).unwrap();
    let record = [[b'x'; 100].as_slice(), &[7]].concat();
    let mut words = [0; MAX_TEXT_WORDS];
    assert_eq!(value("wide").words(), MAX_TEXT_WORDS);
    assert_eq!(value("wide").text(&record, &moment(), &mut words), Some(()));
    assert_eq!(
        words.map(u64::to_le_bytes).concat(),
        [&[b'x'; 29][..], "…".as_bytes()].concat()
    );
    // A text that just fits is not cut.
    let fits = [[b'x'; 32].as_slice(), &[0; 68], &[7]].concat();
    assert_eq!(value("wide").text(&fits, &moment(), &mut words), Some(()));
    assert_eq!(words, [u64::from_le_bytes([b'x'; 8]); MAX_TEXT_WORDS]);
    assert_eq!(value("after").number(&record, &moment()), Some(7));
}

#[test]
fn values_at_the_same_place_of_all_records_are_known() {
    let fields = [
        Field::new("number", FieldType::unsigned(32)),
        Field::new("name", FieldType::text(16)),
        Field::new("short", FieldType::text(8)),
        Field::new("file", FieldType::String),
        Field::new("far", FieldType::unsigned(8)),
        Field::new("far_name", FieldType::text(16)),
    ];
    let place = |name| value(name, &fields, false).unwrap().fixed_place();
    assert!(matches!(place("number"), Some(FixedPlace::Number(0))));
    assert!(matches!(place("name"), Some(FixedPlace::Text(4))));
    for context in [("cpu", 0), ("comm", 1)] {
        assert!(matches!(place(context.0), Some(FixedPlace::Context(id)) if id == context.1));
    }
    for name in ["short", "file", "far", "far_name"] {
        assert!(place(name).is_none(), "{name}");
    }
}

/// A record that ends before the value has none.
#[test]
fn short_records_lack_values() {
    let record = record();
    let last = value("last", &FIELDS, false).unwrap();
    for len in 0..record.len() {
        assert_eq!(last.number(&record[..len], &moment()), None, "{len}");
    }
    assert_eq!(text("filename", &record[..30]), None);
}

#[test]
fn some_values_are_refused() {
    let refused = |name| value(name, &FIELDS, false).map(drop);
    assert_eq!(refused("nothing"), Err(FilterReason::Unknown));
    assert_eq!(refused("mask"), Err(FilterReason::Incomparable));
    let address = [Field::new("ip", FieldType::address())];
    assert_eq!(
        value("ip", &address, true).map(drop),
        Err(FilterReason::Hidden)
    );
    let shown = value("ip", &address, false).unwrap().integer().unwrap();
    assert_eq!(shown.shown, Shown::Address);
    let strings: Vec<_> = ["a", "b", "c", "d", "e", "f"]
        .map(|name| Field::new(name, FieldType::String))
        .into();
    assert!(value("e", &strings, false).is_ok());
    assert_eq!(
        value("f", &strings, false).map(drop),
        Err(FilterReason::LongProgram)
    );
}
