// SPDX-License-Identifier: GPL-2.0

//! Target of an export, and `rtrace export lttng`.

use super::stacks::stacks;
use super::{export, known, packet, text, without_room, write, S, US};
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
        .code(125)
        .stderr(contains("already exists (--force replaces it)"));
    assert_eq!(fs::read_to_string(&file).unwrap(), written);
    to(&["csv", "--force"]).assert().success();
    assert!(fs::read_to_string(&file).unwrap().starts_with("time,cpu,"));
    // A failed export leaves no file.
    let to = ["export", "text", "--force", "-o", file.to_str().unwrap()];
    without_room(&to, dir.path())
        .assert()
        .code(125)
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
        .code(125)
        .stderr(contains("cannot write /dev/full: No space left on device"));
    export(&["text", "-o"], dir.path())
        .arg(dir.path())
        .assert()
        .code(125)
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
        .stderr(contains("name a directory with -o"));
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
    // The folder is a trace.
    assert_eq!(
        text(&["text"], &to.join("kernel")),
        text(&["text"], dir.path())
    );
    export(&["lttng", "-o"], &to)
        .arg(dir.path())
        .assert()
        .code(125)
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

#[test]
fn without_a_directory_the_newest_trace_is_read() {
    let place = TempDir::new().unwrap();
    let inside = |dir: &std::path::Path, words: &[&str]| {
        let mut command = assert_cmd::Command::cargo_bin("rtrace").unwrap();
        command.args(words).current_dir(dir).assert()
    };
    let csv = ["export", "csv"];
    inside(place.path(), &csv)
        .code(2)
        .stderr(contains("the current directory has no trace"));
    let now = std::time::SystemTime::now();
    for (name, age) in [("new", 10), ("old", 100), ("no-trace", 0)] {
        let dir = place.path().join(name);
        fs::create_dir(&dir).unwrap();
        if age > 0 {
            known(&dir);
        }
        let changed = now - std::time::Duration::from_secs(age);
        fs::File::open(&dir).unwrap().set_modified(changed).unwrap();
    }
    let all = text(&["csv"], &place.path().join("new"));
    let newest = inside(place.path(), &csv).success();
    newest.stdout(all.clone()).stderr(contains("reading new\n"));
    let own = inside(&place.path().join("old"), &csv).success();
    own.stdout(all.clone()).stderr(contains("reading .\n"));
    let quiet = inside(place.path(), &["-q", "export", "csv"]).success();
    quiet.stdout(all).stderr(contains("reading").not());
    inside(place.path(), &["report"])
        .success()
        .stderr(contains("reading new\n"));
    inside(place.path(), &["top", "-i"])
        .success()
        .stderr(contains("reading new\n"));
    inside(place.path(), &["--color=always", "report"])
        .success()
        .stdout(contains("\u{1b}[1m"));
}

/// Exports in a time zone in which a day begins between two events.
#[test]
fn times_are_local_with_their_zone_and_new_days() {
    let dir = TempDir::new().unwrap();
    let packet = packet(0, 0, S - US).softirq(S - US, 1);
    let packet = packet.softirq(S + US, 1).close(S + US, 8);
    write(dir.path(), &[(0, vec![packet])]);
    let said = |words: &[&str]| {
        let mut command = assert_cmd::Command::cargo_bin("rtrace").unwrap();
        let command = command.args(words).arg(dir.path()).env("TZ", "TST-1:46:39");
        let assert = command.assert().success();
        String::from_utf8(assert.get_output().stdout.clone()).unwrap()
    };
    let lines = said(&["trace", "-i"]);
    let lines: Vec<_> = lines.lines().collect();
    assert!(lines[0].starts_with("23:59:59.999999"), "{lines:?}");
    assert_eq!(lines[1], "2023-11-15 TST");
    assert!(lines[2].starts_with("00:00:00.000001"), "{lines:?}");
    assert!(said(&["report"]).contains("2023-11-14 23:59:59.999 TST"));
    assert!(said(&["report", "--utc"]).contains("2023-11-14 22:13:20.999 UTC"));
    let events = |words: &[&str]| said(words).lines().count() - 1;
    assert_eq!(events(&["export", "csv", "--from", "00:00:00"]), 1);
    assert_eq!(events(&["export", "csv", "--utc", "--from", "22:13:20"]), 2);
    let date = ["export", "csv", "--to", "2023-11-14T23:59:59.9999995"];
    assert_eq!(events(&date), 1);
}

/// Returns the completions of a shell for the last of `words`.
fn completed(words: &[&str], dir: &std::path::Path) -> Vec<String> {
    let mut command = assert_cmd::Command::cargo_bin("rtrace").unwrap();
    let index = words.len().to_string();
    let command = command
        .env("COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", index)
        .env("_CLAP_IFS", "\n");
    let assert = command
        .args(["--", "rtrace"])
        .args(words)
        .current_dir(dir)
        .assert();
    let offered = String::from_utf8(assert.success().get_output().stdout.clone()).unwrap();
    let mut offered: Vec<_> = offered.lines().map(str::to_owned).collect();
    offered.sort();
    offered
}

#[test]
fn a_shell_completes_commands_events_and_traces() {
    let place = TempDir::new().unwrap();
    fs::create_dir(place.path().join("trace")).unwrap();
    known(&place.path().join("trace"));
    fs::create_dir(place.path().join("treasure")).unwrap();
    let completed = |words: &[&str]| completed(words, place.path());
    assert_eq!(completed(&["session", "l"]), ["list"]);
    assert_eq!(
        completed(&["record", "-e", "openat"]),
        ["openat", "openat2"]
    );
    assert_eq!(completed(&["report", "tr"]), ["trace", "treasure/"]);
    assert_eq!(completed(&["export", "pe"]), ["perf-script", "perfetto"]);
}
