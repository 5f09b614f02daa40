// SPDX-License-Identifier: GPL-2.0

//! `rtrace count -i` on synthetic traces. The selftest `tool/count-recorded` compares it with the kernel's maps.

mod schema;

use assert_cmd::Command;
use predicates::str::contains;
use rtrace_abi::header::Layout;
use serde_json::{json, Value};
use std::fs;
use std::path::Path;
use synthetic::{PacketBuilder, OPENAT, OPENAT_EXIT, WAKING};
use tempfile::TempDir;

/// Microseconds and seconds in clock ticks.
const US: u64 = synthetic::FREQUENCY / 1_000_000;
const S: u64 = synthetic::FREQUENCY;

const IDLE: (i32, &str) = (0, "swapper/0");
const SHELL: (i32, &str) = (7, "sh");
const CAT: (i32, &str) = (8, "cat");

fn packet(cpu: u32, number: u64, begin: u64) -> PacketBuilder {
    PacketBuilder::new(Layout::Compact, cpu, number, begin)
}

/// Two CPUs: on CPU 0 `sh` opens three files, of which one is missing; on CPU 1 `cat` opens one.
fn opens() -> TempDir {
    let dir = TempDir::new().unwrap();
    let first = packet(0, 0, S)
        .wake(WAKING, S + US, SHELL)
        .switch(S + 3 * US, IDLE, SHELL)
        .openat(S + 100 * US, "/one")
        .syscall_exit(OPENAT_EXIT, S + 110 * US, 3)
        .openat(S + 200 * US, "/none")
        .syscall_exit(OPENAT_EXIT, S + 230 * US, -2)
        .openat(S + 300 * US, "/a/path/that/is/longer/than/a/key/can/be")
        .syscall_exit(OPENAT_EXIT, S + 310 * US, 4)
        .switch_from(S + 400 * US, SHELL, 1, IDLE)
        .close(S + 500 * US, 8);
    let second = packet(1, 0, S)
        .switch(S + 50 * US, IDLE, CAT)
        .openat(S + 120 * US, "/one")
        .syscall_exit(OPENAT_EXIT, S + 140 * US, 3)
        .close(S + 500 * US, 8);
    let streams = [(0, vec![first]), (1, vec![second])];
    synthetic::write(dir.path(), Layout::Compact, &streams).unwrap();
    dir
}

fn rtrace(dir: &Path, words: &[&str]) -> Command {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    command.arg("count").arg("-i").arg(dir).args(words);
    command
}

fn table(dir: &Path, words: &[&str]) -> Value {
    let assert = rtrace(dir, words).arg("--json").assert().success();
    schema::read(&assert.get_output().stdout)
}

fn rows(dir: &Path, words: &[&str]) -> Value {
    table(dir, words)["rows"].take()
}

/// A key that the end of a call lacks is the value of its begin.
#[test]
fn keys_can_be_those_of_the_begin() {
    let trace = opens();
    let dir = trace.path();
    let by_name = |words: &[&str]| {
        let first = [
            "-e",
            "openat",
            "--by",
            "filename,comm",
            "--sort",
            "filename",
        ];
        rows(dir, &[&first[..], words].concat())
    };
    assert_eq!(
        by_name(&["--sum", "duration", "--max", "ret"]),
        json!([
            {"filename": "/a/path/that/is/longer/than/a…", "comm": "sh", "count": 1, "sum(duration)": 10_000, "max(ret)": 4},
            {"filename": "/none", "comm": "sh", "count": 1, "sum(duration)": 30_000, "max(ret)": -2},
            {"filename": "/one", "comm": "cat", "count": 1, "sum(duration)": 20_000, "max(ret)": 3},
            {"filename": "/one", "comm": "sh", "count": 1, "sum(duration)": 10_000, "max(ret)": 3},
        ])
    );
    let filtered = by_name(&["--hist", "duration", "--filter", "ret < 0"]);
    assert_eq!(filtered.as_array().unwrap().len(), 1, "{filtered}");
    assert_eq!(filtered[0]["filename"], "/none");
    rtrace(
        dir,
        &["-e", "openat", "--by", "pathname", "--hist", "duration"],
    )
    .assert()
    .failure()
    .stderr(contains(
        "no field or context `pathname` at syscall_exit_openat",
    ));
}

