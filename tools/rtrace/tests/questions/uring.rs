// SPDX-License-Identifier: GPL-2.0

//! Requests of io_uring: `rtrace report --io`, the table `io_uring`, and lines. The selftest `tool/uring` compares them
//! with what a program counts.

use super::io::{describe as describe_io, filled, CLOSE, CLOSE_EXIT};
use super::machine::{packets, Loss, Random, TICK_NS};
use super::{declare, forget, json, packet, report, row, write, IDLE, SHELL, THREAD, US};
use assert_cmd::Command;
use predicates::str::contains;
use serde_json::{json, Value};
use std::path::Path;
use synthetic::{PacketBuilder, OPENAT, OPENAT_EXIT};
use tempfile::TempDir;

const SUBMIT: u32 = 80;
const FAILED: u32 = 81;
const FILE: u32 = 82;
const WORKER: u32 = 83;
const COMPLETE: u32 = 84;
const OVERFLOW: u32 = 85;
const ENTER: u32 = 86;

/// `IOSQE_FIXED_FILE`, `IOSQE_CQE_SKIP_SUCCESS`
const FIXED: u64 = 1;
const SKIP: u64 = 64;
/// `IORING_CQE_F_MORE`, `IORING_CQE_F_NOTIF`
const MORE: u32 = 2;
const NOTIF: u32 = 8;

const RING: u64 = 0xffff_8880_0000_1000;

fn describe(dir: &Path) {
    describe_io(dir);
    const REQUEST: &[&str] = &[
        "u64 ctx",
        "u64 req",
        "u64 user_data",
        "u64 flags",
        "string op_str",
    ];
    declare(
        dir,
        &[
            (SUBMIT, "io_uring_submit_req", REQUEST),
            (FAILED, "io_uring_req_failed", REQUEST),
            (
                FILE,
                "io_uring_file_get",
                &["u64 ctx", "u64 req", "u64 user_data", "i32 fd"],
            ),
            (
                WORKER,
                "io_uring_queue_async_work",
                &["u64 ctx", "u64 req", "u64 user_data"],
            ),
            (
                COMPLETE,
                "io_uring_complete",
                &[
                    "u64 ctx",
                    "u64 req",
                    "u64 user_data",
                    "i32 res",
                    "u32 cflags",
                ],
            ),
            (
                OVERFLOW,
                "io_uring_cqe_overflow",
                &["u64 ctx", "u64 user_data"],
            ),
            (ENTER, "syscall_entry_io_uring_enter", &["i32 fd"]),
        ],
    );
}

type Event = (u32, Vec<u8>);

