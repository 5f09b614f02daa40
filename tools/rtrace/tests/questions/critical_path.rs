// SPDX-License-Identifier: GPL-2.0

//! `rtrace report --critical-path`.

use super::machine::{self, Loss, Random, WAIT_NS};
use super::{forget, json, packet, report, write, IDLE, SHELL, THREAD, US};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use std::path::Path;
use synthetic::{WAKEUP, WAKING};
use tempfile::TempDir;

const OTHER: (i32, &str) = (9, "other");

/// Writes a trace. `sh` sleeps until `worker` wakes it. Meanwhile `worker` sleeps until an interrupt wakes it,
/// and then waits for a CPU where `other` runs.
fn known(dir: &Path) {
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, SHELL)
        .switch_from(20 * US, SHELL, 1, THREAD)
        .switch_from(30 * US, THREAD, 1, OTHER)
        .irq(80 * US, 5, "eth0")
        .wake(WAKING, 81 * US, THREAD)
        .irq_exit(82 * US, 5)
        .switch_from(86 * US, OTHER, 1, THREAD)
        .close(200 * US, 8);
    let one = packet(1, 0, 0)
        // This thread is not on the path, because `worker` does not run at that time.
        .switch(40 * US, IDLE, (10, "noise"))
        .switch_from(50 * US, (10, "noise"), 0x20, IDLE)
        .close(60 * US, 8);
    let later = packet(0, 1, 200 * US)
        .wake(WAKING, 206 * US, SHELL)
        .switch_from(209 * US, THREAD, 0, SHELL)
        .switch_from(210 * US, SHELL, 0x20, THREAD)
        .switch_from(300 * US, THREAD, 1, IDLE)
        .close(400 * US, 8);
    write(dir, &[(0, vec![zero, later]), (1, vec![one])]);
}

fn path(options: &[&str], dir: &Path) -> Value {
    json(options, dir)["critical_path"].clone()
}

/// Returns the thread, the state and the microseconds of each segment.
fn segments(path: &Value) -> Vec<(i64, &str, u64)> {
    let segments = path["segments"].as_array().unwrap().iter();
    let segments = segments.map(|segment| {
        let ns = segment["duration_ns"].as_u64().unwrap();
        assert_eq!(ns % 1000, 0);
        let state = segment["state"].as_str().unwrap();
        (segment["tid"].as_i64().unwrap(), state, ns / 1000)
    });
    segments.collect()
}

/// Checks that the segments are contiguous. Their durations and the sums must add up to the total duration.
fn adds_up(path: &Value) {
    let (mut at, mut total) = (path["begin_ns"].as_u64(), 0);
    for segment in path["segments"].as_array().unwrap() {
        assert_eq!(segment["from_ns"].as_u64(), at, "{path}");
        let ns = segment["duration_ns"].as_u64().unwrap();
        at = at.map(|at| at + ns);
        total += ns;
    }
    assert_eq!(path["duration_ns"], total);
    let sums = path["sums"].as_array().unwrap().iter();
    let sums = sums.map(|sum| sum["total_ns"].as_u64().unwrap());
    assert_eq!(sums.sum::<u64>(), total);
}

#[test]
fn a_path_leads_through_those_who_woke() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let path = path(&["--critical-path", "7"], dir.path());
    let expected = [
        (7, "running", 10),
        (8, "running", 10),
        (8, "blocked", 51),
        (8, "runnable", 5),
        (8, "running", 120),
        (7, "runnable", 3),
        (7, "running", 1),
    ];
    assert_eq!(segments(&path), expected);
    adds_up(&path);
    assert_eq!(path["duration_ns"], 200_000);
    let segments = path["segments"].as_array().unwrap();
    assert_eq!(segments[0]["waiter"], Value::Null);
    assert_eq!(segments[1]["waiter"], 7);
    assert_eq!(segments[2]["woken_by"], "irq 5 eth0");
    assert_eq!(segments[3]["cpu"], 0);
    assert_eq!(segments[3]["runner"], 9);
    assert_eq!(segments[3]["runner_comm"], "other");
    assert_eq!(segments[5]["runner_comm"], "worker");
    let sum = &path["sums"][0];
    assert_eq!(sum["tid"], 8);
    assert_eq!(sum["state"], "running");
    assert_eq!(
        (&sum["total_ns"], &sum["segments"]),
        (&130_000.into(), &2.into())
    );
}

