// SPDX-License-Identifier: GPL-2.0

//! `rtrace report --syscalls`.

use super::machine::{self, Loss, Random, OPEN_NS, READ_NS};
use super::{
    declare_contexts, forget, json, packet, report, row, text16, write, IDLE, SHELL, THREAD, US,
};
use predicates::prelude::*;
use predicates::str::contains;
use rtrace_abi::header::Layout;
use serde_json::json as value;
use std::fs;
use std::path::Path;
use synthetic::{Channel, OPENAT, OPENAT_EXIT, READ, READ_EXIT};
use tempfile::TempDir;

/// Writes a trace. `sh` reads for 100 us, moves from CPU 0 to CPU 1 meanwhile, and fails to open a file within
/// 5 us. Its thread `worker` opens a file for 20 us, and is in a read at the end.
fn known(dir: &Path) {
    let zero = packet(0, 0, 0)
        // The thread on the CPU is not known yet.
        .read(US, 0)
        .switch(2 * US, IDLE, SHELL)
        .fork(3 * US, SHELL, THREAD, 7)
        .read(10 * US, 0)
        .switch_from(20 * US, SHELL, 1, THREAD)
        .openat(30 * US, "/there")
        .syscall_exit(OPENAT_EXIT, 50 * US, 3)
        .read(190 * US, 0)
        .close(200 * US, 8);
    let one = packet(1, 0, 0)
        .switch(100 * US, IDLE, SHELL)
        .syscall_exit(READ_EXIT, 110 * US, 512)
        .openat(120 * US, "/nowhere")
        .syscall_exit(OPENAT_EXIT, 125 * US, -2)
        .close(200 * US, 8);
    write(dir, &[(0, vec![zero]), (1, vec![one])]);
}

#[test]
fn calls_are_counted_and_timed() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let report = json(&["--syscalls", "--by-process"], dir.path());
    assert_eq!(report["recorded"], 12);
    assert_eq!(report["duration_ns"], 200_000);
    let answer = &report["syscalls"];
    assert_eq!(answer["untimed"], 2);
    assert_eq!(answer["mistaken"], 0);
    let calls = &answer["calls"];
    assert_eq!(calls.as_array().unwrap().len(), 2);
    assert_eq!(calls[0]["name"], "read");
    for (name, field, value) in [
        ("read", "calls", 3),
        ("read", "errors", 0),
        ("read", "timed", 1),
        ("read", "total_ns", 100_000),
        ("read", "max_ns", 100_000),
        ("openat", "calls", 2),
        ("openat", "errors", 1),
        ("openat", "timed", 2),
        ("openat", "total_ns", 25_000),
        ("openat", "average_ns", 12_500),
        ("openat", "p50_ns", 5_003),
        ("openat", "p99_ns", 20_000),
        ("openat", "max_ns", 20_000),
    ] {
        assert_eq!(row(calls, "name", name)[field], value, "{name} {field}");
    }
    let processes = answer["processes"].as_array().unwrap();
    let rows: Vec<_> = processes
        .iter()
        .map(|row| {
            (
                row["pid"].as_i64(),
                row["name"].as_str().unwrap(),
                row["calls"].as_u64(),
            )
        })
        .collect();
    let expected = [
        (Some(7), "read", Some(2)),
        (Some(7), "openat", Some(2)),
        (None, "read", Some(1)),
    ];
    assert_eq!(rows, expected);
    assert_eq!(processes[0]["comm"], "sh");
    assert_eq!(processes[1]["errors"], 1);
    assert_eq!(processes[1]["total_ns"], 25_000);
}

#[test]
fn text_has_the_same() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    report(&["--syscalls", "--by-process"], dir.path())
        .assert()
        .success()
        .stdout(contains("         3        0   100.0 us   100.0 us"))
        .stdout(contains("2 calls were not timed"))
        .stdout(contains("       7  sh               openat\n"))
        .stdout(contains("lower bounds").not())
        .stdout(predicate::str::ends_with("\n12 events recorded, 0 lost\n"));
    report(&["--syscalls", "-n", "1"], dir.path())
        .assert()
        .success()
        .stdout(contains("1         more system calls (-n 0 shows all)"));
    report(&["--by-process"], dir.path()).assert().code(2);
}

