// SPDX-License-Identifier: GPL-2.0

//! Triggers.
//!
//! A refusal names a place of the trigger. An accepted trigger, written again, is the same, and consists only
//! of parts of the text. An accepted histogram, written again, is the same, and is a map.

use rtrace_input::hist::{is_hist, HistBegin, HistLine, WriteError};
use rtrace_input::map::MapLine;
use rtrace_input::trigger::{Action, TriggerLine};
use rtrace_input::{marker, name};

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if is_hist(text) {
        return check_hist(text);
    }
    let trigger = match TriggerLine::parse(text) {
        Ok(trigger) => trigger,
        Err(error) => {
            assert!(text.is_char_boundary(error.at), "{error:?}");
            assert!(!error.shown(text).to_string().is_empty());
            return;
        }
    };
    let written = trigger.to_string();
    let again = TriggerLine::parse(&written).expect("what is written is a trigger");
    assert_eq!(
        again.filter.map(|filter| filter.expression),
        expression(&trigger)
    );
    assert_eq!(
        TriggerLine {
            filter: None,
            ..again
        },
        TriggerLine {
            filter: None,
            ..trigger
        }
    );

    let sign = if trigger.removes { "!" } else { "" };
    let name = format!("{sign}{}", trigger.action.name());
    let behind = text.trim_ascii().strip_prefix(&*name);
    let behind = without_marker(behind.expect("the action"), &trigger);
    let words = behind.split_once(|c: char| c.is_ascii_whitespace());
    let (arguments, rest) = words.unwrap_or((behind, ""));
    let mut parts = arguments.split(':');
    assert_eq!(parts.next(), Some(""));
    let takes_session = matches!(trigger.action, Action::TraceOn | Action::TraceOff);
    let mut expected: Vec<String> = Vec::new();
    if let Some(session) = trigger.session {
        assert!(takes_session && name::refusal(session).is_none());
        expected.push(session.to_owned());
    }
    let numbers = [trigger.packets, trigger.count].into_iter();
    expected.extend(
        numbers
            .filter(|number| *number != 0)
            .map(|number| number.to_string()),
    );
    let parts: Vec<_> = parts
        .enumerate()
        .map(|(place, part)| match part.parse::<u64>() {
            // Numbers may have leading zeros. The first part may be a session's name.
            Ok(number) if place > 0 || trigger.session.is_none() => number.to_string(),
            _ => part.to_owned(),
        })
        .collect();
    assert_eq!(parts, expected);
    assert_eq!(
        trigger.packets == 0,
        trigger.action != Action::TraceOffAfter || expected.is_empty()
    );
    match expression(&trigger) {
        Some(expression) => {
            let behind = rest.trim_ascii().strip_prefix("if").expect("if");
            assert_eq!(behind.trim_ascii(), expression);
            let at = trigger.filter.map_or(0, |filter| filter.at);
            assert!(text[at..].starts_with(expression));
        }
        None => assert_eq!(rest.trim_ascii(), ""),
    }
}

/// The text after that of a marker; all of it if there is no marker.
fn without_marker<'a>(behind: &'a str, trigger: &TriggerLine<'_>) -> &'a str {
    let Some(text) = trigger.text else {
        assert!(trigger.removes || trigger.action != Action::Marker);
        return behind;
    };
    assert_eq!(trigger.action, Action::Marker);
    assert!(marker::check(text).is_ok() && !text.contains(|c: char| c.is_ascii_control()));
    let is_word = |text: &str| {
        let ends = |c: char| c.is_ascii_whitespace() || ":\"'".contains(c);
        !text.is_empty() && !text.contains(ends)
    };
    let quoted = ['"', '\''].map(|quote| format!(":{quote}{text}{quote}"));
    let mut quoted = quoted
        .iter()
        .filter_map(|form| behind.strip_prefix(&**form));
    quoted.next().unwrap_or_else(|| {
        assert!(is_word(text));
        let behind = behind.strip_prefix(':').and_then(|b| b.strip_prefix(text));
        behind.expect("the text")
    })
}

fn expression<'a>(trigger: &TriggerLine<'a>) -> Option<&'a str> {
    Some(trigger.filter?.expression)
}

fn check_hist(text: &str) {
    let line = match HistLine::parse(text) {
        Ok(line) => line,
        Err(error) => {
            assert!(text.is_char_boundary(error.at), "{error:?}");
            assert!(!error.shown(text).to_string().is_empty());
            return;
        }
    };
    let written = line.to_string();
    let again = HistLine::parse(&written).expect("what is written is a histogram");
    assert_eq!(again.to_string(), written);
    // The written line always has an order.
    assert_eq!(again.orders().count(), line.orders().count().max(1));

    let event = ("sched", "sched_waking");
    let keys = line.keys.text;
    let begin = line.duration.map(|_| HistBegin { event, keys });
    let mut map = String::new();
    match line.write_map("m", event, begin, &mut map) {
        Ok(()) => assert!(
            matches!(MapLine::parse(&map), Ok(MapLine::Define(_))),
            "{map}"
        ),
        Err(WriteError::Wrong(error)) => assert!(text.is_char_boundary(error.at)),
        Err(WriteError::Write) => panic!("a string takes any text"),
    }
}
