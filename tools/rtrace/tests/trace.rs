// SPDX-License-Identifier: GPL-2.0

//! `rtrace trace -i` on synthetic traces. Live lines look the same.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use rtrace_abi::header::Layout;
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::Path;
use std::process::{self, Stdio};
use synthetic::{PacketBuilder, OPENAT, OPENAT_EXIT, READ_EXIT};
use tempfile::TempDir;

/// Microseconds in clock ticks.
const US: u64 = synthetic::FREQUENCY / 1_000_000;

const IDLE: (i32, &str) = (0, "swapper/0");
const SHELL: (i32, &str) = (7, "sh");
const OTHER: (i32, &str) = (8, "cc\x1b1");

fn packet(cpu: u32, number: u64, begin: u64) -> PacketBuilder {
    PacketBuilder::new(Layout::Compact, cpu, number, begin)
}

/// Adds a call of openat with the kernel's order of fields: numbers first.
fn openat(
    builder: PacketBuilder,
    time: u64,
    dfd: i32,
    flags: u32,
    mode: u16,
    name: &[u8],
) -> PacketBuilder {
    let mut payload = dfd.to_le_bytes().to_vec();
    payload.extend(flags.to_le_bytes());
    payload.extend(mode.to_le_bytes());
    payload.extend(name);
    payload.push(0);
    builder.event(OPENAT, time, &payload)
}

/// Writes a trace whose `openat` has all arguments.
fn write(dir: &Path, streams: &[(u32, Vec<Vec<u8>>)]) {
    synthetic::write(dir, Layout::Compact, streams).unwrap();
    let path = dir.join("metadata");
    let text = fs::read_to_string(&path).unwrap();
    let at = text.find("name = \"syscall_entry_openat\"").unwrap();
    let (before, after) = text.split_at(at);
    let fields = "integer { size = 32; align = 8; signed = true; } _dfd;
\t\tinteger { size = 32; align = 8; signed = false; base = 16; } _flags;
\t\tinteger { size = 16; align = 8; signed = false; } _mode;
\t\tstring _filename;";
    fs::write(
        &path,
        before.to_owned() + &after.replacen("string _filename;", fields, 1),
    )
    .unwrap();
}

/// Returns the command `rtrace trace -i` with these options.
fn trace(dir: &Path, options: &[&str]) -> Command {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    command.arg("trace").arg("-i").arg(dir).args(options);
    command
}

/// Returns the printed lines. Standard error must have these totals.
fn lines(dir: &Path, totals: &str) -> Vec<String> {
    let output = trace(dir, &[]).assert().success();
    let output = output.get_output();
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        format!("rtrace: {totals}\n")
    );
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Writes a trace. `sh` opens a file, reads while another task fails to open a file, and continues on another
/// CPU.
fn calls(dir: &Path) {
    let zero = packet(0, 0, 0).switch(US, IDLE, SHELL);
    let zero = openat(zero, 10 * US, -100, 0o2000000, 0, b"/a\"b\n\xff")
        .syscall_exit(OPENAT_EXIT, 12 * US, 3)
        .read(20 * US, 0x7f00)
        .switch_from(21 * US, SHELL, 1, OTHER);
    let zero = openat(zero, 30 * US, 5, 0o101, 0o640, b"x")
        .syscall_exit(OPENAT_EXIT, 31 * US, -2)
        .read(90 * US, 0)
        .close(100 * US, 8);
    let one = packet(1, 0, 0)
        .switch(40 * US, (0, "swapper/1"), SHELL)
        .syscall_exit(READ_EXIT, 1520 * US, 512)
        .close(2000 * US, 8);
    write(dir, &[(0, vec![zero]), (1, vec![one])]);
}

#[test]
fn a_call_is_one_line() {
    let dir = TempDir::new().unwrap();
    calls(dir.path());
    let switch = |prev: (i32, &str), state, next: (i32, &str)| {
        format!(
            "sched_switch(prev_comm: \"{}\", prev_tid: {}, prev_prio: 20, prev_state: {state}, \
             next_comm: \"{}\", next_tid: {}, next_prio: 20)",
            prev.1, prev.0, next.1, next.0
        )
    };
    let other = (8, "cc\\x1b1");
    let expected = [
        format!(
            "22:13:20.000001000            swapper/0 {}",
            switch(IDLE, 0, SHELL)
        ),
        "22:13:20.000012000     2.0 us sh/7 openat(dfd: AT_FDCWD, filename: \"/a\\\"b\\n\\xff\", \
         flags: O_RDONLY|O_CLOEXEC) = 3"
            .to_owned(),
        format!(
            "22:13:20.000021000            sh/7 {}",
            switch(SHELL, 1, other)
        ),
        "22:13:20.000031000     1.0 us cc\\x1b1/8 openat(dfd: 5, filename: \"x\", flags: \
         O_WRONLY|O_CREAT, mode: 0640) = -1 ENOENT (No such file or directory)"
            .to_owned(),
        format!(
            "22:13:20.000040000            swapper/0 {}",
            switch((0, "swapper/1"), 0, SHELL)
        ),
        "22:13:20.001520000     1.5 ms sh/7 read(buf: 0x7f00) = 512".to_owned(),
        "22:13:20.001520000            cc\\x1b1/8 read(buf: NULL) <unfinished ...>".to_owned(),
    ];
    assert_eq!(lines(dir.path(), "10 events recorded, 0 lost"), expected);
}

