// SPDX-License-Identifier: GPL-2.0

//! `rtrace why`.

use super::io::{self, done, made, INSERT, ISSUE};
use super::machine::{self, Channels, Loss, Random};
use super::{declare, forget, json, packet, write, IDLE, SHELL, THREAD, US};
use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use std::path::Path;
use synthetic::{PacketBuilder, WAKEUP, WAKING};
use tempfile::TempDir;

const OTHER: (i32, &str) = (9, "other");

const FUTEX: u32 = 90;
const FUTEX_EXIT: u32 = 91;
const SLEEP: u32 = 92;
const SLEEP_EXIT: u32 = 93;
const CONTENTION: u32 = 94;
const ACQUIRED: u32 = 95;
const ENTER: u32 = 96;
const RETURN: u32 = 97;
const SYNC: u32 = 98;
const SYNC_EXIT: u32 = 99;

fn why(arguments: &[&str], dir: &Path) -> Command {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    command.args(["--utc", "why"]).args(arguments).arg(dir);
    command
}

fn answer(arguments: &[&str], dir: &Path) -> Value {
    let output = why(arguments, dir).arg("--json").assert().success();
    let json: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    json["why"].clone()
}

fn describe(dir: &Path) {
    const RET: &[&str] = &["i64 ret"];
    declare(
        dir,
        &[
            (FUTEX, "syscall_entry_futex", &["u64 uaddr", "i32 op"]),
            (FUTEX_EXIT, "syscall_exit_futex", RET),
            (SLEEP, "syscall_entry_clock_nanosleep", &["i32 which"]),
            (SLEEP_EXIT, "syscall_exit_clock_nanosleep", RET),
            (
                CONTENTION,
                "contention_begin",
                &["u64 lock_addr", "u32 flags"],
            ),
            (ACQUIRED, "contention_end", &["u64 lock_addr", "i32 ret"]),
            (ENTER, "funcgraph_entry", &["u64 func", "u32 depth"]),
            (RETURN, "funcgraph_exit", &["u64 func", "u32 depth"]),
            (SYNC, "syscall_entry_fdatasync", &["i32 fd"]),
            (SYNC_EXIT, "syscall_exit_fdatasync", RET),
        ],
    );
}

fn futex(packet: PacketBuilder, time: u64, operation: i32) -> PacketBuilder {
    let payload = [&0x1000_u64.to_le_bytes()[..], &operation.to_le_bytes()].concat();
    packet.event(FUTEX, time, &payload)
}

fn number(packet: PacketBuilder, id: u32, time: u64, value: i32) -> PacketBuilder {
    packet.event(id, time, &value.to_le_bytes())
}

fn ret(packet: PacketBuilder, id: u32, time: u64) -> PacketBuilder {
    packet.event(id, time, &0_i64.to_le_bytes())
}

/// Writes a trace. `sh` sleeps until `worker` wakes it. Meanwhile `worker` sleeps until an interrupt wakes it,
/// and then waits for a CPU where `other` runs.
fn known(dir: &Path) {
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, SHELL)
        .switch_from(20 * US, SHELL, 1, THREAD)
        .switch_from(30 * US, THREAD, 1, OTHER)
        .irq(80 * US, 5, "eth0")
        .wake(WAKING, 81 * US, THREAD)
        .irq_exit(82 * US, 5)
        .switch_from(86 * US, OTHER, 1, THREAD)
        .wake(WAKING, 206 * US, SHELL)
        .switch_from(209 * US, THREAD, 0, SHELL)
        .switch_from(210 * US, SHELL, 0x20, THREAD)
        .switch_from(300 * US, THREAD, 1, IDLE)
        .close(400 * US, 8);
    write(dir, &[(0, vec![zero])]);
}

/// Returns kind and microseconds of each cause.
fn causes(of: &Value) -> Vec<(&str, u64)> {
    let causes = of["causes"].as_array().unwrap().iter();
    let causes = causes.map(|cause| {
        let ns = cause["total_ns"].as_u64().unwrap();
        (cause["kind"].as_str().unwrap(), ns / 1000)
    });
    causes.collect()
}

fn ns(of: &Value, field: &str) -> u64 {
    of[field].as_u64().unwrap_or(0)
}

/// Checks that the causes add up to the waits, and the waits to those of `--threads`.
fn adds_up(found: &Value, dir: &Path) {
    adds_up_in(&[], found, dir);
}