#[test]
fn text_has_the_same() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    report(&["--critical-path", "7"], dir.path())
        .assert()
        .success()
        .stdout(contains("the critical path of sh (7)\n"))
        .stdout(contains(
            "22:13:20.000010000    10.0 us        7  sh               running\n",
        ))
        .stdout(contains(
            "22:13:20.000030000    51.0 us        8  worker           blocked   woken by irq 5 eth0, for sh (7)\n",
        ))
        .stdout(contains(
            "22:13:20.000081000     5.0 us        8  worker           runnable  CPU 0, where other (9) ran, for sh (7)\n",
        ))
        .stdout(contains("  130.0 us  65.0%         2        8  worker           running\n"))
        .stdout(contains("  200.0 us in all\n"))
        // The trace has hard and soft interrupts, but no timers.
        .stdout(contains("Interrupts or timers are not in the trace"));
    // Only the last segments of a long path are printed.
    report(&["--critical-path", "7", "-n", "1"], dir.path())
        .assert()
        .success()
        .stdout(contains(
            "22:13:20.000209000     1.0 us        7  sh               running\n",
        ))
        .stdout(contains("22:13:20.000010000 ").not())
        .stdout(contains("6         earlier segments (-n 0 shows all)\n"));
    for form in [&[][..], &["--json"], &["--html", "-"]] {
        report(&[form, &["--critical-path", "4711"]].concat(), dir.path())
            .assert()
            .code(125)
            .stdout("")
            .stderr(contains("thread 4711 does not run in the trace"));
    }
}

/// The path ends in the middle of a sleep. The trace shows that the sleep ends later.
#[test]
fn a_path_may_end_earlier() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let path = path(
        &["--critical-path", "7", "--to", "22:13:20.00006"],
        dir.path(),
    );
    let expected = [(7, "running", 10), (8, "running", 10), (8, "blocked", 30)];
    assert_eq!(segments(&path), expected);
    adds_up(&path);
    report(&["--critical-path", "7", "--to", "noon"], dir.path())
        .assert()
        .code(2)
        .stderr(contains("not a time: write"));
}

/// A thread is created within the path: before its creation, its creator is on the path.
#[test]
fn who_makes_a_thread_is_on_the_way() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, SHELL)
        .switch_from(20 * US, SHELL, 1, THREAD)
        .fork(50 * US, THREAD, OTHER, OTHER.0)
        .wake(WAKING, 52 * US, OTHER)
        .switch_from(60 * US, THREAD, 1, OTHER)
        .wake(WAKING, 90 * US, SHELL)
        .switch_from(95 * US, OTHER, 0x20, SHELL)
        .switch_from(100 * US, SHELL, 1, IDLE)
        .close(120 * US, 8);
    write(dir.path(), &[(0, vec![zero])]);
    let path = path(&["--critical-path", "7"], dir.path());
    let expected = [
        (7, "running", 10),
        (8, "running", 32),
        (9, "runnable", 8),
        (9, "running", 30),
        (7, "runnable", 5),
        (7, "running", 5),
        // Until the end of the trace the thread is not woken.
        (7, "unknown", 20),
    ];
    assert_eq!(segments(&path), expected);
    adds_up(&path);
}

