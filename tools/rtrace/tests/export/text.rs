// SPDX-License-Identifier: GPL-2.0

//! `rtrace export text`, and which events and times are chosen.

use super::{export, known, packet, text, write, IDLE, S, SHELL, US};
use predicates::prelude::*;
use predicates::str::contains;
use synthetic::PacketBuilder;
use tempfile::TempDir;

/// Returns the lines of events and losses.
fn lines(options: &[&str], dir: &TempDir) -> Vec<String> {
    let text = text(&[&["text"], options].concat(), dir.path());
    assert!(text.starts_with("# tracer: nop\n"), "{text}");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

#[test]
fn it_is_that_of_ftrace() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let expected = [
        "          <idle>-0       [000] .....     1.000005: sched_waking: comm=sh pid=7 prio=120 \
         target_cpu=000",
        "          <idle>-0       [000] .....     1.000010: sched_switch: prev_comm=swapper/0 \
         prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=sh next_pid=7 next_prio=120",
        "           <...>-?       [001] .....     1.000011: softirq_entry: vec=1 [action=TIMER]",
        "           <...>-?       [001] .....     1.000016: softirq_exit: vec=1 [action=TIMER]",
        "              sh-7       [000] .....     1.000020: sys_openat(filename: /etc/hosts)",
        "CPU:1 [LOST 3 EVENTS AND 2 PACKETS]",
        "              sh-7       [000] .....     1.000040: sys_openat -> 0xfffffffffffffffe",
        "              sh-7       [000] .....     1.000050: sched_process_fork: comm=sh pid=7 \
         child_comm=a \"b\", c child_pid=8",
        "              sh-7       [000] .....     1.000060: sched_switch: prev_comm=sh \
         prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120",
        "          <idle>-0       [001] .....     1.000080: sched_switch: prev_comm=swapper/0 \
         prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a \"b\", c next_pid=8 next_prio=120",
    ];
    assert_eq!(lines(&[], &dir), expected);
}

#[test]
fn losses_are_said_beside_it() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    export(&["text"], dir.path())
        .assert()
        .success()
        .stderr(contains("2 events have no known thread"))
        .stderr(contains("2 packets are missing within the trace"))
        .stderr(contains("9 events exported, 3 lost"));
}

#[test]
fn every_type_is_shown() {
    let dir = TempDir::new().unwrap();
    let one = packet(0, 0, 0)
        .switch(1, IDLE, (9, "evil\x1b[m\n"))
        .every_type(10)
        .close(20, 8);
    write(dir.path(), &[(0, vec![one])]);
    let expected = format!(
        "  evil\\x1b[m\\x0a-9       [000] .....     0.000000: every_type: ready=1 level=-3 mask=0x1abc \
         kind=HIGH wide={} state=a \"wait\" uuid={{0xde,0xad,0xbe,0xef}} pairs={{1,2,3,0,1}} \
         name_offset=32 name_length=2 cpus_offset=34 cpus_length=2 name=ab cpus={{-1,7}} path=/p",
        0x8123_4567_89ab_cdef_u64
    );
    assert_eq!(lines(&["-e", "every_type"], &dir), [expected]);
}

#[test]
fn events_are_chosen_by_all_their_names() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    for (patterns, count) in [
        ("sched_switch", 3),
        ("sched", 5),
        ("sched:*,!sched_switch", 2),
        ("irq:softirq_entry", 1),
        ("irq_softirq_*", 2),
        ("syscalls", 2),
        ("sys_exit_openat", 1),
    ] {
        let lines = lines(&["-e", patterns], &dir);
        let events = lines.iter().filter(|line| !line.starts_with("CPU:"));
        assert_eq!(events.count(), count, "{patterns}");
    }
    export(&["text", "-e", "sched_swich"], dir.path())
        .assert()
        .code(125)
        .stdout("")
        .stderr(contains(
            "no event matches `sched_swich`: did you mean sched:sched_switch",
        ));
}

