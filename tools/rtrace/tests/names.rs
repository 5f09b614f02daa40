// SPDX-License-Identifier: GPL-2.0

//! Names of threads and processes: each view shows the name at that time.

mod schema;

use assert_cmd::Command;
use rtrace_abi::header::Layout;
use rtrace_abi::schema::{Field, FieldType};
use rtrace_abi::tsdl;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use synthetic::{PacketBuilder, EXEC, OPENAT, OPENAT_EXIT, READ};
use tempfile::TempDir;

/// Microseconds in clock ticks.
const US: u64 = synthetic::FREQUENCY / 1_000_000;

/// The event `task_rename`.
const RENAME: u32 = 14;

/// The event `sched_process_exit`.
const EXIT: u32 = 15;

/// `EXIT_ZOMBIE`, in which a thread leaves its CPU for the last time.
const ENDED: i64 = 0x20;

const IDLE: (i32, &str) = (0, "swapper/0");

fn packet(cpu: u32, number: u64, begin: u64) -> PacketBuilder {
    PacketBuilder::new(Layout::Compact, cpu, number, begin)
}

/// Writes a trace with renamed and exiting tasks, in which exec has the thread's former id. Its events have these contexts.
fn write(dir: &Path, contexts: &str, streams: &[(u32, Vec<Vec<u8>>)]) {
    synthetic::write(dir, Layout::Compact, streams).unwrap();
    let path = dir.join("metadata");
    let mut text = fs::read_to_string(&path).unwrap();
    let at = text.find("name = \"sched_process_exec\"").unwrap();
    let old = "_tid;\n\t\tinteger { size = 32; align = 8; signed = true; } _old_tid;";
    let exec = text.split_off(at).replacen("_tid;", old, 1);
    text.push_str(&exec);
    let field = |name, ty| Field { name, ty };
    let fields = [
        field("tid", FieldType::signed(32)),
        field("oldcomm", FieldType::text(16)),
        field("newcomm", FieldType::String),
    ];
    tsdl::event(&mut text, 0, RENAME, "task_rename", fields.into_iter()).unwrap();
    let fields = [
        field("comm", FieldType::text(16)),
        field("tid", FieldType::signed(32)),
    ];
    tsdl::event(&mut text, 0, EXIT, "sched_process_exit", fields.into_iter()).unwrap();
    if !contexts.is_empty() {
        let contexts = format!("\tevent.context := struct {{\n{contexts}\t}};\n\tpacket.context");
        text = text.replacen("\tpacket.context", &contexts, 1);
    }
    fs::write(path, text).unwrap();
}

fn comm(name: &str) -> Vec<u8> {
    let mut name = name.as_bytes().to_vec();
    name.resize(16, 0);
    name
}

fn rename(builder: PacketBuilder, time: u64, tid: i32, old: &str, new: &str) -> PacketBuilder {
    let mut record = tid.to_le_bytes().to_vec();
    record.extend(comm(old));
    record.extend(new.as_bytes());
    record.push(0);
    builder.event(RENAME, time, &record)
}

fn exit_record(name: &str, tid: i32) -> Vec<u8> {
    [comm(name), tid.to_le_bytes().to_vec()].concat()
}

fn exec_record(file: &str, tid: i32, old_tid: i32) -> Vec<u8> {
    let mut record = file.as_bytes().to_vec();
    record.push(0);
    record.extend([tid, old_tid].map(i32::to_le_bytes).concat());
    record
}

/// Adds a call of `openat` between two times in microseconds.
fn openat(builder: PacketBuilder, from: u64, to: u64) -> PacketBuilder {
    builder
        .openat(from * US, "/x")
        .syscall_exit(OPENAT_EXIT, to * US, 3)
}

