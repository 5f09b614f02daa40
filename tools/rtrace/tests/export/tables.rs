// SPDX-License-Identifier: GPL-2.0

//! `rtrace export parquet`. The tests read the tables back with the record reader of the library.

use super::{export, known, packet, without_room, write, IDLE, S, SHELL, US};
use parquet::file::reader::SerializedFileReader;
use parquet::record::Row;
use predicates::prelude::*;
use predicates::str::contains;
use rustix::process::{kill_process, Pid, Signal};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use synthetic::OPENAT_EXIT;
use tempfile::TempDir;

/// The day of synthetic traces.
const DAY: &str = "host=nowhere/date=2023-11-14";

/// Exports a trace with these options. Returns the folder of the tables.
fn tables(options: &[&str], dir: &Path) -> TempDir {
    let out = TempDir::new().unwrap();
    let to = out.path().to_str().unwrap();
    let options = [&["parquet", "-o", to], options].concat();
    export(&options, dir).assert().success();
    out
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Returns the rows of a table.
fn rows(out: &TempDir, table: &str) -> Vec<Row> {
    let files = files(&out.path().join(table).join(DAY));
    let rows = files.iter().flat_map(|file| {
        let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
        assert_eq!(
            fs::metadata(file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        reader.into_iter().map(|row| row.unwrap())
    });
    rows.collect()
}

/// Returns the cells of a row after the first two, which are times.
fn cells(row: &Row) -> Vec<String> {
    let cells = row.get_column_iter().skip(2);
    cells
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

#[test]
fn a_table_for_each_event_and_each_question() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let out = tables(&[], dir.path());
    let counts: BTreeMap<_, _> = files(out.path())
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .map(|table| (table.clone(), rows(&out, &table).len()))
        .collect();
    let expected = [
        ("files", 0),
        ("interrupts", 1),
        ("irq_softirq_entry", 1),
        ("irq_softirq_exit", 1),
        ("losses", 1),
        ("offcpu", 0),
        ("sched_process_fork", 1),
        ("sched_switch", 3),
        ("sched_waking", 1),
        ("slices", 1),
        ("syscall_entry_openat", 1),
        ("syscall_exit_openat", 1),
        ("syscalls", 1),
        ("wakeups", 1),
    ];
    assert_eq!(
        counts,
        expected.map(|(name, rows)| (name.to_owned(), rows)).into()
    );
    let open = &rows(&out, "syscall_entry_openat")[0];
    let ns = 1_700_000_001_000_020_000_i64;
    let names: Vec<_> = open.get_column_iter().take(2).collect();
    assert_eq!(names[0].1.to_string(), "2023-11-14 22:13:21.000020 +00:00");
    assert_eq!(names[1].1.to_string(), ns.to_string());
    assert_eq!(
        cells(open),
        [
            "cpu=0",
            "task_tid=7",
            "task_pid=null",
            "task_comm=\"sh\"",
            "filename=\"/etc/hosts\""
        ]
    );
    assert_eq!(
        cells(&rows(&out, "syscalls")[0]),
        [
            "cpu=0",
            "tid=7",
            "pid=null",
            "comm=\"sh\"",
            "name=\"openat\"",
            "duration_ns=20000",
            "ret=-2",
            "error=\"ENOENT\"",
            "path=\"/etc/hosts\""
        ]
    );
    assert_eq!(
        cells(&rows(&out, "slices")[0]),
        [
            "cpu=0",
            "tid=7",
            "pid=7",
            "comm=\"sh\"",
            "duration_ns=50000",
            "is_complete=true"
        ]
    );
    assert_eq!(
        cells(&rows(&out, "wakeups")[0]),
        [
            "cpu=0",
            "tid=7",
            "pid=null",
            "comm=\"sh\"",
            "duration_ns=5000"
        ]
    );
    assert_eq!(
        cells(&rows(&out, "interrupts")[0]),
        [
            "cpu=1",
            "kind=\"soft\"",
            "number=1",
            "name=\"TIMER\"",
            "duration_ns=5000",
            "own_ns=5000"
        ]
    );
    assert_eq!(
        cells(&rows(&out, "losses")[0]),
        ["cpu=1", "duration_ns=60000", "events=3", "packets=2"]
    );
}

#[test]
fn values_have_their_types() {
    let dir = TempDir::new().unwrap();
    write(
        dir.path(),
        &[(
            0,
            vec![packet(0, 0, S).every_type(S + US).close(S + 2 * US, 8)],
        )],
    );
    let out = tables(&[], dir.path());
    let cells = cells(&rows(&out, "every_type")[0]);
    assert_eq!(
        cells[4..],
        [
            "ready=1",
            "level=-3",
            "mask=6844",
            "kind=\"HIGH\"",
            "wide=9305357566071262703",
            "state=\"a \"wait\"\"",
            "uuid=[222, 173, 190, 239]",
            "pairs=[1, 2, 3, 0, 1]",
            "name_offset=32",
            "name_length=2",
            "cpus_offset=34",
            "cpus_length=2",
            "name=\"ab\"",
            "cpus=[-1, 7]",
            "path=\"/p\"",
        ]
    );
}

#[test]
fn each_call_is_a_row() {
    let dir = TempDir::new().unwrap();
    // An exit without an entry is no call. An entry without an exit is one, and a call that is open at the end.
    let calls = packet(0, 0, S)
        .switch(S + US, IDLE, SHELL)
        .syscall_exit(OPENAT_EXIT, S + 2 * US, 3)
        .openat(S + 3 * US, "/a")
        .openat(S + 4 * US, "/b")
        .syscall_exit(OPENAT_EXIT, S + 6 * US, 4)
        .read(S + 7 * US, 0)
        .close(S + 9 * US, 8);
    write(dir.path(), &[(0, vec![calls])]);
    let out = tables(&["-e", "syscalls"], dir.path());
    assert!(
        !out.path().join("slices").exists(),
        "sched_switch is not chosen"
    );
    let rows = rows(&out, "syscalls");
    let calls = rows.iter().map(|row| cells(row)[4..].join(" "));
    assert_eq!(
        calls.collect::<Vec<_>>(),
        [
            "name=\"openat\" duration_ns=null ret=null error=null path=\"/a\"",
            "name=\"openat\" duration_ns=2000 ret=4 error=null path=\"/b\"",
            "name=\"read\" duration_ns=null ret=null error=null path=null",
        ]
    );
}

/// Calls of this many threads are open at the end of a trace.
const OPEN: i32 = 12;

/// Writes a trace whose threads call openat(2) and do not return. Two calls at a time have the same begin.
fn write_open_calls(dir: &Path) {
    let streams: Vec<_> = (0..2)
        .map(|cpu| {
            let mut calls = packet(cpu, 0, S);
            let mut before = IDLE;
            for step in 0..OPEN / 2 {
                // Later threads have smaller numbers.
                let thread = (100 - 2 * step - cpu as i32, "sh");
                let time = S + u64::from(step as u32) * 2 * US;
                calls = calls
                    .switch_from(time + 1, before, 1, thread)
                    .openat(time + US, &format!("/{step}.{cpu}"));
                before = thread;
            }
            (cpu, vec![calls.close(S + 100 * US, 8)])
        })
        .collect();
    write(dir, &streams);
}

#[test]
fn open_calls_are_ordered_by_begin_then_by_thread() {
    let dir = TempDir::new().unwrap();
    write_open_calls(dir.path());
    let expected = (0..OPEN / 2).flat_map(|step| [0, 1].map(|cpu| (step, cpu)));
    let tids = expected.clone().map(|(step, cpu)| 100 - 2 * step - cpu);
    let out = tables(&[], dir.path());
    let calls = rows(&out, "syscalls");
    let calls = calls.iter().map(|row| cells(row)[1].clone());
    assert_eq!(
        calls.collect::<Vec<_>>(),
        tids.map(|tid| format!("tid={tid}")).collect::<Vec<_>>()
    );
    let chrome: serde_json::Value =
        serde_json::from_slice(&super::bytes(&["chrome"], dir.path())).unwrap();
    let events = chrome["traceEvents"].as_array().unwrap().iter();
    let calls = events.filter(|event| event["name"] == "openat");
    let names = expected.map(|(step, cpu)| format!("/{step}.{cpu}"));
    assert!(calls
        .map(|call| call["args"]["filename"].as_str().unwrap())
        .eq(names));
}

#[test]
fn a_trace_is_exported_once() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let out = tables(&[], dir.path());
    let to = out.path().to_str().unwrap();
    let options = ["parquet", "-o", to];
    let before = files(&out.path().join("slices").join(DAY));
    export(&options, dir.path())
        .assert()
        .code(125)
        .stderr(contains("was exported before").and(contains("--force")));
    // All old files are deleted, even if no new file replaces them.
    export(
        &[&options[..], &["--force", "-e", "irq"]].concat(),
        dir.path(),
    )
    .assert()
    .success();
    assert_eq!(
        files(&out.path().join("slices").join(DAY)),
        Vec::<PathBuf>::new()
    );
    assert_eq!(rows(&out, "irq_softirq_entry").len(), 1);
    assert_eq!(before.len(), 1);
    // A trace with another begin is another trace, like each chunk.
    let other = TempDir::new().unwrap();
    write(
        other.path(),
        &[(
            0,
            vec![packet(0, 0, 2 * S).softirq(2 * S, 1).close(3 * S, 8)],
        )],
    );
    export(&options, other.path()).assert().success();
    assert_eq!(rows(&out, "irq_softirq_entry").len(), 2);
}

#[test]
fn wrong_use_is_refused() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    for (options, complaint) in [
        (&["parquet"][..], "--output"),
        (
            &["parquet", "-o", "-"],
            "standard output cannot hold a directory",
        ),
        (&["csv", "."], "unexpected argument"),
    ] {
        let assert = export(options, dir.path()).assert();
        assert.code(2).stderr(contains(complaint));
    }
    let file = dir.path().join("metadata");
    let to = file.to_str().unwrap();
    let assert = export(&["parquet", "-o", to], dir.path()).assert();
    assert.code(125).stderr(contains("cannot write"));
}

#[test]
fn nothing_is_left_of_what_fails() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let out = TempDir::new().unwrap();
    let to = out.path().join("tables");
    let options = ["export", "parquet", "-o", to.to_str().unwrap()];
    without_room(&options, dir.path())
        .assert()
        .code(125)
        .stderr(contains("File too large"));
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
    // A failed lttng export leaves no folder either. It copies the files, because links do not work across file
    // systems.
    let to = Path::new("/dev/shm").join(format!("rtrace-test-{}", std::process::id()));
    let options = ["export", "lttng", "-o", to.to_str().unwrap()];
    let assert = without_room(&options, dir.path()).assert().code(125);
    assert.stderr(contains("File too large"));
    assert!(!to.exists());
}

#[test]
fn nothing_is_left_of_what_a_signal_ends() {
    let dir = TempDir::new().unwrap();
    let (mut packets, mut now) = (Vec::new(), S);
    for number in 0..600 {
        let mut packet = packet(0, number, now);
        for _ in 0..500 {
            now += 10;
            packet = packet.softirq(now, 1);
        }
        packets.push(packet.close(now, 8));
    }
    write(dir.path(), &[(0, packets)]);
    let out = TempDir::new().unwrap();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("rtrace"))
        .args(["export", "parquet", "-o"])
        .args([out.path(), dir.path()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let limit = Instant::now() + Duration::from_secs(60);
    while files(out.path()).is_empty() && Instant::now() < limit {
        sleep(Duration::from_millis(1));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(125));
    assert_eq!(files(out.path()), Vec::<PathBuf>::new());
}
