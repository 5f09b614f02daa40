// SPDX-License-Identifier: GPL-2.0

//! `rtrace report --io`.

use super::machine::{packets, Loss, Random, TICK_NS};
use super::{declare, forget, json, packet, report, row, text16, write, IDLE, SHELL, THREAD, US};
use predicates::str::contains;
use serde_json::Value;
use std::path::Path;
use synthetic::{PacketBuilder, OPENAT, OPENAT_EXIT};
use tempfile::TempDir;

const INSERT: u32 = 50;
const ISSUE: u32 = 51;
const COMPLETE: u32 = 52;
const REQUEUE: u32 = 53;
const READ: u32 = 54;
const READ_EXIT: u32 = 55;
const WRITE: u32 = 56;
const WRITE_EXIT: u32 = 57;
const CLOSE: u32 = 58;
const CLOSE_EXIT: u32 = 59;
const DUP: u32 = 60;
const DUP_EXIT: u32 = 61;
const SOCKET: u32 = 62;
const SOCKET_EXIT: u32 = 63;
const EXECVE: u32 = 64;
const EXECVE_EXIT: u32 = 65;
const SENDFILE: u32 = 66;
const SENDFILE_EXIT: u32 = 67;

/// The device 254:1.
const DISK: u32 = (254 << 20) | 1;

/// Says what is in these events; the trace's own `read` and `openat` have no descriptors.
fn describe(dir: &Path) {
    forget(dir, "syscall_entry_read");
    forget(dir, "syscall_exit_read");
    forget(dir, "syscall_entry_openat");
    const REQUEST: &[&str] = &[
        "u32 dev",
        "u64 sector",
        "u32 nr_sector",
        "u32 bytes",
        "text16 rwbs",
        "text16 comm",
    ];
    const RET: &[&str] = &["i64 ret"];
    const FD: &[&str] = &["i32 fd"];
    declare(
        dir,
        &[
            (INSERT, "block_rq_insert", REQUEST),
            (ISSUE, "block_rq_issue", REQUEST),
            (
                COMPLETE,
                "block_rq_complete",
                &[
                    "u32 dev",
                    "u64 sector",
                    "u32 nr_sector",
                    "i32 error",
                    "text16 rwbs",
                ],
            ),
            (
                REQUEUE,
                "block_rq_requeue",
                &["u32 dev", "u64 sector", "u32 nr_sector", "text16 rwbs"],
            ),
            (READ, "syscall_entry_read", FD),
            (READ_EXIT, "syscall_exit_read", RET),
            (WRITE, "syscall_entry_write", FD),
            (WRITE_EXIT, "syscall_exit_write", RET),
            (CLOSE, "syscall_entry_close", FD),
            (CLOSE_EXIT, "syscall_exit_close", RET),
            (DUP, "syscall_entry_dup", &["i32 fildes"]),
            (DUP_EXIT, "syscall_exit_dup", RET),
            (SOCKET, "syscall_entry_socket", &["i32 type"]),
            (SOCKET_EXIT, "syscall_exit_socket", RET),
            (EXECVE, "syscall_entry_execve", &["string filename"]),
            (EXECVE_EXIT, "syscall_exit_execve", RET),
            (
                SENDFILE,
                "syscall_entry_sendfile64",
                &["i32 out_fd", "i32 in_fd"],
            ),
            (SENDFILE_EXIT, "syscall_exit_sendfile64", RET),
            (
                OPENAT,
                "syscall_entry_openat",
                &["i32 dfd", "i32 flags", "string filename"],
            ),
        ],
    );
}

/// What is the same in all events of a request.
fn request(sector: u64, sectors: u32, with: u32, rwbs: &str) -> Vec<u8> {
    [
        &DISK.to_le_bytes()[..],
        &sector.to_le_bytes(),
        &sectors.to_le_bytes(),
        &with.to_le_bytes(),
        &text16(rwbs),
    ]
    .concat()
}

fn made(id: u32, sector: u64, sectors: u32, rwbs: &str, comm: &str) -> (u32, Vec<u8>) {
    let payload = request(sector, sectors, sectors * 512, rwbs);
    (id, [payload, text16(comm).to_vec()].concat())
}

fn done(sector: u64, sectors: u32, error: i32, rwbs: &str) -> (u32, Vec<u8>) {
    (COMPLETE, request(sector, sectors, error as u32, rwbs))
}

