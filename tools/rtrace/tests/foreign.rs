// SPDX-License-Identifier: GPL-2.0

//! Each command that reads a trace reads those of other tracers: a file of perf, one of trace-cmd, a session of LTTng.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Writes the traces `perf.data`, `trace.dat` and `session`.
fn write(dir: &Path) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let seed = |name: &str| fs::read(seeds.join(name)).unwrap();
    let perf = [b"PERFILE2", &seed("perf_data/file")[..]].concat();
    fs::write(dir.join("perf.data"), perf).unwrap();
    let ftrace = [b"\x17\x08\x44tracing", &seed("trace_dat/version-7")[..]].concat();
    fs::write(dir.join("trace.dat"), ftrace).unwrap();
    let kernel = dir.join("session/kernel");
    fs::create_dir_all(&kernel).unwrap();
    let lttng = seed("foreign/compact");
    let end = lttng.iter().position(|byte| *byte == 0).unwrap();
    fs::write(kernel.join("metadata"), &lttng[..end]).unwrap();
    fs::write(kernel.join("channel0_0"), &lttng[end + 1..]).unwrap();
}

#[test]
fn every_command_reads_every_format() {
    let dir = TempDir::new().unwrap();
    write(dir.path());
    for trace in ["perf.data", "trace.dat", "session"] {
        for (command, output) in [
            ("report", " events recorded, "),
            ("report --html page.html --force", "page.html: a page of "),
            (
                "query 'SELECT COUNT(*) AS switches FROM sched_switch'",
                "switches",
            ),
            ("export csv", ",sched_switch,"),
            ("export parquet -o tables", ""),
            ("diff -n 0 perf.data", "B: "),
            ("trace -i", "sched_switch"),
            ("count -e sched_switch --by event -i", "sched_switch"),
        ] {
            let mut words = shlex(command);
            words.push(trace.to_owned());
            let ran = Command::cargo_bin("rtrace")
                .unwrap()
                .current_dir(dir.path())
                .args(&words)
                .assert();
            ran.try_success()
                .and_then(|ran| ran.try_stdout(contains(output)))
                .and_then(|ran| ran.try_stderr(contains("cannot").not()))
                .unwrap_or_else(|error| panic!("{words:?}: {error}"));
        }
        fs::remove_dir_all(dir.path().join("tables")).unwrap();
    }
}

/// The words of a command, of which one may be in quotes.
fn shlex(command: &str) -> Vec<String> {
    let parts = command.split('\'').enumerate();
    let words = parts.flat_map(|(number, part)| match number % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}
