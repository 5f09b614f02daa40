// SPDX-License-Identifier: GPL-2.0

//! `rtrace top -i` on synthetic traces. Live tables have the same contents.

mod schema;

use assert_cmd::Command;
use predicates::str::contains;
use rtrace_abi::header::Layout;
use serde_json::Value;
use std::fs;
use std::path::Path;
use synthetic::{PacketBuilder, IRQ_EXIT, OPENAT_EXIT, WAKING};
use tempfile::TempDir;

/// Milliseconds in clock ticks.
const MS: u64 = synthetic::FREQUENCY / 1000;

const IDLE: (i32, &str) = (0, "swapper/0");
const SHELL: (i32, &str) = (7, "sh");
const OTHER: (i32, &str) = (8, "cc\x1b1");

fn packet(cpu: u32, number: u64, begin: u64) -> PacketBuilder {
    PacketBuilder::new(Layout::Compact, cpu, number, begin)
}

/// Writes a trace of two and a half seconds. On CPU 0 `sh` runs from 100 ms to 300 ms, and after a wait of 4 ms
/// from 900 ms to 1200 ms. On CPU 1 `cc` runs from 500 ms until the end.
fn write(dir: &Path) {
    let zero = packet(0, 0, 0)
        .switch(100 * MS, IDLE, SHELL)
        .openat(110 * MS, "/a")
        .syscall_exit(OPENAT_EXIT, 120 * MS, -2)
        .openat(130 * MS, "/b")
        .syscall_exit(OPENAT_EXIT, 140 * MS, 3)
        .read(150 * MS, 0)
        .switch_from(300 * MS, SHELL, 1, IDLE)
        .wake(WAKING, 896 * MS, SHELL)
        .switch(900 * MS, IDLE, SHELL)
        .switch_from(1200 * MS, SHELL, 1, IDLE)
        .close(1500 * MS, 8);
    let more = packet(0, 1, 2200 * MS)
        .discarded(3)
        .softirq(2300 * MS, 1)
        .close(2500 * MS, 8);
    let one = packet(1, 0, 0)
        .switch(500 * MS, (0, "swapper/1"), OTHER)
        .close(2500 * MS, 8);
    synthetic::write(
        dir,
        Layout::Compact,
        &[(0, vec![zero, more]), (1, vec![one])],
    )
    .unwrap();
}

fn top(dir: &Path, options: &[&str]) -> Command {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    command.arg("top").arg("-i").arg(dir).args(options);
    command
}

fn tables(dir: &Path, options: &[&str]) -> Vec<Value> {
    let output = top(dir, &[&["--json"], options].concat())
        .assert()
        .success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let lines = text.lines();
    lines.map(|line| schema::read(line.as_bytes())).collect()
}

fn thread(table: &Value, tid: i64) -> &Value {
    let mut threads = table["threads"].as_array().unwrap().iter();
    let found = threads.find(|thread| thread["tid"] == tid);
    found.unwrap_or_else(|| panic!("no {tid} in {table}"))
}

#[test]
fn figures_are_those_of_each_second() {
    let dir = TempDir::new().unwrap();
    write(dir.path());
    let tables = tables(dir.path(), &[]);
    assert_eq!(tables.len(), 3);
    let second: i64 = 1_000_000_000;
    for (table, (begin, duration)) in tables
        .iter()
        .zip([(0, second), (1, second), (2, second / 2)])
    {
        assert_eq!(table["begin_ns"], 1_700_000_000 * second + begin * second);
        assert_eq!(table["duration_ns"], duration);
        assert_eq!(table["cpus"], 2);
    }
    for (number, tid, key, value) in [
        (0, 7, "cpu_ns", 300_000_000),
        (0, 7, "switches", 2),
        (0, 7, "wakeups", 1),
        (0, 7, "worst_wait_ns", 4_000_000),
        (0, 7, "calls", 3),
        (0, 7, "errors", 1),
        (0, 8, "cpu_ns", 500_000_000),
        (0, 8, "switches", 1),
        (1, 7, "cpu_ns", 200_000_000),
        (1, 7, "switches", 0),
        (1, 8, "cpu_ns", second),
        (2, 8, "cpu_ns", second / 2),
        (2, 8, "calls", 0),
    ] {
        assert_eq!(
            thread(&tables[number], tid)[key],
            value,
            "{number} {tid} {key}"
        );
    }
    let shell = thread(&tables[0], 7);
    assert_eq!(
        (&shell["comm"], &shell["top_call"]),
        (&"sh".into(), &"openat".into())
    );
    let lost: Vec<_> = tables.iter().map(|table| &table["lost"]).collect();
    assert_eq!(lost, [0, 3, 0]);
    // The tables do not contain the idle tasks.
    let rows = tables
        .iter()
        .flat_map(|table| table["threads"].as_array().unwrap());
    assert!(rows.clone().count() > 0 && rows.clone().all(|row| row["tid"] != 0));
}

