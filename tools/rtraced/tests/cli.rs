// SPDX-License-Identifier: GPL-2.0

//! Exit codes of rtraced that need no kernel: the tests use a tree of plain files that looks like rtrace's.

use assert_cmd::Command;
use predicates::str::contains;
use rtrace_abi::header::Layout;
use rustix::fs::{flock, mknodat, FileType, FlockOperation, Mode, CWD};
use rustix::process::{kill_process, Pid, Signal};
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;
use synthetic::UUID;
use tempfile::TempDir;
use uuid::Uuid;

fn rtraced(debugfs: &Path, output: &Path) -> Command {
    let mut command = Command::cargo_bin("rtraced").unwrap();
    command
        .arg("--debugfs")
        .arg(debugfs)
        .arg("--output")
        .arg(output);
    command.timeout(Duration::from_secs(20));
    command
}

/// A session with an active trace.
fn tree() -> TempDir {
    let dir = TempDir::new().unwrap();
    let session = dir.path().join("rtrace/sessions/default");
    let channel = session.join("channels/channel0");
    fs::create_dir_all(&channel).unwrap();
    for (path, text) in [
        (dir.path().join("rtrace/enable"), "1\n".to_owned()),
        (session.join("enable"), "1\n".to_owned()),
        (
            session.join("uuid"),
            format!("{}\n", Uuid::from_bytes(UUID)),
        ),
        (
            session.join("metadata"),
            synthetic::metadata(UUID, Layout::Compact),
        ),
        (channel.join("mode"), "discard\n".to_owned()),
        (channel.join("subbuf_size"), "65536\n".to_owned()),
        (channel.join("subbuf_count"), "4\n".to_owned()),
        (channel.join("aux_size"), "0\n".to_owned()),
        (channel.join("snapshot_memory"), "free\n".to_owned()),
        (channel.join("barrier"), "auto\n".to_owned()),
        (channel.join("cpu0"), String::new()),
    ] {
        fs::write(path, text).unwrap();
    }
    dir
}

#[test]
fn without_a_module() {
    let dir = TempDir::new().unwrap();
    for how in [&["--foreground"][..], &[]] {
        rtraced(dir.path(), &dir.path().join("out"))
            .args(how)
            .assert()
            .code(1)
            .stderr(contains("debugfs is not mounted"));
    }
    assert!(!dir.path().join("out").exists());
}

#[test]
fn wrong_usage() {
    Command::cargo_bin("rtraced")
        .unwrap()
        .assert()
        .code(2)
        .stderr(contains("--output"));
    let output = TempDir::new().unwrap();
    for (words, said) in [
        ("--rotate 10", "a unit is missing"),
        ("--rotate 10m", "could be M"),
        ("--rotate 3K", "at least 4K"),
        ("--rotate often", "no size"),
        ("--keep 3", "--rotate"),
        ("--rotate 1G --keep 0", "0 is not in 1.."),
        (
            "--snapshot-on signal:USR2 --rotate 1G",
            "cannot be used with",
        ),
        (
            "--snapshot-on signal:USR2 --leftover",
            "cannot be used with",
        ),
        (
            "--snapshot-on signal:USR2 --keep-traces 1",
            "cannot be used with",
        ),
    ] {
        rtraced(output.path(), &output.path().join("trace"))
            .args(words.split(' '))
            .assert()
            .code(2)
            .stderr(contains(said));
    }
}

#[test]
fn wrong_usage_of_the_network() {
    for (words, said) in [
        ("--connect collector", "not HOST:PORT"),
        ("--connect collector:99999", "not HOST:PORT"),
        (
            "--connect a:1 --listen b:2 --output c",
            "cannot be used with",
        ),
        ("--connect a:1 --output b", "cannot be used with"),
        ("--connect a:1 --rotate 1G", "cannot be used with"),
        (
            "--connect a:1 --plain --ca b --cert c --key d",
            "cannot be used with",
        ),
        ("--connect a:1 --ca b", "--cert"),
        ("--listen a:1", "--output"),
        ("--listen a:1 --output b --session c", "cannot be used with"),
        ("--listen a:1 --output b --direct", "cannot be used with"),
        ("--output a --plain", "--connect"),
    ] {
        Command::cargo_bin("rtraced")
            .unwrap()
            .args(words.split(' '))
            .assert()
            .code(2)
            .stderr(contains(said));
    }
}

