// SPDX-License-Identifier: GPL-2.0

//! `rtrace report` on synthetic traces.

mod schema;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use rtrace_abi::header::Layout;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process;
use std::time::Duration;
use synthetic::PacketBuilder;
use tempfile::TempDir;

/// Milliseconds in clock ticks.
const MS: u64 = synthetic::FREQUENCY / 1000;

fn rtrace() -> Command {
    Command::cargo_bin("rtrace").unwrap()
}

fn json(dir: &Path) -> Value {
    json_with_code(dir, 0)
}

/// Returns the JSON report of a trace. A trace with missing parts has an error code.
fn json_with_code(dir: &Path, code: i32) -> Value {
    let output = rtrace()
        .args(["report", "--json"])
        .arg(dir)
        .assert()
        .code(code);
    schema::read(&output.get_output().stdout)
}

/// Writes a trace of two CPUs. On CPU 0 `make` runs for 3 ms and the CPU is idle for 6. On CPU 1 two packets
/// and 5 events are missing.
fn write(dir: &Path, layout: Layout) {
    let idle = (0, "swapper/0");
    let make = (7, "make");
    let first = PacketBuilder::new(layout, 0, 0, 0)
        .switch(MS, idle, make)
        .exec(2 * MS, "/usr/bin/make", 7)
        .read(3 * MS, 0x1000)
        .switch(4 * MS, make, idle)
        .close(5 * MS, 4096);
    let second = PacketBuilder::new(layout, 0, 1, 6 * MS)
        .softirq(8 * MS, 1)
        .close(9 * MS, 4096);
    let one = PacketBuilder::new(layout, 1, 0, 0)
        .switch(2 * MS, (0, "swapper/1"), (8, "cc\x1b1"))
        .close(3 * MS, 4096);
    let lost = PacketBuilder::new(layout, 1, 3, 5 * MS)
        .discarded(5)
        .switch(6 * MS, (9, "ld"), (8, "cc\x1b1"))
        .close(10 * MS, 4096);
    synthetic::write(
        dir,
        layout,
        &[(0, vec![first, second]), (1, vec![one, lost])],
    )
    .unwrap();
}

#[test]
fn json_counts_everything() {
    for layout in [Layout::Compact, Layout::Large] {
        let dir = TempDir::new().unwrap();
        write(dir.path(), layout);
        let report = json(dir.path());
        assert_eq!(report["uuid"], synthetic::uuid_text(synthetic::UUID));
        assert_eq!(report["recorded"], 7);
        assert_eq!(report["lost"], 5);
        assert_eq!(report["packets"], 4);
        assert_eq!(report["packets_lost"], 2);
        assert_eq!(report["lost_is_exact"], false);
        assert_eq!(report["recording"], Value::Null);
        assert_eq!(report["bytes"], 4 * 4096);
        assert_eq!(report["duration_ns"], 10_000_000);
        assert_eq!(report["begin_ns"], 1_700_000_000_000_000_000_u64);
        assert_eq!(report["env"]["tracer_name"], "lttng-modules");
        assert_eq!(report["events"][0]["name"], "sched_switch");
        assert_eq!(report["events"][0]["count"], 4);
        assert_eq!(report["events"].as_array().unwrap().len(), 4);
        assert_eq!(report["cpus"][0]["events"], 5);
        assert_eq!(report["cpus"][0]["busy_ns"], 3_000_000);
        assert_eq!(report["cpus"][0]["idle_ns"], 7_000_000);
        assert_eq!(report["cpus"][1]["lost"], 5);
        assert_eq!(report["cpus"][1]["packets_lost"], 2);
        // From the gap to the end of the packet with discarded events, no time is charged.
        let tasks = report["tasks"].as_array().unwrap().iter();
        let tasks: Vec<_> = tasks
            .map(|task| (&task["comm"], &task["tid"], &task["cpu_time_ns"]))
            .collect();
        let make = (&"make".into(), &7.into(), &3_000_000.into());
        let cc = (&"cc\x1b1".into(), &8.into(), &1_000_000.into());
        assert_eq!(tasks, [make, cc]);
        assert_eq!(report["warnings"].as_array().unwrap().len(), 0);
    }
}