fn numbers(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// The request at the address `req`; its `user_data` is 100 more.
fn begin(id: u32, req: u64, flags: u64, operation: &str) -> Event {
    let fields = numbers(&[RING, req, req + 100, flags]);
    (id, [&fields, operation.as_bytes(), b"\0"].concat())
}

fn submit(req: u64, flags: u64, operation: &str) -> Event {
    begin(SUBMIT, req, flags, operation)
}

fn file(req: u64, fd: i32) -> Event {
    let fields = numbers(&[RING, req, req + 100]);
    (FILE, [&fields[..], &fd.to_le_bytes()].concat())
}

fn posted(req: u64, user_data: u64, res: i32, flags: u32) -> Event {
    let fields = numbers(&[RING, req, user_data]);
    let rest = [res as u32, flags].map(u32::to_le_bytes).concat();
    (COMPLETE, [fields, rest].concat())
}

fn complete(req: u64, res: i32) -> Event {
    posted(req, req + 100, res, 0)
}

/// The shell opens a file, and makes one request of each kind.
fn requests(dir: &Path) {
    let open = [(-100_i32).to_le_bytes(), 0_i32.to_le_bytes()].concat();
    let ret = |id, ret: i64| (id, ret.to_le_bytes().to_vec());
    let events = [
        (10, (OPENAT, [&open[..], b"/data\0"].concat())),
        (11, ret(OPENAT_EXIT, 3)),
        // A result whose request began before the trace.
        (12, complete(9, 0)),
        (20, submit(1, 0, "READ")),
        (21, file(1, 3)),
        (22, submit(2, FIXED, "WRITE")),
        (23, submit(3, 0, "READ")),
        (24, file(3, 3)),
        (25, (WORKER, numbers(&[RING, 3, 103]))),
        (30, complete(1, 50)),
        (32, complete(2, 7)),
        // Refused at once.
        (40, begin(FAILED, 1, 0, "INVALID")),
        (41, complete(1, -22)),
        // Two results; then a result of an earlier request's buffer, at an address that is used again.
        (50, submit(2, 0, "SEND_ZC")),
        (51, file(2, 8)),
        (52, posted(0, 102, 1, MORE)),
        (55, complete(2, 6)),
        (56, submit(4, SKIP, "NOP")),
        (57, posted(4, 102, 0, NOTIF)),
        // Descriptors that requests open and close: their names are not known from here on.
        (60, submit(1, 0, "OPENAT")),
        (61, complete(1, 3)),
        (62, submit(1, 0, "READ")),
        (63, file(1, 3)),
        (64, complete(1, -9)),
        // A result that does not fit, and requests that do not end.
        (70, submit(1, 0, "NOP")),
        (71, (OVERFLOW, numbers(&[RING, 101]))),
        (72, submit(1, 0, "NOP")),
    ];
    let zero = filled(packet(0, 0, 0).switch(5 * US, IDLE, SHELL), &events).close(200 * US, 8);
    // A worker thread posts the result of the third request.
    let one = filled(
        packet(1, 0, 0).switch(5 * US, IDLE, THREAD),
        &[(43, complete(3, 60))],
    );
    write(dir, &[(0, vec![zero]), (1, vec![one.close(200 * US, 8)])]);
    describe(dir);
}

#[test]
fn operations_are_counted_and_measured() {
    let dir = TempDir::new().unwrap();
    requests(dir.path());
    let io = &json(&["--io"], dir.path())["io"];
    let uring = &io["uring"];
    assert_eq!(
        [&uring["further"], &uring["unknown"], &uring["overflowed"]],
        [2, 1, 1]
    );
    let operations = &uring["operations"];
    assert_eq!(operations.as_array().unwrap().len(), 6, "{operations}");
    for (operation, submitted, done, failed, by_worker, fixed, total_ns) in [
        ("READ", 3, 3, 1, 1, 0, 10_000 + 20_000 + 2_000),
        ("WRITE", 1, 1, 0, 0, 1, 10_000),
        ("INVALID", 1, 1, 1, 0, 0, 1_000),
        ("SEND_ZC", 1, 1, 0, 0, 0, 5_000),
        ("OPENAT", 1, 1, 0, 0, 0, 1_000),
        ("NOP", 3, 0, 0, 0, 0, 0),
    ] {
        let row = row(operations, "operation", operation);
        let found = ["submitted", "done", "failed", "open", "by_worker", "fixed"];
        let found = found.map(|column| row[column].as_u64().unwrap());
        let open = submitted - done;
        let expected = [submitted, done, failed, open, by_worker, fixed];
        assert_eq!(found, expected, "{operation}");
        assert_eq!(row["took"]["total_ns"], total_ns, "{operation}");
        assert_eq!((&row["tid"], &row["comm"]), (&7.into(), &"sh".into()));
    }
    let uses = &io["files"]["uses"];
    let moved = |key: &str, name: Value| -> Vec<Value> {
        let mut rows = uses.as_array().unwrap().iter();
        let row = rows.find(|row| row[key] == name);
        let row = row.unwrap_or_else(|| panic!("{name} in {uses}"));
        let columns = [
            "reads",
            "read_bytes",
            "writes",
            "written_bytes",
            "errors",
            "total_ns",
        ];
        columns.map(|column| row[column].clone()).to_vec()
    };
    assert_eq!(moved("file", "/data".into()), [2, 110, 0, 0, 0, 30_000]);
    assert_eq!(
        moved("file", "[fixed file]".into()),
        [0, 0, 1, 7, 0, 10_000]
    );
    assert_eq!(moved("fd", 8.into()), [0, 0, 1, 6, 0, 5_000]);
    assert_eq!(moved("fd", 3.into()), [0, 0, 0, 0, 1, 2_000]);
    report(&["--io"], dir.path())
        .assert()
        .success()
        .stdout(contains("operation of io_uring\n"))
        .stdout(contains("2 further results of requests"))
        .stdout(contains("1 results have no known request"))
        .stdout(contains("1 results did not fit"));
}

#[test]
fn each_request_has_a_row_and_a_line() {
    let dir = TempDir::new().unwrap();
    requests(dir.path());
    let mut command = Command::cargo_bin("rtrace").unwrap();
    let sql = "SELECT cpu, tid, comm, name, duration_ns, ret, error, path, fd, is_fixed, user_data, flags, \
               is_by_worker, done_tid FROM io_uring ORDER BY ns";
    let output = command
        .args(["query", "--format", "json", sql])
        .arg(dir.path());
    let answer = output.assert().success().get_output().stdout.clone();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let expected = [
        json!([0, 7, "sh", "READ", 10_000, 50, null, "/data", 3, false, 101, 0, false, 7]),
        json!([0, 7, "sh", "WRITE", 10_000, 7, null, null, null, true, 102, 1, false, 7]),
        json!([0, 7, "sh", "READ", 20_000, 60, null, "/data", 3, false, 103, 0, true, 8]),
        json!([0, 7, "sh", "INVALID", 1_000, -22, "EINVAL", null, null, false, 101, 0, false, 7]),
        json!([0, 7, "sh", "SEND_ZC", 5_000, 6, null, null, 8, false, 102, 0, false, 7]),
        json!([0, 7, "sh", "NOP", null, null, null, null, null, false, 104, 64, false, null]),
        json!([0, 7, "sh", "OPENAT", 1_000, 3, null, null, null, false, 101, 0, false, 7]),
        json!([0, 7, "sh", "READ", 2_000, -9, "EBADF", null, 3, false, 101, 0, false, 7]),
        json!([0, 7, "sh", "NOP", null, null, null, null, null, false, 101, 0, false, null]),
        json!([0, 7, "sh", "NOP", null, null, null, null, null, false, 101, 0, false, null]),
    ];
    let names = [
        "cpu",
        "tid",
        "comm",
        "name",
        "duration_ns",
        "ret",
        "error",
        "path",
        "fd",
        "is_fixed",
        "user_data",
        "flags",
        "is_by_worker",
        "done_tid",
    ];
    let rows = answer["rows"].as_array().unwrap().iter();
    let rows: Vec<Value> = rows
        .map(|row| names.map(|name| row[name].clone()).to_vec().into())
        .collect();
    assert_eq!(rows, expected);

    let mut command = Command::cargo_bin("rtrace").unwrap();
    let output = command.args(["trace", "-i"]).arg(dir.path());
    let output = output.assert().success().get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    let lines = text.lines().filter(|line| line.contains("io_uring"));
    let lines: Vec<_> = lines
        .map(|line| line.split_once(' ').unwrap().1.trim_start())
        .collect();
    assert_eq!(
        lines,
        [
            "sh/7 <... io_uring resumed>(user_data: 0x6d) = 0",
            // Without the events of all calls that change descriptors, lines have no names of files.
            "10.0 us sh/7 io_uring READ(fd: 3, user_data: 0x65) = 50",
            "10.0 us sh/7 io_uring WRITE(fd: [fixed file], user_data: 0x66, flags: IOSQE_FIXED_FILE) = 7",
            "1.0 us sh/7 io_uring INVALID(user_data: 0x65) = -1 EINVAL (Invalid argument)",
            "20.0 us sh/7 io_uring READ(fd: 3, user_data: 0x67) = 60 by worker/8",
            "sh/7 <... io_uring resumed>(user_data: 0x66) = 1 (IORING_CQE_F_MORE)",
            "5.0 us sh/7 io_uring SEND_ZC(fd: 8, user_data: 0x66) = 6",
            "sh/7 io_uring NOP(user_data: 0x68, flags: IOSQE_CQE_SKIP_SUCCESS) <unfinished ...>",
            "sh/7 <... io_uring resumed>(user_data: 0x66) = 0 (IORING_CQE_F_NOTIF)",
            "1.0 us sh/7 io_uring OPENAT(user_data: 0x65) = 3",
            "2.0 us sh/7 io_uring READ(fd: 3, user_data: 0x65) = -1 EBADF (Bad file descriptor)",
            "sh/7 io_uring NOP(user_data: 0x65) <unfinished ...>",
            "sh/7 io_uring NOP(user_data: 0x65) <unfinished ...>",
        ]
    );
}

#[test]
fn a_closed_descriptor_makes_all_unknown() {
    let dir = TempDir::new().unwrap();
    let open = [(-100_i32).to_le_bytes(), 0_i32.to_le_bytes()].concat();
    let events = [
        (10, (OPENAT, [&open[..], b"/data\0"].concat())),
        (11, (OPENAT_EXIT, 3_i64.to_le_bytes().to_vec())),
        (20, submit(1, 0, "CLOSE")),
        (21, complete(1, 0)),
        (30, (CLOSE, 3_i32.to_le_bytes().to_vec())),
        (31, (CLOSE_EXIT, (-9_i64).to_le_bytes().to_vec())),
        (40, submit(1, 0, "READ")),
        (41, file(1, 3)),
        (42, complete(1, 1)),
    ];
    let zero = filled(packet(0, 0, 0).switch(5 * US, IDLE, SHELL), &events).close(200 * US, 8);
    write(dir.path(), &[(0, vec![zero])]);
    describe(dir.path());
    let uses = &json(&["--io"], dir.path())["io"]["files"]["uses"];
    assert_eq!(uses[0]["file"], Value::Null, "{uses}");
    assert_eq!(uses[0]["fd"], 3, "{uses}");
}

#[test]
fn a_report_without_requests_says_how_to_record_them() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0)
        .switch(5 * US, IDLE, SHELL)
        .event(ENTER, 10 * US, &5_i32.to_le_bytes())
        .close(200 * US, 8);
    write(dir.path(), &[(0, vec![zero])]);
    describe(dir.path());
    report(&["--io"], dir.path())
        .assert()
        .success()
        .stdout(contains("No request was made to io_uring."));
    forget(dir.path(), "io_uring_submit_req");
    report(&["--io"], dir.path())
        .assert()
        .success()
        .stdout(contains(
            "The requests of 1 calls of io_uring_enter are not in the trace: `rtrace record -e io_uring`",
        ));
}