#[test]
fn what_is_not_whole_is_said() {
    let dir = TempDir::new().unwrap();
    let first = packet(0, 0, 0)
        // The thread on the CPU is not known yet.
        .syscall_exit(READ_EXIT, US, 1)
        .switch(2 * US, IDLE, SHELL)
        .syscall_exit(OPENAT_EXIT, 3 * US, -514)
        .read(4 * US, 1)
        .close(5 * US, 4096);
    // The read may have ended in the gap, and this exit may belong to another read. The running thread is
    // unknown, because a switch may be missing, too.
    let second = packet(0, 1, 10 * US)
        .discarded(7)
        .switch(11 * US, IDLE, SHELL)
        .syscall_exit(READ_EXIT, 12 * US, 2)
        .read(13 * US, 3)
        .close(15 * US, 4096);
    let third = packet(0, 4, 20 * US)
        .discarded(7)
        .switch(21 * US, IDLE, SHELL)
        .read(22 * US, 4)
        .syscall_exit(READ_EXIT, 23 * US, 4)
        .close(25 * US, 4096);
    write(dir.path(), &[(0, vec![first, second, third])]);
    let mut found = lines(
        dir.path(),
        "10 events recorded, 7 lost and the events in 2 lost packets",
    );
    found.retain(|line| !line.contains("sched_switch"));
    let expected = [
        "22:13:20.000001000            swapper/0 <... read resumed> = 1",
        "22:13:20.000003000            sh/7 <... openat resumed> = ? ERESTARTNOHAND (To be restarted if \
         no handler)",
        "22:13:20.000004000 LOST 7 events on CPU 0",
        "22:13:20.000012000            ?/? <... read resumed> = 2",
        "22:13:20.000013000            ?/? read(buf: 0x3) <unfinished ...>",
        "22:13:20.000015000 LOST 2 packets on CPU 0",
        "22:13:20.000022000            sh/7 read(buf: 0x1) <unfinished ...>",
        "22:13:20.000023000     1.0 us sh/7 read(buf: 0x4) = 4",
    ];
    assert_eq!(found, expected);
}

#[test]
fn every_type_has_a_text() {
    let dir = TempDir::new().unwrap();
    let packet = packet(0, 0, 0).every_type(US).close(2 * US, 8);
    write(dir.path(), &[(0, vec![packet])]);
    let expected = "22:13:20.000001000            ?/? every_type(ready: 1, level: -3, mask: 0x1abc, \
                    kind: HIGH, wide: 9305357566071262703, state: a \"wait\", uuid: [0xde, 0xad, 0xbe, \
                    0xef], pairs: [1, 2, 3, 0, 1], name_offset: 32, cpus_offset: 34, name: \"ab\", \
                    cpus: [-1, 7], path: \"/p\")";
    assert_eq!(lines(dir.path(), "1 events recorded, 0 lost"), [expected]);
}

/// `--summary` prints the table of `rtrace report` after the lines, also into a file.
#[test]
fn the_summary_is_that_of_report() {
    let dir = TempDir::new().unwrap();
    calls(dir.path());
    let report = Command::cargo_bin("rtrace")
        .unwrap()
        .args(["report", "--syscalls"])
        .arg(dir.path())
        .assert()
        .success();
    let report = String::from_utf8(report.get_output().stdout.clone()).unwrap();
    let begin = report.find("     calls ").unwrap();
    let end = report.find("\n10 events recorded").unwrap();
    let table = &report[begin..end];
    assert!(table.contains("openat\n"), "{table}");
    let file = dir.path().join(".lines");
    let to_file = ["--summary", "-o", file.to_str().unwrap()];
    trace(dir.path(), &to_file).assert().success().stdout("");
    let text = fs::read_to_string(file).unwrap();
    let (lines, found) = text.split_at(text.find("     calls ").unwrap());
    assert_eq!(found, table);
    assert_eq!(lines.lines().count(), 8);
    trace(dir.path(), &["--summary", "-n", "1"])
        .assert()
        .success()
        .stdout(contains("1         more system calls"));
}