/// As [`adds_up`], in a range of time.
fn adds_up_in(range: &[&str], found: &Value, dir: &Path) {
    let rows = found["causes"].as_array().unwrap();
    let sum = |kind: &[&str]| {
        let rows = rows
            .iter()
            .filter(|row| kind.contains(&row["kind"].as_str().unwrap()));
        rows.map(|row| ns(row, "total_ns")).sum::<u64>()
    };
    let waiting = ns(found, "waiting_ns");
    assert_eq!(
        sum(&["blocked", "runnable", "interrupted", "unknown"]),
        waiting,
        "{found}"
    );
    assert_eq!(sum(&["interrupted"]), ns(found, "interrupted_ns"));
    let of_state = |state: &str| {
        let known = sum(&[state]);
        let unknown = rows.iter().filter(|row| {
            let text = row["text"].as_str().unwrap();
            row["kind"] == "unknown" && text.contains(state)
        });
        known + unknown.map(|row| ns(row, "total_ns")).sum::<u64>()
    };
    assert_eq!(of_state("blocked"), ns(found, "blocked_ns"), "{found}");
    assert_eq!(of_state("runnable"), ns(found, "runnable_ns"), "{found}");
    let all = json(&[range, &["--threads"]].concat(), dir);
    let all = all["threads"]["threads"].as_array().unwrap();
    let tids: Vec<_> = found["threads"].as_array().unwrap().iter().collect();
    let tids: Vec<_> = tids.iter().map(|thread| &thread["tid"]).collect();
    let of_threads = |field: &str| {
        let rows = all.iter().filter(|row| tids.contains(&&row["tid"]));
        rows.map(|row| ns(row, field)).sum::<u64>()
    };
    for field in ["blocked_ns", "runnable_ns", "interrupted_ns"] {
        assert_eq!(of_threads(field), ns(found, field), "{field}: {found}");
    }
}

#[test]
fn a_chain_leads_to_its_root() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let found = answer(&["sh"], dir.path());
    adds_up(&found, dir.path());
    assert_eq!(causes(&found), [("blocked", 186), ("runnable", 3)]);
    let blocked = &found["causes"][0];
    assert_eq!(
        (&blocked["by"], &blocked["times"]),
        (&"worker".into(), &1.into())
    );
    assert_eq!(blocked["tids"], serde_json::json!([8]));
    assert_eq!(
        blocked["longest"][0]["begin_ns"],
        1_700_000_000_000_020_000_u64
    );
    assert_eq!(blocked["longest"][0]["duration_ns"], 186_000);
    let expected = [("running", 130), ("blocked", 51), ("runnable", 5)];
    assert_eq!(causes(blocked), expected);
    assert_eq!(blocked["causes"][1]["source"], "irq 5 eth0");
    assert_eq!(blocked["causes"][2]["by"], "other");
    let runnable = &found["causes"][1];
    assert_eq!(runnable["by"], "worker");
    // The first line after the heading names the cause.
    why(&["7", "-n", "0"], dir.path())
        .assert()
        .success()
        .stdout(contains("sh (7) waited 189.0 us: 186.0 us blocked, 3.0 us runnable"))
        .stdout(contains(
            " 98.4%   186.0 us       1   186.0 us  22:13:20.000020000 blocked until worker (8) woke it\n \
             68.8%   130.0 us       2   120.0 us  22:13:20.000086000   worker (8) ran outside of the recorded calls\n",
        ))
        .stdout(contains("  worker (8) blocked until irq 5 eth0 woke it\n"))
        .stdout(contains("  worker (8) runnable: other ran there\n"))
        .stdout(contains("woken, but its CPU was taken: worker (8) ran there\n"));
    why(&["sh", "-n", "1"], dir.path())
        .assert()
        .success()
        .stdout(contains("1         more causes (-n 0 shows all)"));
}

