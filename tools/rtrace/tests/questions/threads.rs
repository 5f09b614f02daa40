// SPDX-License-Identifier: GPL-2.0

//! `rtrace report --threads`.

use super::machine::{self, Loss, Random};
use super::{forget, json, packet, report, write, IDLE, SHELL, THREAD, US};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use std::path::Path;
use synthetic::WAKING;
use tempfile::TempDir;

/// Writes a trace. Steps of `sh`:
///
/// 1. It runs for 30 us, is preempted, and waits 20 us for the CPU.
/// 2. It runs for 10 us, 4 of them in interrupts, and sleeps for 40 us (uninterruptible).
/// 3. It waits 5 us for CPU 1, runs for 10 us, and sleeps until the end.
///
/// `worker` runs for 20 us and exits.
fn known(dir: &Path) {
    let zero = packet(0, 0, 10 * US)
        .fork(15 * US, SHELL, THREAD, 7)
        .switch_from(40 * US, SHELL, 0x100, THREAD)
        .switch_from(60 * US, THREAD, 0x10, SHELL)
        .softirq(61 * US, 1)
        .irq(62 * US, 24, "disk")
        .irq_exit(64 * US, 24)
        .softirq_exit(65 * US, 1)
        .switch_from(70 * US, SHELL, 2, IDLE)
        .wake(WAKING, 110 * US, SHELL)
        .close(150 * US, 8);
    let one = packet(1, 0, 115 * US)
        .switch(115 * US, IDLE, SHELL)
        .switch_from(125 * US, SHELL, 1, IDLE)
        .close(145 * US, 8);
    write(dir, &[(0, vec![zero]), (1, vec![one])]);
}

fn thread(answer: &Value, tid: i64) -> &Value {
    let mut rows = answer["threads"].as_array().unwrap().iter();
    rows.find(|row| row["tid"] == tid).unwrap()
}

#[test]
fn rows_are_in_the_order_that_was_asked_for() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, SHELL)
        .wake(WAKING, 15 * US, THREAD)
        .switch_from(60 * US, SHELL, 1, THREAD)
        .switch_from(70 * US, THREAD, 1, IDLE)
        .close(150 * US, 8);
    write(dir.path(), &[(0, vec![zero])]);
    for (sort, first) in [("running", 7), ("runnable", 8), ("blocked", 7)] {
        let answer = json(&["--threads", "--sort", sort], dir.path());
        let rows = answer["threads"]["threads"].as_array().unwrap();
        let time = |row: &Value| row[format!("{sort}_ns")].as_u64().unwrap();
        assert!(
            rows.len() > 1 && rows.is_sorted_by(|a, b| time(a) >= time(b)),
            "{rows:?}"
        );
        assert_eq!(rows[0]["tid"], first, "{sort}");
    }
    for wrong in [&["--threads", "--sort", "size"][..], &["--sort", "running"]] {
        report(wrong, dir.path()).assert().code(2);
    }
}

#[test]
fn times_add_up() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let answer = &json(&["--threads"], dir.path())["threads"];
    assert_eq!(answer["wakeups_recorded"], true);
    let shell = thread(answer, 7);
    for (field, value) in [
        ("pid", 7),
        ("running_ns", 50_000),
        ("interrupted_ns", 4_000),
        ("runnable_ns", 25_000),
        ("runnable_woken_ns", 5_000),
        ("runnable_sent_off_ns", 20_000),
        ("blocked_ns", 65_000),
    ] {
        assert_eq!(shell[field], value, "{field}");
    }
    assert_eq!(shell["comm"], "sh");
    let expected = serde_json::json!({"interruptible": 25_000, "uninterruptible": 40_000});
    assert_eq!(shell["blocked"], expected);
    let expected = serde_json::json!({"interruptible": 1, "preempted": 1, "uninterruptible": 1});
    assert_eq!(shell["left"], expected);
    let worker = thread(answer, 8);
    assert_eq!(worker["pid"], 7);
    assert_eq!(worker["running_ns"], 20_000);
    assert_eq!(worker["runnable_ns"], 0);
    assert_eq!(worker["blocked_ns"], 0);
    assert_eq!(worker["left"], serde_json::json!({"dead": 1}));
    assert_eq!(answer["threads"].as_array().unwrap().len(), 2);
}

#[test]
fn text_has_the_same() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let row = "   50.0 us     4.0 us    25.0 us    65.0 us   35.7%        7        7  sh               S 1, D 1, R+ 1\n";
    report(&["--threads"], dir.path())
        .assert()
        .success()
        .stdout(contains(row))
        .stdout(contains("counted as blocked").not());
}

#[test]
fn without_wake_ups_waits_are_not_told_apart() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    // This trace has none of these events, not only no records of them.
    let one = packet(0, 0, 0)
        .switch_from(10 * US, SHELL, 1, IDLE)
        .switch(50 * US, IDLE, SHELL)
        .close(60 * US, 8);
    write(dir.path(), &[(0, vec![one]), (1, vec![])]);
    forget(dir.path(), "sched_wak");
    forget(dir.path(), "irq_");
    let answer = &json(&["--threads"], dir.path())["threads"];
    assert_eq!(answer["wakeups_recorded"], false);
    assert_eq!(thread(answer, 7)["blocked_ns"], 40_000);
    assert_eq!(thread(answer, 7)["running_ns"], 20_000);
    assert_eq!(thread(answer, 7)["interrupted_ns"], Value::Null);
    report(&["--threads"], dir.path())
        .assert()
        .success()
        .stdout(contains("counted as blocked"));
    forget(dir.path(), "sched_switch");
    report(&["--threads"], dir.path())
        .assert()
        .code(125)
        .stderr(contains("--threads needs sched_switch,"))
        .stderr(contains("`rtrace record -e sched_switch,sched_waking"));
}

/// Without losses, all time of a thread from its first event on is known. With losses, the known time is never
/// longer.
#[test]
fn no_time_is_counted_twice() {
    for seed in 0..60 {
        let dir = TempDir::new().unwrap();
        let loss = [Loss::Nothing, Loss::Packets, Loss::Events][seed as usize % 3];
        let truth = machine::write(dir.path(), &mut Random(seed), 4, 3, loss);
        let report = json(&["--threads"], dir.path());
        for row in report["threads"]["threads"].as_array().unwrap() {
            let sum: u64 = ["running_ns", "runnable_ns", "blocked_ns"]
                .iter()
                .map(|field| row[field].as_u64().unwrap())
                .sum();
            let tid = row["tid"].as_i64().unwrap();
            let exact = (truth.end - truth.begins[&(tid as i32)]) * machine::TICK_NS;
            assert!(sum <= exact, "{seed} {loss:?}: {row}");
            assert!(
                sum == exact || loss != Loss::Nothing,
                "{seed}: {exact} {row}"
            );
        }
    }
}
