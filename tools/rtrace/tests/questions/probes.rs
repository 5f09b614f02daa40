// SPDX-License-Identifier: GPL-2.0

//! Durations of calls whose return a probe records (`-k 'f -> ret'`), in `rtrace report` and `rtrace trace -i`.

use super::{declare, json, packet, report, write, IDLE, SHELL, US};
use assert_cmd::Command;
use predicates::str::contains;
use std::path::Path;
use tempfile::TempDir;

const READ: u32 = 20;
const WRITE: u32 = 21;

/// Returns a return with this result, after a call of this length.
fn returned(ret: i64, nanoseconds: u64) -> Vec<u8> {
    let mut fields = ret.to_le_bytes().to_vec();
    fields.extend(nanoseconds.to_le_bytes());
    fields
}

fn known(dir: &Path) {
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, SHELL)
        .event(READ, 20 * US, &returned(1000, 4_000))
        .event(WRITE, 30 * US, &returned(-9, 7_000))
        .event(READ, 40 * US, &returned(0, 2_000))
        .close(200 * US, 8);
    write(dir, &[(0, vec![zero])]);
    let fields: &[&str] = &["i64 ret", "u64 duration_ns"];
    let events = [
        (READ, "vfs_read__return", fields),
        (WRITE, "vfs_write__return", fields),
    ];
    declare(dir, &events);
}

#[test]
fn a_report_has_a_row_for_each_function() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let probes = &json(&[], dir.path())["probes"];
    let rows: Vec<_> = probes.as_array().unwrap().iter().collect();
    assert_eq!(rows.len(), 2, "{probes}");
    let expected = [
        ("vfs_write__return", 1, 7_000, 7_000),
        ("vfs_read__return", 2, 6_000, 4_000),
    ];
    for (row, (name, timed, total, max)) in rows.into_iter().zip(expected) {
        assert_eq!(row["name"], name);
        assert_eq!(row["timed"], timed);
        assert_eq!(row["total_ns"], total);
        assert_eq!(row["max_ns"], max);
    }
    report(&[], dir.path()).assert().success().stdout(contains(
        "         2     6.0 us     3.0 us     2.0 us     4.0 us     4.0 us     4.0 us  vfs_read__return\n",
    ));
}

#[test]
fn a_line_has_the_duration_of_its_call() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let mut command = Command::cargo_bin("rtrace").unwrap();
    let printed = command.args(["trace", "-i"]).arg(dir.path()).assert();
    printed.success().stdout(contains(
        "22:13:20.000020000     4.0 us sh/7 vfs_read__return(ret: 1000)\n",
    ));
}
