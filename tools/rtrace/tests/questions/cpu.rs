// SPDX-License-Identifier: GPL-2.0

//! `rtrace report --cpu`.

use super::machine::{self, Loss, Random};
use super::{forget, json, packet, report, write, IDLE, SHELL, THREAD, US};
use predicates::str::contains;
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// Writes a trace. CPU 0 is idle for 20 us and busy for 80. The trace has 75 us of CPU 3, which is idle for 25
/// of them. On CPU 0 a soft interrupt takes 10 us, including 3 us of a disk interrupt.
fn known(dir: &Path) {
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, SHELL)
        .softirq(20 * US, 1)
        .irq(21 * US, 24, "disk")
        .irq_exit(24 * US, 24)
        .softirq_exit(30 * US, 1)
        .switch_from(60 * US, SHELL, 1, THREAD)
        .switch_from(90 * US, THREAD, 1, IDLE)
        .close(100 * US, 8);
    let three = packet(3, 0, 25 * US)
        .switch(50 * US, IDLE, SHELL)
        .close(70 * US, 8);
    // This CPU never switched.
    let four = packet(4, 0, 0).softirq(10 * US, 1).close(100 * US, 8);
    write(dir, &[(0, vec![zero]), (3, vec![three]), (4, vec![four])]);
}

fn sum(rows: &Value, field: &str) -> u64 {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row[field].as_u64().unwrap()).sum()
}

#[test]
fn times_are_those_of_the_tasks() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let cpus = &json(&["--cpu"], dir.path())["cpu"]["cpus"];
    let expected = serde_json::json!([
        {"cpu": 0, "busy_ns": 80_000, "idle_ns": 20_000, "unknown_ns": 0, "hard_ns": 3_000, "soft_ns": 7_000},
        {"cpu": 3, "busy_ns": 50_000, "idle_ns": 25_000, "unknown_ns": 25_000, "hard_ns": 0, "soft_ns": 0},
        {"cpu": 4, "busy_ns": 0, "idle_ns": 0, "unknown_ns": 100_000, "hard_ns": 0, "soft_ns": 0},
    ]);
    assert_eq!(*cpus, expected);
    report(&["--cpu"], dir.path())
        .assert()
        .success()
        .stdout(contains(
            "    0    80.0 us  80.0%    20.0 us     0.0 us     3.0 us   3.0%     7.0 us   7.0%\n",
        ));
}

#[test]
fn what_the_trace_lacks_is_said() {
    let dir = TempDir::new().unwrap();
    let one = packet(0, 0, 0).switch(US, IDLE, SHELL).close(2 * US, 8);
    write(dir.path(), &[(0, vec![one])]);
    forget(dir.path(), "irq_handler");
    let cpus = &json(&["--cpu"], dir.path())["cpu"]["cpus"];
    assert_eq!(cpus[0]["hard_ns"], Value::Null);
    assert_eq!(cpus[0]["soft_ns"], 0);
    report(&["--cpu"], dir.path())
        .assert()
        .success()
        .stdout(contains("`rtrace record -e irq` records them"));
    forget(dir.path(), "sched_switch");
    report(&["--cpu"], dir.path())
        .assert()
        .code(125)
        .stderr(contains("--cpu needs sched_switch,"));
}

/// The busy time of all CPUs is the running time of all threads, and no time is counted twice, even after
/// losses.
#[test]
fn busy_is_as_long_as_threads_run() {
    for seed in 0..60 {
        let dir = TempDir::new().unwrap();
        let loss = [Loss::Nothing, Loss::Packets, Loss::Events][seed as usize % 3];
        machine::write(dir.path(), &mut Random(seed), 4, 3, loss);
        let report = json(&["--cpu", "--threads"], dir.path());
        let cpus = &report["cpu"]["cpus"];
        let running = sum(&report["threads"]["threads"], "running_ns");
        assert_eq!(sum(cpus, "busy_ns"), running, "{seed} {loss:?}: {report}");
        for row in cpus.as_array().unwrap() {
            let whole: u64 = ["busy_ns", "idle_ns", "unknown_ns"]
                .iter()
                .map(|field| row[field].as_u64().unwrap())
                .sum();
            assert_eq!(report["duration_ns"], whole, "{seed} {loss:?}: {row}");
        }
    }
}

/// Without losses the plain report, which reads stream by stream, has the same times.
#[test]
fn the_plain_report_agrees() {
    for seed in 0..10 {
        let dir = TempDir::new().unwrap();
        machine::write(dir.path(), &mut Random(seed), 4, 3, Loss::Nothing);
        let plain = json(&[], dir.path());
        let asked = json(&["--cpu"], dir.path());
        let times = |rows: &Value| -> Vec<_> {
            let rows = rows.as_array().unwrap().iter();
            let fields = ["cpu", "busy_ns", "idle_ns"];
            rows.map(|row| fields.map(|field| row[field].as_u64().unwrap()))
                .collect()
        };
        assert_eq!(
            times(&plain["cpus"]),
            times(&asked["cpu"]["cpus"]),
            "{seed}"
        );
    }
}
