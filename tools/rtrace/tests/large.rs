// SPDX-License-Identifier: GPL-2.0

//! Traces of large machines, and traces that claim to be large. The limits on open files and on memory suffice
//! for every reader and export.

use assert_cmd::cargo::cargo_bin;
use assert_cmd::Command;
use predicates::str::contains;
use rtrace_abi::header::Layout;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::mem::offset_of;
use std::path::Path;
use synthetic::{Channel, PacketBuilder, EXEC};
use tempfile::TempDir;

const CPUS: u32 = 275;
const CHANNELS: u32 = 4;

/// Returns one packet of a CPU in a channel.
fn packet(channel: u32, cpu: u32) -> Vec<u8> {
    let begin = 1000 + u64::from(cpu);
    PacketBuilder::new(Layout::Compact, cpu, 0, begin)
        .stream(channel)
        .switch(begin + 1, (0, "swapper"), (7, "make"))
        .softirq(begin + 2, 1)
        .switch(begin + 3, (7, "make"), (0, "swapper"))
        .close(begin + 4, 8)
}

/// Writes a trace of 1,100 streams, with three events each.
fn large(dir: &Path) {
    let streams = (0..CHANNELS).map(|channel| {
        let streams = (0..CPUS).map(|cpu| (cpu, vec![packet(channel, cpu)]));
        streams.collect::<Vec<_>>()
    });
    let streams: Vec<_> = streams.collect();
    let names = ["a", "b", "c", "d"];
    let channels = names.iter().zip(&streams).map(|(name, streams)| Channel {
        name,
        layout: Layout::Compact,
        streams,
    });
    synthetic::write_channels(dir, &channels.collect::<Vec<_>>()).unwrap();
}

/// Returns the command rtrace with limits that `ulimit` sets.
fn limited(limit: &str, options: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\"")])
        .arg(cargo_bin("rtrace"))
        .args(options);
    command
}

const COMMANDS: [&[&str]; 10] = [
    &["report"],
    &["report", "--json"],
    &["report", "--threads", "--cpu", "--irq", "--latency"],
    &["trace", "-i"],
    &["top", "-i"],
    &["export", "csv"],
    &["export", "text"],
    &["export", "perfetto"],
    &["export", "chrome"],
    &["export", "perf-script"],
];

#[test]
fn a_trace_of_many_streams_is_read() {
    let dir = TempDir::new().unwrap();
    large(dir.path());
    for command in COMMANDS {
        let mut tool = limited("-Sn 256", command);
        let output = tool.arg(dir.path()).assert().success();
        let output = output.get_output();
        assert!(!output.stdout.is_empty(), "{command:?}");
        if command.contains(&"--json") {
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(report["recorded"], 3 * CPUS * CHANNELS);
            assert_eq!(report["cpus"].as_array().unwrap().len(), CPUS as usize);
        }
        if command.contains(&"csv") {
            let rows = String::from_utf8_lossy(&output.stdout).lines().count();
            assert_eq!(rows as u32, 1 + 3 * CPUS * CHANNELS);
        }
    }
    let out = TempDir::new().unwrap();
    for format in ["parquet", "lttng"] {
        let to = out.path().join(format);
        let mut tool = limited("-Sn 256", &["export", format, "-o"]);
        tool.arg(to).arg(dir.path()).assert().success();
    }
    let page = out.path().join("page.html");
    let mut tool = limited("-Sn 256", &["report", "--html"]);
    tool.arg(page).arg(dir.path()).assert().success();
}

/// If the limit on open files is too low, a message says it, and an export leaves no file.
#[test]
fn without_files_that_is_said() {
    let dir = TempDir::new().unwrap();
    large(dir.path());
    for command in [
        &["trace", "-i"][..],
        &["top", "-i"],
        &["report"],
        &["report", "--threads"],
        &["export", "csv"],
    ] {
        let mut tool = limited("-n 64", command);
        let assert = tool.arg(dir.path()).assert().code(125);
        assert.stderr(contains("Too many open files"));
    }
    let out = TempDir::new().unwrap();
    for (format, name) in [("csv", "csv"), ("parquet", "tables")] {
        let mut tool = limited("-n 64", &["export", format, "-o"]);
        let assert = tool.arg(out.path().join(name)).arg(dir.path()).assert();
        assert.code(125).stderr(contains("Too many open files"));
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0, "{format}");
    }
}