#[test]
fn what_the_trace_lacks_is_said() {
    for (prefix, words) in [
        ("syscall_entry", "the entries and exits of system calls"),
        ("syscall_exit", "the entries and exits of system calls"),
        ("sched_switch", "sched_switch (or the context tid)"),
    ] {
        let dir = TempDir::new().unwrap();
        known(dir.path());
        forget(dir.path(), prefix);
        report(&["--syscalls"], dir.path())
            .assert()
            .code(125)
            .stdout("")
            .stderr(contains(words))
            .stderr(contains(dir.path().display().to_string()))
            .stderr(contains(
                "`rtrace record -e openat,read --context tid,comm`",
            ));
    }
    let dir = TempDir::new().unwrap();
    known(dir.path());
    forget(dir.path(), "sched_switch");
    report(&["--syscalls", "--by-process"], dir.path())
        .assert()
        .code(125)
        .stderr(contains(" --context tid,pid,comm`"));
}

/// One call and the context of its thread are enough: the error recommends that.
#[test]
fn a_named_call_with_its_thread_is_enough() {
    let dir = TempDir::new().unwrap();
    let call = |tid: i32, fields: &[u8]| {
        let name = text16(&tid.to_string());
        [&tid.to_le_bytes()[..], &name, fields].concat()
    };
    let zero = packet(0, 0, 0)
        .event(OPENAT, 10 * US, &call(7, b"/a\0"))
        .event(OPENAT, 11 * US, &call(8, b"/b\0"))
        .event(OPENAT_EXIT, 15 * US, &call(7, &(-2_i64).to_le_bytes()))
        .event(OPENAT_EXIT, 31 * US, &call(8, &3_i64.to_le_bytes()))
        .close(200 * US, 8);
    write(dir.path(), &[(0, vec![zero])]);
    let byte = "integer { size = 8; align = 8; signed = false; encoding = UTF8; }";
    declare_contexts(
        dir.path(),
        &format!(
            "\t\tinteger {{ size = 32; align = 8; signed = true; }} _tid;\n\t\t{byte} _procname[16];\n"
        ),
    );
    forget(dir.path(), "sched_switch");
    let answer = &json(&["--syscalls", "--by-name"], dir.path())["syscalls"];
    assert_eq!(
        (&answer["untimed"], &answer["calls"][0]["total_ns"]),
        (&0.into(), &25_000.into())
    );
    let names = answer["names"].as_array().unwrap();
    let rows: Vec<_> = names
        .iter()
        .map(|row| (&row["comm"], &row["total_ns"]))
        .collect();
    assert_eq!(
        rows,
        [(&"8".into(), &20_000.into()), (&"7".into(), &5_000.into())]
    );
}

/// The sums of a name are those of all processes that have it.
#[test]
fn calls_are_summed_by_name() {
    let dir = TempDir::new().unwrap();
    let same = (9, "sh");
    let zero = packet(0, 0, 0)
        .switch(2 * US, IDLE, SHELL)
        .read(10 * US, 0)
        .syscall_exit(READ_EXIT, 20 * US, -5)
        .switch(30 * US, SHELL, same)
        .read(40 * US, 0)
        .syscall_exit(READ_EXIT, 70 * US, 1)
        .switch(80 * US, same, THREAD)
        .read(90 * US, 0)
        .syscall_exit(READ_EXIT, 95 * US, 1)
        .close(200 * US, 8);
    write(dir.path(), &[(0, vec![zero])]);
    let answer = &json(&["--syscalls", "--by-name"], dir.path())["syscalls"];
    let expected = value!([
        { "comm": "sh", "processes": 2, "name": "read", "calls": 2, "errors": 1, "timed": 2,
          "total_ns": 40_000, "average_ns": 20_000, "max_ns": 30_000 },
        { "comm": "worker", "processes": 1, "name": "read", "calls": 1, "errors": 0, "timed": 1,
          "total_ns": 5_000, "average_ns": 5_000, "max_ns": 5_000 }
    ]);
    assert_eq!(answer["names"], expected);
    report(&["--syscalls", "--by-name"], dir.path())
        .assert()
        .success()
        .stdout(contains(
            "         2        1    40.0 us    20.0 us    30.0 us         2  sh               read\n",
        ));
    report(&["--by-name"], dir.path()).assert().code(2);
}

/// Without losses all calls are found, although the threads change their CPU in each call.
#[test]
fn a_machine_is_as_it_was() {
    for seed in 0..20 {
        let dir = TempDir::new().unwrap();
        let random = &mut Random(seed);
        let truth = machine::write(dir.path(), random, 4, 3, Loss::Nothing);
        let report = json(&["--syscalls"], dir.path());
        let calls = &report["syscalls"]["calls"];
        for (name, made, failed, ended, time) in [
            ("read", truth.reads, 0, truth.reads_ended, READ_NS),
            (
                "openat",
                truth.opens,
                truth.opens_failed,
                truth.opens_ended,
                OPEN_NS,
            ),
        ] {
            let row = row(calls, "name", name);
            assert_eq!(row["calls"], made, "{seed}: {row}");
            assert_eq!(row["errors"], failed, "{seed}: {row}");
            assert_eq!(row["timed"], ended, "{seed}: {row}");
            assert_eq!(row["total_ns"], ended * time, "{seed}: {row}");
            assert_eq!(row["max_ns"], time, "{seed}: {row}");
        }
    }
}