/// A wait across the begin or the end of the range counts as far as it is inside, with the causes that it has there.
#[test]
fn a_range_has_part_of_a_wait() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let in_range = |from, to| {
        let range = ["--from", from, "--to", to];
        let found = answer(&[&["sh"], &range[..]].concat(), dir.path());
        adds_up_in(&range, &found, dir.path());
        found
    };
    let found = in_range("+70us", "+100us");
    assert_eq!(causes(&found), [("blocked", 30)]);
    let blocked = &found["causes"][0];
    assert_eq!(blocked["by"], "worker");
    assert_eq!(
        blocked["longest"][0]["begin_ns"],
        1_700_000_000_000_070_000_u64
    );
    let expected = [("running", 14), ("blocked", 11), ("runnable", 5)];
    assert_eq!(causes(blocked), expected);
    let found = in_range("+200us", "+208us");
    assert_eq!(causes(&found), [("blocked", 6), ("runnable", 2)]);
    why(&["sh", "--from", "+70us", "--to", "+100us"], dir.path())
        .assert()
        .success()
        .stdout(contains("duration  30.0 us"))
        .stdout(contains("sh (7) waited 30.0 us: 30.0 us blocked"));
    // The thread ends before.
    why(&["sh", "--from", "+390us"], dir.path())
        .assert()
        .failure()
        .stderr(contains("no thread in the trace is called sh"));
}

#[test]
fn a_word_names_threads() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    for (arguments, tids) in [
        (&["7"][..], &[7][..]),
        (&["sh"], &[7]),
        (&["*or*"], &[8]),
        (&["-p", "8"], &[8]),
        (&["[so]*"], &[7, 9]),
    ] {
        let found = answer(arguments, dir.path());
        adds_up(&found, dir.path());
        let threads = found["threads"].as_array().unwrap().iter();
        let mut found: Vec<_> = threads
            .map(|thread| thread["tid"].as_i64().unwrap())
            .collect();
        found.sort_unstable();
        assert_eq!(found, tids, "{arguments:?}");
    }
    for (arguments, words) in [
        (
            &["shell"][..],
            "no thread in the trace is called shell; it has worker, other, sh",
        ),
        (
            &["4711"],
            "no thread 4711 runs or waits in the trace; it has",
        ),
        (
            &["-p", "4711"],
            "no process 4711 runs or waits in the trace; it has",
        ),
    ] {
        why(arguments, dir.path())
            .assert()
            .code(125)
            .stdout("")
            .stderr(contains(words));
    }
    why(&[], dir.path())
        .assert()
        .code(2)
        .stdout("")
        .stderr(contains("which thread or command? `rtrace why NAME DIR`"))
        .stderr(contains("  worker           ran   223.0 us, runnable "));
    for wrong in [&["a-name-that-is-too-long"][..], &["0"], &["-p", "0"]] {
        why(wrong, dir.path()).assert().code(2).stdout("");
    }
    forget(dir.path(), "sched_switch");
    why(&["sh"], dir.path()).assert().code(125).stderr(contains(
        "`rtrace why` needs sched_switch, which the trace does not have",
    ));
}

/// `sh` waits for a futex of `worker`, and then pauses. `worker` syncs meanwhile.
#[test]
fn a_lock_has_its_place_and_its_holder() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0).switch(10 * US, IDLE, SHELL);
    let zero = futex(zero, 15 * US, 128).switch_from(20 * US, SHELL, 1, THREAD);
    let zero = number(zero, SYNC, 30 * US, 3);
    let zero = ret(zero, SYNC_EXIT, 70 * US).wake(WAKING, 80 * US, SHELL);
    let zero = zero.switch_from(85 * US, THREAD, 1, SHELL);
    let zero = ret(zero, FUTEX_EXIT, 90 * US);
    let zero = number(zero, SLEEP, 95 * US, 0).switch_from(100 * US, SHELL, 1, OTHER);
    let zero = zero
        .wake(WAKING, 150 * US, SHELL)
        .switch_from(151 * US, OTHER, 0x100, SHELL);
    write(dir.path(), &[(0, vec![zero.close(200 * US, 8)])]);
    describe(dir.path());
    let found = answer(&["sh"], dir.path());
    adds_up(&found, dir.path());
    assert_eq!(causes(&found)[..2], [("blocked", 60), ("blocked", 50)]);
    let lock = &found["causes"][0];
    assert_eq!(
        (&lock["lock"], &lock["call"]),
        (&"futex 0x1000".into(), &"futex".into())
    );
    assert_eq!(lock["by"], "worker");
    assert_eq!(causes(lock), [("blocked", 60)]);
    let holder = &lock["causes"][0];
    let calls: Vec<_> = holder["causes"].as_array().unwrap().iter().collect();
    let calls: Vec<_> = calls
        .iter()
        .map(|row| (&row["call"], ns(row, "total_ns")))
        .collect();
    assert_eq!(
        calls,
        [(&"fdatasync".into(), 40_000), (&Value::Null, 20_000)]
    );
    // The thread that its timer interrupts has not woken it.
    let pause = &found["causes"][1];
    assert_eq!(
        (&pause["source"], &pause["by"]),
        (&"timer".into(), &Value::Null)
    );
    why(&["sh"], dir.path())
        .assert()
        .success()
        .stdout(contains(
            "blocked in futex 0x1000 until worker (8) woke it\n",
        ))
        .stdout(contains("    worker (8) ran in fdatasync\n"))
        .stdout(contains(
            "slept in clock_nanosleep until its own timer expired\n",
        ));
}

