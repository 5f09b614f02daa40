// SPDX-License-Identifier: GPL-2.0

//! `rtrace export chrome`.

use super::{bytes, known, packet, write, IDLE, S, SHELL, US};
use serde_json::Value;
use std::path::Path;
use synthetic::{OPENAT_EXIT, READ_EXIT};
use tempfile::TempDir;

/// Returns the events of the exported file.
fn events(options: &[&str], dir: &Path) -> Vec<Value> {
    let bytes = bytes(&[&["chrome"], options].concat(), dir);
    let mut object: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(object["otherData"]["hostname"], "nowhere");
    let Value::Array(events) = object["traceEvents"].take() else {
        panic!("{object}");
    };
    events
}

/// Returns the name of an event's track.
fn track(events: &[Value], event: &Value) -> String {
    let is_name = |name: &&Value| {
        let same = |key: &str| name[key] == event[key];
        name["ph"] == "M" && name["name"] == "thread_name" && same("pid") && same("tid")
    };
    let name = events
        .iter()
        .find(is_name)
        .map(|name| &name["args"]["name"]);
    name.unwrap_or_else(|| panic!("{event}"))
        .as_str()
        .unwrap()
        .to_owned()
}

/// Returns track, kind, name, begin and duration of each event, by time. Times are microseconds since second 1.
fn rows(events: &[Value]) -> Vec<(String, String, String, f64, Option<f64>)> {
    let said = events.iter().filter(|event| event["ph"] != "M");
    let mut rows: Vec<_> = said
        .map(|event| {
            let text = |key: &str| event[key].as_str().unwrap().to_owned();
            let begin = event["ts"].as_f64().unwrap() - 1e6;
            let begin = (begin * 1000.0).round() / 1000.0;
            (
                track(events, event),
                text("ph"),
                text("name"),
                begin,
                event["dur"].as_f64(),
            )
        })
        .collect();
    rows.sort_by(|a, b| a.3.total_cmp(&b.3));
    rows
}

#[test]
fn tasks_calls_and_interrupts_are_slices() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let events = events(&[], dir.path());
    let rows = rows(&events);
    let rows: Vec<_> = rows
        .iter()
        .map(|(track, ph, name, begin, took)| {
            (track.as_str(), ph.as_str(), name.as_str(), *begin, *took)
        })
        .collect();
    let lost = "[LOST 3 EVENTS AND 2 PACKETS]";
    assert_eq!(
        rows,
        [
            ("CPU 0", "i", "sched_waking", 5.0, None),
            ("CPU 0", "X", "sh", 10.0, Some(50.0)),
            ("CPU 1 interrupts", "X", "TIMER", 11.0, Some(5.0)),
            ("sh", "X", "openat", 20.0, Some(20.0)),
            ("CPU 1", "i", lost, 30.0, None),
            ("sh", "i", "sched_process_fork", 50.0, None),
        ]
    );
    let call = events
        .iter()
        .find(|event| event["name"] == "openat")
        .unwrap();
    assert_eq!(call["args"]["filename"], "/etc/hosts");
    assert_eq!(call["args"]["ret"], -2);
    assert_eq!((&call["pid"], &call["tid"]), (&7.into(), &7.into()));
}

#[test]
fn a_call_ends_where_it_is_not_known_any_more() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, S)
        .switch(S + 10 * US, IDLE, SHELL)
        // This exit belongs to another call: the exit of the read was not recorded.
        .openat(S + 20 * US, "/a")
        .syscall_exit(READ_EXIT, S + 30 * US, 0)
        // This call is within the gap.
        .openat(S + 40 * US, "/b")
        .close(S + 50 * US, 8);
    let one = packet(0, 1, S + 50 * US)
        .discarded(1)
        .syscall_exit(OPENAT_EXIT, S + 60 * US, 0)
        .close(S + 70 * US, 8);
    let two = packet(0, 2, S + 70 * US)
        .discarded(1)
        .switch(S + 75 * US, IDLE, SHELL)
        // The thread exits during this call.
        .openat(S + 80 * US, "/c")
        .switch_from(S + 90 * US, SHELL, 0x20, (9, "ls"))
        // This call is open until the end of the trace.
        .openat(S + 100 * US, "/d")
        .close(S + 110 * US, 8);
    write(dir.path(), &[(0, vec![zero, one, two])]);
    let events = events(&[], dir.path());
    let mut calls: Vec<_> = events
        .iter()
        .filter(|event| event["name"] == "openat")
        .map(|event| {
            let text = |key: &str| event["args"][key].as_str().unwrap();
            (
                text("filename"),
                event["dur"].as_f64().unwrap(),
                text("end"),
            )
        })
        .collect();
    calls.sort_by_key(|(filename, ..)| *filename);
    assert_eq!(
        calls,
        [
            ("/a", 10.0, "not recorded"),
            ("/b", 10.0, "lost"),
            ("/c", 10.0, "the thread ended"),
            ("/d", 10.0, "behind the end"),
        ]
    );
    let names: Vec<_> = rows(&events)
        .into_iter()
        .map(|(_, _, name, ..)| name)
        .collect();
    assert!(names.contains(&"read (exit)".to_owned()), "{names:?}");
    assert!(names.contains(&"openat (exit)".to_owned()), "{names:?}");
}

#[test]
fn what_is_not_chosen_is_not_drawn() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let rows = rows(&events(&["-e", "irq,sched_waking"], dir.path()));
    let names: Vec<_> = rows.iter().map(|(_, _, name, ..)| name.as_str()).collect();
    assert_eq!(
        names,
        ["sched_waking", "TIMER", "[LOST 3 EVENTS AND 2 PACKETS]"]
    );
}

#[test]
fn slices_end_with_the_time_that_is_chosen() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let rows = rows(&events(
        &["-e", "sched_switch,syscalls", "--to", "+0.00003s"],
        dir.path(),
    ));
    let slices: Vec<_> = rows.iter().filter(|row| row.1 == "X").collect();
    let ends: Vec<_> = slices
        .iter()
        .map(|(_, _, name, begin, took)| (name.as_str(), begin + took.unwrap()))
        .collect();
    assert_eq!(ends, [("sh", 30.0), ("openat", 30.0)]);
}

#[test]
fn every_type_is_an_argument() {
    let dir = TempDir::new().unwrap();
    let one = packet(0, 0, 0).every_type(10).close(20, 8);
    write(dir.path(), &[(0, vec![one])]);
    let events = events(&[], dir.path());
    let event = events.iter().find(|event| event["name"] == "every_type");
    let args = &event.unwrap()["args"];
    assert_eq!(args["level"], -3);
    assert_eq!(args["mask"], "0x1abc");
    assert_eq!(args["kind"], "HIGH");
    assert_eq!(args["wide"], 0x8123_4567_89ab_cdef_u64);
    assert_eq!(args["uuid"][0], "0xde");
    assert_eq!(args["cpus"], serde_json::json!([-1, 7]));
    assert_eq!(args["path"], "/p");
}

#[test]
fn an_empty_trace_is_a_document() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), &[]);
    assert_eq!(events(&[], dir.path()), Vec::<Value>::new());
}