/// Writes a trace with these steps:
///
/// 1. `sh` renames itself to `second` and creates process 8.
/// 2. Process 8 executes `true` and creates thread 9. The first thread exits.
/// 3. Thread 9 renames itself to `helper` and executes `false`. With the exec, its id becomes 8. It exits.
/// 4. `second` creates another process 8, which executes `cat`.
fn story(dir: &Path) {
    let mut one = packet(0, 0, 0).switch(10 * US, IDLE, (7, "sh"));
    one = openat(one, 20, 25);
    one = rename(one, 30 * US, 7, "sh", "second");
    one = openat(one, 40, 45)
        .fork(50 * US, (7, "second"), (8, "second"), 8)
        .switch(60 * US, (7, "second"), (8, "second"));
    one = rename(one, 65 * US, 8, "second", "true");
    one = one.event(EXEC, 66 * US, &exec_record("/bin/true", 8, 8));
    one = openat(one, 70, 75)
        .fork(80 * US, (8, "true"), (9, "true"), 8)
        .switch_from(90 * US, (8, "true"), ENDED, (9, "true"));
    one = rename(one, 95 * US, 9, "true", "helper");
    // The thread's id changes during this call. In a real trace, only execve can do this.
    one = one.openat(100 * US, "/bin/false");
    one = rename(one, 109 * US, 8, "helper", "false");
    one = one
        .event(EXEC, 110 * US, &exec_record("/bin/false", 8, 9))
        .syscall_exit(OPENAT_EXIT, 115 * US, 0);
    one = openat(one, 120, 125)
        .switch_from(130 * US, (8, "false"), ENDED, (7, "second"))
        .fork(140 * US, (7, "second"), (8, "second"), 8)
        .switch_from(150 * US, (7, "second"), 1, (8, "second"));
    one = one.event(EXEC, 155 * US, &exec_record("/bin/cat", 8, 8));
    let one = openat(one, 160, 165)
        .switch_from(170 * US, (8, "cat"), ENDED, IDLE)
        .close(200 * US, 8);
    write(dir, "", &[(0, vec![one])]);
}

fn output(arguments: &[&str], dir: &Path) -> Vec<u8> {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    let output = command.args(arguments).arg(dir).assert().success();
    output.get_output().stdout.clone()
}

fn text(arguments: &[&str], dir: &Path) -> String {
    String::from_utf8(output(arguments, dir)).unwrap()
}

fn json(arguments: &[&str], dir: &Path) -> Value {
    schema::read(&output(&[&["report", "--json"], arguments].concat(), dir))
}

/// Returns the name and this id of each row, as `name/id`.
fn named(rows: &Value, id: &str) -> Vec<String> {
    let rows = rows.as_array().unwrap().iter();
    let mut rows: Vec<_> = rows
        .map(|row| format!("{}/{}", row["comm"].as_str().unwrap(), row[id]))
        .collect();
    rows.sort();
    rows
}

#[test]
fn lines_have_the_name_at_that_time() {
    let dir = TempDir::new().unwrap();
    story(dir.path());
    let text = text(&["trace", "-i"], dir.path());
    let calls = text.lines().filter(|line| line.contains(" openat("));
    let who: Vec<_> = calls
        .map(|line| line.split_whitespace().nth(3).unwrap())
        .collect();
    assert_eq!(
        who,
        ["sh/7", "second/7", "true/8", "false/8", "false/8", "cat/8"],
        "{text}"
    );
    assert!(!text.contains("unfinished") && !text.contains("resumed"));
    let exec = text.lines().find(|line| line.contains("old_tid: 9"));
    assert!(exec.unwrap().contains(" false/8 "), "{text}");
}

