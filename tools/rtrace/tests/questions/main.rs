// SPDX-License-Identifier: GPL-2.0

//! `rtrace report` asked questions, on synthetic traces.

mod chunks;
mod cpu;
mod damaged;
mod irq;
mod latency;
mod machine;
mod syscalls;
mod threads;

use assert_cmd::Command;
use rtrace_abi::header::Layout;
use serde_json::Value;
use std::fs;
use std::path::Path;
use synthetic::PacketBuilder;

/// Microseconds in clock ticks.
const US: u64 = synthetic::FREQUENCY / 1_000_000;

const IDLE: (i32, &str) = (0, "swapper");
const SHELL: (i32, &str) = (7, "sh");
const THREAD: (i32, &str) = (8, "worker");

fn packet(cpu: u32, number: u64, begin: u64) -> PacketBuilder {
    PacketBuilder::new(Layout::Compact, cpu, number, begin)
}

fn write(dir: &Path, streams: &[(u32, Vec<Vec<u8>>)]) {
    synthetic::write(dir, Layout::Compact, streams).unwrap();
}

/// `rtrace report` with these options.
fn report(options: &[&str], dir: &Path) -> Command {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    command.arg("report").args(options).arg(dir);
    command
}

/// The JSON object that it prints.
fn json(options: &[&str], dir: &Path) -> Value {
    let output = report(options, dir).arg("--json").assert().success();
    serde_json::from_slice(&output.get_output().stdout).unwrap()
}

/// Takes the events whose names begin so out of a trace's description: it cannot have them.
fn forget(dir: &Path, prefix: &str) {
    let path = dir.join("metadata");
    let text = fs::read_to_string(&path).unwrap();
    let begin = format!("name = \"{prefix}");
    let blocks = text.split_inclusive("};\n\n");
    let kept: String = blocks.filter(|block| !block.contains(&begin)).collect();
    assert_ne!(kept, text, "{text}");
    fs::write(&path, kept).unwrap();
}

/// The row of a table in which `key` is `name`.
fn row<'a>(table: &'a Value, key: &str, name: &str) -> &'a Value {
    let mut rows = table.as_array().unwrap().iter();
    let found = rows.find(|row| row[key] == name);
    found.unwrap_or_else(|| panic!("no {name} in {table}"))
}