#[test]
fn keys_and_values_are_those_of_the_events() {
    let trace = opens();
    let dir = trace.path();
    assert_eq!(rows(dir, &["-e", "openat"]), json!([{"count": 4}]));
    assert_eq!(
        rows(
            dir,
            &[
                "-e",
                "openat",
                "--by",
                "comm,tid,cpu",
                "--sum",
                "ret",
                "--min",
                "ret",
                "--max",
                "ret"
            ]
        ),
        json!([
            {"comm": "sh", "tid": 7, "cpu": 0, "count": 3, "sum(ret)": 5, "min(ret)": -2, "max(ret)": 4},
            {"comm": "cat", "tid": 8, "cpu": 1, "count": 1, "sum(ret)": 3, "min(ret)": 3, "max(ret)": 3},
        ])
    );
    // As in the kernel, a long text is cut.
    assert_eq!(
        rows(
            dir,
            &["-e", "openat", "--by", "filename", "--sort", "filename"]
        ),
        json!([
            {"filename": "/a/path/that/is/longer/than/a…", "count": 1},
            {"filename": "/none", "count": 1},
            {"filename": "/one", "count": 2},
        ])
    );
    let filtered = [
        "-e",
        "openat",
        "--by",
        "event,comm",
        "--filter",
        "ret < 0 || comm == 'cat'",
    ];
    assert_eq!(
        rows(dir, &filtered),
        json!([
            {"event": "syscall_exit_openat", "comm": "cat", "count": 1},
            {"event": "syscall_exit_openat", "comm": "sh", "count": 1},
        ])
    );
    assert_eq!(
        rows(
            dir,
            &[
                "-e",
                "sched_switch",
                "--by",
                "prev_comm",
                "--filter",
                "CPU == 1"
            ]
        ),
        json!([{"prev_comm": "swapper/0", "count": 1}])
    );
    let range = ["-e", "openat", "--from", "+150us", "--to", "+250us"];
    assert_eq!(rows(dir, &range), json!([{"count": 1}]));
    assert_eq!(
        rows(dir, &["-e", "openat", "-p", "8"]),
        json!([{"count": 1}])
    );
}

#[test]
fn durations_have_buckets_and_are_of_one_thread() {
    let trace = opens();
    let dir = trace.path();
    assert_eq!(
        rows(
            dir,
            &["-e", "openat", "--by", "comm", "--hist", "duration", "--sum", "duration"]
        ),
        json!([
            {"comm": "sh", "from": 9216, "to": 10239, "count": 2, "sum(duration)": 20_000},
            {"comm": "sh", "from": 28672, "to": 30719, "count": 1, "sum(duration)": 30_000},
            {"comm": "cat", "from": 18432, "to": 20479, "count": 1, "sum(duration)": 20_000},
        ])
    );
    let on = [
        "-e",
        "sched_switch",
        "--by",
        "prev_comm",
        "--sum",
        "duration",
        "--begin",
        "sched_switch",
    ];
    let on = table(dir, &[&on[..], &["--match", "next_tid:prev_tid"]].concat());
    assert_eq!(
        on["rows"],
        json!([{"prev_comm": "sh", "count": 1, "sum(duration)": 397_000}])
    );
    // The idle threads were running before the trace.
    assert_eq!((&on["unmatched"], &on["repeated"]), (&json!(2), &json!(0)));
    let mut text = rtrace(dir, &["-e", "openat", "--hist", "ret"]);
    let shown = "\n4 events by ret\n-2  1  ####";
    text.assert()
        .success()
        .stdout(predicates::str::starts_with(shown));
    assert_eq!(rows(dir, &["--recipe", "syslat"])[0]["count"], json!(4));
}

#[test]
fn no_duration_spans_a_loss() {
    let dir = TempDir::new().unwrap();
    let first = packet(0, 0, S)
        .switch(S + 3 * US, IDLE, SHELL)
        .openat(S + 100 * US, "/one")
        .syscall_exit(OPENAT_EXIT, S + 110 * US, 3)
        .openat(S + 200 * US, "/two")
        .close(S + 300 * US, 8);
    let second = packet(0, 1, S + 400 * US)
        .discarded(2)
        .switch(S + 410 * US, IDLE, SHELL)
        .syscall_exit(OPENAT_EXIT, S + 430 * US, -2)
        .close(S + 500 * US, 8);
    let third = packet(0, 2, S + 600 * US)
        .discarded(2)
        .switch(S + 605 * US, IDLE, SHELL)
        .openat(S + 610 * US, "/three")
        .syscall_exit(OPENAT_EXIT, S + 630 * US, 3)
        .close(S + 700 * US, 8);
    let streams = [(0, vec![first, second, third])];
    synthetic::write(dir.path(), Layout::Compact, &streams).unwrap();
    let found = table(dir.path(), &["-e", "openat", "--sum", "duration"]);
    assert_eq!(
        found["rows"],
        json!([{"count": 2, "sum(duration)": 30_000}])
    );
    // After a loss the thread is not known up to the next switch.
    assert_eq!(
        (&found["unmatched"], &found["lacking"]),
        (&json!(0), &json!(1))
    );
    let mut command = rtrace(dir.path(), &["-e", "openat"]);
    command.assert().success().stderr(contains("2 lost"));
}