#[test]
fn rows_of_exports_have_the_name_at_that_time() {
    let dir = TempDir::new().unwrap();
    story(dir.path());
    let who = |event| {
        let text = text(&["export", "csv", "-e", event], dir.path());
        let rows = text.lines().skip(1).map(|line| {
            let cells: Vec<_> = line.split(',').collect();
            format!("{}/{}", cells[3], cells[2])
        });
        rows.collect::<Vec<_>>()
    };
    let begin = ["sh/7", "second/7", "true/8", "helper/9", "false/8", "cat/8"];
    assert_eq!(who("syscall_entry_openat"), begin);
    let end = ["sh/7", "second/7", "true/8", "false/8", "false/8", "cat/8"];
    assert_eq!(who("syscall_exit_openat"), end);
    // The event has the former name.
    let renamed = ["sh/7", "second/8", "true/9", "helper/8"];
    assert_eq!(who("task_rename"), renamed);
    let script = text(
        &["export", "perf-script", "-e", "syscall_entry_openat"],
        dir.path(),
    );
    let names: Vec<_> = script
        .lines()
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    let expected = begin.map(|who| who.split('/').next().unwrap());
    assert_eq!(names, expected, "{script}");
}

/// The kernel emits `task_rename` before it changes the name. A thread that is preempted between the two still
/// shows the old name.
#[test]
fn a_preempted_rename_does_not_bring_the_old_name_back() {
    let dir = TempDir::new().unwrap();
    let mut one = packet(0, 0, 0).switch(10 * US, IDLE, (7, "sh"));
    one = rename(one, 20 * US, 7, "sh", "true")
        .switch_from(30 * US, (7, "sh"), 0x100, IDLE)
        .switch(40 * US, IDLE, (7, "sh"))
        .event(EXEC, 50 * US, &exec_record("/bin/true", 7, 7));
    one = openat(one, 60, 65)
        .switch(70 * US, (7, "true"), IDLE)
        .switch(80 * US, IDLE, (7, "true"));
    // The thread has its old name again; this `task_rename` was not recorded.
    let one = one
        .switch(90 * US, (7, "sh"), IDLE)
        .switch(100 * US, IDLE, (7, "sh"));
    let one = openat(one, 110, 115).close(200 * US, 7);
    write(dir.path(), "", &[(0, vec![one])]);
    let text = text(&["trace", "-i"], dir.path());
    let calls = text.lines().filter(|line| line.contains(" openat("));
    let who: Vec<_> = calls
        .map(|line| line.split_whitespace().nth(3).unwrap())
        .collect();
    assert_eq!(who, ["true/7", "sh/7"], "{text}");
}

/// Each thread with a reused id has its own row. An exec in another thread continues the row of the process.
/// The recording ends before the thread leaves its CPU under its new name.
#[test]
fn a_name_without_a_switch_is_shown() {
    let dir = TempDir::new().unwrap();
    let one = packet(0, 0, 0)
        .switch(10 * US, IDLE, (7, "sh"))
        .switch_from(20 * US, (7, "sh"), 1, IDLE)
        .switch(30 * US, IDLE, (7, "sh"));
    let one = rename(one, 40 * US, 7, "sh", "true").close(60 * US, 8);
    write(dir.path(), "", &[(0, vec![one])]);
    let report = json(&["--threads"], dir.path());
    assert_eq!(named(&report["threads"]["threads"], "tid"), ["true/7"]);
}

#[test]
fn rows_of_reports_are_of_one_thread_or_process() {
    let dir = TempDir::new().unwrap();
    story(dir.path());
    let report = json(&["--threads", "--syscalls", "--by-process"], dir.path());
    let threads = &report["threads"]["threads"];
    let expected = ["cat/8", "false/8", "helper/9", "second/7"];
    assert_eq!(named(threads, "tid"), expected);
    let mut ran: Vec<_> = threads.as_array().unwrap().iter().collect();
    ran.sort_by_key(|row| row["comm"].as_str());
    let ran: Vec<_> = ran.iter().map(|row| &row["running_ns"]).collect();
    assert_eq!(ran, [20_000, 51_000, 19_000, 70_000]);
    let processes = &report["syscalls"]["processes"];
    assert_eq!(named(processes, "pid"), ["cat/8", "false/8", "second/null"]);
    let counted = |comm: &str| {
        let mut rows = processes.as_array().unwrap().iter();
        rows.find(|row| row["comm"] == comm).unwrap()["timed"].clone()
    };
    assert_eq!((counted("cat"), counted("false")), (1.into(), 3.into()));
    let tasks = json(&[], dir.path())["tasks"].take();
    let expected = ["cat/8", "false/8", "helper/9", "second/7", "true/8"];
    assert_eq!(named(&tasks, "tid"), expected);
}