/// These events at these microseconds.
fn filled(packet: PacketBuilder, events: &[(u64, (u32, Vec<u8>))]) -> PacketBuilder {
    let add = |packet: PacketBuilder, (time, (id, payload)): &(u64, (u32, Vec<u8>))| {
        packet.event(*id, time * US, payload)
    };
    events.iter().fold(packet, add)
}

/// A write of two that were merged, waits 20 us and takes 20 us; a read ends in two parts, one fails, one
/// is put back; two flushes at once.
fn requests(dir: &Path) {
    let zero = [
        (10, made(INSERT, 100, 8, "W", "sh")),
        (12, made(INSERT, 108, 8, "WS", "other")),
        (30, made(ISSUE, 100, 16, "W", "kworker")),
        (60, made(ISSUE, 500, 8, "R", "sh")),
        (70, done(500, 4, 0, "R")),
        (90, done(504, 4, 0, "R")),
        (91, made(ISSUE, 0, 0, "FF", "kworker")),
        (92, made(ISSUE, 0, 0, "FF", "kworker")),
        (96, done(u64::MAX, 0, 0, "FF")),
        (97, done(u64::MAX, 0, 0, "FF")),
        // The end of a flush's steps, which nobody issued.
        (98, done(0, 0, 0, "WS")),
    ];
    let requeue = [
        &DISK.to_le_bytes()[..],
        &700_u64.to_le_bytes(),
        &8_u32.to_le_bytes(),
        &text16("R"),
    ];
    let one = [
        (50, done(100, 16, 0, "W")),
        (100, made(ISSUE, 600, 8, "RA", "sh")),
        (101, made(ISSUE, 700, 8, "R", "sh")),
        (102, (REQUEUE, requeue.concat())),
        (110, done(600, 8, -5, "RA")),
        (120, made(ISSUE, 700, 8, "R", "sh")),
        (125, done(700, 8, 0, "R")),
    ];
    let zero = filled(packet(0, 0, 0).switch(5 * US, IDLE, SHELL), &zero);
    let one = filled(packet(1, 0, 0), &one);
    let streams = [
        (0, vec![zero.close(200 * US, 8)]),
        (1, vec![one.close(200 * US, 8)]),
    ];
    write(dir, &streams);
    describe(dir);
}

#[test]
fn requests_are_measured() {
    let dir = TempDir::new().unwrap();
    requests(dir.path());
    let io = &json(&["--io"], dir.path())["io"]["requests"];
    let devices = &io["devices"];
    assert_eq!(devices.as_array().unwrap().len(), 3, "{devices}");
    let write = row(devices, "operation", "write");
    assert_eq!(write["device"], "254:1");
    assert_eq!(
        (&write["requests"], &write["bytes"]),
        (&1.into(), &8192.into())
    );
    assert_eq!(write["queued"]["total_ns"], 20_000);
    assert_eq!(write["served"]["max_ns"], 20_000);
    assert_eq!(write["bytes_per_second"], 8192 * 5000);
    assert_eq!(write["depth_mean"], 0.1);
    let read = row(devices, "operation", "read");
    assert_eq!((&read["requests"], &read["failed"]), (&3.into(), &1.into()));
    assert_eq!(read["bytes"], 3 * 4096);
    assert_eq!(read["depth_max"], 2);
    assert_eq!(read["served"]["timed"], 3);
    assert_eq!(read["served"]["total_ns"], 45_000);
    assert_eq!(read["queued"]["timed"], 0);
    let flush = row(devices, "operation", "flush");
    assert_eq!(
        (&flush["requests"], &flush["bytes"]),
        (&2.into(), &0.into())
    );
    assert_eq!(flush["served"]["total_ns"], 10_000);
    assert_eq!(flush["depth_max"], 2);
    let longest = &io["longest"][0];
    assert_eq!(longest["total_ns"], 40_000);
    assert_eq!(longest["queued_ns"], 20_000);
    assert_eq!(longest["sector"], 100);
    assert_eq!(longest["bytes"], 8192);
    assert_eq!(
        (&longest["tid"], &longest["comm"]),
        (&7.into(), &"sh".into())
    );
    assert_eq!(longest["begin_ns"], 1_700_000_000_000_010_000_u64);
}

#[test]
fn text_has_the_same() {
    let dir = TempDir::new().unwrap();
    requests(dir.path());
    report(&["--io"], dir.path())
        .assert()
        .success()
        .stdout(contains(
            "         3        1   12.0 KiB     58.6 MiB      0.225         2  254:1    read\n",
        ))
        .stdout(contains("insert to issue, 254:1 write\n"))
        .stdout(contains(
            "   40.0 us    20.0 us  22:13:20.000010000 254:1    write             100    8.0 KiB        7  sh\n",
        ))
        .stdout(contains("No process read or wrote by a system call."));
}

