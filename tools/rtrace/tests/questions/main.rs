// SPDX-License-Identifier: GPL-2.0

//! Questions of `rtrace report` on synthetic traces, and other commands with the same answers.

mod choice;
mod chunks;
mod cpu;
mod critical_path;
mod damaged;
mod end;
mod files;
mod hostile;
mod io;
mod irq;
mod latency;
mod lines;
mod locks;
#[allow(dead_code)]
mod machine;
mod probes;
#[path = "../schema/mod.rs"]
mod schema;
mod state;
mod syscalls;
mod threads;
mod uring;
mod why;
mod worst_wait;

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

/// Returns the command `rtrace report` with these options.
fn report(options: &[&str], dir: &Path) -> Command {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    command.arg("report").args(options).arg(dir);
    command
}

/// Returns the JSON object that the command prints.
fn json(options: &[&str], dir: &Path) -> Value {
    let output = report(options, dir).arg("--json").assert().success();
    schema::read(&output.get_output().stdout)
}

/// Deletes the events whose names have this prefix from a trace's description, so that the trace cannot have
/// them.
fn forget(dir: &Path, prefix: &str) {
    let path = dir.join("metadata");
    let text = fs::read_to_string(&path).unwrap();
    let begin = format!("name = \"{prefix}");
    let blocks = text.split_inclusive("};\n\n");
    let kept: String = blocks.filter(|block| !block.contains(&begin)).collect();
    assert_ne!(kept, text, "{text}");
    fs::write(&path, kept).unwrap();
}

/// Says in a trace's description that the trace has only the events of some cgroups.
fn limit(dir: &Path) {
    let path = dir.join("metadata");
    let text = fs::read_to_string(&path).unwrap();
    let limited = text.replace("env {\n", "env {\n\trtrace_tasks = \"cgroups\";\n");
    assert_ne!(limited, text, "{text}");
    fs::write(&path, limited).unwrap();
}

/// Adds events to a trace's description. Each event has an id, a name and fields. A field is an integer
/// (`u32 dev`), a text of fixed length (`text16 comm`) or a string (`string name`).
fn declare(dir: &Path, events: &[(u32, &str, &[&str])]) {
    let path = dir.join("metadata");
    let mut text = fs::read_to_string(&path).unwrap();
    for (id, name, fields) in events {
        let fields = fields.iter().map(|field| {
            let (ty, name) = field.split_once(' ').unwrap();
            let bits = ty.trim_start_matches(char::is_alphabetic);
            match ty {
                "string" => format!("string _{name};\n"),
                "text16" => format!(
                    "integer {{ size = 8; align = 8; signed = false; encoding = UTF8; }} _{name}[{bits}];\n"
                ),
                _ => format!(
                    "integer {{ size = {bits}; align = 8; signed = {}; }} _{name};\n",
                    ty.starts_with('i')
                ),
            }
        });
        let fields: String = fields.collect();
        text += &format!(
            "event {{\nname = \"{name}\";\nid = {id};\nstream_id = 0;\n\
             fields := struct {{\n{fields}}};\n}};\n\n"
        );
    }
    fs::write(&path, text).unwrap();
}

/// Gives the events contexts with this description.
fn declare_contexts(dir: &Path, contexts: &str) {
    let path = dir.join("metadata");
    let text = fs::read_to_string(&path).unwrap();
    let declared = format!("\tevent.context := struct {{\n{contexts}\t}};\n\tpacket.context");
    fs::write(&path, text.replacen("\tpacket.context", &declared, 1)).unwrap();
}

/// Returns a text of 16 bytes.
fn text16(text: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

/// Returns the row of a table in which `key` is `name`.
fn row<'a>(table: &'a Value, key: &str, name: &str) -> &'a Value {
    let mut rows = table.as_array().unwrap().iter();
    let found = rows.find(|row| row[key] == name);
    found.unwrap_or_else(|| panic!("no {name} in {table}"))
}
