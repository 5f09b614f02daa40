// SPDX-License-Identifier: GPL-2.0

//! `rtrace diff` on synthetic traces.

mod schema;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use rtrace_abi::header::Layout;
use serde_json::Value;
use std::fs;
use std::path::Path;
use synthetic::{PacketBuilder, OPENAT_EXIT, READ_EXIT};
use tempfile::TempDir;

/// Microseconds and seconds in clock ticks.
const US: u64 = synthetic::FREQUENCY / 1_000_000;
const S: u64 = synthetic::FREQUENCY;

const IDLE: (i32, &str) = (0, "swapper/0");
const SHELL: (i32, &str) = (7, "sh");
const OTHER: (i32, &str) = (8, "cc1");

/// Writes a trace of 200 rounds of 10 ms. In a round `sh` makes two calls, a disk interrupts, and `cc1` runs.
/// Durations vary with the seed. `open_us` is the duration of openat.
fn trace(seed: u64, open_us: u64) -> TempDir {
    let dir = TempDir::new().unwrap();
    synthetic::write(
        dir.path(),
        Layout::Compact,
        &[(0, packets(seed, open_us, None))],
    )
    .unwrap();
    dir
}

fn packets(seed: u64, open_us: u64, lossy: Option<u64>) -> Vec<Vec<u8>> {
    let mut random = seed * 2 + 1;
    let mut below = move |end: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % end
    };
    let packets = (0..200).map(|round| {
        let mut now = S + round * 10_000 * US;
        let mut after = |us: u64| {
            now += us * US;
            now
        };
        let packet = PacketBuilder::new(Layout::Compact, 0, round, after(0));
        let packet = match lossy {
            // The kernel's counter of discarded events is cumulative.
            Some(first) if round >= first => packet.discarded(3 * (round - first + 1).min(40)),
            _ => packet,
        };
        let packet = packet
            .switch(after(1), IDLE, SHELL)
            .openat(after(1), "/a")
            .syscall_exit(OPENAT_EXIT, after(open_us + below(5)), 3)
            .read(after(3), 0)
            .syscall_exit(READ_EXIT, after(20 + below(10)), 1)
            .irq(after(7), 24, "disk")
            .irq_exit(after(2 + below(3)), 24)
            .switch_from(after(100 + below(50)), SHELL, 1, OTHER)
            .switch_from(after(500 + below(200)), OTHER, 1, IDLE);
        packet.close(S + (round + 1) * 10_000 * US - 1, 8)
    });
    packets.collect()
}

fn rtrace(words: &[&str], a: &Path, b: &Path) -> Command {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    command.arg("diff").args(words).args([a, b]);
    command
}

/// Returns the comparison, and the changes that exceed the variation: kind, name and quantity.
fn compare(a: &TempDir, b: &TempDir) -> (Value, Vec<String>) {
    let assert = rtrace(&["--json"], a.path(), b.path()).assert().success();
    let compared = schema::read(&assert.get_output().stdout);
    let mut marked = Vec::new();
    for row in compared["rows"].as_array().unwrap() {
        for change in row["changes"].as_array().unwrap() {
            if change["exceeds"] == true {
                let words = [&row["kind"], &row["name"], &change["quantity"]];
                marked.push(words.map(|word| word.as_str().unwrap()).join(" "));
            }
        }
    }
    (compared, marked)
}

#[test]
fn traces_that_differ_by_chance_have_no_marks() {
    let (a, b) = (trace(1, 10), trace(2, 10));
    let (compared, marked) = compare(&a, &b);
    assert_eq!(marked, Vec::<String>::new());
    assert_eq!(compared["a"]["windows"], 20);
    assert!(compared["tests"].as_u64().unwrap() > 10);
    let assert = rtrace(&[], a.path(), b.path()).assert().success();
    assert.stdout(contains("System calls (0 changes exceed").and(contains(" *\n").not()));
}

