// SPDX-License-Identifier: GPL-2.0

//! A trace whose names are escape sequences. No view for people sends these sequences to the terminal.

use super::{packet, write, IDLE, US};
use assert_cmd::Command;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Sets the title, clears the screen, hides further text; an 8-bit control, and a control of the text's
/// direction.
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
    // The name of a value of an enumeration.
    let vec = text.lines().find(|line| line.ends_with(" _vec;")).unwrap();
    let labels = format!(
        "enum : {} {{ \"{HOSTILE}\" = 1 }} _vec;",
        vec.trim().trim_end_matches(" _vec;")
    );
    text = text.replace(vec, &labels);
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
        "why *",
        "report --syscalls --json",
        "trace -i",
        "trace --summary -i",
        "top --batch -i",
        "top --batch --json -i",
        "report --html -",
        "export text",
        "export csv",
        "export csv -e irq_softirq_entry*",
        "export chrome",
        "export perf-script",
    ];
    for view in views {
        let mut command = Command::cargo_bin("rtrace").unwrap();
        // Forces colours, as on a terminal.
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

/// Returns the bytes of a text with `\xHH`.
fn unescaped(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend(&part.as_bytes()[2..]);
    }
    bytes
}

#[test]
fn exported_names_can_be_read_back() {
    let dir = TempDir::new().unwrap();
    hostile(dir.path());
    for format in ["text", "csv", "perf-script"] {
        let mut command = Command::cargo_bin("rtrace").unwrap();
        let ran = command.args(["export", format]).arg(dir.path()).output();
        let text = String::from_utf8(ran.unwrap().stdout).unwrap();
        let read = String::from_utf8(unescaped(&text)).unwrap();
        // The name has no prefix in ftrace's format.
        let entry = format!("softirq_entry{HOSTILE}");
        let value = format!("vec={HOSTILE}");
        assert!(
            read.contains(&entry) && read.contains(&value),
            "{format}: {text}"
        );
    }
    let mut command = Command::cargo_bin("rtrace").unwrap();
    let ran = command.args(["export", "chrome"]).arg(dir.path()).output();
    let json: serde_json::Value = serde_json::from_slice(&ran.unwrap().stdout).unwrap();
    assert_eq!(
        json["otherData"]["hostname"]
            .as_str()
            .unwrap()
            .find(HOSTILE),
        Some(0)
    );
}

/// Writes the files of a tracer in which each name is hostile.
fn hostile_tracer(debugfs: &Path) {
    let root = debugfs.join("rtrace");
    let event = root.join("events/a").join(HOSTILE);
    fs::create_dir_all(&event).unwrap();
    fs::write(
        event.join("format"),
        format!("field:int {HOSTILE};\nalias:{HOSTILE}\n"),
    )
    .unwrap();
    let name = format!("a:{HOSTILE}\n");
    for file in [
        "version",
        "available_events",
        "awaited_events",
        "available_contexts",
    ] {
        fs::write(root.join(file), &name).unwrap();
    }
    fs::write(
        root.join("dynamic_events"),
        format!("p:a/{HOSTILE} {HOSTILE}\n"),
    )
    .unwrap();
    fs::write(root.join("waiting"), "").unwrap();
    fs::write(root.join("enable"), "0\n").unwrap();
    for session in ["default", HOSTILE] {
        let session = root.join("sessions").join(session);
        fs::create_dir_all(&session).unwrap();
        for file in [
            "enable",
            "event_fork",
            "set_event_pid",
            "set_event_notrace_pid",
        ] {
            fs::write(session.join(file), "0\n").unwrap();
        }
        fs::write(
            session.join("uuid"),
            "00000000-0000-0000-0000-000000000001\n",
        )
        .unwrap();
        for file in ["clock", "set_event_cgroup", "marker_channel", "set_trigger"] {
            fs::write(session.join(file), HOSTILE).unwrap();
        }
        for channel in [HOSTILE.to_owned(), format!("{HOSTILE}2")] {
            let channel = session.join("channels").join(channel);
            fs::create_dir_all(&channel).unwrap();
            for file in [
                "set_event",
                "contexts",
                "tracing_cpus",
                "snapshot_memory",
                "barrier",
            ] {
                fs::write(channel.join(file), &name).unwrap();
            }
            fs::write(
                channel.join("set_filter"),
                format!("a:{HOSTILE} x == {HOSTILE}\n"),
            )
            .unwrap();
            for file in ["mode", "subbuf_size", "subbuf_count", "aux_size"] {
                fs::write(channel.join(file), "0\n").unwrap();
            }
            fs::write(channel.join("stats"), "cpu recorded\n0 1\ntotal 1\n").unwrap();
        }
    }
}

#[test]
fn no_list_passes_escape_sequences_on() {
    let dir = TempDir::new().unwrap();
    hostile_tracer(dir.path());
    let lists = [
        "list",
        "list -v",
        "list --json",
        "list -v --json",
        "list --contexts",
        "list --contexts --json",
        "probe --json",
        "list --awaited",
        "probe",
        "session list",
        "session list --json",
        "status",
        "status --json",
    ];
    for list in lists {
        let mut command = Command::cargo_bin("rtrace").unwrap();
        let command = command.arg("--debugfs").arg(dir.path());
        let ran = command.args(list.split(' ')).output().unwrap();
        assert!(ran.status.success(), "{list}: {ran:?}");
        assert!(
            String::from_utf8_lossy(&ran.stdout).contains("owned"),
            "{list}: {ran:?}"
        );
        is_harmless(&ran.stdout, list);
        is_harmless(&ran.stderr, list);
        if list.ends_with("--json") {
            let json = crate::schema::read(&ran.stdout);
            assert!(json.to_string().contains('\u{9b}'), "{list}: {json}");
        }
    }
    // The command in the message's advice also contains the name.
    let mut command = Command::cargo_bin("rtrace").unwrap();
    let command = command.arg("--debugfs").arg(dir.path());
    let ran = command
        .args(["--session", "none", "status"])
        .output()
        .unwrap();
    assert!(!ran.status.success());
    is_harmless(&ran.stderr, "an error that lists the sessions");
}