#[test]
fn a_snapshot_begins_anywhere() {
    let dir = TempDir::new().unwrap();
    let packet = PacketBuilder::new(Layout::Compact, 0, 7, 0)
        .softirq(1, 1)
        .close(2, 4096);
    synthetic::write(dir.path(), Layout::Compact, &[(0, vec![packet])]).unwrap();
    let report = json(dir.path());
    assert_eq!(report["packets_lost"], 0);
    assert_eq!(report["packets_before"], 7);
}

#[test]
fn text_ends_with_the_totals() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), Layout::Compact);
    rtrace()
        .arg("report")
        .arg(dir.path())
        .assert()
        .success()
        .stdout(predicate::str::ends_with(
            "7 events recorded, 5 lost and the events in 2 lost packets\n",
        ))
        .stdout(contains("Unfinished").not())
        .stdout(contains("2 packets were overwritten"))
        .stdout(contains("nowhere, Linux 7.2.12"))
        .stdout(contains('\x1b').not());
    rtrace()
        .args(["report", "-n", "1"])
        .arg(dir.path())
        .assert()
        .success()
        .stdout(contains("more event types"));
}

/// Writes the `.recording` file that rtraced leaves beside a trace, in this state and with these counters.
fn end(dir: &Path, state: &str, stats: &str) {
    let uuid = synthetic::uuid_text(synthetic::UUID);
    let text = format!("trace {uuid}\nstate {state}\nunwritten 3\n{stats}");
    fs::write(dir.join(".recording"), text).unwrap();
}

/// Each reason for a loss has its own advice. A larger buffer does not help if the disk was full.
#[test]
fn advice_follows_the_reason_of_the_loss() {
    let dir = TempDir::new().unwrap();
    let packet = PacketBuilder::new(Layout::Compact, 0, 0, 0)
        .softirq(1, 1)
        .close(2, 4096);
    synthetic::write(dir.path(), Layout::Compact, &[(0, vec![packet])]).unwrap();
    for (state, column, advice) in [
        ("over", "full", "use a larger buffer"),
        ("over", "overwritten", "a larger buffer keeps more"),
        ("over", "wrapped", "more sub-buffers help"),
        ("over", "too_large", "larger sub-buffers help"),
        ("over", "nested", "recorded another event"),
        ("over", "no_buffer", "smaller buffers help"),
        ("over", "busy", "isolated CPUs"),
        ("over", "missed", "fewer functions help"),
        ("failed", "full", "If the disk was full"),
        ("failed", "nested", "If the disk was full"),
    ] {
        let (own, others) = match column {
            "full" => ("full", "nested"),
            own => (own, "full"),
        };
        let stats =
            format!("channel channel0\ncpu recorded {own} {others}\n0 4 9 0\ntotal 4 9 0\n");
        end(dir.path(), state, &stats);
        let lines = rtrace().arg("report").arg(dir.path()).assert().success();
        let lines = String::from_utf8_lossy(&lines.get_output().stdout).into_owned();
        let said = lines
            .lines()
            .filter(|line| line.starts_with("Events were "));
        let said: Vec<_> = said.collect();
        assert!(
            said.len() == 1 && said[0].contains(advice),
            "{state} {column}: {said:?}"
        );
    }
}