#[test]
fn tables_of_top_and_tracks_are_of_one_thread() {
    let dir = TempDir::new().unwrap();
    story(dir.path());
    let table = text(&["top", "--json", "-i"], dir.path());
    let table: Value = serde_json::from_str(table.lines().next().unwrap()).unwrap();
    let expected = ["cat/8", "false/8", "helper/9", "second/7"];
    assert_eq!(named(&table["threads"], "tid"), expected);

    let other = TempDir::new().unwrap();
    let page = other.path().join("page.html");
    let arguments = ["report", "--html", page.to_str().unwrap()];
    output(&arguments, dir.path());
    let page = fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("id=\"trace\">").unwrap();
    let index: Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(named(&index["threads"], "tid"), expected);

    let chrome = text(&["export", "chrome"], dir.path());
    let chrome: Value = serde_json::from_str(&chrome).unwrap();
    let events = chrome["traceEvents"].as_array().unwrap();
    let calls = events.iter().filter(|event| event["name"] == "openat");
    let tracks: Vec<_> = calls
        .map(|call| {
            assert_eq!(call["ph"], "X", "{call}");
            (call["pid"].as_i64().unwrap(), call["tid"].as_i64().unwrap())
        })
        .collect();
    let (second, first, again) = ((7, 7), (8, 8), (10_000_008, 10_000_008));
    assert_eq!(tracks, [second, second, first, (8, 9), first, again]);
}

/// Perfetto takes an id for the same thread until it reads an event of a new task.
#[test]
fn perfetto_hears_of_new_tasks_with_old_ids() {
    let dir = TempDir::new().unwrap();
    story(dir.path());
    let bytes = output(&["export", "perfetto"], dir.path());
    // Field 235, its length, and its contents: the thread and the name.
    let new = b"\xda\x0e\x0e\x08\x08\x12\x06second";
    let found = bytes
        .windows(new.len())
        .any(|window| window[..2] == new[..2] && window[3..] == new[3..]);
    assert!(found);
    let times = bytes.windows(2).filter(|window| window == b"\xda\x0e");
    assert_eq!(times.count(), 1);
}

const INTEGER: &str = "\t\tinteger { size = 32; align = 8; signed = true; }";

fn contexts() -> String {
    format!(
        "{INTEGER} _pid;\n{INTEGER} _tid;\n\
         \t\tinteger {{ size = 8; align = 8; signed = false; encoding = UTF8; }} _procname[16];\n"
    )
}

fn with_contexts(pid: i32, tid: i32, name: &str, record: &[u8]) -> Vec<u8> {
    let mut out = [pid, tid].map(i32::to_le_bytes).concat();
    out.extend(comm(name));
    out.extend(record);
    out
}

/// From this event on, the thread has the name in the contexts.
#[test]
fn contexts_name_threads() {
    let dir = TempDir::new().unwrap();
    let call = |name: &str| with_contexts(7, 7, name, b"/x\0");
    let ret = |name: &str| with_contexts(7, 7, name, &3_i64.to_le_bytes());
    let one = packet(0, 0, 0)
        .event(OPENAT, 10 * US, &call("first"))
        .event(OPENAT_EXIT, 15 * US, &ret("first"))
        .event(OPENAT, 20 * US, &call("second"))
        .event(OPENAT_EXIT, 25 * US, &ret("second"))
        .close(30 * US, 8);
    write(dir.path(), &contexts(), &[(0, vec![one])]);
    let report = json(&["--syscalls", "--by-process"], dir.path());
    assert_eq!(named(&report["syscalls"]["processes"], "pid"), ["second/7"]);
}

