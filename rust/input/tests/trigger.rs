// SPDX-License-Identifier: GPL-2.0

//! Triggers. (The fuzzer checks that a parsed trigger can be written again, in
//! `tools/fuzz/src/target/triggers.rs`.)

use rtrace_input::marker::LONGEST;
use rtrace_input::trigger::{Action, TriggerFilter, TriggerLine};

fn parsed(text: &str) -> TriggerLine<'_> {
    TriggerLine::parse(text).unwrap_or_else(|error| panic!("{}", error.shown(text)))
}

#[test]
fn triggers_are_parsed() {
    let bare = |action| TriggerLine {
        removes: false,
        action,
        session: None,
        packets: 0,
        text: None,
        count: 0,
        filter: None,
    };
    let (on, off) = (bare(Action::TraceOn), bare(Action::TraceOff));
    let (after, snapshot) = (bare(Action::TraceOffAfter), bare(Action::Snapshot));
    assert_eq!(parsed("traceon"), on);
    assert_eq!(parsed(" \ttraceoff\n"), off);
    assert_eq!(parsed("traceoff:5"), TriggerLine { count: 5, ..off });
    let web = Some("web");
    assert_eq!(parsed("traceon:web"), TriggerLine { session: web, ..on });
    let web_once = TriggerLine {
        session: web,
        count: 1,
        ..on
    };
    assert_eq!(parsed("traceon:web:1"), web_once);
    // A session whose name looks like a count.
    let five = TriggerLine {
        session: Some("5"),
        count: 7,
        ..off
    };
    assert_eq!(parsed("traceoff:5:7"), five);
    let late = TriggerLine {
        packets: 3,
        count: 2,
        ..after
    };
    assert_eq!(parsed("traceoff_after:3:2"), late);
    let filter = TriggerFilter {
        expression: "a == 1 && b",
        at: 14,
    };
    let some = TriggerLine {
        count: 9,
        filter: Some(filter),
        ..snapshot
    };
    assert_eq!(
        parsed("snapshot:9 if a == 1 && b \n"),
        TriggerLine { ..some }
    );
    assert_eq!(
        parsed("!snapshot"),
        TriggerLine {
            removes: true,
            ..snapshot
        }
    );
    assert_eq!(
        parsed("!traceoff_after"),
        TriggerLine {
            removes: true,
            ..after
        }
    );
}

#[test]
fn markers_and_stacks_are_parsed() {
    let marker = |text: &'static str| {
        let parsed = parsed(text);
        assert_eq!(parsed.action, Action::Marker, "{text}");
        (parsed.text, parsed.count)
    };
    assert_eq!(marker("marker:late"), (Some("late"), 0));
    // Always a text, never a count.
    assert_eq!(marker("marker:5"), (Some("5"), 0));
    assert_eq!(marker("marker:5:7"), (Some("5"), 7));
    assert_eq!(marker("marker:ü-=!"), (Some("ü-=!"), 0));
    assert_eq!(marker("marker:\"a: b if c\":3"), (Some("a: b if c"), 3));
    assert_eq!(marker("marker:'say \"no\"'"), (Some("say \"no\""), 0));
    assert_eq!(marker("marker:\"it's\""), (Some("it's"), 0));
    assert_eq!(marker("marker:\"\""), (Some(""), 0));
    let longest = "x".repeat(LONGEST);
    let text = format!("marker:{longest}");
    assert_eq!(parsed(&text).text, Some(&*longest));

    let some = parsed("marker:\"a b\":3  if c == 1");
    let expression = some.filter.map(|filter| (filter.expression, filter.at));
    assert_eq!(expression, Some(("c == 1", 19)));
    // Deletes markers with any text, or with one text.
    let any = parsed("!marker");
    assert!(any.removes && any.text.is_none());
    assert_eq!(parsed("!marker:\"a b\"").text, Some("a b"));

    for (text, written) in [
        ("marker:late:2", "marker:\"late\":2"),
        ("marker:'a \"b\"' if c", "marker:'a \"b\"' if c"),
        ("!marker", "!marker"),
        ("stacktrace:4 if a", "stacktrace:4 if a"),
    ] {
        assert_eq!(parsed(text).to_string(), written);
    }
    let stack = parsed("stacktrace:4 if a");
    assert_eq!((stack.action, stack.count), (Action::Stacktrace, 4));
}

#[test]
fn what_is_wrong_is_shown() {
    for (text, at, reason) in [
        (
            "",
            0,
            "expected an action: traceon traceoff traceoff_after snapshot marker stacktrace",
        ),
        ("stop", 0, "expected an action"),
        (" !!traceon", 2, "expected an action"),
        ("traceonn", 0, "expected an action"),
        ("traceoff:", 9, "a name must not be empty"),
        ("traceoff:a/b", 9, "a name is made of"),
        ("traceoff:a:", 11, "expected the maximum count"),
        ("traceoff:a:b", 11, "expected the maximum count"),
        ("traceoff:a:1:2", 12, "expected 'if' or the end"),
        ("traceoff:0", 9, "expected the maximum count"),
        ("snapshot:+1", 9, "expected the maximum count"),
        (
            "snapshot:18446744073709551616",
            9,
            "expected the maximum count",
        ),
        ("traceoff_after", 14, "expected ':' and a number of packets"),
        (
            "traceoff_after if a",
            14,
            "expected ':' and a number of packets",
        ),
        (
            "traceoff_after:0",
            14,
            "expected ':' and a number of packets",
        ),
        ("traceoff_after:1:x", 17, "expected the maximum count"),
        ("snapshot when a", 9, "expected 'if' and a filter"),
        ("snapshot ifa", 9, "expected 'if' and a filter"),
        ("snapshot if", 11, "expected a filter"),
        ("snapshot  if ", 13, "expected a filter"),
        ("stacktrace:0", 11, "expected the maximum count"),
        ("stacktrace:x", 11, "expected the maximum count"),
        ("marker", 6, "expected ':' and a text"),
        ("marker if a", 6, "expected ':' and a text"),
        ("marker: if a", 6, "expected ':' and a text"),
        ("marker::5", 6, "expected ':' and a text"),
        ("!marker:", 7, "expected ':' and a text"),
        ("marker:\"a b", 7, "the text has no closing quote"),
        ("marker:'a\"", 7, "the text has no closing quote"),
        ("marker:it's", 9, "a text that contains a quote"),
        ("marker:\"a\"b", 10, "expected 'if' and a filter"),
        ("marker:\"a\"if b", 10, "expected 'if' and a filter"),
        ("marker:\"a\":x", 11, "expected the maximum count"),
        ("marker:a:1:2", 10, "expected 'if' or the end"),
        (
            "marker:\"a\tb\"",
            9,
            "the text contains a control character",
        ),
        ("marker:'\n'", 8, "the text contains a control character"),
        ("marker:\0", 7, "the text contains a control character"),
    ] {
        let error = TriggerLine::parse(text).expect_err(text);
        assert_eq!(error.at, at, "{text}");
        let said = error.reason.to_string();
        assert!(said.starts_with(reason), "{text}: {said}");
    }
    let text = format!("marker:\"{}\"", "x".repeat(LONGEST + 1));
    let error = TriggerLine::parse(&text).expect_err("it is too long");
    assert_eq!(error.at, 7);
    let said = error.reason.to_string();
    assert_eq!(said, "the text has 1024 bytes, more than 1023");
}
