// SPDX-License-Identifier: GPL-2.0

//! `--from`, `--to`, `-p` and `--comm`: a part of a trace, in `rtrace report` and `rtrace trace -i`.

use super::{json, packet, report, row, write, IDLE, SHELL, THREAD, US};
use assert_cmd::Command;
use predicates::str::contains;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use synthetic::{OPENAT_EXIT, READ_EXIT, WAKING};
use tempfile::TempDir;

/// Writes a trace of 200 us. `sh` (process 7) runs from 10 us to 60 us and reads twice, the second time across 50 us.
/// Its thread `worker` waits for the CPU from 40 us on, runs until 150 us, and opens a file at 100 us.
fn known(dir: &Path) {
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, SHELL)
        .fork(12 * US, SHELL, THREAD, 7)
        .read(20 * US, 0)
        .syscall_exit(READ_EXIT, 30 * US, 512)
        .wake(WAKING, 40 * US, THREAD)
        .read(45 * US, 0)
        .syscall_exit(READ_EXIT, 55 * US, -9)
        .switch_from(60 * US, SHELL, 1, THREAD)
        .openat(100 * US, "/there")
        .syscall_exit(OPENAT_EXIT, 120 * US, 3)
        .switch_from(150 * US, THREAD, 1, IDLE)
        .close(200 * US, 8);
    write(dir, &[(0, vec![zero])]);
}

fn calls(report: &Value) -> Vec<(&str, u64, u64, u64)> {
    let rows = report["syscalls"]["calls"].as_array().unwrap().iter();
    let number = |row: &Value, field: &str| row[field].as_u64().unwrap();
    let rows = rows.map(|row| {
        let name = row["name"].as_str().unwrap();
        let [calls, errors, total] = ["calls", "errors", "total_ns"].map(|f| number(row, f));
        (name, calls, errors, total)
    });
    rows.collect()
}

#[test]
fn a_range_has_its_own_calls() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    for (options, expected) in [
        (
            &[][..],
            &[("read", 2, 1, 20_000), ("openat", 1, 0, 20_000)][..],
        ),
        (&["--to", "+50us"], &[("read", 2, 0, 10_000)]),
        // The read that began before is no call of the range.
        (&["--from", "+50us", "--to", "+90us"], &[]),
        (&["--from", "22:13:20.00009"], &[("openat", 1, 0, 20_000)]),
        (&["--from", "+500us"], &[]),
        (
            &["-p", "7", "--comm", "worker"],
            &[("openat", 1, 0, 20_000)],
        ),
        (&["--comm", "s?"], &[("read", 2, 1, 20_000)]),
        (&["-p", "8"], &[]),
    ] {
        let report = json(&[&["--syscalls"], options].concat(), dir.path());
        assert_eq!(calls(&report), expected, "{options:?}");
    }
}

#[test]
fn a_range_has_its_own_times() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let times = |options: &[&str]| {
        let report = json(&[&["--threads", "--latency"], options].concat(), dir.path());
        let threads = &report["threads"]["threads"];
        let ran = |name: &str| {
            let mut rows = threads.as_array().unwrap().iter();
            let row = rows.find(|row| row["comm"] == name);
            row.map_or(0, |row| row["running_ns"].as_u64().unwrap())
        };
        let waits = report["latency"]["timed"].as_u64().unwrap();
        (
            ran("sh"),
            ran("worker"),
            waits,
            report["duration_ns"].as_u64().unwrap(),
        )
    };
    assert_eq!(times(&[]), (50_000, 90_000, 1, 200_000));
    assert_eq!(times(&["--to", "+100us"]), (50_000, 40_000, 1, 100_000));
    // The wait began before the range.
    let from = ["--from", "+50us", "--to", "+70us"];
    assert_eq!(times(&from), (10_000, 10_000, 0, 20_000));
    assert_eq!(times(&["--comm", "worker"]), (0, 90_000, 1, 200_000));
    assert_eq!(times(&["-p", "7"]), (50_000, 90_000, 1, 200_000));
    assert_eq!(times(&["-p", "9"]), (0, 0, 0, 200_000));
}

#[test]
fn a_summary_of_a_part_has_its_events() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let part = json(&["--from", "+50us", "--comm", "worker"], dir.path());
    let names: Vec<_> = part["events"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let switch = row(&part["events"], "name", "sched_switch");
    assert_eq!(switch["count"], 1);
    assert_eq!(part["tasks"][0]["cpu_time_ns"], 90_000);
    assert_eq!(part["cpus"].as_array().unwrap().len(), 0);
    // The totals are those of the whole trace.
    assert_eq!(part["recorded"], 11);
    assert_eq!(part["begin_ns"], 1_700_000_000_000_050_000_u64);
}

