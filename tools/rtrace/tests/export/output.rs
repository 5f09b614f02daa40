// SPDX-License-Identifier: GPL-2.0

//! Where an export goes, and `--lttng`.

use super::stacks::stacks;
use super::{export, known, text, without_room};
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};
use tempfile::TempDir;

#[test]
fn a_file_is_not_replaced() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let out = TempDir::new().unwrap();
    let file = out.path().join("trace.txt");
    let to = |options: &[&str]| {
        let mut command = export(options, dir.path());
        command.arg("-o").arg(&file);
        command
    };
    to(&["text"])
        .assert()
        .success()
        .stdout("")
        .stderr(contains("9 events exported, 3 lost"));
    let written = fs::read_to_string(&file).unwrap();
    assert_eq!(written, text(&["text"], dir.path()));
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    to(&["csv"])
        .assert()
        .code(1)
        .stderr(contains("is there already (--force replaces it)"));
    assert_eq!(fs::read_to_string(&file).unwrap(), written);
    to(&["csv", "--force"]).assert().success();
    assert!(fs::read_to_string(&file).unwrap().starts_with("time,cpu,"));
    // What is left of a failure is nothing.
    let to = ["export", "text", "--force", "-o", file.to_str().unwrap()];
    without_room(&to, dir.path())
        .assert()
        .code(1)
        .stderr(contains("cannot write"));
    assert!(fs::read_to_string(&file).unwrap().starts_with("time,cpu,"));
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_is_none_is_written_to() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    export(&["text", "-o", "/dev/null"], dir.path())
        .assert()
        .success();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    export(&["text", "-o", "/dev/full"], dir.path())
        .assert()
        .code(1)
        .stderr(contains("cannot write /dev/full: No space left on device"));
    export(&["text", "-o"], dir.path())
        .arg(dir.path())
        .assert()
        .code(1)
        .stderr(contains("is a directory"));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let dir = TempDir::new().unwrap();
    stacks(dir.path());
    for format in [
        "text",
        "chrome",
        "perfetto",
        "csv",
        "folded",
        "flamegraph",
        "pprof",
        "perf-script",
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rtrace"))
            .args(["export", format])
            .arg(dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert!(child.wait().unwrap().success(), "{format}: {said}");
        assert!(!said.contains("pipe"), "{format}: {said}");
    }
}

#[test]
fn one_format_is_wanted() {
    let dir = TempDir::new().unwrap();
    export(&[], dir.path())
        .assert()
        .code(2)
        .stderr(contains("perfetto"));
    export(&["text", "csv"], dir.path()).assert().code(2);
    export(&["lttng"], dir.path())
        .assert()
        .code(2)
        .stderr(contains("--output"));
    export(&["lttng", "-o", "-"], dir.path())
        .assert()
        .code(2)
        .stderr(contains("name one with -o"));
    export(&["lttng", "-e", "sched", "-o", "x"], dir.path())
        .assert()
        .code(2);
    export(&["text", "--force"], dir.path()).assert().code(2);
}

#[test]
fn lttng_has_the_kernels_trace_in_a_folder() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let out = TempDir::new().unwrap();
    let to = out.path().join("session");
    export(&["lttng", "-o"], &to)
        .arg(dir.path())
        .assert()
        .success()
        .stderr(contains("3 files in"));
    for name in ["metadata", "channel0_cpu0", "channel0_cpu1"] {
        let [own, linked] = [dir.path().join(name), to.join("kernel").join(name)];
        assert_eq!(fs::read(&own).unwrap(), fs::read(&linked).unwrap());
        assert_eq!(
            fs::metadata(own).unwrap().ino(),
            fs::metadata(linked).unwrap().ino()
        );
    }
    // It is a trace.
    assert_eq!(
        text(&["text"], &to.join("kernel")),
        text(&["text"], dir.path())
    );
    export(&["lttng", "-o"], &to)
        .arg(dir.path())
        .assert()
        .code(1)
        .stderr(contains("cannot make").and(contains("File exists")));
}

#[test]
fn lttng_has_a_folder_for_each_chunk() {
    let dir = TempDir::new().unwrap();
    let out = TempDir::new().unwrap();
    for chunk in ["chunk-000001", "chunk-000002"] {
        known(&dir.path().join(chunk));
    }
    let to = out.path().join("session");
    export(&["lttng", "-o"], &to)
        .arg(dir.path())
        .assert()
        .success();
    for chunk in ["chunk-000001", "chunk-000002"] {
        assert!(to.join(chunk).join("kernel/metadata").is_file());
    }
}