/// Call stacks are keys: of an event itself, and with a duration of its begin. The kernel's and the user's are innermost
/// first; functions have the names that were saved.
#[test]
fn stacks_are_keys() {
    let dir = TempDir::new().unwrap();
    let record = |kernel: &[u64], user: &[u64], fields: &[u8]| {
        let mut record = 7_i32.to_le_bytes().to_vec();
        for stack in [kernel, user] {
            record.extend((stack.len() as u32).to_le_bytes());
            record.extend(stack.iter().flat_map(|address| address.to_le_bytes()));
        }
        [record, fields.to_vec()].concat()
    };
    let (file, ret) = (b"/x\0", 3_i64.to_le_bytes());
    let (deep, flat) = (&[0x24, 0x10][..], &[0x10][..]);
    let call = |packet: PacketBuilder, time: u64, kernel: &[u64], user: &[u64]| {
        // The stack at the end of the call is another one.
        packet
            .event(OPENAT, S + time * US, &record(kernel, user, file))
            .event(OPENAT_EXIT, S + (time + 5) * US, &record(&[], &[], &ret))
    };
    let mut one = packet(0, 0, S);
    for (time, kernel, user) in [
        (10, deep, &[0x3, 0x2][..]),
        (20, deep, &[0x3, 0x2]),
        (30, flat, &[0x2]),
        (40, &[], &[]),
    ] {
        one = call(one, time, kernel, user);
    }
    let streams = [(0, vec![one.close(S + 100 * US, 8)])];
    synthetic::write(dir.path(), Layout::Compact, &streams).unwrap();
    let integer = |size, signed| {
        format!("integer {{ size = {size}; align = 8; signed = {signed}; base = 16; }}")
    };
    let stack = |name| {
        let (length, address) = (integer(32, false), integer(64, false));
        format!("{length} __{name}_length;\n{address} _{name}[__{name}_length];\n")
    };
    let contexts = format!(
        "\tevent.context := struct {{\n{} _tid;\n{}{}\t}};\n\tpacket.context",
        integer(32, true),
        stack("callstack_kernel"),
        stack("callstack_user")
    );
    let path = dir.path().join("metadata");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\tpacket.context", &contexts, 1)).unwrap();
    let trace = synthetic::uuid_text(synthetic::UUID);
    let mappings =
        format!("rtrace mappings 1\ntrace {trace}\nclock 1 1\nmap 0 7 0 10 0 ab /bin/task\n");
    fs::write(dir.path().join(".mappings"), mappings).unwrap();
    let symbols = format!(
        "rtrace symbols 1\ntrace {trace}\nkernel\n8 20 outer\n20 10 inner [mod]\n\
         file ab /bin/task\n1 1 caller\n3 1 leaf\n"
    );
    fs::write(dir.path().join(".symbols"), symbols).unwrap();

    let sorted = |words: &[&str]| {
        let mut rows = rows(dir.path(), words);
        let array = rows.as_array_mut().unwrap();
        array.sort_by_key(|row| (-row["count"].as_i64().unwrap(), row.to_string()));
        rows
    };
    let expected = json!([
        {"kstack": "inner;outer", "count": 2},
        {"kstack": "-", "count": 1},
        {"kstack": "outer", "count": 1},
    ]);
    assert_eq!(
        sorted(&["-e", "syscall_entry_openat", "--by", "kstack"]),
        expected
    );
    // The return address of a caller is after its call. In the last stack no function has the address.
    let expected = json!([
        {"ustack": "leaf;caller", "count": 2},
        {"ustack": "-", "count": 1},
        {"ustack": "[task]", "count": 1},
    ]);
    assert_eq!(
        sorted(&["-e", "syscall_entry_openat", "--by", "ustack"]),
        expected
    );
    let expected = json!([
        {"kstack": "inner;outer", "count": 2, "sum(duration)": 10_000},
        {"kstack": "-", "count": 1, "sum(duration)": 5000},
        {"kstack": "outer", "count": 1, "sum(duration)": 5000},
    ]);
    let words = ["-e", "openat", "--by", "kstack", "--sum", "duration"];
    assert_eq!(sorted(&words), expected);
}

#[test]
fn names_that_the_trace_lacks_are_said() {
    let trace = opens();
    for (words, code, what) in [
        (
            &["-e", "no_such_event"][..],
            125,
            "no event that matches `no_such_event`",
        ),
        (
            &["-e", "openat", "--by", "uid"],
            125,
            "no field or context `uid` at syscall_entry_openat",
        ),
        (
            &["-e", "openat", "--sum", "filename"],
            125,
            "`filename` of syscall_entry_openat is no integer",
        ),
        (&["-e", "openat", "--by", "kstack"], 125, "record -g"),
        (
            &["-e", "openat", "--filter", "ret <"],
            125,
            "expected a number",
        ),
        (&["-e", "openat", "--", "true"], 2, "cannot be used with"),
        (&["-e", "openat", "-d", "1s"], 2, "cannot be used with"),
        (&["-k", "f(a)"], 2, "cannot be used with"),
    ] {
        let mut command = rtrace(trace.path(), words);
        command.assert().code(code).stderr(contains(what));
    }
    let mut command = Command::cargo_bin("rtrace").unwrap();
    let words = ["count", "-e", "openat", "--from", "+1s"];
    command.args(words).assert().code(2).stderr(contains("-i"));
}