/// Returns what an export of the trace writes.
fn exported(format: &str, options: &[&str], dir: &Path) -> Vec<u8> {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    command.args(["export", format]).args(options).arg(dir);
    command.assert().success().get_output().stdout.clone()
}

/// Returns the number of rows of each event.
fn counts(rows: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for row in rows.lines().skip(1) {
        let event = row.split(',').nth(4).unwrap();
        *counts.entry(event.to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn events_are_chosen_by_patterns() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let report = json(&["-e", "sched,!sched_waking", "--to", "+100us"], dir.path());
    let names: Vec<_> = report["events"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(row(&report["events"], "name", "sched_switch")["count"], 2);
    let report = json(&["--syscalls", "-e", "syscall_*_read"], dir.path());
    assert_eq!(calls(&report), [("read", 2, 1, 20_000)]);
    let mut unknown = self::report(&["-e", "nosuch"], dir.path());
    unknown
        .assert()
        .code(125)
        .stderr(contains("no event matches `nosuch`"));
    self::report(&["--threads", "-e", "sched"], dir.path())
        .assert()
        .code(2);
}

#[test]
fn an_export_has_the_part_of_a_report() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    for (options, ran) in [
        (&[][..], [50_000, 90_000]),
        (&["--from", "+50us"], [10_000, 90_000]),
        (&["--to", "+100us"], [50_000, 40_000]),
        (&["--from", "+50us", "--to", "+70us"], [10_000, 10_000]),
        (&["--from", "+60us"], [0, 90_000]),
        (&["--from", "+500us"], [0, 0]),
        (&["--comm", "worker"], [0, 90_000]),
        (&["-p", "9"], [0, 0]),
    ] {
        let report = json(options, dir.path());
        let events = report["events"].as_array().unwrap().iter();
        let count = |event: &Value| {
            let name = event["name"].as_str().unwrap().to_owned();
            (name, event["count"].as_u64().unwrap())
        };
        let rows = String::from_utf8(exported("csv", options, dir.path())).unwrap();
        assert_eq!(counts(&rows), events.map(count).collect(), "{options:?}");
        let threads = json(&[&["--threads"], options].concat(), dir.path());
        let chrome = exported("chrome", options, dir.path());
        let chrome: Value = serde_json::from_slice(&chrome).unwrap();
        for (name, ran) in ["sh", "worker"].into_iter().zip(ran) {
            let mut rows = threads["threads"]["threads"].as_array().unwrap().iter();
            let row = rows.find(|row| row["comm"] == name);
            let reported = row.map_or(0, |row| row["running_ns"].as_u64().unwrap());
            let slices = chrome["traceEvents"].as_array().unwrap().iter();
            let slices = slices.filter(|slice| slice["ph"] == "X" && slice["name"] == name);
            let microseconds: f64 = slices.map(|slice| slice["dur"].as_f64().unwrap()).sum();
            let drawn = (microseconds * 1000.0).round() as u64;
            assert_eq!((reported, drawn), (ran, ran), "{options:?}: {name}");
        }
    }
}

#[test]
fn a_line_outside_the_part_is_not_printed() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let lines = |options: &[&str]| {
        let mut command = Command::cargo_bin("rtrace").unwrap();
        command.args(["trace", "-i"]).arg(dir.path()).args(options);
        let output = command.assert().success();
        let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
        let lines = text.lines().filter(|line| line.contains('/'));
        let what = lines.map(|line| line.split_once('/').unwrap().1.to_owned());
        what.collect::<Vec<_>>()
    };
    let all = lines(&["-e", "read,openat"]);
    assert_eq!(all.len(), 3, "{all:?}");
    let worker = lines(&["-e", "read,openat", "--comm", "worker"]);
    assert_eq!(worker, all[2..], "{all:?}");
    assert_eq!(lines(&["-e", "read,openat", "--from", "+90us"]), all[2..]);
    assert_eq!(lines(&["-e", "read,openat", "--to", "+35us"]), all[..1]);
    let mut command = Command::cargo_bin("rtrace").unwrap();
    command.args(["trace", "-c", "--json", "--from", "+90us", "-i"]);
    let output = command.arg(dir.path()).assert().success();
    let table: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!(calls(&table), [("openat", 1, 0, 20_000)]);
    let mut command = Command::cargo_bin("rtrace").unwrap();
    command.args(["trace", "--from", "+1s"]).assert().code(2);
}

#[test]
fn some_questions_are_about_the_whole_machine() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    for options in [
        ["--cpu", "-p", "7"],
        ["--irq", "--comm", "sh"],
        ["--html=page", "--from", "+1s"],
    ] {
        report(&options, dir.path()).assert().code(2);
    }
}