fn call(id: u32, fd: i32) -> (u32, Vec<u8>) {
    (id, fd.to_le_bytes().to_vec())
}

fn ret(id: u32, ret: i64) -> (u32, Vec<u8>) {
    (id, ret.to_le_bytes().to_vec())
}

fn open(dfd: i32, flags: i32, name: &str) -> (u32, Vec<u8>) {
    let numbers = [dfd, flags].map(i32::to_le_bytes).concat();
    (OPENAT, [&numbers, name.as_bytes(), b"\0"].concat())
}

/// `O_CLOEXEC`
const CLOEXEC: i32 = 0o2_000_000;
/// `AT_FDCWD`
const CWD: i32 = -100;

/// What the shell and its child do with files: from here on without losses.
fn calls() -> Vec<(u64, (u32, Vec<u8>))> {
    vec![
        // Before its entry is known.
        (9, ret(READ_EXIT, 5)),
        (10, open(CWD, 0, "/etc")),
        (11, ret(OPENAT_EXIT, 3)),
        (12, open(3, CLOEXEC, "hosts")),
        (13, ret(OPENAT_EXIT, 4)),
        (14, call(READ, 4)),
        (16, ret(READ_EXIT, 100)),
        (17, call(DUP, 4)),
        (18, ret(DUP_EXIT, 5)),
        (19, call(READ, 5)),
        (22, ret(READ_EXIT, 50)),
        (23, call(READ, 5)),
        (24, ret(READ_EXIT, -11)),
        (25, call(CLOSE, 3)),
        (26, ret(CLOSE_EXIT, 0)),
        (27, call(READ, 3)),
        (28, ret(READ_EXIT, 0)),
        (29, call(SOCKET, 1)),
        (30, ret(SOCKET_EXIT, 3)),
        (31, call(WRITE, 3)),
        (33, ret(WRITE_EXIT, 1000)),
        (34, call(WRITE, 1)),
        (35, ret(WRITE_EXIT, 7)),
        (36, (SENDFILE, [3, 5].map(i32::to_le_bytes).concat())),
        (40, ret(SENDFILE_EXIT, 20)),
    ]
}

fn files(dir: &Path, lost: bool) {
    let zero = filled(packet(0, 0, 0).switch(5 * US, IDLE, SHELL), &calls())
        .fork(50 * US, SHELL, THREAD, THREAD.0)
        .switch_from(60 * US, SHELL, 1, THREAD)
        .close(100 * US, 8);
    let behind = [
        (110, call(READ, 4)),
        (112, ret(READ_EXIT, 10)),
        (113, (EXECVE, b"/bin/true\0".to_vec())),
        (114, ret(EXECVE_EXIT, 0)),
        // That was to be closed then, this was not.
        (115, call(READ, 4)),
        (116, ret(READ_EXIT, 1)),
        (117, call(READ, 5)),
        (118, ret(READ_EXIT, 2)),
    ];
    let behind = filled(packet(0, 1, 100 * US), &behind).close(200 * US, 8);
    let one = [
        packet(1, 0, 0).close(70 * US, 8),
        packet(1, 1 + u64::from(lost), 80 * US).close(200 * US, 8),
    ];
    write(dir, &[(0, vec![zero, behind]), (1, one.to_vec())]);
    describe(dir);
}

/// The row of a process and a file, or of a descriptor.
fn used<'a>(uses: &'a Value, pid: i64, key: &str, file: impl Into<Value>) -> &'a Value {
    let file = file.into();
    let mut rows = uses.as_array().unwrap().iter();
    // The shell's process is known only once it has made another.
    let is = |row: &&Value| (row["pid"] == pid || row["tid"] == pid) && row[key] == file;
    rows.find(is)
        .unwrap_or_else(|| panic!("{pid} {file} in {uses}"))
}

