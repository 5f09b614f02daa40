// SPDX-License-Identifier: GPL-2.0

//! The end of a trace. The packets of older traces end when they were closed, which was after the stop.

use super::{json, packet, report, write, IDLE, SHELL, THREAD, US};
use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Writes a trace whose last event is at 100 us. `sh` runs then, and `worker` has waited for that CPU since 60 us. The
/// other CPU is idle since 20 us. The packets were closed at 900 and at 500 us.
fn stopped(dir: &Path) {
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, THREAD)
        .switch(60 * US, THREAD, SHELL)
        .openat(100 * US, "/a")
        .close(900 * US, 8);
    let one = packet(1, 0, 0)
        .switch(5 * US, IDLE, (9, "cc"))
        .switch_from(20 * US, (9, "cc"), 1, IDLE)
        .close(500 * US, 8);
    write(dir, &[(0, vec![zero]), (1, vec![one])]);
}

/// Changes a trace's description.
fn change(dir: &Path, from: &str, to: &str) {
    let path = dir.join("metadata");
    let before = fs::read_to_string(&path).unwrap();
    let text = before.replace(from, to);
    assert_ne!(text, before);
    fs::write(path, text).unwrap();
}

/// Makes a trace one of an older rtrace: the packets do not end at the stop.
fn age(dir: &Path) {
    change(dir, "\ttrace_end = \"stop\";\n", "");
}

fn run(arguments: &[&str]) -> String {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    let done = command.args(arguments).assert().success();
    String::from_utf8(done.get_output().stdout.clone()).unwrap()
}

/// Returns the end of a trace in each view, in nanoseconds from its begin.
fn ends(dir: &Path) -> Vec<(&'static str, u64)> {
    let text = dir.to_str().unwrap();
    let all = [
        "--cpu",
        "--threads",
        "--latency",
        "--syscalls",
        "--critical-path",
        "8",
    ];
    let found = json(&all, dir);
    let number = |value: &Value| {
        value
            .as_u64()
            .unwrap_or_else(|| panic!("{value} in {found}"))
    };
    let sum = |row: &Value, fields: &[&str]| -> u64 {
        fields.iter().map(|field| number(&row[*field])).sum()
    };
    let row = |table: &Value, key: &str, value: i64| -> Value {
        let mut rows = table.as_array().unwrap().iter();
        rows.find(|row| row[key] == value).unwrap().clone()
    };
    let (threads, cpus) = (&found["threads"]["threads"], &found["cpu"]["cpus"]);
    let cpu = |number| {
        let fields = ["busy_ns", "idle_ns", "unknown_ns"];
        sum(&row(cpus, "cpu", number), &fields)
    };
    let path = &found["critical_path"];
    let query = |sql: &str| -> u64 {
        let text = run(&["query", "--format", "csv", sql, text]);
        text.lines().last().unwrap().parse().unwrap()
    };
    let chrome: Value = serde_json::from_str(&run(&["export", "chrome", text])).unwrap();
    let chrome = chrome["traceEvents"].as_array().unwrap().iter();
    let chrome = chrome.filter_map(|event| Some(event["ts"].as_f64()? + event["dur"].as_f64()?));
    let first = chrome.clone().fold(f64::INFINITY, f64::min);
    let chrome = chrome.fold(first, f64::max);
    let diff: Value = serde_json::from_str(&run(&["diff", "--json", text, text])).unwrap();
    let page = dir.with_extension("html");
    report(&["--force", "--html", page.to_str().unwrap()], dir)
        .assert()
        .success();
    let page = fs::read_to_string(page).unwrap();
    let (_, index) = page.split_once("id=\"trace\">").unwrap();
    let (index, _) = index.split_once("</script>").unwrap();
    let index: Value = serde_json::from_str(index).unwrap();
    vec![
        ("report", number(&json(&[], dir)["duration_ns"])),
        ("head", number(&found["duration_ns"])),
        ("CPU 0", cpu(0)),
        ("CPU 1", cpu(1)),
        ("sh", 60_000 + number(&row(threads, "tid", 7)["running_ns"])),
        (
            "path",
            number(&path["duration_ns"]) + number(&path["begin_ns"]) % 1_000_000_000,
        ),
        (
            "query",
            query("SELECT max(ns + duration_ns) % 1000000000 FROM slices"),
        ),
        ("chrome", (chrome * 1000.0).round() as u64 % 1_000_000_000),
        ("diff", number(&diff["a"]["duration_ns"])),
        ("page", number(&index["report"]["duration_ns"])),
    ]
}

#[test]
fn every_view_ends_at_the_stop() {
    let dir = TempDir::new().unwrap();
    stopped(dir.path());
    for (view, end) in ends(dir.path()) {
        assert_eq!(end, 900_000, "{view}");
    }
    age(dir.path());
    for (view, end) in ends(dir.path()) {
        assert_eq!(end, 100_000, "{view}");
    }
    // Without switches no state is extended, and the end of the packets is closer to the stop.
    change(dir.path(), "\"sched_switch\"", "\"sched_other\"");
    assert_eq!(json(&[], dir.path())["duration_ns"], 900_000);
}

/// A packet with losses has them up to its end, and none after the stop.
#[test]
fn a_loss_ends_at_the_stop() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, SHELL)
        .close(50 * US, 8);
    let lossy = packet(0, 1, 60 * US)
        .discarded(3)
        .switch(100 * US, SHELL, IDLE)
        .close(900 * US, 8);
    write(dir.path(), &[(0, vec![zero, lossy])]);
    age(dir.path());
    let sql = "SELECT max(ns + duration_ns) % 1000000000 FROM losses";
    let found = run(&[
        "query",
        "--format",
        "csv",
        sql,
        dir.path().to_str().unwrap(),
    ]);
    assert_eq!(found.lines().last(), Some("100000"));
}