#[test]
fn a_receiver_that_cannot_begin() {
    let output = TempDir::new().unwrap();
    let receiver = |words: &str| {
        let mut command = Command::cargo_bin("rtraced").unwrap();
        command.args(words.split(' ')).arg("--output");
        command.timeout(std::time::Duration::from_secs(20));
        command
    };
    let dir = output.path().join("traces");
    for how in ["", " --foreground"] {
        for address in ["0.0.0.0:0", "127.0.0.1:0", "[::1]:0"] {
            receiver(&format!("--listen {address}{how}"))
                .arg(&dir)
                .assert()
                .code(1)
                .stderr(contains("--plain"));
        }
        let no_files = "--ca /no/ca --cert /no/cert --key /no/key";
        receiver(&format!("--listen 0.0.0.0:0 {no_files}{how}"))
            .arg(&dir)
            .assert()
            .code(1)
            .stderr(contains("/no/"));
    }
    let file = output.path().join("file");
    fs::write(&file, "").unwrap();
    receiver("--foreground --plain --listen 127.0.0.1:0")
        .arg(file.join("traces"))
        .assert()
        .code(4);
}

#[test]
fn a_foreign_directory_is_refused() {
    let (tree, output) = (tree(), TempDir::new().unwrap());
    fs::write(output.path().join("letter"), "dear").unwrap();
    for how in [&["--foreground"][..], &[]] {
        rtraced(tree.path(), output.path())
            .args(how)
            .assert()
            .code(3)
            .stderr(contains("is not empty and not a trace"));
    }
}

#[test]
fn chunks_and_traces_are_not_mixed() {
    let (tree, output) = (tree(), TempDir::new().unwrap());
    let chunk = output.path().join("chunk-000001");
    fs::create_dir(&chunk).unwrap();
    fs::write(
        chunk.join("metadata"),
        synthetic::metadata(UUID, Layout::Compact),
    )
    .unwrap();
    let rotate = &["--foreground", "--rotate", "1G"][..];
    for (dir, how, said) in [
        (output.path(), &["--foreground"][..], "is not empty"),
        (&chunk, rotate, "not in chunks"),
    ] {
        rtraced(tree.path(), dir)
            .args(how)
            .assert()
            .code(3)
            .stderr(contains(said));
    }
    let other = synthetic::metadata([7; 16], Layout::Compact);
    fs::write(chunk.join("metadata"), other).unwrap();
    rtraced(tree.path(), output.path())
        .args(rotate)
        .assert()
        .code(3)
        .stderr(contains("another trace"));
}

/// The names in a directory, in order.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn the_newest_traces_are_kept() {
    let (tree, output) = (tree(), TempDir::new().unwrap());
    let old = ["20200101-000000", "20200102-000000", "20200103-000000"];
    for name in old.into_iter().chain(["20200101-old"]) {
        let dir = output.path().join(name);
        fs::create_dir(&dir).unwrap();
        let metadata = synthetic::metadata([7; 16], Layout::Compact);
        fs::write(dir.join("metadata"), metadata).unwrap();
    }
    // The tree's streams are plain files, so that rtraced fails after it has made the directory.
    let begin = |keep: &str| {
        rtraced(tree.path(), output.path())
            .args(["--foreground", "--keep-traces", keep])
            .assert()
            .code(1)
            .stderr(contains("epoll"));
    };
    begin("0");
    let all = names(output.path());
    assert_eq!(all[..3], [old[0], "20200101-old", old[1]]);
    assert_eq!(all.len(), 5, "{all:?}");
    // The new directory has a part of the trace, so it is continued, and nothing is removed.
    begin("1");
    assert_eq!(names(output.path()), all);
    fs::remove_dir_all(output.path().join(&all[4])).unwrap();
    begin("2");
    let kept = names(output.path());
    assert_eq!(kept[..2], ["20200101-old", old[2]]);
    assert_eq!(kept.len(), 3, "{kept:?}");
}

#[test]
fn snapshots_need_a_place() {
    let (tree, output) = (tree(), TempDir::new().unwrap());
    fs::write(output.path().join("letter"), "dear").unwrap();
    for how in [&["--foreground"][..], &[]] {
        rtraced(tree.path(), output.path())
            .args(["--snapshot-on", "signal:USR2"])
            .args(how)
            .assert()
            .code(3)
            .stderr(contains("is not empty and has no snapshots"));
    }
}