#[test]
fn files_have_names() {
    let dir = TempDir::new().unwrap();
    files(dir.path(), false);
    let found = &json(&["--io"], dir.path())["io"]["files"];
    assert_eq!(found["unknown"], 1);
    let uses = &found["uses"];
    assert_eq!(uses.as_array().unwrap().len(), 6, "{uses}");
    let hosts = used(uses, 7, "file", "/etc/hosts");
    assert_eq!(
        (&hosts["reads"], &hosts["read_bytes"]),
        (&3.into(), &170.into())
    );
    assert_eq!(
        (&hosts["errors"], &hosts["total_ns"]),
        (&1.into(), &10_000.into())
    );
    assert_eq!(hosts["max_ns"], 4_000);
    let socket = used(uses, 7, "file", "[socket]");
    assert_eq!(
        (&socket["writes"], &socket["written_bytes"]),
        (&2.into(), &1020.into())
    );
    let closed = used(uses, 7, "fd", 3);
    assert_eq!(
        (&closed["reads"], &closed["file"]),
        (&1.into(), &Value::Null)
    );
    assert_eq!(used(uses, 7, "fd", 1)["written_bytes"], 7);
}

/// A child has the descriptors of who made it, but for those that another program does not get.
#[test]
fn files_are_inherited_but_not_across_a_loss() {
    for lost in [false, true] {
        let dir = TempDir::new().unwrap();
        files(dir.path(), lost);
        let uses = &json(&["--io"], dir.path())["io"]["files"]["uses"];
        let child = |key, file: Value| used(uses, 8, key, file)["read_bytes"].clone();
        if lost {
            assert_eq!(child("fd", 4.into()), 11);
            assert_eq!(child("fd", 5.into()), 2);
        } else {
            assert_eq!(child("file", "/etc/hosts".into()), 12);
            assert_eq!(child("fd", 4.into()), 1);
        }
        report(&["--io"], dir.path())
            .assert()
            .success()
            .stdout(contains("worker           fd 4 of worker\n"))
            .stdout(contains(
                "Of 1 reads and writes it is not known of which file",
            ));
    }
}

#[test]
fn what_the_trace_lacks_is_said() {
    let dir = TempDir::new().unwrap();
    files(dir.path(), false);
    let without = |prefixes: &[&str]| prefixes.iter().for_each(|name| forget(dir.path(), name));
    without(&["block_rq_issue"]);
    report(&["--io"], dir.path())
        .assert()
        .success()
        .stdout(contains("`rtrace record -e 'block_rq_*'` has them"));
    without(&["sched_switch"]);
    report(&["--io"], dir.path())
        .assert()
        .code(1)
        .stderr(contains(
            "--io needs block_rq_issue and block_rq_complete, or",
        ));
}

/// A request, in clock ticks since its insert.
const TO_ISSUE: u64 = 1_000;
const TO_END: u64 = 4_000;

#[derive(Clone, Copy)]
struct Step {
    id: u32,
    sector: u64,
}

fn step(packet: PacketBuilder, time: u64, Step { id, sector }: Step) -> PacketBuilder {
    let (id, payload) = match id {
        COMPLETE => done(sector, 8, 0, "R"),
        id => made(id, sector, 8, "R", "sh"),
    };
    packet.event(id, time, &payload)
}

/// Every request takes the same time, at few places: one that ends for another would show.
#[test]
fn no_request_is_measured_across_a_loss() {
    let mut timed = 0;
    for seed in 0..60 {
        let loss = [Loss::Nothing, Loss::Packets, Loss::Events][seed as usize % 3];
        let random = &mut Random(seed);
        let mut events = vec![Vec::new(); 3];
        for number in 0..100 {
            let begin = 10 + number * 2_500;
            let sector = number % 5 * 100;
            for (after, id) in [(0, INSERT), (TO_ISSUE, ISSUE), (TO_END, COMPLETE)] {
                let cpu = random.below(3) as usize;
                events[cpu].push((begin + after, Step { id, sector }));
            }
        }
        let streams: Vec<_> = (0_u32..)
            .zip(&mut events)
            .map(|(cpu, events)| {
                events.sort_by_key(|(time, _)| *time);
                (cpu, packets(random, cpu, events, loss, 300_000, step))
            })
            .collect();
        let dir = TempDir::new().unwrap();
        write(dir.path(), &streams);
        describe(dir.path());
        let devices = &json(&["--io"], dir.path())["io"]["requests"]["devices"];
        let read = row(devices, "operation", "read");
        for (step, ticks) in [("queued", TO_ISSUE), ("served", TO_END - TO_ISSUE)] {
            let count = read[step]["timed"].as_u64().unwrap();
            let ns = ticks * TICK_NS;
            assert_eq!(read[step]["total_ns"], count * ns, "{seed}: {read}");
            assert!(count == 0 || read[step]["max_ns"] == ns, "{seed}: {read}");
            assert!(count == 100 || loss != Loss::Nothing, "{seed}: {read}");
            timed += count;
        }
    }
    assert!(timed > 6_000, "{timed}");
}
