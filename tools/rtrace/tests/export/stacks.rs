// SPDX-License-Identifier: GPL-2.0

//! `rtrace export folded` and `perf-script`, and the call stacks in `text`.

use super::{export, known, packet, text, write, S, US};
use predicates::str::contains;
use std::fs;
use std::path::Path;
use synthetic::{SOFTIRQ, SWITCH, WAKING};
use tempfile::TempDir;

/// Returns a record of `irq_softirq_entry` with contexts.
fn record(tid: i32, comm: &str, kernel: &[u64], user: &[u64]) -> Vec<u8> {
    let mut record = contexts(tid, comm, kernel, user);
    record.extend(1_u32.to_le_bytes());
    record
}

/// Returns a record of `sched_switch`: a thread of process 7 leaves its CPU in this state for another thread.
fn switch(prev: i32, state: i64, next: i32, kernel: &[u64]) -> Vec<u8> {
    let mut record = contexts(prev, "my task", kernel, &[]);
    record.extend(*b"my task\0\0\0\0\0\0\0\0\0");
    record.extend(prev.to_le_bytes());
    record.extend(20_i32.to_le_bytes());
    record.extend(state.to_le_bytes());
    record.extend(*b"my task\0\0\0\0\0\0\0\0\0");
    record.extend(next.to_le_bytes());
    record.extend(20_i32.to_le_bytes());
    record
}

/// Returns contexts: thread, name, and call stacks.
fn contexts(tid: i32, comm: &str, kernel: &[u64], user: &[u64]) -> Vec<u8> {
    let mut record = tid.to_le_bytes().to_vec();
    let mut name = comm.as_bytes().to_vec();
    name.resize(16, 0);
    record.extend(name);
    for stack in [kernel, user] {
        record.extend((stack.len() as u32).to_le_bytes());
        record.extend(stack.iter().flat_map(|address| address.to_le_bytes()));
    }
    record
}

/// Writes three events of `my task` and one of the idle task. Their stacks begin with the innermost frame.
pub fn stacks(dir: &Path) {
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
    write_with_contexts(dir, &[(0, vec![one])]);
}

/// Writes a trace whose records have these contexts.
fn write_with_contexts(dir: &Path, streams: &[(u32, Vec<Vec<u8>>)]) {
    write(dir, streams);
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
        text(&["folded"], dir.path()),
        "my_task;0x2 1\nmy_task;0x2;0x3;0x10_[k];0x20_[k] 2\nswapper;0x10_[k] 1\n"
    );
    assert_eq!(
        text(&["folded", "--to", "+0.000001s"], dir.path())
            .lines()
            .count(),
        1
    );
}

#[test]
fn functions_have_the_names_that_were_saved() {
    let dir = TempDir::new().unwrap();
    stacks(dir.path());
    let trace = synthetic::uuid_text(synthetic::UUID);
    let mappings =
        format!("rtrace mappings 1\ntrace {trace}\nclock 1 1\nmap 0 7 0 10 0 ab /bin/my task\n");
    fs::write(dir.path().join(".mappings"), mappings).unwrap();
    let symbols = format!(
        "rtrace symbols 1\ntrace {trace}\nkernel\n8 8 outer\n20 10 inner [mod]\n\
         file ab /bin/my task\n1 1 caller\n3 1 leaf\n"
    );
    fs::write(dir.path().join(".symbols"), symbols).unwrap();
    // The return address of a caller is after its call instruction. Here no function of the file contains this
    // address.
    assert_eq!(
        text(&["folded"], dir.path()),
        "my_task;[my task] 1\nmy_task;caller;leaf;outer_[k];inner_[k] 2\nswapper;0x10_[k] 1\n"
    );
    let script = text(&["perf-script"], dir.path());
    let frames = "\t              20 inner+0x0 ([mod])\n\
                  \t              10 outer+0x8 ([kernel.kallsyms])\n\
                  \t               3 leaf+0x0 (/bin/my task)\n\
                  \t               2 caller+0x1 (/bin/my task)\n";
    assert_eq!(script.matches(frames).count(), 2, "{script}");
    // These files belong to another trace.
    for file in [".mappings", ".symbols"] {
        let path = dir.path().join(file);
        let other = fs::read_to_string(&path)
            .unwrap()
            .replace(&trace, &trace.replace('5', "6"));
        fs::write(&path, other).unwrap();
    }
    let folded = text(&["folded"], dir.path());
    assert!(
        folded.contains("my_task;0x2;0x3;0x10_[k];0x20_[k] 2\n"),
        "{folded}"
    );
}