/// Every call of a name takes the same time: a pair across a loss would have another duration.
#[test]
fn no_call_is_timed_across_a_loss() {
    let mut timed = 0;
    for seed in 0..100 {
        let dir = TempDir::new().unwrap();
        let random = &mut Random(seed);
        let loss = [Loss::Packets, Loss::Events][seed as usize % 2];
        let truth = machine::write(dir.path(), random, 4, 3, loss);
        let report = json(&["--syscalls"], dir.path());
        for row in report["syscalls"]["calls"].as_array().unwrap() {
            let (time, made) = match row["name"].as_str() {
                Some("read") => (READ_NS, truth.reads),
                _ => (OPEN_NS, truth.opens),
            };
            let number = |field: &str| row[field].as_u64().unwrap();
            assert!(number("calls") <= made, "{seed}: {row}");
            assert_eq!(number("total_ns"), number("timed") * time, "{seed}: {row}");
            if number("timed") > 0 {
                assert_eq!(number("max_ns"), time, "{seed}: {row}");
            }
            timed += number("timed");
        }
    }
    assert!(timed > 1000, "{timed}");
}

#[test]
fn losses_are_said() {
    let dir = TempDir::new().unwrap();
    let before = packet(0, 0, 0)
        .switch(US, IDLE, SHELL)
        .read(2 * US, 0)
        .close(3 * US, 8);
    let lossy = packet(0, 1, 4 * US)
        .discarded(9)
        .syscall_exit(READ_EXIT, 5 * US, -4)
        .close(9 * US, 8);
    write(dir.path(), &[(0, vec![before, lossy])]);
    let answer = &json(&["--syscalls"], dir.path())["syscalls"];
    assert_eq!(answer["calls"][0]["calls"], 1);
    // The exit may be that of a later call.
    assert_eq!(answer["calls"][0]["errors"], 0);
    assert_eq!(answer["calls"][0]["timed"], 0);
    report(&["--syscalls"], dir.path())
        .assert()
        .success()
        .stdout(contains("These figures are lower bounds"))
        .stdout(contains("3 events recorded, 9 lost"));
}

/// If a recording failed, the later events of a CPU are missing after the end of its stream.
#[test]
fn no_call_is_timed_across_the_end_of_an_unfinished_stream() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0)
        .switch(US, IDLE, SHELL)
        .read(2 * US, 0)
        .switch_from(3 * US, SHELL, 1, IDLE)
        .close(10 * US, 8);
    let one = packet(1, 0, 0)
        .switch(4 * US, IDLE, THREAD)
        .read(5 * US, 0)
        .switch_from(15 * US, THREAD, 1, SHELL)
        .syscall_exit(READ_EXIT, 20 * US, 1)
        .close(30 * US, 8);
    write(dir.path(), &[(0, vec![zero]), (1, vec![one])]);
    let uuid = synthetic::uuid_text(synthetic::UUID);
    for (state, timed) in [("over", 1), ("failed", 0), ("writing", 0)] {
        let text = format!("trace {uuid}\nstate {state}\nunwritten 0\n");
        fs::write(dir.path().join(".recording"), text).unwrap();
        let calls = &json(&["--syscalls"], dir.path())["syscalls"]["calls"];
        assert_eq!(calls[0]["timed"], timed, "{state}");
    }
}