#[test]
fn a_kernel_lock_and_a_function_are_places() {
    let dir = TempDir::new().unwrap();
    let function = [&0x1234_u64.to_le_bytes()[..], &2_u32.to_le_bytes()].concat();
    let lock = [&0xabcd_u64.to_le_bytes()[..], &32_u32.to_le_bytes()].concat();
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, SHELL)
        .event(ENTER, 12 * US, &function)
        .event(CONTENTION, 15 * US, &lock)
        .switch_from(20 * US, SHELL, 2, THREAD)
        .wake(WAKING, 80 * US, SHELL)
        .switch_from(85 * US, THREAD, 1, SHELL)
        .event(ACQUIRED, 86 * US, &lock)
        .event(RETURN, 87 * US, &function)
        .switch_from(90 * US, SHELL, 2, IDLE)
        .close(200 * US, 8);
    write(dir.path(), &[(0, vec![zero])]);
    describe(dir.path());
    let found = answer(&["sh"], dir.path());
    adds_up(&found, dir.path());
    let lock = &found["causes"][1];
    assert_eq!(
        lock["text"],
        "blocked in mutex 0xabcd (0x1234) until worker (8) released it"
    );
    let open = &found["causes"][0];
    assert_eq!(
        open["text"],
        "unknown: blocked, the wait does not end in the trace"
    );
    assert_eq!(
        causes(&found),
        [("unknown", 110), ("blocked", 60), ("runnable", 5)]
    );
}

/// A request of `sh` waits behind one of `worker`.
#[test]
fn a_disk_request_has_its_queue() {
    let dir = TempDir::new().unwrap();
    let add = |packet: PacketBuilder, time, (id, payload): (u32, Vec<u8>)| {
        packet.event(id, time * US, &payload)
    };
    let zero = packet(0, 0, 0).switch(5 * US, IDLE, THREAD);
    let zero = add(zero, 6, made(INSERT, 100, 8, "R", "worker"));
    let zero = add(zero, 7, made(ISSUE, 100, 8, "R", "worker"));
    let zero = zero.switch_from(9 * US, THREAD, 2, SHELL);
    let zero = add(zero, 10, made(INSERT, 0, 8, "R", "sh"));
    let zero = zero
        .switch_from(20 * US, SHELL, 2, IDLE)
        .irq(50 * US, 5, "disk");
    let zero = add(zero, 51, done(100, 8, 0, "R")).wake(WAKING, 52 * US, THREAD);
    let zero = add(zero, 53, made(ISSUE, 0, 8, "R", "sh")).irq_exit(54 * US, 5);
    let zero = zero.switch(55 * US, IDLE, THREAD).irq(90 * US, 5, "disk");
    let zero = add(zero, 91, done(0, 8, 0, "R"))
        .wake(WAKING, 92 * US, SHELL)
        .irq_exit(93 * US, 5)
        .switch_from(95 * US, THREAD, 2, SHELL)
        .switch_from(100 * US, SHELL, 0x20, IDLE)
        .close(200 * US, 8);
    write(dir.path(), &[(0, vec![zero])]);
    io::describe(dir.path());
    let found = answer(&["sh"], dir.path());
    adds_up(&found, dir.path());
    let disk = &found["causes"][0];
    assert_eq!(ns(disk, "total_ns"), 72_000);
    assert_eq!(disk["source"], "disk 254:1 (read)");
    assert_eq!(causes(disk), [("served", 38), ("queued", 33)]);
    assert_eq!(disk["causes"][1]["requests"]["worker"], 1);
    let worker = answer(&["worker"], dir.path());
    adds_up(&worker, dir.path());
    let mut rows = worker["causes"].as_array().unwrap().iter();
    let interrupted = rows.find(|row| row["kind"] == "interrupted").unwrap();
    assert_eq!(interrupted["causes"][0]["source"], "irq 5 disk");
    assert_eq!(interrupted["requests"]["sh"], 1);
    why(&["sh"], dir.path())
        .assert()
        .success()
        .stdout(contains("blocked by a request to disk 254:1 (read)\n"))
        .stdout(contains(
            "in the queue of the device, behind others (requests: 1 of worker)\n",
        ));
}