#[test]
fn a_time_is_chosen() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    for (options, expected) in [
        (&["--from", "1.00006"][..], &["1.000060", "1.000080"][..]),
        (&["--from", "+0.00006s"], &["1.000060", "1.000080"]),
        (&["--to", "1.00001"], &["1.000005", "1.000010"]),
        (&["--from", "1.000011", "--to", "+0.000012s"], &["1.000011"]),
        (&["--from", "2"], &[]),
    ] {
        let lines = lines(options, &dir);
        let events = lines.iter().filter(|line| !line.starts_with("CPU:"));
        let times: Vec<_> = events
            .map(|line| line.split("..... ").nth(1).unwrap().trim()[..8].to_owned())
            .collect();
        assert_eq!(times, expected, "{options:?}");
    }
    // The loss may have occurred at any time until the end of its packet, at 90 us.
    for (from, losses) in [("+0.00009s", 1), ("+0.000091s", 0)] {
        let lines = lines(&["--from", from], &dir);
        let told = lines.iter().filter(|line| line.starts_with("CPU:1 [LOST"));
        assert_eq!(told.count(), losses, "{from}");
    }
    // Events before the range show the running thread.
    let lines = lines(&["--from", "1.00004", "--to", "1.00005"], &dir);
    let is_known = |line: &&String| line.starts_with("              sh-7 ");
    assert_eq!(lines.iter().filter(is_known).count(), 2, "{lines:?}");
    export(&["text", "--from", "soon"], dir.path())
        .assert()
        .code(2)
        .stderr(contains("not a time: write"));
}

#[test]
fn what_the_trace_lacks_is_said() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let path = dir.path().join("metadata");
    let description = std::fs::read_to_string(&path).unwrap();
    let one = packet(0, 0, S).softirq(S + US, 1).close(S + 2 * US, 8);
    write(dir.path(), &[(0, vec![one])]);
    std::fs::remove_file(dir.path().join("channel0_cpu1")).unwrap();
    export(&["text"], dir.path())
        .assert()
        .success()
        .stderr(contains("1 events have no known thread"))
        .stderr(contains("nor the context tid").not());
    std::fs::write(&path, description.replace("\"sched_switch\"", "\"other\"")).unwrap();
    export(&["text"], dir.path())
        .assert()
        .success()
        .stderr(contains("neither sched_switch nor the context tid"));
    export(&["chrome"], dir.path())
        .assert()
        .success()
        .stderr(contains("the thread that runs on a CPU is unknown"));
}

#[test]
fn the_first_packet_may_have_losses() {
    let dir = TempDir::new().unwrap();
    let one = packet(0, 4, S)
        .discarded(5)
        .switch(S + US, IDLE, SHELL)
        .softirq(S + 2 * US, 1)
        .close(S + 3 * US, 8);
    write(dir.path(), &[(0, vec![one])]);
    let lines = lines(&[], &dir);
    assert_eq!(lines[0], "CPU:0 [LOST 5 EVENTS]");
    // The position of the loss in the packet is unknown, so the thread is unknown.
    assert!(lines[2].starts_with("           <...>-?"), "{lines:?}");
    export(&["text"], dir.path())
        .assert()
        .stderr(contains("4 packets are missing before the first"));
}

#[test]
fn the_first_switch_names_the_thread_before_it() {
    let dir = TempDir::new().unwrap();
    let first = |sequence, begin| packet(0, sequence, begin).softirq(begin + US, 1);
    let second = |sequence, begin| {
        packet(0, sequence, begin)
            .switch(begin + US, SHELL, IDLE)
            .close(begin + 2 * US, 8)
    };
    let task = |packets: Vec<Vec<u8>>| {
        write(dir.path(), &[(0, packets)]);
        let lines = lines(&["-e", "softirq_entry"], &dir);
        let event = lines.iter().find(|line| line.contains(": softirq_entry: "));
        event.unwrap().trim().split(' ').next().unwrap().to_owned()
    };
    let close = |packet: PacketBuilder| packet.close(S + 2 * US, 8);
    let later = S + 3 * US;
    assert_eq!(task(vec![close(first(0, S)), second(1, later)]), "sh-7");
    // A flight recorder has overwritten the beginning.
    assert_eq!(task(vec![close(first(4, S)), second(5, later)]), "sh-7");
    // The switch from the first thread may be lost.
    assert_eq!(task(vec![close(first(0, S)), second(2, later)]), "<...>-?");
    let lossy = packet(0, 1, later).discarded(1);
    let lossy = lossy
        .switch(later + US, SHELL, IDLE)
        .close(later + 2 * US, 8);
    assert_eq!(task(vec![close(first(0, S)), lossy]), "<...>-?");
}