#[derive(Clone, Copy)]
enum Step {
    Begin(u64),
    End(u64),
}

fn step(packet: PacketBuilder, time: u64, step: Step) -> PacketBuilder {
    let (id, payload) = match step {
        Step::Begin(req) => submit(req, 0, "NOP"),
        Step::End(req) => complete(req, 0),
    };
    packet.event(id, time, &payload)
}

/// Every request takes the same time. A result of another request would have another duration.
#[test]
fn no_request_is_measured_across_a_loss() {
    const TICKS: u64 = 700;
    let mut timed = 0;
    for seed in 0..60 {
        let loss = [Loss::Nothing, Loss::Packets, Loss::Events][seed as usize % 3];
        let random = &mut Random(seed);
        let mut events = vec![Vec::new(); 2];
        let mut time = 10;
        // The two addresses are used in turn, so that two requests are open at a time.
        for number in 0..100 {
            time += 400 + random.below(200);
            let req = 1 + number % 2;
            events[random.below(2) as usize].push((time, Step::Begin(req)));
            events[random.below(2) as usize].push((time + TICKS, Step::End(req)));
        }
        events
            .iter_mut()
            .for_each(|events| events.sort_by_key(|event| event.0));
        let end = time + TICKS;
        let streams: Vec<_> = (0_u32..)
            .zip(&events)
            .map(|(cpu, events)| (cpu, packets(random, cpu, events, loss, end, step)))
            .collect();
        let dir = TempDir::new().unwrap();
        write(dir.path(), &streams);
        describe(dir.path());
        let uring = &json(&["--io"], dir.path())["io"]["uring"];
        let took = &uring["operations"][0]["took"];
        let count = took["timed"].as_u64().unwrap_or(0);
        if count > 0 {
            assert_eq!(took["total_ns"], count * TICKS * TICK_NS, "{seed}: {uring}");
            assert_eq!(took["max_ns"], TICKS * TICK_NS, "{seed}: {uring}");
        }
        assert!(count == 100 || loss != Loss::Nothing, "{seed}: {uring}");
        timed += count;
    }
    assert!(timed > 2_000, "{timed}");
}