#[test]
fn tables_are_sorted_and_cut() {
    let dir = TempDir::new().unwrap();
    write(dir.path());
    let output = top(dir.path(), &["--once", "--sort", "calls"])
        .assert()
        .success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let expected = "\
2023-11-14 22:13:20.000 UTC for 1.000 s: 2 CPUs 40.0% busy, 3 switches/s, 3 calls/s
     TID COMM              CPU% switches/s wakeups/s      worst   calls/s errors/s  top call
       7 sh                30.0          2         1     4.0 ms         3        1  openat
       8 cc\\x1b1           50.0          1         0          -         0        0  -
";
    assert_eq!(text, expected);
    let order = |options: &[&str]| -> Vec<i64> {
        let table = &tables(dir.path(), &[&["--once"], options].concat())[0];
        let rows = table["threads"].as_array().unwrap().iter();
        rows.map(|row| row["tid"].as_i64().unwrap()).collect()
    };
    assert_eq!(order(&[]), [8, 7]);
    assert_eq!(order(&["--sort", "wait"]), [7, 8]);
    assert_eq!(order(&["--sort", "tid"]), [7, 8]);
    top(dir.path(), &["--once", "--rows", "1"])
        .assert()
        .stdout(contains("1 more threads"));
    assert_eq!(tables(dir.path(), &["--count", "2"]).len(), 2);
    assert_eq!(tables(dir.path(), &["-d", "500ms"]).len(), 5);
    top(dir.path(), &["--count", "2"])
        .assert()
        .stdout(contains("; 3 events LOST\n"));
}

#[test]
fn errors_say_what_is_missing() {
    let dir = TempDir::new().unwrap();
    write(dir.path());
    let path = dir.path().join("metadata");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, text.replace("\"sched_switch\"", "\"other\"")).unwrap();
    top(dir.path(), &[]).assert().code(125).stderr(contains(
        "top needs sched_switch, which the trace does not have",
    ));
    for (options, said) in [
        (&["-d", "0s"][..], "expected a duration from 100ms to 1d"),
        (&["-d", "x"], "no duration"),
        (&["--count", "0"], "0 is not in"),
        (&["--once", "--count", "2"], "cannot be used with"),
        (&["--sort", "x"], "invalid value"),
        (&["--session", "x"], "creates its own session"),
    ] {
        top(dir.path(), options)
            .assert()
            .code(2)
            .stderr(contains(said));
    }
}

/// The exit of rt_sigreturn has no result: its field has a register of the interrupted code.
#[test]
fn a_return_from_a_signal_is_no_error() {
    let dir = TempDir::new().unwrap();
    let exit = [(-1_i32).to_le_bytes(), (-5_i32).to_le_bytes()].concat();
    let zero = packet(0, 0, 0)
        .switch(100 * MS, IDLE, SHELL)
        .event(IRQ_EXIT, 120 * MS, &exit)
        .close(200 * MS, 8);
    synthetic::write(dir.path(), Layout::Compact, &[(0, vec![zero])]).unwrap();
    let path = dir.path().join("metadata");
    let text = fs::read_to_string(&path).unwrap();
    let blocks =
        text.split_inclusive("};\n\n")
            .map(|block| match block.contains("irq_handler_exit") {
                true => block
                    .replace("irq_handler_exit", "syscall_exit_unknown")
                    .replace("irq;", "id;"),
                false => block.to_owned(),
            });
    let text: String = blocks.collect();
    assert!(text.contains("_id;"), "{text}");
    fs::write(&path, text).unwrap();
    let tables = tables(dir.path(), &[]);
    assert_eq!(thread(&tables[0], 7)["errors"], 0);
}