/// The context of an event has a name, but no id.
#[test]
fn a_name_without_an_id_is_shown() {
    let dir = TempDir::new().unwrap();
    let record = [comm("alone"), b"/x\0".to_vec()].concat();
    let one = packet(0, 0, 0)
        .event(OPENAT, 10 * US, &record)
        .close(30 * US, 8);
    let (_, name) = contexts()
        .split_once("_tid;\n")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    write(dir.path(), &name, &[(0, vec![one])]);
    for (words, said) in [
        (
            &["export", "csv", "-o", "-"][..],
            ",0,,alone,syscall_entry_openat,",
        ),
        (&["trace", "-i"], " alone/? openat("),
    ] {
        let output = Command::cargo_bin("rtrace")
            .unwrap()
            .args(words)
            .arg(dir.path())
            .assert()
            .success();
        let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
        assert!(text.contains(said), "{words:?}: {text}");
    }
}

/// Traces without `sched_switch`, as `rtrace trace` records them. The call of the thread that executes a
/// program continues under the id of the process. Calls of the other threads do not end.
#[test]
fn exec_in_another_thread_ends_as_the_process() {
    let dir = TempDir::new().unwrap();
    let one = packet(0, 0, 0)
        .event(READ, 10 * US, &with_contexts(8, 8, "a", &[0; 8]))
        .event(OPENAT, 20 * US, &with_contexts(8, 9, "a", b"/bin/true\0"))
        .event(
            EXEC,
            30 * US,
            &with_contexts(8, 8, "true", &exec_record("/bin/true", 8, 9)),
        )
        .event(
            OPENAT_EXIT,
            35 * US,
            &with_contexts(8, 8, "true", &0_i64.to_le_bytes()),
        )
        .event(OPENAT, 40 * US, &with_contexts(8, 8, "true", b"/y\0"))
        .event(
            OPENAT_EXIT,
            45 * US,
            &with_contexts(8, 8, "true", &3_i64.to_le_bytes()),
        )
        .close(50 * US, 8);
    write(dir.path(), &contexts(), &[(0, vec![one])]);
    let text = text(&["trace", "-i"], dir.path());
    let lines: Vec<_> = text
        .lines()
        .map(|line| {
            line.split_whitespace()
                .skip(1)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert_eq!(
        lines,
        [
            "a/8 read(buf: NULL) <unfinished ...>",
            "true/8 sched_process_exec(filename: \"/bin/true\", tid: 8, old_tid: 9)",
            "15.0 us true/8 openat(filename: \"/bin/true\") = 0",
            "5.0 us true/8 openat(filename: \"/y\") = 3",
        ],
        "{text}"
    );
}

/// The first thread of the process ends on CPU 0 while another one executes a program on CPU 1. They exchange ids, so
/// the last switch of the first thread has the other id. The call of the exec continues, whenever that switch comes:
/// before the first event that shows the new id, or after it. Then the first thread has a row with the other id, too.
#[test]
fn threads_exchange_ids_at_an_exec() {
    let rows = ["a/9", "a/9", "true/8"];
    for (last, rows) in [(45, &rows[1..]), (55, &rows[..])] {
        let dir = TempDir::new().unwrap();
        let one = packet(0, 0, 0)
            .switch(10 * US, IDLE, (8, "a"))
            .fork(20 * US, (8, "a"), (9, "a"), 8)
            .event(EXIT, 40 * US, &exit_record("a", 8))
            .switch_from(last * US, (9, "a"), ENDED, IDLE)
            .close(100 * US, 8);
        let two = packet(1, 0, 0)
            .switch(25 * US, (0, "swapper/1"), (9, "a"))
            .openat(30 * US, "/bin/true");
        let two = rename(two, 50 * US, 8, "a", "true")
            .event(EXEC, 60 * US, &exec_record("/bin/true", 8, 9))
            .syscall_exit(OPENAT_EXIT, 65 * US, 0);
        let two = openat(two, 70, 75)
            .switch_from(80 * US, (8, "true"), ENDED, (0, "swapper/1"))
            .close(100 * US, 8);
        write(dir.path(), "", &[(0, vec![one]), (1, vec![two])]);
        let text = text(&["trace", "-i"], dir.path());
        for line in [
            " true/8 openat(filename: \"/bin/true\") = 0",
            " true/8 openat(filename: \"/x\") = 3",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(
            !text.contains("unfinished") && !text.contains("resumed"),
            "{text}"
        );
        let report = json(&["--threads"], dir.path());
        assert_eq!(
            named(&report["threads"]["threads"], "tid"),
            rows,
            "{report}"
        );
    }
}

/// Writes a trace with losses. CPU 0 lacks packets, CPU 1 lacks discarded events, CPU 2 lacks its first
/// packets.
fn lossy(dir: &Path) {
    let (make, cc, ld) = ((7, "make"), (8, "cc"), (9, "ld"));
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, make)
        .switch(40 * US, make, cc)
        .close(50 * US, 8);
    let behind = packet(0, 3, 70 * US)
        .switch(80 * US, ld, make)
        .switch(90 * US, make, IDLE)
        .close(95 * US, 8);
    let one = packet(1, 0, 0).switch(20 * US, IDLE, ld).close(30 * US, 8);
    let discarded = packet(1, 1, 30 * US)
        .discarded(5)
        .switch(35 * US, cc, ld)
        .switch(45 * US, ld, cc)
        .close(60 * US, 8);
    let last = packet(1, 2, 60 * US)
        .discarded(5)
        .switch(65 * US, ld, cc)
        .close(100 * US, 8);
    let two = packet(2, 4, 10 * US)
        .discarded(2)
        .switch(15 * US, cc, make)
        .close(20 * US, 8);
    let rest = packet(2, 5, 20 * US)
        .discarded(2)
        .switch(33 * US, make, IDLE)
        .close(60 * US, 8);
    write(
        dir,
        "",
        &[
            (0, vec![zero, behind]),
            (1, vec![one, discarded, last]),
            (2, vec![two, rest]),
        ],
    );
}

/// All views agree on CPU time, even if events were lost.
#[test]
fn there_is_one_account_of_cpu_time() {
    for make in [story, lossy] {
        let dir = TempDir::new().unwrap();
        make(dir.path());
        let summary = json(&[], dir.path());
        let report = json(&["--threads", "--cpu"], dir.path());
        let by_tid = |rows: &Value, ns: &str| {
            let mut sums = BTreeMap::new();
            for row in rows.as_array().unwrap() {
                *sums.entry(row["tid"].as_i64()).or_insert(0) += row[ns].as_u64().unwrap();
            }
            sums.retain(|_, ns| *ns > 0);
            sums
        };
        assert_eq!(
            by_tid(&summary["tasks"], "cpu_time_ns"),
            by_tid(&report["threads"]["threads"], "running_ns"),
        );
        let times = |rows: &Value| {
            let rows = rows.as_array().unwrap().iter();
            rows.map(|row| {
                (
                    row["cpu"].clone(),
                    row["busy_ns"].clone(),
                    row["idle_ns"].clone(),
                )
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(times(&summary["cpus"]), times(&report["cpu"]["cpus"]));
        let table = text(&["top", "--json", "-i"], dir.path());
        let table: Value = serde_json::from_str(table.lines().next().unwrap()).unwrap();
        assert_eq!(
            by_tid(&table["threads"], "cpu_ns"),
            by_tid(&report["threads"]["threads"], "running_ns"),
        );
    }
}