/// The waits of a thread that is preempted, and then woken while an interrupt is handled.
#[test]
fn a_wait_for_a_cpu_has_what_ran_there() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, SHELL)
        .switch_from(20 * US, SHELL, 0x100, OTHER)
        .irq(25 * US, 5, "eth0")
        .irq_exit(28 * US, 5)
        .switch_from(40 * US, OTHER, 1, THREAD)
        .switch_from(45 * US, THREAD, 1, SHELL)
        .irq(46 * US, 5, "eth0")
        .irq_exit(47 * US, 5)
        .switch_from(50 * US, SHELL, 1, IDLE)
        .irq(60 * US, 5, "eth0")
        .wake(WAKING, 62 * US, SHELL)
        .irq_exit(65 * US, 5)
        .switch(70 * US, IDLE, SHELL)
        .switch_from(80 * US, SHELL, 0x20, IDLE)
        .close(200 * US, 8);
    write(dir.path(), &[(0, vec![zero])]);
    let found = answer(&["sh"], dir.path());
    adds_up(&found, dir.path());
    let rows = found["causes"].as_array().unwrap().iter();
    let rows = rows.map(|row| (row["text"].as_str().unwrap(), ns(row, "total_ns") / 1000));
    let interrupted = "interrupted; on all CPUs, irq 5 eth0 ran 3 times";
    let expected = [
        ("preempted: other (9) ran there", 17),
        ("blocked until irq 5 eth0 woke it", 12),
        ("preempted: worker (8) ran there", 5),
        ("woken, while its CPU left idle", 5),
        ("preempted: irq 5 eth0 ran there", 3),
        ("woken, but its CPU was taken: irq 5 eth0 ran there", 3),
        (interrupted, 1),
    ];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}

/// Without events that name the waker, without an end, and before the begin, the cause is unknown.
#[test]
fn the_unknown_has_its_own_row() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, THREAD)
        .wake(WAKING, 15 * US, SHELL)
        .switch_from(20 * US, THREAD, 1, SHELL)
        .switch_from(30 * US, SHELL, 1, THREAD)
        .wake(WAKEUP, 50 * US, SHELL)
        .switch_from(60 * US, THREAD, 1, SHELL)
        .switch_from(70 * US, SHELL, 1, IDLE)
        .close(100 * US, 8);
    write(dir.path(), &[(0, vec![zero])]);
    let found = answer(&["sh"], dir.path());
    adds_up(&found, dir.path());
    assert_eq!(found["before_ns"], 5_000);
    let texts = |found: &Value| {
        let rows = found["causes"].as_array().unwrap().iter();
        let unknown = rows.filter(|row| row["kind"] == "unknown");
        let texts = unknown.map(|row| row["text"].as_str().unwrap().to_owned());
        texts.collect::<Vec<_>>()
    };
    let unfinished = "unknown: blocked, the wait does not end in the trace";
    let no_waker = "unknown: blocked, the event of the wake-up is missing";
    assert_eq!(texts(&found), [unfinished, no_waker]);
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, SHELL)
        .switch_from(30 * US, SHELL, 1, THREAD)
        .wake(WAKEUP, 50 * US, SHELL)
        .switch_from(60 * US, THREAD, 1, SHELL)
        .switch_from(70 * US, SHELL, 1, IDLE)
        .close(100 * US, 8);
    let dir = TempDir::new().unwrap();
    write(dir.path(), &[(0, vec![zero])]);
    forget(dir.path(), "sched_waking");
    let found = answer(&["sh"], dir.path());
    adds_up(&found, dir.path());
    let no_event = "unknown: blocked, no event names the waker (`rtrace record -e sched_waking`)";
    assert_eq!(texts(&found), [unfinished, no_event]);
    assert_eq!(found["causes"][1]["record"], "-e sched_waking");
    why(&["sh"], dir.path()).assert().success().stdout(contains(
        "Hint: the wakers of threads are not in the trace: `rtrace record -e sched_waking`.\n",
    ));
}