#[test]
fn errors_say_what_and_where() {
    let dir = TempDir::new().unwrap();
    trace(&dir.path().join("nowhere"), &[])
        .assert()
        .code(125)
        .stderr(contains("nowhere").and(contains("cannot read")));
    let file = dir.path().join("notes.txt");
    fs::write(&file, "not a trace\n").unwrap();
    trace(&file, &[]).assert().code(125).stderr(contains(
        "notes.txt is not a trace: the file has none of the formats that rtrace reads (trace.dat",
    ));
    let file = dir.path().join("trace.pftrace");
    fs::write(&file, [10, 2, 8, 1, 10, 2, 8, 1]).unwrap();
    trace(&file, &[]).assert().code(125).stderr(
        contains("trace.pftrace").and(contains("a trace of Perfetto, which rtrace does not read")),
    );
    for number in ["1", "2"] {
        let place = dir.path().join("snapshots").join(number);
        fs::create_dir_all(&place).unwrap();
        write(&place, &[(0, vec![packet(0, 0, 0).close(US, 8)])]);
    }
    trace(&dir.path().join("snapshots"), &[])
        .assert()
        .failure()
        .stderr(contains("snapshots/1 to ").and(contains("snapshots/2; give one of them")));
    let bad = packet(0, 0, 0).event(30, US, &[]).close(2 * US, 8);
    write(dir.path(), &[(0, vec![bad])]);
    trace(dir.path(), &[]).assert().code(1).stderr(contains(
        "channel0_cpu0: at byte 84: an event of unknown id 30",
    ));
    for (options, said) in [
        (&["-b", "64Kx4"][..], "cannot be used with"),
        (&["-n", "3"], "--summary"),
        (&["-Z", "-c"], "cannot be used with"),
        (&["--filter", "ret < 0", "-c"], "counts all calls"),
        (&["--session", "x"], "creates its own session"),
    ] {
        trace(dir.path(), options)
            .assert()
            .code(2)
            .stderr(contains(said));
    }
    let path = dir.path().join("metadata");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(path, text.replace("syscall_", "call_")).unwrap();
    trace(dir.path(), &["--summary"])
        .assert()
        .code(125)
        .stderr(contains("--summary: ").and(contains("does not have")));
}

