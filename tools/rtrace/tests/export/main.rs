// SPDX-License-Identifier: GPL-2.0

//! `rtrace export` on synthetic traces. The tests read the exported files back.

mod chrome;
mod csv;
mod damaged;
mod output;
mod perfetto;
mod stacks;
mod tables;
mod text;

use assert_cmd::cargo::cargo_bin;
use assert_cmd::Command;
use rtrace_abi::header::Layout;
use std::path::Path;
use synthetic::{PacketBuilder, OPENAT_EXIT, WAKING};

/// Microseconds in clock ticks.
const US: u64 = synthetic::FREQUENCY / 1_000_000;
/// Seconds in clock ticks.
const S: u64 = synthetic::FREQUENCY;

const IDLE: (i32, &str) = (0, "swapper/0");
const SHELL: (i32, &str) = (7, "sh");
const CHILD: (i32, &str) = (8, "a \"b\", c");

fn packet(cpu: u32, number: u64, begin: u64) -> PacketBuilder {
    PacketBuilder::new(Layout::Compact, cpu, number, begin)
}

fn write(dir: &Path, streams: &[(u32, Vec<Vec<u8>>)]) {
    synthetic::write(dir, Layout::Compact, streams).unwrap();
}

/// Writes a trace of two CPUs, from second 1 on. On CPU 0 `sh` runs from 10 us to 60 us, makes a call of 20 us,
/// and creates a process. CPU 1 has a softirq of 5 us; after that 3 events and 2 packets are missing.
fn known(dir: &Path) {
    let zero = packet(0, 0, S)
        .wake(WAKING, S + 5 * US, SHELL)
        .switch(S + 10 * US, IDLE, SHELL)
        .openat(S + 20 * US, "/etc/hosts")
        .syscall_exit(OPENAT_EXIT, S + 40 * US, -2)
        .fork(S + 50 * US, SHELL, CHILD, 8)
        .switch_from(S + 60 * US, SHELL, 1, IDLE)
        .close(S + 100 * US, 8);
    let one = packet(1, 0, S)
        .softirq(S + 11 * US, 1)
        .softirq_exit(S + 16 * US, 1)
        .close(S + 30 * US, 8);
    let behind = packet(1, 3, S + 70 * US)
        .discarded(3)
        .switch(S + 80 * US, IDLE, CHILD)
        .close(S + 90 * US, 8);
    write(dir, &[(0, vec![zero]), (1, vec![one, behind])]);
}

/// Returns the command `rtrace export` with these options.
fn export(options: &[&str], dir: &Path) -> Command {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    command.arg("export").args(options).arg(dir);
    command
}

/// The same command with a limit of 512 bytes per file.
fn without_room(options: &[&str], dir: &Path) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""])
        .arg(cargo_bin("rtrace"))
        .args(options)
        .arg(dir);
    command
}

/// Returns the bytes that the command prints.
fn bytes(options: &[&str], dir: &Path) -> Vec<u8> {
    let assert = export(options, dir).assert().success();
    assert.get_output().stdout.clone()
}

/// Returns the text that the command prints.
fn text(options: &[&str], dir: &Path) -> String {
    String::from_utf8(bytes(options, dir)).unwrap()
}
