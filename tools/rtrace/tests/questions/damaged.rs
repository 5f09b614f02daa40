// SPDX-License-Identifier: GPL-2.0

//! `rtrace report` asked all questions of traces that are damaged.

use super::machine::{self, Loss, Random};
use super::report;
use std::fs;
use tempfile::TempDir;

const ALL: [&str; 6] = [
    "--syscalls",
    "--by-process",
    "--latency",
    "--threads",
    "--cpu",
    "--irq",
];

/// Whatever the bytes are, there is an answer, or an error that says where.
#[test]
fn a_damaged_trace_is_answered() {
    let (mut answered, mut refused) = (0, 0);
    for seed in 0..150 {
        let dir = TempDir::new().unwrap();
        let random = &mut Random(seed);
        machine::write(dir.path(), random, 2, 2, Loss::Packets);
        let path = dir.path().join("channel0_cpu0");
        let mut bytes = fs::read(&path).unwrap();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.below(256) as u8;
        }
        fs::write(&path, bytes).unwrap();
        let output = report(&ALL, dir.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => answered += 1,
            Some(1) => {
                assert!(said.contains("channel0_cpu0: at byte "), "{seed}: {said}");
                refused += 1;
            }
            code => panic!("{seed}: {code:?}: {said}"),
        }
    }
    assert!(answered > 10 && refused > 10, "{answered} {refused}");
}
