// SPDX-License-Identifier: GPL-2.0

//! `--folded` and `--perf-script`, and the call stacks in `--text`.

use super::{export, known, packet, text, write, S, US};
use predicates::str::contains;
use std::fs;
use std::path::Path;
use synthetic::SOFTIRQ;
use tempfile::TempDir;

/// A record of `irq_softirq_entry` with contexts: thread, name, and call stacks.
fn record(tid: i32, comm: &str, kernel: &[u64], user: &[u64]) -> Vec<u8> {
    let mut record = tid.to_le_bytes().to_vec();
    let mut name = comm.as_bytes().to_vec();
    name.resize(16, 0);
    record.extend(name);
    for stack in [kernel, user] {
        record.extend((stack.len() as u32).to_le_bytes());
        record.extend(stack.iter().flat_map(|address| address.to_le_bytes()));
    }
    record.extend(1_u32.to_le_bytes());
    record
}

/// Three events of `my task` and one of the idle task, with stacks, the innermost first.
fn stacks(dir: &Path) {
    let one = packet(0, 0, S)
        .event(
            SOFTIRQ,
            S + US,
            &record(7, "my task", &[0x20, 0x10], &[0x3, 0x2]),
        )
        .event(
            SOFTIRQ,
            S + 2 * US,
            &record(7, "my task", &[0x20, 0x10], &[0x3, 0x2]),
        )
        .event(SOFTIRQ, S + 3 * US, &record(7, "my task", &[], &[0x2]))
        .event(SOFTIRQ, S + 4 * US, &record(0, "swapper/0", &[0x10], &[]))
        .event(SOFTIRQ, S + 5 * US, &record(0, "swapper/0", &[], &[]))
        .close(S + 10 * US, 8);
    write(dir, &[(0, vec![one])]);
    let path = dir.join("metadata");
    let description = fs::read_to_string(&path).unwrap();
    let integer = |size, signed, rest: &str| {
        format!("\t\tinteger {{ size = {size}; align = 8; signed = {signed}; {rest}}}")
    };
    let stack = |name: &str| {
        let length = integer(32, false, "");
        let address = integer(64, false, "base = 16; ");
        format!("{length} __{name}_length;\n{address} _{name}[__{name}_length];\n")
    };
    let contexts = format!(
        "\tevent.context := struct {{\n{} _tid;\n{} _procname[16];\n{}{}\t}};\n\tpacket.context",
        integer(32, true, ""),
        integer(8, false, "encoding = UTF8; "),
        stack("callstack_kernel"),
        stack("callstack_user")
    );
    fs::write(
        &path,
        description.replacen("\tpacket.context", &contexts, 1),
    )
    .unwrap();
}

#[test]
fn stacks_are_folded() {
    let dir = TempDir::new().unwrap();
    stacks(dir.path());
    assert_eq!(
        text(&["--folded"], dir.path()),
        "my_task;0x2 1\nmy_task;0x2;0x3;0x10_[k];0x20_[k] 2\nswapper;0x10_[k] 1\n"
    );
    assert_eq!(
        text(&["--folded", "--to", "+0.000001"], dir.path())
            .lines()
            .count(),
        1
    );
}

#[test]
fn without_stacks_there_is_nothing_to_fold() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    export(&["--folded"], dir.path())
        .assert()
        .code(1)
        .stdout("")
        .stderr(contains("--folded needs call stacks"))
        .stderr(contains(
            "`rtrace record --context comm,callstack-kernel,callstack-user`",
        ));
}

#[test]
fn perf_prints_frames_below_the_event() {
    let dir = TempDir::new().unwrap();
    stacks(dir.path());
    let text = text(&["--perf-script"], dir.path());
    let records: Vec<_> = text.split_terminator("\n\n").collect();
    assert_eq!(records.len(), 5);
    assert_eq!(
        records[0],
        "my task       7 [000]     1.000001: softirq_entry: vec=1 [action=TIMER]\n\
         \t              20 [unknown] ([kernel.kallsyms])\n\
         \t              10 [unknown] ([kernel.kallsyms])\n\
         \t               3 [unknown] ([unknown])\n\
         \t               2 [unknown] ([unknown])"
    );
    assert_eq!(
        records[4],
        "swapper       0 [000]     1.000005: softirq_entry: vec=1 [action=TIMER]"
    );
}

#[test]
fn perf_knows_no_stacks_where_there_are_none() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let text = text(&["--perf-script"], dir.path());
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 10);
    assert_eq!(
        lines[4],
        "              sh       7 [000]     1.000020: sys_enter_openat: filename=/etc/hosts"
    );
    assert_eq!(lines[5], "# CPU:1 [LOST 3 EVENTS AND 2 PACKETS]");
}

#[test]
fn ftrace_prints_stacks_as_events() {
    let dir = TempDir::new().unwrap();
    stacks(dir.path());
    let text = text(&["--text"], dir.path());
    let head = "         my task-7       [000] .....     1.000001: ";
    let expected = format!(
        "{head}softirq_entry: vec=1 [action=TIMER]\n{head}<stack trace>\n => 0x20\n => 0x10\n\
         {head}<user stack trace>\n =>  <0000000000000003>\n =>  <0000000000000002>\n"
    );
    assert!(text.contains(&expected), "{text}");
    assert_eq!(text.matches("<stack trace>").count(), 3);
}