#[test]
fn chunks_are_reported_together_and_one_by_one() {
    let dir = TempDir::new().unwrap();
    let idle = (0, "swapper/0");
    // Chunk 1 has a switch to `make`, chunk 2 the switch away from it. Chunk 3 is being written.
    let parts = [
        PacketBuilder::new(Layout::Compact, 0, 0, 0)
            .switch(MS, idle, (7, "make"))
            .close(2 * MS, 4096),
        PacketBuilder::new(Layout::Compact, 0, 1, 3 * MS)
            .switch(4 * MS, (7, "make"), idle)
            .close(5 * MS, 4096),
        PacketBuilder::new(Layout::Compact, 0, 2, 6 * MS)
            .discarded(4)
            .softirq(7 * MS, 1)
            .close(8 * MS, 4096),
    ];
    for (name, packet) in ["chunk-000001", "chunk-000002", ".chunk-000003.new"]
        .iter()
        .zip(&parts)
    {
        let streams = [(0, vec![packet.clone()]), (1, vec![])];
        synthetic::write(&dir.path().join(name), Layout::Compact, &streams).unwrap();
    }
    let state = |name: &str, text: &str| {
        let uuid = synthetic::uuid_text(synthetic::UUID);
        let path = dir.path().join(name).join(".recording");
        fs::write(path, format!("trace {uuid}\n{text}")).unwrap();
    };
    let stats = "channel channel0\ncpu recorded full\n0 9 4\n1 0 1\ntotal 9 5\n";
    state("chunk-000001", "state stopped\nchunk 1\n");
    state(
        "chunk-000002",
        &format!("state over\nchunk 2\nlost_before channel0 0 1\n{stats}"),
    );
    state(
        ".chunk-000003.new",
        "state writing\nchunk 3\nlost_before channel0 0 3\n",
    );
    let second = json(&dir.path().join("chunk-000002"));
    assert_eq!(second["recorded"], 1);
    assert_eq!(second["lost"], 4);
    assert_eq!(second["cpus"][0]["lost"], 3);
    assert_eq!(second["cpus"][1]["lost"], 1);
    assert_eq!(second["channels"][0]["lost"], 4);
    assert_eq!(second["recording"]["part"]["chunk"], 2);
    assert_eq!(
        second["recording"]["part"]["lost_before"]["channel0_cpu0"],
        1
    );
    assert_eq!(second["warnings"].as_array().unwrap().len(), 0);
    rtrace()
        .arg("report")
        .arg(dir.path().join("chunk-000002"))
        .assert()
        .success()
        .stdout(contains("This trace begins with its chunk 2"));

    // While a chunk is written, only its lost packets are known. Losses before the chunk do not count for it.
    let third = json(&dir.path().join(".chunk-000003.new"));
    assert_eq!((&third["recorded"], &third["lost"]), (&1.into(), &1.into()));
    assert_eq!(third["packets_before"], 0);
    let all = json(dir.path());
    assert_eq!((&all["recorded"], &all["lost"]), (&3.into(), &4.into()));
    rtrace()
        .arg("report")
        .arg(dir.path())
        .assert()
        .success()
        .stdout(contains("Unfinished"));
    fs::remove_dir_all(dir.path().join(".chunk-000003.new")).unwrap();
    let all = json_with_code(dir.path(), 1);
    assert_eq!(all["missing"], 7);
    assert_eq!((&all["recorded"], &all["lost"]), (&2.into(), &5.into()));
    assert_eq!(
        (&all["packets_before"], &all["packets_lost"]),
        (&0.into(), &0.into())
    );
    assert_eq!(all["bytes"], 2 * 4096);
    assert_eq!(all["duration_ns"], 5_000_000);
    // The task continues from chunk to chunk.
    assert_eq!(all["tasks"][0]["comm"], "make");
    assert_eq!(all["tasks"][0]["cpu_time_ns"], 3_000_000);
    // Without the first chunk, the rest is reported.
    fs::remove_dir_all(dir.path().join("chunk-000001")).unwrap();
    let rest = json(dir.path());
    assert_eq!((&rest["recorded"], &rest["lost"]), (&1.into(), &4.into()));
}

#[test]
fn the_kernels_counters_beside_the_trace_are_reported() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), Layout::Compact);
    // 20 events are lost in the gap, 5 discarded, 2 lost on a CPU without a stream, and 3 never written.
    let stats = "cpu recorded overwritten full no_buffer\n\
                 0 5 0 0 0\n1 22 20 5 0\n2 0 0 0 2\ntotal 27 20 5 2\n";
    for (state, unfinished) in [("over", false), ("stopped", false), ("failed", true)] {
        end(dir.path(), state, stats);
        let report = json(dir.path());
        assert_eq!(report["recorded"], 7);
        assert_eq!(report["lost"], 30);
        assert_eq!(report["lost_is_exact"], true);
        assert_eq!(report["recording"]["state"], state);
        let cpus = report["cpus"].as_array().unwrap();
        let lost: Vec<_> = cpus.iter().map(|cpu| cpu["lost"].clone()).collect();
        assert_eq!(lost, [0, 25, 2]);
        assert_eq!(report["cpus"][1]["packets_lost"], 2);
        let said = rtrace()
            .arg("report")
            .arg(dir.path())
            .assert()
            .success()
            .stdout(predicate::str::ends_with("7 events recorded, 30 lost\n"));
        if unfinished {
            said.stdout(contains("Unfinished"));
        } else {
            said.stdout(contains("Unfinished").not());
        }
    }
}

