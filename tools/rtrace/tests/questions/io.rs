// SPDX-License-Identifier: GPL-2.0

//! `rtrace report --io`: requests to block devices.

use super::machine::{packets, Loss, Random, TICK_NS};
use super::{declare, forget, json, packet, report, row, text16, write, IDLE, SHELL, US};
use predicates::str::contains;
use std::path::Path;
use synthetic::{PacketBuilder, OPENAT};
use tempfile::TempDir;

pub const INSERT: u32 = 50;
pub const ISSUE: u32 = 51;
const COMPLETE: u32 = 52;
const REQUEUE: u32 = 53;
pub const READ: u32 = 54;
pub const READ_EXIT: u32 = 55;
pub const WRITE: u32 = 56;
pub const WRITE_EXIT: u32 = 57;
pub const CLOSE: u32 = 58;
pub const CLOSE_EXIT: u32 = 59;
pub const DUP: u32 = 60;
pub const DUP_EXIT: u32 = 61;
pub const SOCKET: u32 = 62;
pub const SOCKET_EXIT: u32 = 63;
pub const EXECVE: u32 = 64;
pub const EXECVE_EXIT: u32 = 65;
pub const SENDFILE: u32 = 66;
pub const SENDFILE_EXIT: u32 = 67;

/// The device 254:1.
const DISK: u32 = (254 << 20) | 1;

/// Describes these events. The `read` and `openat` of the synthetic trace have no descriptors.
pub fn describe(dir: &Path) {
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

/// Returns the fields that all events of a request have in common.
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

pub fn made(id: u32, sector: u64, sectors: u32, rwbs: &str, comm: &str) -> (u32, Vec<u8>) {
    let payload = request(sector, sectors, sectors * 512, rwbs);
    (id, [payload, text16(comm).to_vec()].concat())
}

pub fn done(sector: u64, sectors: u32, error: i32, rwbs: &str) -> (u32, Vec<u8>) {
    (COMPLETE, request(sector, sectors, error as u32, rwbs))
}

/// Adds events to a packet. Their times are microseconds.
pub fn filled(packet: PacketBuilder, events: &[(u64, (u32, Vec<u8>))]) -> PacketBuilder {
    let add = |packet: PacketBuilder, (time, (id, payload)): &(u64, (u32, Vec<u8>))| {
        packet.event(*id, time * US, payload)
    };
    events.iter().fold(packet, add)
}

/// Writes a trace of requests:
/// - a write merged from two, which waits 20 us and is served for 20 us;
/// - a read that completes in two parts;
/// - a failed and a requeued request;
/// - two simultaneous flushes.
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
        // Completion of a flush's sequence, without an issue event.
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

/// Times of a request, in clock ticks since its insert.
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

/// Every request takes the same time, and requests use few sectors. An end matched with another request would
/// have another duration.
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