#[test]
fn one_slower_call_is_found() {
    let (a, b) = (trace(1, 10), trace(2, 13));
    let (compared, marked) = compare(&a, &b);
    assert_eq!(
        marked,
        ["calls openat ns_per_second", "calls openat p50_ns"]
    );
    // The figures equal the figures of the report.
    let report = Command::cargo_bin("rtrace")
        .unwrap()
        .args(["report", "--syscalls", "--json"])
        .arg(b.path())
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let calls = report["syscalls"]["calls"].as_array().unwrap();
    let open = calls.iter().find(|call| call["name"] == "openat").unwrap();
    let rows = compared["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "openat").unwrap();
    let value = |quantity: &str| {
        let changes = row["changes"].as_array().unwrap();
        let change = changes.iter().find(|change| change["quantity"] == quantity);
        change.unwrap()["b"].as_f64().unwrap()
    };
    let seconds = compared["b"]["duration_ns"].as_f64().unwrap() / 1e9;
    assert_eq!(value("p50_ns"), open["p50_ns"].as_f64().unwrap());
    assert_eq!(value("p99_ns"), open["p99_ns"].as_f64().unwrap());
    assert_eq!(
        (value("ns_per_second") * seconds).round(),
        open["total_ns"].as_f64().unwrap()
    );
    assert_eq!((value("count_per_second") * seconds).round(), 200.0);
    let assert = rtrace(&["-n", "0"], a.path(), b.path()).assert().success();
    let text = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    // Each marked line says what changed.
    let lines = text.lines().filter(|line| line.ends_with('*'));
    let words = lines.map(|line| {
        line.split_whitespace()
            .take(3)
            .collect::<Vec<_>>()
            .join(" ")
    });
    let words: Vec<_> = words.collect();
    assert_eq!(words, ["calls openat time/s", "calls openat p50"]);
    let assert = rtrace(&["-n", "1"], a.path(), b.path()).assert().success();
    assert.stdout(
        contains("openat")
            .and(contains(" *\n"))
            .and(contains("... 1 more names (-n 0 shows all)")),
    );
}

#[test]
fn what_only_one_trace_has_is_new() {
    let other = TempDir::new().unwrap();
    let packets = (0..200).map(|round| {
        let begin = S + round * 10_000 * US;
        let packet = PacketBuilder::new(Layout::Compact, 0, round, begin);
        packet
            .softirq(begin + US, 1)
            .softirq_exit(begin + 3 * US, 1)
            .close(begin + 10_000 * US - 1, 8)
    });
    synthetic::write(other.path(), Layout::Compact, &[(0, packets.collect())]).unwrap();
    let (_, marked) = compare(&trace(1, 10), &other);
    assert!(
        marked.contains(&"softirqs TIMER count_per_second".to_owned()),
        "{marked:?}"
    );
    assert!(
        marked.contains(&"calls openat count_per_second".to_owned()),
        "{marked:?}"
    );
}

#[test]
fn a_page_has_the_same() {
    let (a, b) = (trace(1, 10), trace(2, 13));
    let dir = TempDir::new().unwrap();
    let page = dir.path().join("page.html");
    let option = format!("--html={}", page.display());
    rtrace(&[&option], a.path(), b.path())
        .assert()
        .success()
        .stdout("");
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("System calls (2 changes exceed the variation)"));
    assert_eq!(text.matches("<tr class=\"exceeds\">").count(), 2, "{text}");
    assert!(text.contains("<td>openat</td>") && !text.contains("<script"));
    // An existing file is replaced only if the user says so.
    rtrace(&[&option], a.path(), b.path()).assert().failure();
    rtrace(&[&option, "--force"], a.path(), b.path())
        .assert()
        .success();
    let printed = rtrace(&["--html=-"], a.path(), b.path()).assert().success();
    printed.stdout(contains("</html>\n"));
}

/// Writes a trace of 200 returns of a probed function, and of a traced function, each with the duration of its call.
fn functions(seed: u64, probed_us: u64, traced_us: u64) -> TempDir {
    let dir = TempDir::new().unwrap();
    let packets = (0..200).map(|round| {
        let begin = S + round * 10_000 * US;
        let vary = (seed + round) * 7 % 5;
        let probed = (1000 * (probed_us + vary)).to_le_bytes();
        let address = 0xffff_ffff_8100_0020_u64.to_le_bytes();
        let traced = (1000 * (traced_us + vary)).to_le_bytes();
        let packet = PacketBuilder::new(Layout::Compact, 0, round, begin);
        packet
            .event(20, begin + 100 * US, &probed)
            .event(21, begin + 200 * US, &[address, traced].concat())
            .close(begin + 10_000 * US - 1, 8)
    });
    synthetic::write(dir.path(), Layout::Compact, &[(0, packets.collect())]).unwrap();
    let path = dir.path().join("metadata");
    let mut text = fs::read_to_string(&path).unwrap();
    let events = [
        (20, "vfs_read__return", &["duration_ns"][..]),
        (21, "funcgraph_exit", &["func", "duration"]),
    ];
    for (id, name, fields) in events {
        let fields = fields.iter().map(|field| {
            format!("integer {{ size = 64; align = 8; signed = false; }} _{field};\n")
        });
        let fields: String = fields.collect();
        text += &format!(
            "event {{\nname = \"{name}\";\nid = {id};\nstream_id = 0;\nfields := struct {{\n{fields}}};\n}};\n\n"
        );
    }
    fs::write(&path, text).unwrap();
    dir
}

#[test]
fn a_slower_function_is_found() {
    let (_, marked) = compare(&functions(1, 10, 40), &functions(2, 10, 40));
    assert_eq!(marked, Vec::<String>::new());
    let (_, marked) = compare(&functions(1, 10, 40), &functions(2, 20, 40));
    let slower =
        ["ns_per_second", "p50_ns"].map(|what| format!("function_calls vfs_read__return {what}"));
    assert_eq!(marked, slower);
    let (_, marked) = compare(&functions(1, 10, 40), &functions(2, 10, 60));
    let slower = ["ns_per_second", "p50_ns"];
    assert_eq!(
        marked,
        slower.map(|what| format!("function_calls 0xffffffff81000020 {what}"))
    );
}

#[test]
fn windows_with_losses_are_left_out() {
    let lossy = TempDir::new().unwrap();
    synthetic::write(
        lossy.path(),
        Layout::Compact,
        &[(0, packets(2, 10, Some(60)))],
    )
    .unwrap();
    let (compared, marked) = compare(&trace(1, 10), &lossy);
    assert_eq!(marked, Vec::<String>::new());
    assert_eq!(compared["b"]["lost"], 120);
    let left_out = compared["b"]["lossy_windows"].as_u64().unwrap();
    assert!((4..=6).contains(&left_out), "{left_out}");
}

#[test]
fn an_empty_trace_cannot_be_compared() {
    let empty = TempDir::new().unwrap();
    synthetic::write(empty.path(), Layout::Compact, &[(0, Vec::new())]).unwrap();
    let trace = trace(1, 10);
    let assert = rtrace(&[], trace.path(), empty.path()).assert().failure();
    assert.stderr(contains("a trace without events cannot be compared"));
    let assert = rtrace(&[], trace.path(), Path::new("/nowhere"))
        .assert()
        .failure();
    assert.stderr(contains("/nowhere"));
}
