// SPDX-License-Identifier: GPL-2.0

//! `rtrace report --io`: files.

use super::io::{
    describe, filled, CLOSE, CLOSE_EXIT, DUP, DUP_EXIT, EXECVE, EXECVE_EXIT, READ, READ_EXIT,
    SENDFILE, SENDFILE_EXIT, SOCKET, SOCKET_EXIT, WRITE, WRITE_EXIT,
};
use super::machine::{packets, Loss, Random};
use super::{declare, forget, json, packet, report, write, IDLE, SHELL, THREAD, US};
use assert_cmd::Command;
use predicates::str::contains;
use serde_json::Value;
use std::fs;
use std::path::Path;
use synthetic::{PacketBuilder, OPENAT, OPENAT_EXIT};
use tempfile::TempDir;

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

/// Returns file operations of the shell. All of them are recorded.
fn calls() -> Vec<(u64, (u32, Vec<u8>))> {
    vec![
        // The entry of this call was not recorded.
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
        // execve has closed this descriptor, but not the next one.
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

/// Returns the row of a process and a file, or of a descriptor.
fn used<'a>(uses: &'a Value, pid: i64, key: &str, file: impl Into<Value>) -> &'a Value {
    let file = file.into();
    let mut rows = uses.as_array().unwrap().iter();
    // The shell's process is known only after the shell has created another process.
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

/// Before 2.6, LTTng has one event for the ends of all calls. The answers are those of a trace with an event for each.
#[test]
fn one_event_ends_every_call() {
    const EXITS: [u32; 7] = [
        OPENAT_EXIT,
        READ_EXIT,
        DUP_EXIT,
        CLOSE_EXIT,
        SOCKET_EXIT,
        WRITE_EXIT,
        SENDFILE_EXIT,
    ];
    const COMMON: u32 = 90;
    let [own, common] = [false, true].map(|is_common| {
        let dir = TempDir::new().unwrap();
        // Without the end of a call that was not recorded.
        let events = calls().into_iter().skip(1);
        let events = events.map(
            |(time, (id, payload))| match is_common && EXITS.contains(&id) {
                true => (time, (COMMON, payload)),
                false => (time, (id, payload)),
            },
        );
        let events: Vec<_> = events.collect();
        let shell = packet(0, 0, 0).switch(5 * US, IDLE, SHELL);
        let zero = filled(shell, &events).close(100 * US, 8);
        // The end of a call that was not recorded, and an end of another thread.
        let one = packet(1, 0, 0).switch(5 * US, IDLE, THREAD);
        let one = match is_common {
            true => filled(one, &[(6, ret(COMMON, 1)), (15, ret(COMMON, 2))]),
            false => one,
        };
        let streams = [(0, vec![zero]), (1, vec![one.close(100 * US, 8)])];
        write(dir.path(), &streams);
        describe(dir.path());
        if is_common {
            forget(dir.path(), "syscall_exit_");
            declare(dir.path(), &[(COMMON, "exit_syscall", &["i64 ret"])]);
        }
        let answer = json(&["--io", "--syscalls", "--by-process"], dir.path());
        (answer["io"].clone(), answer["syscalls"].clone())
    });
    assert_eq!(own.1["untimed"], 0);
    assert_eq!(own, common);
}

/// The SQL table has the rows of the report, and each call has its file.
#[test]
fn files_are_a_table() {
    let dir = TempDir::new().unwrap();
    files(dir.path(), false);
    let query = |sql: &str| -> Value {
        let mut command = Command::cargo_bin("rtrace").unwrap();
        command
            .args(["query", "--format", "json", sql])
            .arg(dir.path());
        let assert = command.assert().success();
        let answer: Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
        answer["rows"].clone()
    };
    let found = &json(&["--io", "-n", "0"], dir.path())["io"]["files"]["uses"];
    let columns = [
        ("pid", "pid"),
        ("tid", "tid"),
        ("comm", "comm"),
        ("path", "file"),
        ("fd", "fd"),
        ("reads", "reads"),
        ("read_bytes", "read_bytes"),
        ("writes", "writes"),
        ("written_bytes", "written_bytes"),
        ("errors", "errors"),
        ("duration_ns", "total_ns"),
        ("max_ns", "max_ns"),
    ];
    let mut expected: Vec<Value> = Vec::new();
    for row in found.as_array().unwrap() {
        let cells = columns.map(|(column, name)| (column.to_owned(), row[name].clone()));
        expected.push(Value::Object(cells.into_iter().collect()));
    }
    let names = columns.map(|(column, _)| column).join(", ");
    let rows = query(&format!("SELECT {names} FROM files"));
    let sorted = |rows: &[Value]| {
        let mut rows: Vec<_> = rows.iter().map(Value::to_string).collect();
        rows.sort();
        rows
    };
    assert_eq!(sorted(rows.as_array().unwrap()), sorted(&expected));
    let rows = query("SELECT DISTINCT path FROM syscalls WHERE name = 'read' AND ret = 100");
    assert_eq!(rows[0]["path"], "/etc/hosts", "{rows}");
    // The report's rows in another order.
    let uses = &json(&["--io", "--sort", "writes"], dir.path())["io"]["files"]["uses"];
    let writes = uses.as_array().unwrap().iter();
    let writes: Vec<_> = writes.map(|row| row["writes"].as_u64().unwrap()).collect();
    assert!(
        writes[0] == 2 && writes.is_sorted_by(|a, b| a >= b),
        "{writes:?}"
    );
    report(&["--io", "--sort", "blocked"], dir.path())
        .assert()
        .code(2)
        .stderr(contains("are for --threads"));
}

/// A child inherits the descriptors of its parent. Executing a program closes some of them.
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
            .stdout(contains("1 reads and writes have no known file"));
    }
}

