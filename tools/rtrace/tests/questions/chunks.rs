// SPDX-License-Identifier: GPL-2.0

//! Questions to a trace in chunks.

use super::{packet, US};
use assert_cmd::{cargo::cargo_bin, Command};
use rtrace_abi::header::Layout;
use serde_json::Value;
use tempfile::TempDir;

/// A trace may have more chunks than a process may have open files.
#[test]
fn a_trace_may_have_any_number_of_chunks() {
    const CHUNKS: u64 = 200;
    let dir = TempDir::new().unwrap();
    for chunk in 0..CHUNKS {
        let streams = [0, 1].map(|cpu| {
            let begin = chunk * 100 * US;
            let packet = packet(cpu, chunk, begin)
                .softirq(begin + 10 * US, 1)
                .softirq_exit(begin + 12 * US, 1)
                .close(begin + 100 * US, 8);
            (cpu, vec![packet])
        });
        let dir = dir.path().join(format!("chunk-{:06}", chunk + 1));
        synthetic::write(&dir, Layout::Compact, &streams).unwrap();
    }
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 64 && exec \"$@\"", "sh"])
        .arg(cargo_bin("rtrace"))
        .args(["report", "--irq", "--json"])
        .arg(dir.path())
        .assert()
        .success();
    let report: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let timer = &report["irq"]["interrupts"][0];
    assert_eq!(timer["timed"], 2 * CHUNKS);
    assert_eq!(timer["total_ns"], 2 * CHUNKS * 2_000);
}
