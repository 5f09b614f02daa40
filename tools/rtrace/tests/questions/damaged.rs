// SPDX-License-Identifier: GPL-2.0

//! All questions, and the other commands that read a trace, on damaged traces. Each command shows the undamaged
//! rest, and its exit code is an error.

use super::machine::{self, Loss, Random};
use super::{declare, packet, report, US};
use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;
use tempfile::TempDir;

/// Each command with its options; the trace comes last.
const COMMANDS: [&[&str]; 15] = [
    &["report"],
    &["report", "--syscalls"],
    &["report", "--syscalls", "--by-process"],
    &["report", "--latency"],
    &["report", "--threads"],
    &["report", "--cpu"],
    &["report", "--irq"],
    &["report", "--io"],
    &["report", "--locks"],
    &["report", "--profile"],
    &["report", "--aux"],
    &["report", "--critical-path", "1"],
    &["trace", "-i"],
    &["trace", "--summary", "-i"],
    &["top", "-i"],
];

/// Writes the trace of a machine, with all events that the commands need.
fn write(dir: &Path, random: &mut Random) {
    machine::write(dir, random, 2, 2, Loss::Packets);
    declare(
        dir,
        &[
            (20, "contention_begin", &["u64 lock_addr", "u32 flags"]),
            (21, "contention_end", &["u64 lock_addr", "i32 ret"]),
            (22, "profile_cpu_clock", &["u64 ip"]),
            (
                23,
                "chunk",
                &[
                    "u32 aux_cpu",
                    "u64 aux_offset",
                    "u64 aux_size",
                    "u64 aux_lost",
                    "u32 aux_flags",
                ],
            ),
        ],
    );
}

fn run(command: &[&str], dir: &Path) -> Output {
    let mut tool = Command::cargo_bin("rtrace").unwrap();
    tool.args(command).arg(dir).output().unwrap()
}

/// Runs a command on a trace that may be damaged. Returns whether the trace is damaged.
fn is_damaged(command: &[&str], dir: &Path, what: &str) -> bool {
    let output = run(command, dir);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.stdout.is_empty(), "{what}: {command:?}: {said}");
    match output.status.code() {
        Some(0) => false,
        Some(1) => {
            assert!(said.contains("at byte "), "{what}: {command:?}: {said}");
            assert!(said.contains("the trace is damaged: "), "{what}: {said}");
            true
        }
        code => panic!("{what}: {command:?}: {code:?}: {said}"),
    }
}

/// Random bytes of a stream are overwritten.
#[test]
fn a_damaged_stream_is_shown() {
    let (mut whole, mut damaged) = (0, 0);
    for seed in 0..150 {
        let dir = TempDir::new().unwrap();
        let random = &mut Random(seed);
        write(dir.path(), random);
        let path = dir.path().join("channel0_cpu0");
        let mut bytes = fs::read(&path).unwrap();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.below(256) as u8;
        }
        fs::write(&path, bytes).unwrap();
        let command = COMMANDS[seed as usize % COMMANDS.len()];
        match is_damaged(command, dir.path(), &seed.to_string()) {
            false => whole += 1,
            true => damaged += 1,
        }
    }
    assert!(whole > 10 && damaged > 10, "{whole} {damaged}");
}

/// A page of zeros at each place of a stream, for every command.
#[test]
fn one_bad_page_hides_no_other() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), &mut Random(1));
    let path = dir.path().join("channel0_cpu0");
    let whole = fs::read(&path).unwrap();
    for command in COMMANDS {
        assert!(!is_damaged(command, dir.path(), "whole"), "{command:?}");
    }
    let middle = whole.len() / 2;
    let mut bytes = whole.clone();
    let end = bytes.len().min(middle + 4096);
    bytes[middle..end].fill(0);
    fs::write(&path, &bytes).unwrap();
    for command in COMMANDS {
        assert!(is_damaged(command, dir.path(), "zeros"), "{command:?}");
    }
    let json = |options: &[&str]| -> Value {
        let output = report(options, dir.path()).arg("--json").assert().code(1);
        serde_json::from_slice(&output.get_output().stdout).unwrap()
    };
    for options in [&[][..], &["--threads"]] {
        let report = json(options);
        assert_eq!(report["lost_is_exact"], false, "{report}");
        let damaged = &report["damaged"][0];
        let file = damaged["file"].as_str().unwrap();
        assert!(file.ends_with("channel0_cpu0"), "{report}");
        assert!(damaged["bytes"].as_u64().unwrap() > 0, "{report}");
        assert!(report["damaged_bytes"].as_u64().unwrap() > 0, "{report}");
        assert!(report["recorded"].as_u64().unwrap() > 0, "{report}");
    }
}

