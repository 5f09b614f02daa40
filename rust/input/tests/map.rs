// SPDX-License-Identifier: GPL-2.0

//! Lines that define maps.

use rtrace_input::map::{ColumnKind, LinePart, MapDefinition, MapLine, MapReason, DEFAULT_SIZE};

fn defined(text: &str) -> MapDefinition<'_> {
    match MapLine::parse(text) {
        Ok(MapLine::Define(map)) => map,
        other => panic!("{text}: {other:?}"),
    }
}

/// Where an error is, and which.
fn refused(text: &str) -> (usize, MapReason) {
    let error = MapLine::parse(text).expect_err(text);
    (error.at, error.reason)
}

fn texts(part: Option<LinePart<'_>>) -> Vec<&str> {
    part.into_iter()
        .flat_map(LinePart::items)
        .map(|item| item.text)
        .collect()
}

#[test]
fn maps_are_parsed() {
    let map = defined("  writes sched:*,sys_exit_write by comm,cpu sum(len) max(ret) hist(len) size 64 if ret > 0 && len < 9 ");
    assert_eq!(map.name, "writes");
    assert_eq!(texts(Some(map.events)), ["sched:*", "sys_exit_write"]);
    assert_eq!(texts(map.keys), ["comm", "cpu"]);
    let columns = map.columns.iter().flatten();
    let columns: Vec<_> = columns.map(|(kind, part)| (*kind, part.text)).collect();
    assert_eq!(
        columns,
        [(ColumnKind::Sum, "len"), (ColumnKind::Max, "ret")]
    );
    assert_eq!(texts(map.hist), ["len"]);
    assert_eq!(map.size, 64);
    assert_eq!(texts(map.filter), ["ret > 0 && len < 9"]);
    let map = defined("a b");
    assert_eq!((map.keys, map.hist, map.filter), (None, None, None));
    assert_eq!((map.columns, map.size), ([None; 4], DEFAULT_SIZE));
    assert_eq!(MapLine::parse(" !a-b. "), Ok(MapLine::Delete("a-b.")));
}

#[test]
fn places_are_those_of_the_line() {
    let text = "a b,cd by e,fg sum(h)";
    let map = defined(text);
    let parts = map.events.items().chain(map.keys.unwrap().items());
    for LinePart { text: part, at } in parts.chain(map.columns[0].map(|(_, part)| part)) {
        assert_eq!(&text[at..at + part.len()], part);
    }
}

#[test]
fn a_map_can_be_written_again() {
    for text in [
        "a b",
        "a s:b*,c by event,comm,cpu,tid sum(x) min(x) max(x) sum(y) hist(z) size 7 if a == \"b c\"",
        "a b hist(x)",
        "a b hist(duration) from c,d",
        "a b sum(x) from c match d,e",
        "a b sum(x) from c match d,e:f,g size 8",
        "a b if c",
    ] {
        assert_eq!(defined(text).to_string(), text);
    }
}

#[test]
fn durations_have_a_begin() {
    let map = defined("a b hist(duration) from c,d match x,y:z,w if e");
    assert_eq!(texts(map.begins), ["c", "d"]);
    let (begin, end) = map.matched.unwrap();
    assert_eq!(
        (texts(Some(begin)), texts(Some(end))),
        (vec!["x", "y"], vec!["z", "w"])
    );
    let map = defined("a b sum(duration) from c match x");
    let (begin, end) = map.matched.unwrap();
    assert_eq!((begin.text, end.text), ("x", "x"));
    assert_eq!(defined("a b max(duration) from c").matched, None);
    assert_eq!(defined("a b hist(duration)").begins, None);
    for (text, at, reason) in [
        ("a b match c", 4, MapReason::NoFrom),
        ("a b from", 8, MapReason::NoEvents),
        ("a b from c from d", 11, MapReason::Twice),
        ("a b from c match", 16, MapReason::NoMatch),
        ("a b from c match d,e:f", 17, MapReason::NoMatch),
        ("a b from c match d,e,f", 17, MapReason::NoMatch),
        ("a b from c match d match e", 19, MapReason::Twice),
    ] {
        assert_eq!(refused(text), (at, reason), "{text}");
    }
}

#[test]
fn wrong_lines_are_refused() {
    for (text, at, reason) in [
        ("!a b", 3, MapReason::TooMuch),
        ("a", 1, MapReason::NoEvents),
        ("a b,", 4, MapReason::NoEvents),
        ("a b by", 6, MapReason::NoKey),
        ("a b by c,,d", 9, MapReason::NoKey),
        ("a b by c,d,e,f,g", 15, MapReason::ManyKeys),
        ("a b by c by d", 9, MapReason::Twice),
        ("a b sum", 7, MapReason::NoValue),
        ("a b sum()", 7, MapReason::NoValue),
        ("a b sum(c", 7, MapReason::NoValue),
        ("a b sum(c+d)", 7, MapReason::NoValue),
        ("a b hist(c) hist(c)", 12, MapReason::Twice),
        (
            "a b sum(c) sum(c) min(c) max(c) sum(d)",
            32,
            MapReason::ManyColumns,
        ),
        ("a b size 0", 9, MapReason::NoSize),
        ("a b size 262145", 9, MapReason::NoSize),
        ("a b size x", 9, MapReason::NoSize),
        ("a b size 1 size 1", 11, MapReason::Twice),
        ("a b avg(c)", 4, MapReason::NoClause),
        ("a b ifc", 4, MapReason::NoClause),
        ("a b if ", 7, MapReason::NoFilter),
    ] {
        assert_eq!(refused(text), (at, reason), "{text}");
    }
    assert!(matches!(refused(""), (0, MapReason::NoName(_))));
}