#[test]
fn nothing_is_concluded_across_a_loss() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, SHELL)
        .switch_from(20 * US, SHELL, 1, THREAD)
        .wake(WAKING, 90 * US, SHELL)
        .switch_from(95 * US, THREAD, 1, SHELL)
        .switch_from(100 * US, SHELL, 0x20, IDLE)
        .close(120 * US, 8);
    let one = [
        packet(1, 0, 0).softirq(30 * US, 1).close(40 * US, 8),
        packet(1, 1, 50 * US).discarded(1).close(60 * US, 8),
        packet(1, 2, 60 * US).discarded(1).close(120 * US, 8),
    ];
    write(dir.path(), &[(0, vec![zero]), (1, one.to_vec())]);
    let found = answer(&["sh"], dir.path());
    adds_up(&found, dir.path());
    let rows = found["causes"].as_array().unwrap().iter();
    let lost: Vec<_> = rows.filter(|row| row["kind"] == "unknown").collect();
    assert!(!lost.is_empty(), "{found}");
    let text = lost[0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("unknown: blocked, events were lost"),
        "{text}"
    );
    assert_eq!(lost[0]["record"], "-b SIZExN");
}

/// Threads that wake each other in a long chain: the text has a few levels, and the time of the root is kept.
#[test]
fn a_long_chain_is_cut() {
    let dir = TempDir::new().unwrap();
    let names = ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"];
    let threads: Vec<_> = (11..).zip(names).collect();
    let mut zero = packet(0, 0, 0).switch(10 * US, IDLE, threads[0]);
    // Each thread sleeps and lets the next one run; the last one runs and wakes the one before it, and so on.
    for (place, pair) in threads.windows(2).enumerate() {
        zero = zero.switch_from((11 + place as u64) * US, pair[0], 1, pair[1]);
    }
    let mut now = 500 * US;
    for pair in threads.windows(2).rev() {
        zero = zero
            .wake(WAKING, now, pair[0])
            .switch_from(now + US, pair[1], 1, pair[0]);
        now += 10 * US;
    }
    write(dir.path(), &[(0, vec![zero.close(1000 * US, 16)])]);
    let found = answer(&["t1"], dir.path());
    adds_up(&found, dir.path());
    fn depth(of: &Value) -> usize {
        let below = of["causes"].as_array().unwrap().iter().map(depth);
        1 + below.max().unwrap_or(0)
    }
    assert_eq!(depth(&found["causes"][0]), 5, "{found}");
    why(&["t1"], dir.path())
        .assert()
        .success()
        .stdout(contains("        t8 (18) ran"))
        .stdout(contains("t5 (15) blocked").not());
}

/// The sums of any machine are those of `--threads`, after losses too.
#[test]
fn sums_are_those_of_the_threads() {
    let (mut causes, mut in_ranges) = (0, 0);
    for seed in 0..30 {
        let dir = TempDir::new().unwrap();
        let loss = [Loss::Nothing, Loss::Packets, Loss::Events][seed as usize % 3];
        match seed % 2 {
            0 => drop(machine::write(dir.path(), &mut Random(seed), 4, 3, loss)),
            _ => {
                let random = &mut Random(seed);
                machine::write_with_interrupts(dir.path(), random, Channels::Three, loss);
            }
        }
        for who in ["1", "2", "*"] {
            let found = answer(&[who], dir.path());
            adds_up(&found, dir.path());
            let parts = ["--from", "+10us", "--to", "+40us"];
            for range in [&parts[..2], &parts[2..], &parts] {
                let output = why(&[&[who], range].concat(), dir.path())
                    .arg("--json")
                    .output()
                    .unwrap();
                // No thread may have been seen in it.
                if let Ok(found) = serde_json::from_slice::<Value>(&output.stdout) {
                    adds_up_in(range, &found["why"], dir.path());
                    in_ranges += 1;
                }
            }
            let rows = found["causes"].as_array().unwrap().iter();
            causes += rows.filter(|row| row["kind"] == "blocked").count();
        }
    }
    assert!(causes > 60 && in_ranges > 60, "{causes} {in_ranges}");
}