#[test]
fn a_recording_that_did_not_end_is_reported() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), Layout::Compact);
    end(dir.path(), "writing", "");
    assert_eq!(json(dir.path())["recording"]["state"], "writing");
    rtrace()
        .arg("report")
        .arg(dir.path())
        .assert()
        .success()
        .stdout(contains("Unfinished"))
        .stdout(contains("7 events recorded, 5 lost and the events in 2"));
}

#[test]
fn events_that_another_reader_took_are_no_secret() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), Layout::Compact);
    end(
        dir.path(),
        "over",
        "cpu recorded overwritten\ntotal 30 10\n",
    );
    let report = json_with_code(dir.path(), 1);
    let warning = report["warnings"][0].to_string();
    assert!(warning.contains("10 events were read"), "{warning}");
    assert_eq!(report["missing"], 10);
    assert_eq!(report["lost_is_exact"], false);
    for command in [
        &["report"][..],
        &["report", "--threads"],
        &["trace", "-i"],
        &["top", "-i"],
        &["export", "csv"],
        &["export", "perfetto"],
    ] {
        let assert = rtrace().args(command).arg(dir.path()).assert().code(1);
        let output = assert.stderr(contains("10 events are missing"));
        assert!(!output.get_output().stdout.is_empty(), "{command:?}");
    }
}

#[test]
fn a_trace_file_that_is_no_file_is_refused() {
    let dir = TempDir::new().unwrap();
    symlink("/dev/zero", dir.path().join("metadata")).unwrap();
    rtrace()
        .arg("report")
        .arg(dir.path())
        .timeout(Duration::from_secs(20))
        .assert()
        .code(125)
        .stderr(contains("it is a device, not a regular file"));
}

#[test]
fn an_unfinished_trace_is_reported() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), Layout::Compact);
    let path = dir.path().join("channel0_cpu0");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    rtrace()
        .args(["report"])
        .arg(dir.path())
        .assert()
        .success()
        .stderr(contains("the last packet is incomplete"))
        .stdout(contains("6 events recorded, 5 lost"));
}

#[test]
fn an_empty_trace_is_reported() {
    let dir = TempDir::new().unwrap();
    synthetic::write(dir.path(), Layout::Compact, &[(0, vec![])]).unwrap();
    let report = json(dir.path());
    assert_eq!(
        (&report["recorded"], &report["duration_ns"]),
        (&0.into(), &0.into())
    );
    assert_eq!(report["begin_ns"], Value::Null);
    rtrace()
        .arg("report")
        .arg(dir.path())
        .assert()
        .success()
        .stdout(contains("begin     unknown: it has no packet\n"))
        .stdout(contains("0 events recorded"));
}

#[test]
fn a_damaged_trace_is_an_error_with_its_place() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), Layout::Compact);
    let path = dir.path().join("channel0_cpu1");
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096] = 0;
    fs::write(&path, bytes).unwrap();
    rtrace()
        .arg("report")
        .arg(dir.path())
        .assert()
        .code(1)
        .stderr(contains(
            "channel0_cpu1: at byte 4096: no packet begins here",
        ));
    rtrace()
        .args(["report", "/nowhere"])
        .assert()
        .code(125)
        .stderr(contains("/nowhere/metadata"));
}

