// SPDX-License-Identifier: GPL-2.0

//! All formats of traces that are damaged.

use super::{export, known};
use std::fs;
use tempfile::TempDir;

const FORMATS: [&str; 5] = ["--perfetto", "--chrome", "--csv", "--text", "--perf-script"];

/// Whatever the bytes are, there is an export, or an error that says where.
#[test]
fn a_damaged_trace_is_answered() {
    let (mut answered, mut refused) = (0, 0);
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let path = dir.path().join("channel0_cpu0");
    let whole = fs::read(&path).unwrap();
    for (format, at) in FORMATS.iter().cycle().zip((0..whole.len()).step_by(3)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&path, bytes).unwrap();
        let output = export(&[format], dir.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => answered += 1,
            Some(1) => {
                assert!(said.contains("channel0_cpu0: at byte "), "{at}: {said}");
                refused += 1;
            }
            code => panic!("{at}: {code:?}: {said}"),
        }
    }
    assert!(answered > 10 && refused > 10, "{answered} {refused}");
}
