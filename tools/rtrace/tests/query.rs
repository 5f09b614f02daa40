// SPDX-License-Identifier: GPL-2.0

//! `rtrace query` on synthetic traces. `tools/testing/run tables` compares the answers of the samples with DuckDB's
//! answers.

mod schema;

use assert_cmd::cargo::cargo_bin;
use assert_cmd::Command;
use parquet::file::reader::SerializedFileReader;
use predicates::prelude::*;
use predicates::str::{contains, starts_with};
use rtrace_abi::header::Layout;
use rustix::process::{kill_process, Pid, Signal};
use serde_json::{json, Value};
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use synthetic::{PacketBuilder, OPENAT, OPENAT_EXIT, WAKING};
use tempfile::TempDir;

/// Microseconds and seconds in clock ticks.
const US: u64 = synthetic::FREQUENCY / 1_000_000;
const S: u64 = synthetic::FREQUENCY;

const IDLE: (i32, &str) = (0, "swapper/0");
const SHELL: (i32, &str) = (7, "sh");

fn packet(cpu: u32, number: u64, begin: u64) -> PacketBuilder {
    PacketBuilder::new(Layout::Compact, cpu, number, begin)
}

fn write(dir: &Path, packets: Vec<Vec<u8>>) {
    synthetic::write(dir, Layout::Compact, &[(0, packets)]).unwrap();
}

/// Writes a trace in which `sh` opens this number of files. The first call takes 10 us, and each later one 10
/// us more.
fn opens(count: u64) -> TempDir {
    let dir = TempDir::new().unwrap();
    let mut packet = packet(0, 0, S)
        .wake(WAKING, S + US, SHELL)
        .switch(S + 3 * US, IDLE, SHELL);
    for number in 1..=count {
        let begin = S + number * 1000 * US;
        packet = packet
            .openat(begin, &format!("/file-{number}"))
            .syscall_exit(OPENAT_EXIT, begin + 10 * number * US, 3);
    }
    let end = S + (count + 1) * 1000 * US;
    let packet = packet.switch_from(end, SHELL, 1, IDLE);
    write(
        dir.path(),
        vec![packet.every_type(end + US).close(end + 2 * US, 8)],
    );
    dir
}

fn rtrace(words: &[&str], dirs: &[&Path]) -> Command {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    command.arg("query").args(words).args(dirs);
    command
}

/// Returns the rows of an answer, as JSON.
fn rows(sql: &str, dirs: &[&Path]) -> Value {
    let assert = rtrace(&["--format", "json", sql], dirs).assert().success();
    schema::read(&assert.get_output().stdout)["rows"].take()
}

#[test]
fn an_answer_has_the_values_of_the_trace() {
    let trace = opens(3);
    let dir = trace.path();
    let name = dir.to_str().unwrap();
    assert_eq!(
        rows("SELECT time, ns, cpu, tid, comm, name, duration_ns, ret, error, host, date, trace FROM syscalls LIMIT 1", &[dir]),
        json!([{
            "time": "2023-11-14 22:13:21.001000", "ns": 1_700_000_001_001_000_000_i64, "cpu": 0, "tid": 7,
            "comm": "sh", "name": "openat", "duration_ns": 10_000, "ret": 3, "error": null, "host": "nowhere",
            "date": "2023-11-14", "trace": name
        }])
    );
    let sql = "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY duration_ns) AS p50, \
        median(duration_ns) AS median, COUNT(*) AS calls FROM syscalls";
    assert_eq!(
        rows(sql, &[dir]),
        json!([{"p50": 20_000, "median": 20_000.0, "calls": 3}])
    );
    assert_eq!(
        rows("SELECT is_complete, comm FROM slices", &[dir]),
        json!([{"is_complete": true, "comm": "sh"}])
    );
    assert_eq!(
        rows("SELECT wide, level, pairs, kind FROM every_type", &[dir]),
        json!([{"wide": 9305357566071262703_u64, "level": -3, "pairs": "[1,2,3,0,1]", "kind": "HIGH"}])
    );
    assert_eq!(
        rows("SELECT COUNT(*) AS n FROM SCHED_SWITCH", &[dir]),
        json!([{"n": 2}])
    );
    assert_eq!(
        rows("SELECT name FROM syscalls WHERE cpu = 7", &[dir]),
        json!([])
    );
}