/// The description of an event is damaged. Each packet shows the other events, up to the first of this type.
#[test]
fn a_damaged_description_is_shown() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), &mut Random(2));
    let path = dir.path().join("metadata");
    let whole = fs::read(&path).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    // This event never occurs.
    let at = text.find("\"irq_handler_exit\"").unwrap();
    for rubbish in [&b"\0\0\0\0\0\0\0\0"[..], b"}}}}{{{{", b"\xff\xfe\xfd"] {
        let mut bytes = whole.clone();
        bytes[at..at + rubbish.len()].copy_from_slice(rubbish);
        fs::write(&path, &bytes).unwrap();
        for command in COMMANDS {
            if !command.contains(&"--irq") {
                assert!(is_damaged(command, dir.path(), "metadata"), "{command:?}");
            }
        }
        let report = report(&["--json"], dir.path()).assert().code(1);
        let report: Value = serde_json::from_slice(&report.get_output().stdout).unwrap();
        let file = report["damaged"][0]["file"].as_str().unwrap();
        assert!(file.ends_with("metadata"), "{report}");
    }
    // A trace without a clock or streams cannot be shown.
    for word in ["trace {", "clock {", "stream {"] {
        let broken = text.replacen(word, "rubbish {", 1);
        fs::write(&path, broken).unwrap();
        for command in COMMANDS {
            let output = run(command, dir.path());
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(125), "{command:?}: {said}");
            assert!(said.contains("metadata, line "), "{command:?}: {said}");
        }
    }
    fs::write(&path, text.replacen("major = 1;", "major = 2;", 1)).unwrap();
    for command in COMMANDS {
        let output = run(command, dir.path());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{command:?}: {said}");
        assert!(said.contains("CTF of version 2.8"), "{command:?}: {said}");
    }
}

/// Random bytes of the description are overwritten. The command prints an answer or an error.
#[test]
fn any_description_is_answered() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), &mut Random(3));
    let path = dir.path().join("metadata");
    let whole = fs::read(&path).unwrap();
    for seed in 0..60 {
        let random = &mut Random(seed);
        let mut bytes = whole.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.below(256) as u8;
        }
        fs::write(&path, bytes).unwrap();
        let output = run(COMMANDS[seed as usize % COMMANDS.len()], dir.path());
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1 | 125)), "{seed}: {output:?}");
    }
}

/// The file `.recording` is damaged, but the trace is shown.
#[test]
fn a_damaged_end_is_shown() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), &mut Random(4));
    for rubbish in [&b""[..], b"\xff\xff", b"trace x\nstate over\nchunk -1\n"] {
        fs::write(dir.path().join(".recording"), rubbish).unwrap();
        let output = run(&["report"], dir.path());
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("Unfinished"), "{text}");
    }
}

/// A packet between two others is damaged. From the begin of the last packet, the thread on the CPU is known
/// again.
#[test]
fn a_cpu_is_known_again_after_damage() {
    let dir = TempDir::new().unwrap();
    let (idle, shell) = ((0, "swapper/0"), (7, "sh"));
    let first = packet(0, 0, 0)
        .switch(10 * US, idle, shell)
        .close(20 * US, 8);
    let second = packet(0, 1, 20 * US).irq_exit(25 * US, 9).close(30 * US, 8);
    let third = packet(0, 2, 40 * US)
        .switch(50 * US, shell, idle)
        .switch(60 * US, idle, shell)
        .switch(80 * US, shell, idle)
        .close(100 * US, 8);
    let damaged = vec![0; second.len()];
    super::write(dir.path(), &[(0, vec![first, damaged, third])]);
    let output = run(&["report", "--threads", "--cpu", "--json"], dir.path());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The thread runs from 10 to 20 us, from 40 to 50 us, and from 60 to 80 us.
    assert_eq!(report["threads"]["threads"][0]["running_ns"], 40_000);
    assert_eq!(report["cpu"]["cpus"][0]["idle_ns"], 40_000);
    assert_eq!(report["cpu"]["cpus"][0]["unknown_ns"], 20_000);
}