/// Returns babeltrace2's text of a trace, and its messages; none if babeltrace2 is not installed.
fn babeltrace2(dir: &Path) -> Option<(String, String)> {
    let Ok(output) = process::Command::new("babeltrace2").arg(dir).output() else {
        synthetic::skip("needs babeltrace2");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    Some((String::from_utf8_lossy(&output.stdout).into_owned(), said))
}

#[test]
fn babeltrace2_agrees() {
    for layout in [Layout::Compact, Layout::Large] {
        let dir = TempDir::new().unwrap();
        write(dir.path(), layout);
        let Some((text, said)) = babeltrace2(dir.path()) else {
            return;
        };
        let report = json(dir.path());
        assert_eq!(report["recorded"], text.lines().count(), "{text}");
        for event in report["events"].as_array().unwrap() {
            let name = format!(" {}: ", event["name"].as_str().unwrap());
            let lines = text.lines().filter(|line| line.contains(&name)).count();
            assert_eq!(event["count"], lines, "{name}");
        }
        assert!(said.contains("Tracer discarded 5 events"), "{said}");
        assert!(said.contains("Tracer discarded 2 packets"), "{said}");
    }
}

/// babeltrace2's text of `PacketBuilder::every_type`.
const EVERY_TYPE: &str = "\
    { ready = 1, level = -3, mask = 0x1ABC, kind = ( \"HIGH\" : container = 4 ), \
    wide = 9305357566071262703, state = ( \"a \\\"wait\\\"\" : container = 5 ), \
    uuid = [ [0] = 0xDE, [1] = 0xAD, [2] = 0xBE, [3] = 0xEF ], \
    pairs = [ [0] = 1, [1] = 2, [2] = 3, [3] = 0, [4] = 1 ], \
    name_offset = 32, name_length = 2, cpus_offset = 34, cpus_length = 2, \
    name = \"ab\", cpus = [ [0] = -1, [1] = 7 ], path = \"/p\" }";

#[test]
fn every_type_is_read() {
    for layout in [Layout::Compact, Layout::Large] {
        let dir = TempDir::new().unwrap();
        let packet = PacketBuilder::new(layout, 0, 0, 0)
            .every_type(MS)
            .softirq(2 * MS, 7)
            .every_type(3 * MS)
            .close(4 * MS, 4096);
        synthetic::write(dir.path(), layout, &[(0, vec![packet])]).unwrap();
        let report = json(dir.path());
        assert_eq!(report["recorded"], 3);
        assert_eq!(report["events"][0]["name"], "every_type");
        assert_eq!(report["events"][0]["count"], 2);
        let Some((text, said)) = babeltrace2(dir.path()) else {
            return;
        };
        assert_eq!(said, "");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        for line in [lines[0], lines[2]] {
            assert!(line.ends_with(EVERY_TYPE), "{line}");
        }
        assert!(lines[1].ends_with("{ vec = 7 }"), "{}", lines[1]);
    }
}

#[test]
fn without_a_module_the_advice_is_clear() {
    let debugfs = TempDir::new().unwrap();
    for arguments in [
        &["status"][..],
        &["start"],
        &["stop"],
        &["list"],
        &["snapshot", "-o", "x"],
    ] {
        rtrace()
            .args(arguments)
            .arg("--debugfs")
            .arg(debugfs.path())
            .assert()
            .code(125)
            .stderr(contains("debugfs is not mounted"));
    }
    rtrace()
        .args([
            "--debugfs",
            debugfs.path().to_str().unwrap(),
            "record",
            "true",
        ])
        .assert()
        .code(125)
        .stderr(contains("debugfs is not mounted"));
    rtrace()
        .args(["doctor"])
        .assert()
        .stdout(contains("kernel:"));
    rtrace().args(["record", "-b", "3x3"]).assert().code(2);
}

/// Texts beside a trace that no rtrace writes, each with a part of the message about it.
#[test]
fn a_wrong_text_beside_a_trace_is_a_message() {
    let dir = TempDir::new().unwrap();
    let trace = dir.path().join("trace");
    write(&trace, Layout::Compact);
    let uuid = synthetic::uuid_text(synthetic::UUID);
    let map = "map a e by cpu\noverflow 0\nlacking 0\n";
    let page = dir.path().join("page.html");
    let page = page.to_str().unwrap();
    for (text, line) in [
        (format!("{map}cpu\n1\n"), 5),
        (format!("{map}cpu count\n1 2 3\n"), 6),
        ("\x1b[2J\n".to_owned(), 2),
    ] {
        fs::write(trace.join(".maps"), format!("trace {uuid}\n{text}")).unwrap();
        let said = contains(format!(".maps: line {line}: "));
        let mut report = rtrace();
        report.args(["report", "--maps"]).arg(&trace);
        let assert = report.assert().stderr(said.clone());
        assert_ne!(assert.get_output().status.code(), Some(101));
        let mut report = rtrace();
        report.args(["report", "--maps", "--html", page, "--force"]);
        let assert = report.arg(&trace).assert().stderr(said);
        assert_ne!(assert.get_output().status.code(), Some(101));
    }
    // Opening a FIFO would wait for a writer.
    let path = trace.join(".maps");
    fs::remove_file(&path).unwrap();
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
    let mut report = rtrace();
    report.args(["report", "--maps"]).arg(&trace);
    report.assert().stderr(contains(".maps: it is a FIFO"));
}