#[test]
fn the_time_of_the_event_decides_between_modules_at_one_place() {
    let dir = TempDir::new().unwrap();
    stacks(dir.path());
    let trace = synthetic::uuid_text(synthetic::UUID);
    let mappings =
        format!("rtrace mappings 1\ntrace {trace}\nclock 1 1\nmap 0 7 0 10 0 ab /bin/task\n");
    fs::write(dir.path().join(".mappings"), mappings).unwrap();
    // The time of the second event, in nanoseconds.
    let change = 1_000_002_000;
    let symbols = format!(
        "rtrace symbols 2\ntrace {trace}\nkernel\n8 8 outer\n\
         kernel 0 {change}\n20 10 before [one]\nkernel {change} -\n20 10 after [two]\n\
         gone ab /bin/task\n"
    );
    fs::write(dir.path().join(".symbols"), symbols).unwrap();
    let gone = "[task (removed)]";
    assert_eq!(
        text(&["folded"], dir.path()),
        format!(
            "my_task;{gone} 1\nmy_task;{gone};{gone};outer_[k];after_[k] 1\n\
             my_task;{gone};{gone};outer_[k];before_[k] 1\nswapper;0x10_[k] 1\n"
        )
    );
}

#[test]
fn names_that_anybody_may_have_chosen_do_no_harm() {
    let dir = TempDir::new().unwrap();
    stacks(dir.path());
    let trace = synthetic::uuid_text(synthetic::UUID);
    let mappings = format!(
        "rtrace mappings 1\ntrace {trace}\nclock 1 1\nmap 0 7 0 10 0 ab /bin/a;\\n\x1b[2Jb\n"
    );
    fs::write(dir.path().join(".mappings"), mappings).unwrap();
    let symbols = format!(
        "rtrace symbols 1\ntrace {trace}\nkernel\n20 10 in\x1b[2Jner\nfile ab /bin/a;\\n\x1b[2Jb\n3 1 le\x1baf\n"
    );
    fs::write(dir.path().join(".symbols"), symbols).unwrap();
    assert_eq!(
        text(&["folded"], dir.path()),
        "my_task;[a:\\x0a\\x1b[2Jb] 1\nmy_task;[a:\\x0a\\x1b[2Jb];le\\x1baf;0x10_[k];in\\x1b[2Jner_[k] 2\nswapper;0x10_[k] 1\n"
    );
    for format in ["perf-script", "text"] {
        let text = text(&[format], dir.path());
        assert!(text.contains(r"/bin/a;\x0a\x1b[2Jb"), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
    }
}

#[test]
fn a_stack_off_the_cpu_counts_until_its_thread_runs_again() {
    let dir = TempDir::new().unwrap();
    let one = packet(0, 0, S)
        // Blocked for 30 us.
        .event(SWITCH, S + US, &switch(7, 1, 0, &[0x20]))
        .event(SWITCH, S + 31 * US, &switch(0, 0, 7, &[0x30]))
        // The thread is preempted, so it waits only for a CPU.
        .event(SWITCH, S + 40 * US, &switch(7, 0, 8, &[0x40]))
        .event(SWITCH, S + 50 * US, &switch(8, 1, 7, &[0x50]))
        // The thread exits.
        .event(SWITCH, S + 60 * US, &switch(7, 0x20, 8, &[0x60]))
        .event(SWITCH, S + 70 * US, &switch(8, 1, 7, &[0x70]))
        .close(S + 100 * US, 8);
    write_with_contexts(dir.path(), &[(0, vec![one])]);
    assert_eq!(
        text(&["folded", "--off-cpu"], dir.path()),
        "my_task;0x20_[k] 30\nmy_task;0x50_[k] 10\n"
    );
    let picture = text(&["flamegraph", "--off-cpu"], dir.path());
    assert!(picture.contains("0x20 (30 us"), "{picture}");
    export(&["csv", "--off-cpu"], dir.path())
        .assert()
        .code(2)
        .stderr(contains("unexpected argument '--off-cpu'"));
}

/// Returns a record of `sched_waking` by a thread.
fn waking(by: i32, comm: &str, tid: i32, kernel: &[u64], user: &[u64]) -> Vec<u8> {
    let mut record = contexts(by, comm, kernel, user);
    record.extend(*b"my task\0\0\0\0\0\0\0\0\0");
    record.extend(tid.to_le_bytes());
    record.extend([20_i32.to_le_bytes(), 0_i32.to_le_bytes()].concat());
    record
}

/// Thread 7 sleeps until 8 wakes it, and 8 until 9 wakes it. The lines have the time of `--off-cpu`.
#[test]
fn a_stack_off_the_cpu_is_joined_to_those_of_its_wakers() {
    let dir = TempDir::new().unwrap();
    let one = packet(0, 0, S)
        .event(SWITCH, S + US, &switch(7, 1, 8, &[0x20]))
        .event(SWITCH, S + 11 * US, &switch(8, 1, 9, &[0x30]))
        .event(
            WAKING,
            S + 31 * US,
            &waking(9, "root", 8, &[0x40, 0x41], &[0x9]),
        )
        .event(SWITCH, S + 32 * US, &switch(9, 1, 8, &[0x50]))
        .event(WAKING, S + 51 * US, &waking(8, "my waker", 7, &[0x60], &[]))
        .event(SWITCH, S + 53 * US, &switch(8, 1, 7, &[0x30]))
        // An interrupt over the idle task wakes 8, and no event the thread 9.
        .event(SWITCH, S + 60 * US, &switch(7, 1, 0, &[0x70]))
        .event(WAKING, S + 63 * US, &waking(0, "swapper", 8, &[0x80], &[]))
        .event(SWITCH, S + 63 * US, &switch(0, 0, 8, &[]))
        .event(SWITCH, S + 64 * US, &switch(8, 1, 9, &[0x30]))
        .event(SWITCH, S + 90 * US, &switch(9, 0, 7, &[0x90]))
        .close(S + 100 * US, 8);
    write_with_contexts(dir.path(), &[(0, vec![one])]);
    let off_cpu =
        "my_task;0x20_[k] 52\nmy_task;0x30_[k] 31\nmy_task;0x50_[k] 32\nmy_task;0x70_[k] 30\n";
    assert_eq!(text(&["folded", "--off-cpu"], dir.path()), off_cpu);
    let root = "--;0x40_[k];0x41_[k];0x9;root";
    assert_eq!(
        text(&["folded", "--off-wake"], dir.path()),
        format!(
            "my_task;0x20_[k];--;0x60_[k];my_waker;{root} 52\n\
             my_task;0x30_[k];{root} 21\n\
             my_task;0x30_[k];--;0x80_[k];[an_interrupt] 10\n\
             my_task;0x50_[k];--;[unknown] 32\n\
             my_task;0x70_[k];--;[unknown] 30\n"
        )
    );
    let picture = text(&["flamegraph", "--off-wake"], dir.path());
    assert!(picture.contains("my_waker (52 us"), "{picture}");
    let both = export(&["folded", "--off-wake", "--off-cpu"], dir.path());
    { both }.assert().code(2);
    let dir = TempDir::new().unwrap();
    stacks(dir.path());
    forget_waking(dir.path());
    export(&["folded", "--off-wake"], dir.path())
        .assert()
        .code(125)
        .stderr(contains("--off-wake needs sched_switch and sched_waking"));
}

/// Deletes `sched_waking` from a trace's description.
fn forget_waking(dir: &Path) {
    let path = dir.join("metadata");
    let text = fs::read_to_string(&path).unwrap();
    let blocks = text.split_inclusive("};\n\n");
    let kept: String = blocks
        .filter(|block| !block.contains("name = \"sched_waking"))
        .collect();
    assert_ne!(kept, text);
    fs::write(path, kept).unwrap();
}

#[test]
fn what_is_blocked_while_events_are_missing_does_not_count() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, S)
        .event(SWITCH, S + 40 * US, &switch(7, 1, 8, &[0x20]))
        // After the gap, the thread's state is known again.
        .event(SWITCH, S + 92 * US, &switch(8, 1, 7, &[0x30]))
        .event(SWITCH, S + 97 * US, &switch(7, 0, 8, &[0x40]))
        .close(S + 100 * US, 8);
    let one = packet(1, 0, S).close(S + 30 * US, 8);
    // During this gap, thread 7 may have run.
    let behind = packet(1, 1, S + 70 * US).discarded(3).close(S + 90 * US, 8);
    write_with_contexts(dir.path(), &[(0, vec![zero]), (1, vec![one, behind])]);
    assert_eq!(
        text(&["folded", "--off-cpu"], dir.path()),
        "my_task;0x30_[k] 5\n"
    );
}