/// Writes a stream of one packet that claims this number of bytes, and begins with these events.
fn claim(dir: &Path, cpu: u32, bytes: u64, packet: Vec<u8>) {
    use rtrace_abi::packet::PacketHeader;
    let mut packet = packet;
    for field in [
        offset_of!(PacketHeader, content_size),
        offset_of!(PacketHeader, packet_size),
    ] {
        packet[field..field + 8].copy_from_slice(&(8 * bytes).to_le_bytes());
    }
    let mut file = File::create(dir.join(format!("channel0_cpu{cpu}"))).unwrap();
    file.write_all(&packet).unwrap();
    file.set_len(bytes).unwrap();
}

/// Memory limit. The bound is 384 KiB for each stream and 16 MiB for one event at a time; the program has the
/// rest. 64 packets of 1 GiB each far exceed the limit.
const MEMORY: &str = "-v 524288";

#[test]
fn packets_that_claim_to_be_large_need_no_memory() {
    const CLAIMED: u64 = 1 << 30;
    let dir = TempDir::new().unwrap();
    let sound = PacketBuilder::new(Layout::Compact, 0, 0, 0).softirq(1, 1);
    synthetic::write(dir.path(), Layout::Compact, &[(0, vec![sound.close(9, 8)])]).unwrap();
    for cpu in 1..64 {
        let begin = PacketBuilder::new(Layout::Compact, cpu, 0, 0).softirq(2, 1);
        let packet = if cpu % 16 == 0 {
            // This text ends only after 20 MiB.
            begin.event(EXEC, 3, &vec![b'a'; 20 << 20]).close(9, 8)
        } else {
            // The rest of the packet is not read.
            begin.event(30, 3, &[]).close(9, 8)
        };
        claim(dir.path(), cpu, CLAIMED, packet);
    }
    for command in COMMANDS {
        if command.contains(&"top") {
            continue;
        }
        let mut tool = limited(MEMORY, command);
        let assert = tool.arg(dir.path()).assert().code(1);
        assert.stderr(contains("the trace is damaged"));
    }
}

/// The description, and each file beside a trace, may claim any size.
#[test]
fn texts_that_are_large_are_refused() {
    let dir = TempDir::new().unwrap();
    synthetic::write(dir.path(), Layout::Compact, &[(0, vec![])]).unwrap();
    let path = dir.path().join("metadata");
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(1 << 40).unwrap();
    let mut tool = limited(MEMORY, &["report"]);
    let assert = tool.arg(dir.path()).assert().code(125);
    assert.stderr(contains("it has more than 64 MiB"));
}

/// A gap of eleven days makes one table.
#[test]
fn top_has_one_table_of_a_gap() {
    const S: u64 = synthetic::FREQUENCY;
    let dir = TempDir::new().unwrap();
    let packet = PacketBuilder::new(Layout::Compact, 0, 0, S)
        .switch(S + 1, (0, "swapper"), (7, "make"))
        .switch(S + S / 2, (7, "make"), (0, "swapper"))
        .switch(1_000_000 * S, (0, "swapper"), (7, "make"))
        .switch(1_000_000 * S + 5, (7, "make"), (0, "swapper"))
        .close(1_000_000 * S + 10, 8);
    synthetic::write(dir.path(), Layout::Compact, &[(0, vec![packet])]).unwrap();
    let mut tool = Command::cargo_bin("rtrace").unwrap();
    let output = tool.args(["top", "-i"]).arg(dir.path()).assert().success();
    let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    assert!(text.contains("make"), "{text}");
    assert!(text.lines().count() < 40, "{text}");
}
