// SPDX-License-Identifier: GPL-2.0

//! Lines of `set_map`.
//!
//! A refusal names a place of the line. An accepted line consists of parts of the text. Written again, it is the
//! same.

use rtrace_input::map::{LinePart, MapDefinition, MapLine, MAX_KEYS, MAX_MATCHED, MAX_SIZE};
use rtrace_input::name;

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match MapLine::parse(text) {
        Err(error) => {
            assert!(text.is_char_boundary(error.at), "{error:?}");
            assert!(!error.shown(text).to_string().is_empty());
        }
        Ok(MapLine::Delete(name)) => {
            assert_eq!(
                MapLine::parse(&format!("!{name}")),
                Ok(MapLine::Delete(name))
            );
        }
        Ok(MapLine::Define(map)) => check_map(text, &map),
    }
}

fn check_map(text: &str, map: &MapDefinition<'_>) {
    assert!(name::refusal(map.name).is_none());
    assert!((1..=MAX_SIZE).contains(&map.size));
    let matched = map
        .matched
        .into_iter()
        .flat_map(|(begin, end)| [begin, end]);
    let lists = [Some(map.events), map.keys, map.begins];
    for list in lists.into_iter().flatten().chain(matched.clone()) {
        is_of(text, list);
        for item in list.items() {
            is_of(text, item);
        }
    }
    let columns = map.columns.iter().flatten().map(|(_, value)| *value);
    for value in columns.chain(map.hist) {
        is_of(text, value);
    }
    if let Some(filter) = map.filter {
        assert_eq!(text[filter.at..].trim_ascii_end(), filter.text);
    }
    assert!(map.keys.is_none_or(|keys| keys.items().count() <= MAX_KEYS));
    assert!(map.matched.is_none() || map.begins.is_some());
    if let Some((begin, end)) = map.matched {
        let count = begin.items().count();
        assert!(count <= MAX_MATCHED && count == end.items().count());
    }

    let written = map.to_string();
    let Ok(MapLine::Define(again)) = MapLine::parse(&written) else {
        panic!("{written:?} is no map");
    };
    assert_eq!(parts(&again), parts(map));
    assert_eq!((again.name, again.size), (map.name, map.size));
    assert_eq!(again.to_string(), written);
}

/// Checks that a part is where it says.
fn is_of(text: &str, part: LinePart<'_>) {
    assert!(!part.text.is_empty() && text[part.at..].starts_with(part.text));
    assert!(!part.text.contains(|c: char| c.is_ascii_whitespace()));
}

/// All parts of a map, without their places.
fn parts<'a>(map: &MapDefinition<'a>) -> Vec<Option<&'a str>> {
    let (begin, end) = map.matched.unzip();
    let columns = map.columns.iter().flatten();
    let columns = columns.flat_map(|(kind, part)| [Some(kind.name()), Some(part.text)]);
    let parts = [
        Some(map.events),
        map.keys,
        map.hist,
        map.begins,
        begin,
        end,
        map.filter,
    ];
    let parts = parts.into_iter().map(|part| part.map(|part| part.text));
    parts.chain(columns).collect()
}