/// The lines of `rtrace trace` have file names, too. A descriptor has no name if a missing call may have closed
/// it.
#[test]
fn lines_name_files() {
    let dir = TempDir::new().unwrap();
    files(dir.path(), false);
    let lines = || {
        let mut command = Command::cargo_bin("rtrace").unwrap();
        let output = command.args(["trace", "-i"]).arg(dir.path()).assert();
        String::from_utf8(output.success().get_output().stdout.clone()).unwrap()
    };
    assert!(!lines().contains("</etc"), "{}", lines());
    const RET: &[&str] = &["i64 ret"];
    const DUP2: &[&str] = &["i32 oldfd", "i32 newfd"];
    declare(
        dir.path(),
        &[
            (900, "syscall_entry_close_range", &["i32 fd"]),
            (901, "syscall_exit_close_range", RET),
            (902, "syscall_entry_dup2", DUP2),
            (903, "syscall_exit_dup2", RET),
            (904, "syscall_entry_dup3", DUP2),
            (905, "syscall_exit_dup3", RET),
            (906, "syscall_entry_fcntl", &["i32 fd"]),
            (907, "syscall_exit_fcntl", RET),
            (908, "syscall_entry_ioctl", &["i32 fd"]),
            (909, "syscall_exit_ioctl", RET),
        ],
    );
    let all = lines();
    for expected in [
        "/7 openat(dfd: AT_FDCWD, filename: \"/etc\", flags: O_RDONLY) = 3</etc>\n",
        "/7 openat(dfd: 3</etc>, filename: \"hosts\", flags: O_RDONLY|O_CLOEXEC) = 4</etc/hosts>\n",
        "/7 read(fd: 4</etc/hosts>) = 100\n",
        "/7 dup(fildes: 4</etc/hosts>) = 5</etc/hosts>\n",
        "/7 close(fd: 3</etc>) = 0\n",
        "/7 read(fd: 3) = 0\n",
        "/7 sendfile64(out_fd: 3<[socket]>, in_fd: 5</etc/hosts>) = 20\n",
        "/7 write(fd: 1) = 7\n",
        "/8 read(fd: 4</etc/hosts>) = 10\n",
        "/8 read(fd: 4) = 1\n",
        "/8 read(fd: 5</etc/hosts>) = 2\n",
    ] {
        assert!(all.contains(expected), "{expected} in {all}");
    }
    // A trace needs only the calls that its processor has. arm64 has no dup2.
    forget(dir.path(), "syscall_entry_dup2");
    forget(dir.path(), "syscall_exit_dup2");
    assert!(!lines().contains("</etc"), "{}", lines());
    let path = dir.path().join("metadata");
    let text = fs::read_to_string(&path).unwrap();
    let arm64 = text.replacen("env {", "env {\n\tarchitecture = \"aarch64\";", 1);
    fs::write(&path, arm64).unwrap();
    assert!(
        lines().contains("/7 close(fd: 3</etc>) = 0\n"),
        "{}",
        lines()
    );
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
        .stdout(contains(
            "`rtrace record -e 'block:block_rq_*'` records them",
        ));
    without(&["sched_switch"]);
    report(&["--io"], dir.path())
        .assert()
        .code(125)
        .stderr(contains(
            "--io needs block_rq_issue and block_rq_complete, or",
        ));
}

