// SPDX-License-Identifier: GPL-2.0

//! Messages of commands that work with a session. The kernel's files are plain files here.

use assert_cmd::Command;
use predicates::str::contains;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process;
use std::time::Duration;
use tempfile::TempDir;

/// The files of two sessions: `web` records, `old` does not.
fn tree() -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("rtrace")).unwrap();
    fs::write(dir.path().join("rtrace/enable"), "0\n").unwrap();
    for (name, enable) in [("default", "1\n"), ("web", "1\n"), ("old", "0\n")] {
        let session = dir.path().join("rtrace/sessions").join(name);
        fs::create_dir_all(&session).unwrap();
        fs::write(session.join("enable"), enable).unwrap();
    }
    dir
}

#[test]
fn advice_names_the_session() {
    let tree = tree();
    let output = tree.path().join("trace");
    let record = ["record", "-o", output.to_str().unwrap(), "true"];
    for (session, command, said) in [
        ("web", &record[..], "`rtrace --session web status` shows it"),
        ("web", &record, "`rtrace --session web stop` ends it"),
        ("web", &["start"], "`rtrace --session web stop` ends it"),
        (
            "web",
            &["session", "free"],
            "run `rtrace --session web stop` first",
        ),
        (
            "web",
            &["session", "reset"],
            "run `rtrace --session web stop` first",
        ),
        ("old", &["stop"], "`rtrace --session old start` starts it"),
        ("default", &record, "`rtrace stop` ends it"),
        ("default", &["start"], "`rtrace stop` ends it"),
    ] {
        Command::cargo_bin("rtrace")
            .unwrap()
            .arg("--debugfs")
            .arg(tree.path())
            .args(["--session", session])
            .args(command)
            .assert()
            .code(125)
            .stderr(contains(said));
    }
}

#[test]
fn a_session_that_records_is_left_alone() {
    let tree = tree();
    Command::cargo_bin("rtrace")
        .unwrap()
        .arg("--debugfs")
        .arg(tree.path())
        .args(["--session", "web", "start", "--ensure", "-e", "irq"])
        .assert()
        .success()
        .stderr("rtrace: session `web` is already recording\n");
}

#[test]
fn a_message_is_written_at_once() {
    // A datagram is what one write(2) wrote.
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut child = process::Command::new(env!("CARGO_BIN_EXE_rtrace"))
        .args(["--debugfs", "/nonexistent", "status"])
        .stderr(OwnedFd::from(theirs))
        .spawn()
        .unwrap();
    let mut buffer = [0; 4096];
    let n = ours.recv(&mut buffer).unwrap();
    let line = std::str::from_utf8(&buffer[..n]).unwrap();
    assert!(
        line.starts_with("rtrace: ") && line.ends_with('\n'),
        "{line:?}"
    );
    assert_eq!(child.wait().unwrap().code(), Some(125));
}
