// SPDX-License-Identifier: GPL-2.0

//! `rtrace trace -i`: the entry and exit of a system call in one line; and damaged traces.

use super::machine::{self, Loss, Random, OPEN_NS, READ_NS};
use assert_cmd::Command;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Returns the names and durations of complete calls.
fn calls(dir: &Path) -> Vec<(String, String)> {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    let output = command.args(["trace", "-i"]).arg(dir).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let mut calls = Vec::new();
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let [_, time, unit @ ("us" | "ms"), _, call, ..] = words.as_slice() {
            let (name, _) = call.split_once('(').unwrap();
            calls.push((name.to_owned(), format!("{time} {unit}")));
        }
    }
    calls
}

fn us(nanoseconds: u64) -> String {
    format!("{:.1} us", nanoseconds as f64 / 1e3)
}

#[test]
fn all_calls_of_a_machine_are_joined() {
    for seed in 0..20 {
        let dir = TempDir::new().unwrap();
        let truth = machine::write(dir.path(), &mut Random(seed), 4, 3, Loss::Nothing);
        let calls = calls(dir.path());
        for (name, ended, time) in [
            ("read", truth.reads_ended, us(READ_NS)),
            ("openat", truth.opens_ended, us(OPEN_NS)),
        ] {
            let call = (name.to_owned(), time);
            let found = calls.iter().filter(|found| **found == call).count();
            assert_eq!(found as u64, ended, "{seed}: {call:?}");
        }
        assert_eq!(calls.len() as u64, truth.reads_ended + truth.opens_ended);
    }
}

/// Every call of a name takes the same time: a pair across a loss would have another duration.
#[test]
fn no_call_is_joined_across_a_loss() {
    let mut joined = 0;
    for seed in 0..100 {
        let dir = TempDir::new().unwrap();
        let loss = [Loss::Packets, Loss::Events][seed as usize % 2];
        machine::write(dir.path(), &mut Random(seed), 4, 3, loss);
        for (name, time) in calls(dir.path()) {
            let expected = if name == "read" { READ_NS } else { OPEN_NS };
            assert_eq!(time, us(expected), "{seed}: {name}");
            joined += 1;
        }
    }
    assert!(joined > 1000, "{joined}");
}

/// A random byte is overwritten. The commands print lines and tables, and for a damaged trace an error with the
/// place of the damage.
#[test]
fn a_damaged_trace_is_shown() {
    let (mut whole, mut damaged) = (0, 0);
    for seed in 0..100 {
        let dir = TempDir::new().unwrap();
        let random = &mut Random(seed);
        machine::write(dir.path(), random, 2, 2, Loss::Packets);
        let path = dir.path().join("channel0_cpu0");
        let mut bytes = fs::read(&path).unwrap();
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] = random.below(256) as u8;
        fs::write(&path, bytes).unwrap();
        let command = if seed % 2 == 0 { "trace" } else { "top" };
        let mut tool = Command::cargo_bin("rtrace").unwrap();
        let output = tool.args([command, "-i"]).arg(dir.path()).output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => whole += 1,
            Some(1) => {
                assert!(said.contains("channel0_cpu0: at byte "), "{seed}: {said}");
                assert!(said.contains("the trace is damaged: "), "{seed}: {said}");
                assert!(!output.stdout.is_empty(), "{seed}: {said}");
                damaged += 1;
            }
            _ => panic!("{seed}: {output:?}"),
        }
    }
    assert!(whole > 10 && damaged > 10, "{whole} {damaged}");
}