/// A wake-up in the idle task comes from an interrupt, even if no interrupt is recorded. The first of two
/// wake-up events is the event of the waker.
#[test]
fn an_idle_task_wakes_nobody() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, SHELL)
        .switch_from(20 * US, SHELL, 1, IDLE)
        .wake(WAKING, 50 * US, SHELL)
        .switch(60 * US, IDLE, SHELL)
        // The switch to sleep follows the thread's first wake-up, by `worker` on the other CPU.
        .switch_from(70 * US, SHELL, 1, IDLE)
        .wake(WAKEUP, 72 * US, SHELL)
        .switch(74 * US, IDLE, SHELL)
        .switch_from(80 * US, SHELL, 0x20, IDLE)
        .close(90 * US, 8);
    let one = packet(1, 0, 0)
        .switch(5 * US, IDLE, THREAD)
        .wake(WAKING, 69 * US, SHELL)
        .close(90 * US, 8);
    write(dir.path(), &[(0, vec![zero]), (1, vec![one])]);
    let path = path(&["--critical-path", "7"], dir.path());
    let expected = [
        (7, "running", 10),
        (7, "blocked", 30),
        (7, "runnable", 10),
        (7, "running", 10),
        (8, "running", 2),
        (7, "runnable", 2),
        (7, "running", 6),
    ];
    assert_eq!(segments(&path), expected);
    assert_eq!(path["segments"][1]["woken_by"], "an interrupt");
    assert_eq!(path["segments"][2]["runner"], 0);
}

/// While the thread sleeps, events of another CPU are missing, so the cause of the wait is unknown.
#[test]
fn nothing_is_concluded_across_a_loss() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, SHELL)
        .switch_from(20 * US, SHELL, 1, THREAD)
        .wake(WAKING, 90 * US, SHELL)
        .switch_from(95 * US, THREAD, 1, SHELL)
        .switch_from(100 * US, SHELL, 0x20, IDLE)
        .close(120 * US, 8);
    let one = [
        packet(1, 0, 0).softirq(30 * US, 1).close(40 * US, 8),
        packet(1, 1, 50 * US).discarded(1).close(60 * US, 8),
        packet(1, 2, 60 * US).discarded(1).close(120 * US, 8),
    ];
    write(dir.path(), &[(0, vec![zero]), (1, one.to_vec())]);
    let path = path(&["--critical-path", "7"], dir.path());
    let found = segments(&path);
    assert_eq!(found[..2], [(7, "running", 10), (7, "unknown", 70)]);
    assert_eq!(found[2..], [(7, "runnable", 5), (7, "running", 5)]);
    adds_up(&path);
}

#[test]
fn what_the_trace_lacks_is_said() {
    for (prefix, words) in [
        ("sched_switch", "--critical-path needs sched_switch,"),
        ("sched_waking", "--critical-path needs sched_waking,"),
    ] {
        let dir = TempDir::new().unwrap();
        known(dir.path());
        forget(dir.path(), prefix);
        report(&["--critical-path", "7"], dir.path())
            .assert()
            .code(125)
            .stderr(contains(words).and(contains("`rtrace record -e sched_switch,")));
    }
}

/// Any path is complete, even after losses, and no wait for a CPU is longer than the machine's waits.
#[test]
fn a_machine_is_as_it_was() {
    let mut known = 0;
    for seed in 0..60 {
        let dir = TempDir::new().unwrap();
        let loss = [Loss::Nothing, Loss::Packets, Loss::Events][seed as usize % 3];
        let truth = machine::write(dir.path(), &mut Random(seed), 4, 3, loss);
        let path = path(&["--critical-path", "2"], dir.path());
        adds_up(&path);
        let segments = path["segments"].as_array().unwrap();
        let (mut waited, mut end) = (0, 0);
        for segment in segments {
            let ns = segment["duration_ns"].as_u64().unwrap();
            let from = segment["from_ns"].as_u64().unwrap();
            if segment["state"] == "runnable" && segment["tid"] == 2 {
                waited = if end == from { waited + ns } else { ns };
                end = from + ns;
                assert!(waited <= WAIT_NS, "{seed}: {path}");
            }
            known += u64::from(segment["state"] != "unknown");
        }
        if loss == Loss::Nothing {
            let begin = truth.begins[&2] * machine::TICK_NS;
            let begin = 1_700_000_000_000_000_000 + begin;
            assert_eq!(path["begin_ns"], begin, "{seed}");
            let end = truth.end * machine::TICK_NS;
            let end = 1_700_000_000_000_000_000 + end;
            let found = begin + path["duration_ns"].as_u64().unwrap();
            assert_eq!(found, end, "{seed}");
        }
    }
    assert!(known > 1000, "{known}");
}