#[test]
fn a_picture_has_every_function() {
    let dir = TempDir::new().unwrap();
    stacks(dir.path());
    let picture = text(&["flamegraph"], dir.path());
    assert!(picture.starts_with("<?xml") && picture.contains("</svg>"));
    for function in [
        "my_task (3 samples",
        "0x20 (2 samples",
        "swapper (1 samples",
    ] {
        assert!(picture.contains(function), "{function}: {picture}");
    }
    export(&["flamegraph", "-e", "sched_switch"], dir.path())
        .assert()
        .code(125)
        .stderr(contains("there is nothing to draw"));
}

#[test]
fn without_stacks_there_is_nothing_to_fold() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    export(&["folded"], dir.path())
        .assert()
        .code(125)
        .stdout("")
        .stderr(contains("`export folded` needs call stacks"))
        .stderr(contains(
            "`rtrace record --context comm,callstack-kernel,callstack-user`",
        ));
}

#[test]
fn perf_prints_frames_below_the_event() {
    let dir = TempDir::new().unwrap();
    stacks(dir.path());
    let text = text(&["perf-script"], dir.path());
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
    // Names are not looked up either.
    fs::write(dir.path().join(".symbols"), "unreadable").unwrap();
    let exported = export(&["perf-script"], dir.path()).assert().success();
    assert!(!String::from_utf8_lossy(&exported.get_output().stderr).contains(".symbols"));
    let text = text(&["perf-script"], dir.path());
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
    let text = text(&["text"], dir.path());
    let head = "         my task-7       [000] .....     1.000001: ";
    let expected = format!(
        "{head}softirq_entry: vec=1 [action=TIMER]\n{head}<stack trace>\n => 0x20\n => 0x10\n\
         {head}<user stack trace>\n =>  <0000000000000003>\n =>  <0000000000000002>\n"
    );
    assert!(text.contains(&expected), "{text}");
    assert_eq!(text.matches("<stack trace>").count(), 3);
}