/// If the reader of the output closes the pipe, the command ends without a message.
#[test]
fn a_closed_pipe_is_the_end() {
    let dir = TempDir::new().unwrap();
    let packets = (0..50).map(|number| {
        let begin = number * 10_000 * US;
        let events = (0..1000).fold(packet(0, number, begin), |packet, event| {
            packet.softirq(begin + event * US, 1)
        });
        events.close(begin + 9_999 * US, 4096)
    });
    write(dir.path(), &[(0, packets.collect())]);
    let mut child = process::Command::new(assert_cmd::cargo::cargo_bin("rtrace"))
        .args(["trace", "-i"])
        .arg(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut begin = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut begin).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_file_is_for_its_owner_and_new_unless_forced() {
    let dir = TempDir::new().unwrap();
    let place = dir.path().join("trace");
    write(&place, &[(0, vec![packet(0, 0, 1000).close(2000, 8)])]);
    let file = dir.path().join("lines");
    let to_file = ["-o", file.to_str().unwrap()];
    let forced = [&to_file[..], &["--force"]].concat();
    let has_mode = |mode: u32| {
        let status = fs::metadata(&file).unwrap();
        assert_eq!(status.permissions().mode() & 0o777, mode);
    };
    trace(&place, &to_file).assert().success();
    has_mode(0o600);
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let why = contains("already exists (--force replaces it)");
    trace(&place, &to_file).assert().code(125).stderr(why);
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    trace(&place, &forced).assert().success();
    assert!(!fs::read_to_string(&file).unwrap().contains("old"));
    has_mode(0o600);
    // A symbolic link of another user.
    let other = dir.path().join("other");
    fs::write(&other, "other").unwrap();
    fs::remove_file(&file).unwrap();
    symlink(&other, &file).unwrap();
    for options in [&to_file[..], &forced] {
        let why = contains("not a regular file");
        trace(&place, options).assert().code(125).stderr(why);
    }
    assert_eq!(fs::read_to_string(&other).unwrap(), "other");
}

/// Returns the printed calls with these options: name, first argument and result.
fn picked(dir: &Path, options: &[&str]) -> Vec<String> {
    let output = trace(dir, options).assert().success();
    let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    let call = |line: &str| {
        let (_, call) = line.split_once('/')?;
        let (_, call) = call.split_once(' ')?;
        let (head, end) = call.split_once(')')?;
        let end = end.trim().split(' ').take(3).collect::<Vec<_>>().join(" ");
        Some(format!("{} {end}", head.split(',').next()?))
    };
    text.lines().filter_map(call).collect()
}

/// Options pick some of these calls: openat = 3, openat = -2, read = 512, and a read that does not end.
#[test]
fn a_filter_is_for_the_completed_call() {
    let dir = TempDir::new().unwrap();
    calls(dir.path());
    let dir = dir.path();
    let failed = "openat(dfd: 5 = -1 ENOENT";
    let opened = "openat(dfd: AT_FDCWD = 3";
    let read = "read(buf: 0x7f00 = 512";
    let unfinished = "read(buf: NULL <unfinished ...>";
    for (options, expected) in [
        (&["-Z"][..], &[failed][..]),
        (&["--failed"], &[failed]),
        (&["--filter", "ret < 0"], &[failed]),
        (&["-e", "openat", "--filter", "ret >= 0"], &[opened]),
        (
            &["-e", "open*", "--filter", "ret < 0 && dfd == 5"],
            &[failed],
        ),
        (&["-e", "sys_exit_openat", "--filter", "ret < 0"], &[failed]),
        (&["-e", "%file", "--filter", "filename == 'x'"], &[failed]),
        (
            &["-e", "%file", "--filter", "filename ~ '/*' || ret < 0"],
            &[opened, failed],
        ),
        // Each call has one of the fields. A filter does not apply to a call without its fields.
        (
            &["-e", "%desc", "--filter", "ret < 0 && dfd == 5"],
            &[failed, read, unfinished],
        ),
        (&["-e", "read", "--filter", "buf == 0"], &[unfinished]),
        (&["-e", "read", "--filter", "!(buf == 0)"], &[read]),
        (&["-e", "read", "--filter", "ret > 0", "-Z"], &[]),
        (&["-e", "openat", "-Z"], &[failed]),
        (&["-x", "openat,sched_switch"], &[read, unfinished]),
        (&["-e", "openat"], &[opened, failed]),
        (&["-e", "openat", "-p", "7"], &[opened]),
        (&["-e", "openat", "-p", "8,9"], &[failed]),
    ] {
        let expected: Vec<String> = expected.iter().map(|call| (*call).to_owned()).collect();
        assert_eq!(picked(dir, options), expected, "{options:?}");
    }
    let switches = picked(dir, &["-e", "sched_switch", "--filter", "next_tid == 8"]);
    assert_eq!(switches.len(), 1, "{switches:?}");
    assert_eq!(picked(dir, &["-e", "sched"]).len(), 3);
    for (filter, said) in [("ret <", "ret <\n"), ("ret == 'x'", "this is a number")] {
        let options = ["--filter", filter];
        trace(dir, &options)
            .assert()
            .failure()
            .stderr(contains(said));
    }
}

/// If the end of a call was lost, its result is unknown: the call is not printed as unfinished.
#[test]
fn a_filter_by_result_excludes_calls_without_one() {
    let dir = TempDir::new().unwrap();
    let first = packet(0, 0, 0)
        .switch(US, IDLE, SHELL)
        .read(2 * US, 1)
        // A kernel with the same filter has not recorded the exit of the first call.
        .read(3 * US, 2)
        .syscall_exit(READ_EXIT, 4 * US, -11)
        .close(5 * US, 4096);
    let second = packet(0, 1, 10 * US)
        .discarded(7)
        .switch(11 * US, IDLE, SHELL)
        .syscall_exit(READ_EXIT, 12 * US, -4)
        .read(13 * US, 3)
        .close(15 * US, 4096);
    write(dir.path(), &[(0, vec![first, second])]);
    let output = trace(dir.path(), &["-e", "read", "-Z"]).assert().success();
    let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    let lines: Vec<_> = text.lines().map(|line| &line[18..]).collect();
    let expected = [
        "     1.0 us sh/7 read(buf: 0x2) = -1 EAGAIN (Resource temporarily unavailable)",
        " LOST 7 events on CPU 0",
        "            ?/? <... read resumed> = -1 EINTR (Interrupted system call)",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn the_table_alone() {
    let dir = TempDir::new().unwrap();
    calls(dir.path());
    let both = trace(dir.path(), &["--summary"]).assert().success();
    let both = String::from_utf8_lossy(&both.get_output().stdout).into_owned();
    let table = &both[both.find("     calls ").unwrap()..];
    trace(dir.path(), &["-c"])
        .assert()
        .success()
        .stdout(table.to_owned());
    trace(dir.path(), &["-c", "-n", "1"])
        .assert()
        .success()
        .stdout(contains("1         more system calls"));
}