/// Calls in a channel of their own. A call in several channels is counted once. Losses of a channel without
/// events of the question do not matter.
#[test]
fn channels_are_one_trace() {
    let dir = TempDir::new().unwrap();
    let switches = packet(0, 0, 0).switch(US, IDLE, SHELL).close(10 * US, 8);
    let both = |stream: u32| {
        packet(0, 0, 0)
            .stream(stream)
            .read(2 * US, 0)
            .syscall_exit(READ_EXIT, 5 * US, 0)
    };
    let other = packet(0, 4, 0)
        .stream(3)
        .discarded(7)
        .softirq(3 * US, 1)
        .close(10 * US, 8);
    let streams = [
        ("channel0", [(0, vec![switches])]),
        ("calls", [(0, vec![both(1).close(10 * US, 8)])]),
        ("again", [(0, vec![both(2).close(10 * US, 8)])]),
        ("other", [(0, vec![other])]),
    ];
    let channels = streams.each_ref().map(|(name, streams)| Channel {
        name,
        layout: Layout::Compact,
        streams,
    });
    synthetic::write_channels(dir.path(), &channels).unwrap();
    keep(
        dir.path(),
        &["sched_switch", "syscall_", "syscall_", "irq_softirq_entry"],
    );
    let report = json(&["--syscalls"], dir.path());
    let calls = &report["syscalls"]["calls"];
    assert_eq!(calls[0]["calls"], 1);
    assert_eq!(calls[0]["timed"], 1);
    assert_eq!(calls[0]["total_ns"], 3_000);
    assert_eq!(report["recorded"], 6);
    assert_eq!(report["lost"], 7);
}

/// Keeps in each channel of a trace's description only the events whose names have its prefix.
fn keep(dir: &Path, prefixes: &[&str]) {
    let path = dir.join("metadata");
    let text = fs::read_to_string(&path).unwrap();
    let is_kept = |block: &&str| {
        let is_event = block.trim_start().starts_with("event {");
        !is_event
            || (0..).zip(prefixes).any(|(stream, prefix)| {
                block.contains(&format!("name = \"{prefix}"))
                    && block.contains(&format!("stream_id = {stream};"))
            })
    };
    let kept: String = text.split_inclusive("};\n\n").filter(is_kept).collect();
    fs::write(&path, kept).unwrap();
}

/// The contexts `tid` and `pid` of a record name its thread, so the question needs no other events.
#[test]
fn contexts_say_who_calls() {
    let dir = TempDir::new().unwrap();
    let call = |tid: i32, pid: i32, rest: i64| {
        let mut record = [tid, pid].map(i32::to_le_bytes).concat();
        record.extend(rest.to_le_bytes());
        record
    };
    let zero = packet(0, 0, 0)
        .event(READ, US, &call(8, 7, 0))
        .event(READ, 2 * US, &call(9, 7, 0))
        .event(READ_EXIT, 4 * US, &call(8, 7, -9))
        .close(10 * US, 8);
    let one = packet(1, 0, 0)
        .event(READ_EXIT, 6 * US, &call(9, 7, 1))
        .close(10 * US, 8);
    write(dir.path(), &[(0, vec![zero]), (1, vec![one])]);
    let integer = "integer { size = 32; align = 8; signed = true; }";
    declare_contexts(
        dir.path(),
        &format!("\t\t{integer} _tid;\n\t\t{integer} _pid;\n"),
    );
    forget(dir.path(), "sched_switch");
    let answer = &json(&["--syscalls", "--by-process"], dir.path())["syscalls"];
    assert_eq!(answer["calls"][0]["timed"], 2);
    assert_eq!(answer["calls"][0]["total_ns"], 7_000);
    let processes = answer["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 1);
    assert_eq!(processes[0]["pid"], 7);
    assert_eq!(processes[0]["errors"], 1);
    assert_eq!(processes[0]["max_ns"], 4_000);
}

/// A filter has suppressed the switch from `sh` to `worker`. The read of `worker` therefore seems to be a read
/// of `sh`.
#[test]
fn switches_that_were_not_recorded_are_said() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0)
        .switch(US, IDLE, SHELL)
        .read(10 * US, 0)
        .switch_from(20 * US, THREAD, 1, IDLE)
        .switch(30 * US, IDLE, SHELL)
        .syscall_exit(READ_EXIT, 40 * US, 0)
        .close(50 * US, 8);
    write(dir.path(), &[(0, vec![zero])]);
    let answers = json(&["--syscalls", "--threads"], dir.path());
    assert_eq!(answers["syscalls"]["mistaken"], 1);
    assert_eq!(answers["threads"]["switches_missing"], 1);
    assert_eq!(answers["syscalls"]["calls"][0]["timed"], 0);
    // Before the switch away from `worker`, the trace does not show which of the two threads ran.
    let threads = &answers["threads"]["threads"];
    let running: Vec<_> = threads
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["tid"].as_i64(), row["running_ns"].as_u64()))
        .collect();
    assert_eq!(running, [(Some(7), Some(20_000)), (Some(8), Some(0))]);
    report(&["--syscalls", "--threads"], dir.path())
        .assert()
        .success()
        .stdout(contains("1 calls may belong to other threads"))
        .stdout(contains("Not every sched_switch was recorded"));
}