#[test]
fn tables_are_joined_by_the_names_of_columns() {
    let trace = opens(3);
    let count = |join: &str| {
        let sql =
            format!("SELECT COUNT(*) AS n, MAX(name) AS name FROM syscall_entry_openat {join}");
        rows(&sql, &[trace.path()])
    };
    for (join, expected) in [
        ("e JOIN syscalls s ON e.cpu = s.cpu", 9),
        ("JOIN syscalls USING (cpu)", 9),
        ("left join Syscalls using (CPU, ns)", 3),
        ("NATURAL JOIN syscalls", 3),
    ] {
        assert_eq!(
            count(join),
            json!([{ "n": expected, "name": "openat" }]),
            "{join}"
        );
    }
}

#[test]
fn each_form_has_the_same_rows() {
    let trace = opens(3);
    let sql = "SELECT filename, ns % 7 = 0 AS never, 0.5 * cpu AS half, time FROM syscall_entry_openat ORDER BY ns;";
    let of = |words: &[&str]| {
        let words = [words, &[sql]].concat();
        let assert = rtrace(&words, &[trace.path()]).assert().success();
        String::from_utf8(assert.get_output().stdout.clone()).unwrap()
    };
    let table = of(&["-n", "2"]);
    let lines: Vec<_> = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .collect();
    assert_eq!(lines[0], ["filename", "never", "half", "time"]);
    assert_eq!(
        lines[1],
        ["/file-1", "0", "0.000", "2023-11-14", "22:13:21.001000"]
    );
    assert_eq!(lines[3].join(" "), "... more rows (-n 0 shows all)");
    assert_eq!(of(&[]).lines().count(), 4);
    let csv = of(&["--format", "csv"]);
    assert_eq!(csv.lines().next(), Some("filename,never,half,time"));
    assert_eq!(
        csv.lines().nth(3),
        Some("/file-3,0,0,2023-11-14 22:13:21.003000")
    );
    let out = TempDir::new().unwrap();
    let file = out.path().join("answer");
    let words = ["--format", "parquet", "-o", file.to_str().unwrap()];
    assert_eq!(of(&words), "");
    let reader = SerializedFileReader::new(File::open(&file).unwrap()).unwrap();
    let found: Vec<_> = reader
        .into_iter()
        .map(|row| row.unwrap().to_string())
        .collect();
    assert_eq!(
        found[2],
        "{filename: \"/file-3\", never: 0, half: 0E0, time: 2023-11-14 22:13:21.003000 +00:00}"
    );
    assert_eq!(found.len(), 3);
    let words = [&words[..], &[sql]].concat();
    rtrace(&words, &[trace.path()])
        .assert()
        .failure()
        .stderr(contains("--force"));
    let words = [&["--force"], &words[..]].concat();
    rtrace(&words, &[trace.path()]).assert().success();
}

