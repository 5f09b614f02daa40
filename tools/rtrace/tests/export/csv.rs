// SPDX-License-Identifier: GPL-2.0

//! `rtrace export csv`.

use super::{bytes, known, packet, write, IDLE, SHELL};
use tempfile::TempDir;

/// Returns the columns and the rows.
fn table(options: &[&str], dir: &TempDir) -> (Vec<String>, Vec<Vec<String>>) {
    let bytes = bytes(&[&["csv"], options].concat(), dir.path());
    let mut reader = csv::Reader::from_reader(bytes.as_slice());
    let words = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
    let columns = words(reader.headers().unwrap());
    // A row with another number of cells is an error.
    let rows = reader.records().map(|row| words(&row.unwrap()));
    (columns, rows.collect())
}

#[test]
fn a_row_for_each_event() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let (columns, rows) = table(&[], &dir);
    assert_eq!(columns, ["time", "cpu", "tid", "comm", "event", "fields"]);
    assert_eq!(rows.len(), 10);
    assert_eq!(
        rows[4],
        [
            "1.000020000",
            "0",
            "7",
            "sh",
            "syscall_entry_openat",
            "filename=/etc/hosts"
        ]
    );
    assert_eq!(
        rows[5],
        [
            "1.000030000",
            "1",
            "",
            "",
            "[LOST 3 EVENTS AND 2 PACKETS]",
            ""
        ]
    );
    assert_eq!(
        rows[7][5],
        "parent_comm=sh parent_tid=7 parent_pid=7 child_comm=a \"b\", c child_tid=8 child_pid=8"
    );
}

#[test]
fn one_event_has_a_column_for_each_field() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let (columns, rows) = table(&["-e", "sched_process_fork"], &dir);
    let fields = [
        "time",
        "cpu",
        "tid",
        "comm",
        "event",
        "parent_comm",
        "parent_tid",
        "parent_pid",
        "child_comm",
        "child_tid",
        "child_pid",
    ];
    assert_eq!(columns, fields);
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0][4], "[LOST 3 EVENTS AND 2 PACKETS]");
    let expected = [
        "1.000050000",
        "0",
        "7",
        "sh",
        "sched_process_fork",
        "sh",
        "7",
        "7",
        "a \"b\", c",
        "8",
        "8",
    ];
    assert_eq!(rows[1], expected);
}

#[test]
fn every_type_has_a_cell() {
    let dir = TempDir::new().unwrap();
    let one = packet(3, 0, 0).every_type(10).close(20, 8);
    write(dir.path(), &[(3, vec![one])]);
    let (columns, rows) = table(&["-e", "every_type"], &dir);
    assert_eq!(columns.len(), 5 + synthetic::every_type().len());
    let cell = |name: &str| {
        let place = columns.iter().position(|column| column == name);
        rows[0][place.unwrap()].as_str()
    };
    assert_eq!(cell("cpu"), "3");
    assert_eq!(cell("time"), "0.000000100");
    assert_eq!(cell("kind"), "HIGH");
    assert_eq!(cell("state"), "a \"wait\"");
    assert_eq!(cell("cpus"), "{-1,7}");
    assert_eq!(cell("uuid"), "{0xde,0xad,0xbe,0xef}");
}

#[test]
fn a_spreadsheet_executes_no_cell() {
    let dir = TempDir::new().unwrap();
    let one = packet(0, 0, 0)
        .switch(10, IDLE, (7, "=cmd|' /C x'!A0"))
        .openat(20, "-1")
        .openat(30, "-1+1")
        .openat(40, "@\x1b[2J")
        .syscall_exit(synthetic::OPENAT_EXIT, 50, -2)
        .close(60, 8);
    write(dir.path(), &[(0, vec![one])]);
    let (_, rows) = table(&["-e", "syscalls"], &dir);
    let cells: Vec<_> = rows.iter().map(|row| row[5].as_str()).collect();
    assert_eq!(
        cells,
        [
            "filename=-1",
            "filename=-1+1",
            r"filename=@\x1b[2J",
            "ret=-2"
        ]
    );
    assert_eq!(rows[0][3], r"\x3dcmd|' /C x'!A0");
    let (_, rows) = table(&["-e", "syscall_entry_openat"], &dir);
    let cells: Vec<_> = rows.iter().map(|row| row[5].as_str()).collect();
    assert_eq!(cells, ["-1", r"\x2d1+1", r"\x40\x1b[2J"]);
    let (_, rows) = table(&["-e", "syscall_exit_openat"], &dir);
    assert_eq!(rows[0][5], "-2");
}

#[test]
fn a_task_is_called_as_the_program_that_it_executes() {
    let dir = TempDir::new().unwrap();
    let one = packet(0, 0, 0)
        .switch(10, IDLE, SHELL)
        .read(20, 0)
        .exec(30, "/usr/bin/a-very-long-name-of-a-program", SHELL.0)
        .read(40, 0)
        .switch(50, (SHELL.0, "renamed"), IDLE)
        .close(60, 8);
    write(dir.path(), &[(0, vec![one])]);
    let (_, rows) = table(&[], &dir);
    let names: Vec<_> = rows.iter().map(|row| row[3].as_str()).collect();
    let long = "a-very-long-nam";
    assert_eq!(names, ["swapper/0", "sh", long, long, "renamed"]);
}