#[derive(Clone, Copy)]
enum Act {
    /// Opens the file with this number.
    Open(u64),
    Opened(i64),
    Close(i32),
    Read(i32),
    /// The call with this exit returned this value.
    Done(u32, i64),
    /// The thread leaves its CPU. `To`: the thread gets a CPU.
    From,
    To,
}

fn act(packet: PacketBuilder, time: u64, act: Act) -> PacketBuilder {
    let (id, payload) = match act {
        Act::From => return packet.switch_from(time, SHELL, 1, IDLE),
        Act::To => return packet.switch(time, IDLE, SHELL),
        Act::Open(file) => open(CWD, 0, &file.to_string()),
        Act::Opened(fd) => ret(OPENAT_EXIT, fd),
        Act::Close(fd) => call(CLOSE, fd),
        Act::Read(fd) => call(READ, fd),
        Act::Done(id, value) => ret(id, value),
    };
    packet.event(id, time, &payload)
}

/// A thread moves between CPUs. It opens files, reads from each file the number of bytes in its name, and
/// closes it. Later files reuse the descriptors. A read that counts for a wrong file would have a wrong number
/// of bytes.
#[test]
fn no_file_is_named_across_a_loss() {
    let mut named = 0;
    for seed in 0..60 {
        let loss = [Loss::Nothing, Loss::Packets, Loss::Events][seed as usize % 3];
        let random = &mut Random(seed);
        let mut events = vec![Vec::new(); 2];
        let (mut time, mut cpu, mut reads) = (10, 0, 0);
        let mut add = |cpu: usize, acts: &[Act]| {
            for act in acts {
                time += 10;
                events[cpu].push((time, *act));
            }
        };
        add(cpu, &[Act::To]);
        // Open files by descriptor, from 3 on.
        let mut files = [None; 3];
        for file in 1..200 {
            let slot = random.below(3) as usize;
            let fd = slot as i32 + 3;
            match files[slot] {
                None => {
                    files[slot] = Some(file);
                    add(cpu, &[Act::Open(file), Act::Opened(i64::from(fd))]);
                }
                Some(_) if random.below(3) == 0 => {
                    files[slot] = None;
                    add(cpu, &[Act::Close(fd), Act::Done(CLOSE_EXIT, 0)]);
                }
                Some(open) => {
                    reads += 1;
                    add(cpu, &[Act::Read(fd), Act::Done(READ_EXIT, open as i64)]);
                }
            }
            if random.below(5) == 0 {
                add(cpu, &[Act::From]);
                cpu = 1 - cpu;
                add(cpu, &[Act::To]);
            }
        }
        let streams: Vec<_> = (0_u32..)
            .zip(&events)
            .map(|(cpu, events)| (cpu, packets(random, cpu, events, loss, time, act)))
            .collect();
        let dir = TempDir::new().unwrap();
        write(dir.path(), &streams);
        describe(dir.path());
        let uses = &json(&["--io"], dir.path())["io"]["files"]["uses"];
        let mut found = 0;
        for row in uses.as_array().unwrap() {
            let count = row["reads"].as_u64().unwrap();
            if let Some(file) = row["file"].as_str() {
                let bytes = count * file.parse::<u64>().unwrap();
                assert_eq!(row["read_bytes"], bytes, "{seed}: {row}");
                found += count;
            }
        }
        assert!(found == reads || loss != Loss::Nothing, "{seed}: {uses}");
        named += found;
    }
    assert!(named > 2_500, "{named}");
}