#[test]
fn what_is_no_regular_file_is_refused() {
    let (tree, output) = (tree(), TempDir::new().unwrap());
    let metadata = output.path().join("metadata");
    let fifo = |path: &Path| mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    fifo(&metadata);
    rtraced(tree.path(), output.path())
        .arg("--foreground")
        .assert()
        .code(3)
        .stderr(contains("metadata: it is a FIFO, not a regular file"));
    fs::remove_file(&metadata).unwrap();
    fs::write(&metadata, synthetic::metadata(UUID, Layout::Compact)).unwrap();
    fifo(&output.path().join("channel0_cpu0"));
    rtraced(tree.path(), output.path())
        .arg("--foreground")
        .assert()
        .code(4)
        .stderr(contains("channel0_cpu0: it is a FIFO, not a regular file"));
}

#[test]
fn another_trace_is_refused() {
    let (tree, output) = (tree(), TempDir::new().unwrap());
    let other = synthetic::metadata([7; 16], Layout::Compact);
    fs::write(output.path().join("metadata"), &other).unwrap();
    rtraced(tree.path(), output.path())
        .arg("--foreground")
        .assert()
        .code(3)
        .stderr(contains("another trace"));
    assert_eq!(
        fs::read_to_string(output.path().join("metadata")).unwrap(),
        other
    );
}

#[test]
fn a_directory_that_cannot_be_written() {
    let (tree, output) = (tree(), TempDir::new().unwrap());
    let file = output.path().join("file");
    fs::write(&file, "").unwrap();
    rtraced(tree.path(), &file.join("trace"))
        .arg("--foreground")
        .assert()
        .code(4);
}

#[test]
fn what_is_no_stream_fails_and_leaves_no_pid_file() {
    let (tree, output) = (tree(), TempDir::new().unwrap());
    let pid = output.path().join("pid");
    // As any user can lock /run.
    let locked = File::open(output.path()).unwrap();
    flock(&locked, FlockOperation::LockExclusive).unwrap();
    rtraced(tree.path(), &output.path().join("trace"))
        .arg("--pid-file")
        .arg(&pid)
        .assert()
        .code(1)
        .stderr(contains("epoll"));
    assert!(!pid.exists());
}

#[test]
fn man_pages_and_completions() {
    let dir = TempDir::new().unwrap();
    let mut rtraced = Command::cargo_bin("rtraced").unwrap();
    rtraced.arg("--generate").arg(dir.path()).assert().success();
    let page = fs::read_to_string(dir.path().join("man1/rtraced.1")).unwrap();
    assert!(page.contains("Exit codes"), "{page}");
    assert!(dir.path().join("completions/rtraced.bash").exists());
}

#[test]
fn a_message_is_written_at_once() {
    // A datagram is what one write(2) wrote.
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let dir = TempDir::new().unwrap();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_rtraced"))
        .args(["--foreground", "--output", "none", "--debugfs"])
        .arg(dir.path())
        .stderr(OwnedFd::from(theirs))
        .spawn()
        .unwrap();
    let mut buffer = [0; 4096];
    let n = ours.recv(&mut buffer).unwrap();
    let line = std::str::from_utf8(&buffer[..n]).unwrap();
    assert!(
        line.starts_with("rtraced: ") && line.ends_with('\n'),
        "{line:?}"
    );
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn systemd_is_told() {
    let (tree, output) = (tree(), TempDir::new().unwrap());
    fs::write(tree.path().join("rtrace/sessions/default/enable"), "0\n").unwrap();
    let path = output.path().join("socket");
    let systemd = UnixDatagram::bind(&path).unwrap();
    systemd
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let hear = || {
        let mut buffer = [0; 256];
        let n = systemd.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..n]).into_owned()
    };
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_rtraced"))
        .args(["--foreground", "--debugfs"])
        .arg(tree.path())
        .arg("--output")
        .arg(output.path().join("trace"))
        .env("NOTIFY_SOCKET", &path)
        .spawn()
        .unwrap();
    let ready = hear();
    let _ = kill_process(Pid::from_child(&child), Signal::TERM);
    assert_eq!(
        ready,
        "READY=1\nSTATUS=waiting for a trace: session `default` is not started"
    );
    assert_eq!(hear(), "STOPPING=1");
    assert!(child.wait().unwrap().success());
}