/// Returns an answer in this format, and the messages.
fn answer(format: &str, sql: &str, dir: &Path) -> (String, String) {
    let assert = rtrace(&["--format", format, sql], &[dir])
        .assert()
        .success();
    let output = assert.get_output();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_large_number_is_found_as_it_is_shown() {
    let trace = opens(1);
    let dir = trace.path();
    let one = |format: &str, sql: &str| answer(format, sql, dir).0;
    // This value exceeds the integers of SQLite.
    let shown = one("csv", "SELECT wide FROM every_type");
    assert_eq!(shown, "wide\n0x8123456789abcdef\n");
    let table = one("table", "SELECT wide FROM every_type");
    assert_eq!(table.lines().nth(1), Some("0x8123456789abcdef"));
    for (condition, count) in [
        ("= 0x8123456789abcdef", 1),
        ("BETWEEN 0x8123456789abc000 AND 0x8123456789abd000", 1),
        ("> 0x8123456789abcdef", 0),
        ("> 18446744073709551615", 0),
        ("& 0xff = 0xef", 1),
    ] {
        let sql = format!("SELECT COUNT(*) AS n FROM every_type WHERE wide {condition}");
        assert_eq!(one("csv", &sql), format!("n\n{count}\n"), "{condition}");
    }
    let hex = "SELECT max(printf('%016x', wide)) AS x, typeof(wide) AS t FROM every_type";
    assert_eq!(one("csv", hex), "x,t\n8123456789abcdef,integer\n");
    // SQLite rounds this number.
    let (_, said) = answer(
        "csv",
        "SELECT 1 FROM every_type WHERE wide = 9305357566071262703",
        dir,
    );
    assert!(said.contains("write 0x8123456789abcdef"), "{said}");
    let out = TempDir::new().unwrap();
    let file = out.path().join("answer");
    let words = ["--format", "parquet", "SELECT wide FROM every_type", "-o"];
    rtrace(&[&words[..], &[file.to_str().unwrap()]].concat(), &[dir])
        .assert()
        .success();
    let reader = SerializedFileReader::new(File::open(&file).unwrap()).unwrap();
    let found: Vec<_> = { reader.into_iter() }
        .map(|row| row.unwrap().to_string())
        .collect();
    assert_eq!(found, ["{wide: 9305357566071262703}"]);
}

#[test]
fn a_parquet_query_may_end_in_a_comment() {
    let trace = opens(1);
    for sql in [
        "SELECT 1; -- c",
        "SELECT 1 -- ;",
        "SELECT 1 /* ; */ ;\n",
        "SELECT ';' ;;",
    ] {
        rtrace(&["--format", "parquet", sql], &[trace.path()])
            .assert()
            .success()
            .stdout(predicates::function::function(|bytes: &[u8]| {
                bytes.starts_with(b"PAR1")
            }));
    }
}

#[test]
fn names_are_harmless_in_every_format() {
    let trace = TempDir::new().unwrap();
    let dir = trace.path();
    let mut one = packet(0, 0, S).switch(S + US, IDLE, (7, "=\x1b[31mR\n"));
    for (at, name) in [(2, &b"=\xff,\x1b[2J\n\0"[..]), (3, b"-1.5\0"), (4, b"-a\0")] {
        one = one.event(OPENAT, S + at * US, name);
    }
    write(dir, vec![one.close(S + 9 * US, 8)]);
    let sql = "SELECT task_comm AS \"a\x1b[2J\", filename FROM syscall_entry_openat ORDER BY ns";
    let comm = r"\x3d\x1b[31mR\x0a";
    let lines = [
        r"a\x1b[2J,filename".to_owned(),
        format!(r#"{comm},"\x3d\xff,\x1b[2J\x0a""#),
        format!("{comm},-1.5"),
        format!(r"{comm},\x2da"),
    ];
    assert_eq!(answer("csv", sql, dir).0.lines().collect::<Vec<_>>(), lines);
    let table = answer("table", sql, dir).0;
    assert!(table.contains(r"=\xff,\x1b[2J\x0a") && !table.contains('\x1b'));
    let json = schema::read(answer("json", sql, dir).0.as_bytes());
    assert_eq!(json["rows"][0]["filename"], "=\\xff,\x1b[2J\n");
    // The text of a trace is found as JSON shows it.
    let found = r"SELECT COUNT(*) AS n FROM syscall_entry_openat WHERE filename LIKE '=\xff%'";
    assert_eq!(answer("csv", found, dir).0, "n\n1\n");
}

#[test]
fn a_closed_pipe_is_no_error_and_a_full_disk_is_one() {
    let trace = opens(1);
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) SELECT i FROM n";
    for format in ["csv", "json", "table", "parquet"] {
        let run = |to: Stdio| {
            let mut command = std::process::Command::new(cargo_bin("rtrace"));
            let command = command.args(["query", "-n", "0", "--format", format, sql]);
            let command = command.arg(trace.path()).stdout(to).stderr(Stdio::piped());
            command.spawn().unwrap()
        };
        let mut child = run(Stdio::piped());
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{format}: {output:?}");
        assert_eq!(output.stderr, b"", "{format}");
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = run(full.into()).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{format}");
        let said = String::from_utf8(output.stderr).unwrap();
        let expected = "cannot write standard output: No space left on device";
        assert!(said.contains(expected), "{format}: {said}");
    }
}

#[test]
fn traces_are_told_apart() {
    let (one, other) = (opens(1), opens(2));
    let dirs = [one.path(), other.path()];
    let counts = rows(
        "SELECT trace, COUNT(*) AS calls FROM syscalls GROUP BY trace ORDER BY calls",
        &dirs,
    );
    assert_eq!(
        counts,
        json!([
            {"trace": one.path().to_str().unwrap(), "calls": 1},
            {"trace": other.path().to_str().unwrap(), "calls": 2},
        ])
    );
    // Only one of the traces has this table.
    let third = TempDir::new().unwrap();
    write(third.path(), vec![packet(0, 0, S).close(S + US, 8)]);
    assert_eq!(
        rows(
            "SELECT COUNT(*) AS n FROM syscalls",
            &[one.path(), third.path()]
        ),
        json!([{"n": 1}])
    );
}

#[test]
fn errors_name_the_place() {
    let trace = opens(1);
    for (sql, expected) in [
        (
            "SELECT *\n  FROM syscals",
            "no such table: syscals (line 2, column 8)\n      FROM syscals\n           ^\ndid you mean syscalls?",
        ),
        (
            "SELECT duration FROM syscalls",
            "no such column: duration (line 1, column 8)\n    SELECT duration FROM syscalls\n           ^\ndid you mean duration_ns?",
        ),
        (
            // Another table has this column.
            "SELECT prev_comm FROM syscalls",
            "no such column: prev_comm (line 1, column 8)\n    SELECT prev_comm FROM syscalls\n           ^\nits tables have: ",
        ),
        ("SELECT name FROM syscalls WHERE", "incomplete input"),
        ("SELEC 1", "near \"SELEC\": syntax error (line 1, column 1)"),
        ("SELECT \"comn\" FROM syscalls", "no such column: \"comn\" (line 1, column 8)"),
        ("SELECT 1; SELECT 2", "give only one query"),
        (" -- nothing", "the query is empty"),
        ("DELETE FROM syscalls", "a query only reads"),
        ("ATTACH '/tmp/x' AS x", "a query only reads"),
        ("PRAGMA page_size", "a query only reads"),
        ("SELECT quantile_disc(cpu, 7) FROM syscalls", "a percentile is between 0 and 1, not 7"),
    ] {
        let assert = rtrace(&[sql], &[trace.path()]).assert().failure();
        assert.stdout("").stderr(starts_with("rtrace: ").and(contains(expected)));
    }
    rtrace(&["SELECT 1"], &[Path::new("/nowhere")])
        .assert()
        .failure()
        .stderr(contains("/nowhere"));
}

#[test]
fn samples_run_by_name() {
    let trace = opens(2);
    rtrace(&["--list"], &[])
        .assert()
        .success()
        .stdout(contains("  run-queue        How long threads waited"));
    let assert = rtrace(&["--list"], &[trace.path()]).assert().success();
    assert.stdout(contains(
        "  slices: time, ns, cpu, tid, pid, comm, duration_ns, is_complete",
    ));
    for (sample, expected) in [
        ("run-queue", "nowhere        1    2000"),
        ("slow-opens", "/file-2"),
        ("cpu-time", "sh"),
        ("worst-wakeups", "2000"),
        ("slower-calls", "before_ns"),
    ] {
        let assert = rtrace(&[sample], &[trace.path()]).assert().success();
        assert.stdout(contains(expected));
    }
    // The trace has no samples of a profile.
    let assert = rtrace(&["functions"], &[trace.path()]).assert().failure();
    assert.stderr(contains("no such table: samples"));
}

#[test]
fn lost_events_are_reported() {
    let trace = TempDir::new().unwrap();
    let first = packet(0, 0, S).softirq(S + US, 1).close(S + 2 * US, 8);
    let second = packet(0, 1, S + 3 * US)
        .discarded(5)
        .softirq(S + 4 * US, 1)
        .close(S + 5 * US, 8);
    write(trace.path(), vec![first, second]);
    let assert = rtrace(&["SELECT COUNT(*) FROM irq_softirq_entry"], &[trace.path()])
        .assert()
        .success();
    assert.stderr(contains("5 events are missing"));
}

#[test]
fn a_signal_ends_a_query() {
    let trace = opens(1);
    let out = TempDir::new().unwrap();
    let file = out.path().join("answer");
    // A query that never ends.
    let sql =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n";
    let mut child = std::process::Command::new(cargo_bin("rtrace"))
        .args(["query", sql, "-o"])
        .args([&file, trace.path()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The library that catches signals opens sockets first. When the sockets are there, signals are caught.
    let status = format!("/proc/{}/status", child.id());
    let caught = || {
        let status = fs::read_to_string(&status).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .unwrap();
        let mask = u64::from_str_radix(line.trim(), 16).unwrap();
        mask & (1 << (Signal::INT.as_raw() - 1)) != 0
    };
    while !caught() {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(!child.wait().unwrap().success());
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.unwrap(), &mut said).unwrap();
    assert!(said.contains("stopped by a signal"), "{said}");
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}
