// SPDX-License-Identifier: GPL-2.0

//! Facts from the events of the state: names, processes and parents of threads, and open files.

use super::io::{describe, filled, CLOSE, CLOSE_EXIT, READ, READ_EXIT};
use super::{declare, json, packet, text16, write, IDLE, SHELL, US};
use serde_json::{json, Value};
use std::path::Path;
use tempfile::TempDir;

const STATE: u32 = 80;
const OPENED: u32 = 81;
const START: u32 = 82;
/// `O_CLOEXEC`
const CLOEXEC: u32 = 0o2_000_000;

/// Describes these events, and the events of `io`.
fn describe_state(dir: &Path) {
    describe(dir);
    declare(
        dir,
        &[
            (
                STATE,
                "lttng_statedump_process_state",
                &[
                    "i32 tid",
                    "i32 pid",
                    "i32 ppid",
                    "text16 name",
                    "u64 file_table_address",
                ],
            ),
            (
                OPENED,
                "lttng_statedump_file_descriptor",
                &[
                    "u64 file_table_address",
                    "i32 fd",
                    "u32 flags",
                    "string filename",
                ],
            ),
            (START, "lttng_statedump_start", &[]),
        ],
    );
}

fn thread([tid, pid, ppid]: [i32; 3], name: &str, table: u64) -> (u32, Vec<u8>) {
    let ids = [tid, pid, ppid].map(i32::to_le_bytes).concat();
    (
        STATE,
        [&ids[..], &text16(name), &table.to_le_bytes()].concat(),
    )
}

fn opened(table: u64, fd: i32, flags: u32, name: &str) -> (u32, Vec<u8>) {
    let numbers = [fd.to_le_bytes(), flags.to_le_bytes()].concat();
    let name = [name.as_bytes(), b"\0"].concat();
    (OPENED, [&table.to_le_bytes()[..], &numbers, &name].concat())
}

fn call(id: u32, fd: i32) -> (u32, Vec<u8>) {
    (id, fd.to_le_bytes().to_vec())
}

fn ret(id: u32, ret: i64) -> (u32, Vec<u8>) {
    (id, ret.to_le_bytes().to_vec())
}

/// Writes a trace. The shell is a thread of process 5, which shares its files with process 20. The shell reads
/// from three descriptors.
fn known(dir: &Path) {
    let events = [
        (6, thread([5, 5, 1], "first", 0xabc)),
        (7, opened(0xabc, 3, 0, "/var/log/x")),
        (8, opened(0xabc, 4, CLOEXEC, "socket:[12]")),
        (9, thread([7, 5, 1], "sh", 0xabc)),
        (10, thread([20, 20, 5], "other", 0xabc)),
        (11, call(READ, 3)),
        (13, ret(READ_EXIT, 100)),
        (14, call(READ, 4)),
        (15, ret(READ_EXIT, 10)),
        (16, call(CLOSE, 3)),
        (17, ret(CLOSE_EXIT, 0)),
        (18, call(READ, 3)),
        (19, ret(READ_EXIT, 1)),
        // This thread exits, and has no files any more.
        (20, thread([21, 21, 5], "gone", 0)),
    ];
    let packet = filled(packet(0, 0, 0).switch(5 * US, IDLE, SHELL), &events)
        .switch_from(60 * US, SHELL, 1, (20, "other"))
        .close(100 * US, 8);
    write(dir, &[(0, vec![packet])]);
    describe_state(dir);
}

#[test]
fn threads_have_processes_and_parents() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let answer = &json(&["--threads"], dir.path())["threads"]["threads"];
    let row = |tid: i64| -> Value {
        let mut rows = answer.as_array().unwrap().iter();
        let row = rows.find(|row| row["tid"] == tid).unwrap();
        json!([row["pid"], row["ppid"], row["comm"]])
    };
    assert_eq!(row(7), json!([5, 1, "sh"]));
    assert_eq!(row(20), json!([20, 5, "other"]));
}

#[test]
fn open_files_have_names() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let found = &json(&["--io"], dir.path())["io"]["files"]["uses"];
    let row = |key: &str, value: Value| -> Value {
        let mut rows = found.as_array().unwrap().iter();
        let row = rows.find(|row| row[key] == value).unwrap();
        json!([row["pid"], row["comm"], row["read_bytes"]])
    };
    assert_eq!(row("file", json!("/var/log/x")), json!([5, "first", 100]));
    assert_eq!(row("file", json!("socket:[12]")), json!([5, "first", 10]));
    // The descriptor was closed before this read.
    assert_eq!(row("fd", json!(3)), json!([5, "first", 1]));
}

#[test]
fn a_table_may_be_anothers_when_the_state_is_told_again() {
    let dir = TempDir::new().unwrap();
    let events = [
        (6, (START, Vec::new())),
        (7, thread([7, 5, 1], "sh", 0xabc)),
        (8, opened(0xabc, 3, 0, "/mine")),
        // Between the two states, the shell may get another file table.
        (9, (START, Vec::new())),
        (10, thread([20, 20, 5], "other", 0xabc)),
        (11, opened(0xabc, 3, 0, "/other")),
        (12, call(READ, 3)),
        (13, ret(READ_EXIT, 100)),
    ];
    let packet = filled(packet(0, 0, 0).switch(5 * US, IDLE, SHELL), &events).close(100 * US, 8);
    write(dir.path(), &[(0, vec![packet])]);
    describe_state(dir.path());
    let found = &json(&["--io"], dir.path())["io"]["files"]["uses"];
    assert_eq!(found[0]["file"], "/mine", "{found}");
}
