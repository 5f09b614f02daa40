// SPDX-License-Identifier: GPL-2.0

//! A trace whose names are escape sequences: none of them reaches the terminal in the views for people.

use super::{packet, write, IDLE, US};
use assert_cmd::Command;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Sets the title, clears the screen, hides what follows; then controls of eight bits, and one of direction.
const HOSTILE: &str = "\x1b]0;owned\x07\x1b[2J\x1b[8m\u{9b}2J\u{202e}\x08";

/// Writes a trace with this text in all of its names.
fn hostile(dir: &Path) {
    let task = (7, "\x1b[2J\x1b]0;x\x07\r");
    let zero = packet(0, 0, 0)
        .switch(US, IDLE, task)
        .read(2 * US, 0x7f00)
        .softirq(3 * US, 1)
        .switch_from(9 * US, task, 1, IDLE);
    write(dir, &[(0, vec![zero.close(10 * US, 8)])]);
    let path = dir.join("metadata");
    let mut text = fs::read_to_string(&path).unwrap();
    let before = text.clone();
    for name in [
        "hostname = \"",
        "release = \"",
        "name = \"irq_softirq_entry",
    ] {
        text = text.replace(name, &format!("{name}{HOSTILE}"));
    }
    assert_ne!(text, before);
    fs::write(path, text).unwrap();
}

fn is_harmless(output: &[u8], view: &str) {
    let text = String::from_utf8_lossy(output);
    let harmful = |c: char| {
        let turns = ('\u{202a}'..='\u{202e}').contains(&c);
        (c.is_control() && c != '\n' && c != '\t') || turns
    };
    if let Some(at) = text.find(harmful) {
        let from = text[..at]
            .char_indices()
            .rev()
            .nth(40)
            .map_or(0, |(i, _)| i);
        panic!("{view}: {:?}", &text[from..(at + 4).min(text.len())]);
    }
}

#[test]
fn no_view_passes_escape_sequences_on() {
    let dir = TempDir::new().unwrap();
    hostile(dir.path());
    let views = [
        "report",
        "report --json",
        "report --syscalls --threads --cpu --irq --io --locks --latency",
        "report --critical-path 7",
        "report --syscalls --json",
        "trace -i",
        "trace --summary -i",
        "top -b -i",
        "top -b --json -i",
    ];
    for view in views {
        let mut command = Command::cargo_bin("rtrace").unwrap();
        // As to a terminal that takes colours.
        command.env("CLICOLOR_FORCE", "1");
        let ran = command
            .args(view.split(' '))
            .arg(dir.path())
            .output()
            .unwrap();
        assert_ne!(ran.status.code(), Some(2), "{view}: {ran:?}");
        let styles = ["\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m"];
        for output in [ran.stdout, ran.stderr] {
            let mut text = String::from_utf8_lossy(&output).into_owned();
            for style in styles {
                text = text.replace(style, "");
            }
            is_harmless(text.as_bytes(), view);
        }
    }
}

#[test]
fn neither_does_the_name_of_a_directory() {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    let ran = command.arg("report").arg(HOSTILE).output().unwrap();
    assert!(!ran.status.success());
    is_harmless(&ran.stderr, "an error");
}
