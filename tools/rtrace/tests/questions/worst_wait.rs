// SPDX-License-Identifier: GPL-2.0

//! `rtrace latency -i`.

use super::{declare, packet, text16, write, IDLE, SHELL, THREAD, US};
use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use std::path::Path;
use tempfile::TempDir;

const EVENT: u32 = 20;
const FIELDS: [&str; 14] = [
    "text16 comm",
    "i32 tid",
    "i32 pid",
    "i32 prio",
    "i32 target_cpu",
    "u64 latency",
    "text16 waker_comm",
    "i32 waker_tid",
    "i32 waker_cpu",
    "u8 waker_in_interrupt",
    "text16 prev_comm",
    "i32 prev_tid",
    "i32 prev_prio",
    "u8 preempted",
];
/// Modules before this field measured wake-ups only.
const OLD: usize = 13;

/// Returns a wait: `sh` waited for this CPU and time, until `worker` left the CPU. An interrupt over the idle task of
/// CPU 1 woke it, or it was preempted for that task.
fn wait(cpu: i32, nanoseconds: u64, preempted: bool) -> Vec<u8> {
    let number = |number: i32| number.to_le_bytes();
    let (text, tid, prev) = (text16(SHELL.1), number(SHELL.0), text16(THREAD.1));
    let mut fields = Vec::new();
    fields.extend(text);
    fields.extend([tid, number(6), number(-41), number(cpu)].concat());
    fields.extend(nanoseconds.to_le_bytes());
    fields.extend(text16(IDLE.1));
    fields.extend([number(0), number(1)].concat());
    fields.push((!preempted).into());
    fields.extend(prev);
    fields.extend([number(THREAD.0), number(20)].concat());
    fields.push(preempted.into());
    fields
}

/// Writes a trace. `worker` keeps `sh` off CPU 0 for 45 us; `sh` waits 20 us for CPU 1.
fn known(dir: &Path) {
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, THREAD)
        .irq(30 * US, 24, "disk")
        .irq_exit(35 * US, 24)
        .softirq(40 * US, 4)
        .softirq_exit(41 * US, 4)
        .switch_from(60 * US, THREAD, 1, SHELL)
        .event(EVENT, 61 * US, &wait(0, 45_000, false))
        .switch_from(70 * US, SHELL, 1, IDLE)
        .close(200 * US, 8);
    let one = packet(1, 0, 0)
        .irq(31 * US, 25, "net")
        .irq_exit(33 * US, 25)
        .switch(100 * US, IDLE, SHELL)
        .event(EVENT, 100 * US, &wait(1, 20_000, false))
        .close(200 * US, 8);
    write(dir, &[(0, vec![zero]), (1, vec![one])]);
    declare(dir, &[(EVENT, "wakeup_latency", &FIELDS)]);
}

fn latency(dir: &Path, options: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    command
        .args(["latency", "-i"])
        .arg(dir)
        .args(options)
        .assert()
}

#[test]
fn what_ran_during_the_longest_wait_is_shown() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let expected = "
sh-7 (priority -41), process 6, waited 45.0 us for CPU 0
  woken  22:13:20.000015000  by an interrupt over idle on CPU 1
  ran    22:13:20.000060000  when worker-8 (priority 20) left

        at       took  what CPU 0 did meanwhile
   -5.0 us    45.0 us  worker-8
   15.0 us     5.0 us  irq 24 disk
   25.0 us     1.0 us  softirq 4 BLOCK
";
    latency(dir.path(), &[]).success().stdout(expected);
    latency(dir.path(), &["--rows", "1"])
        .success()
        .stdout(contains("  worker-8\n2 shorter rows are not shown\n").and(contains("disk").not()));
}

#[test]
fn a_wait_after_a_preemption_is_named_so() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, THREAD)
        .switch_from(60 * US, THREAD, 1, SHELL)
        .event(EVENT, 61 * US, &wait(0, 45_000, true))
        .close(200 * US, 8);
    write(dir.path(), &[(0, vec![zero])]);
    declare(dir.path(), &[(EVENT, "wakeup_latency", &FIELDS)]);
    let left = "  left   22:13:20.000015000  when it was preempted for idle on CPU 1\n";
    latency(dir.path(), &[]).success().stdout(contains(left));
    let preempted = "\"preempted\": true";
    latency(dir.path(), &["--json"])
        .success()
        .stdout(contains(preempted));
}

#[test]
fn a_wait_of_an_older_module_is_a_wake_up() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0)
        .switch_from(60 * US, THREAD, 1, SHELL)
        .event(
            EVENT,
            61 * US,
            &wait(0, 45_000, false)[..wait(0, 45_000, false).len() - 1],
        )
        .close(200 * US, 8);
    write(dir.path(), &[(0, vec![zero])]);
    declare(dir.path(), &[(EVENT, "wakeup_latency", &FIELDS[..OLD])]);
    let woken = "  woken  22:13:20.000015000  by an interrupt over idle on CPU 1\n";
    latency(dir.path(), &[]).success().stdout(contains(woken));
}

#[test]
fn what_is_not_in_the_trace_is_said() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 40 * US)
        .switch_from(60 * US, THREAD, 1, SHELL)
        .event(EVENT, 60 * US, &wait(0, 45_000, false))
        .close(200 * US, 8);
    write(dir.path(), &[(0, vec![zero])]);
    let lacks = "has no latency:wakeup_latency";
    latency(dir.path(), &[]).failure();
    declare(dir.path(), &[(EVENT, "wakeup_latency", &FIELDS)]);
    let said = "the trace has no events of the first 25.0 us\n";
    latency(dir.path(), &[]).success().stdout(contains(said));

    let none = packet(0, 0, 0)
        .switch(10 * US, IDLE, SHELL)
        .close(200 * US, 8);
    write(dir.path(), &[(0, vec![none])]);
    latency(dir.path(), &[]).failure().stderr(contains(lacks));
}

const TIMER: u32 = 21;
const TIMER_FIELDS: [&str; 6] = [
    "text16 comm",
    "i32 tid",
    "i32 pid",
    "i32 prio",
    "u64 latency",
    "u64 ip",
];
const SAMPLE: u32 = 22;

/// Returns an event: a timer was late by this time, and interrupted `worker` at `ip`.
fn late(nanoseconds: u64, ip: u64) -> Vec<u8> {
    let number = |number: i32| number.to_le_bytes();
    let mut fields = text16(THREAD.1).to_vec();
    fields.extend([number(THREAD.0), number(7), number(20)].concat());
    fields.extend(nanoseconds.to_le_bytes());
    fields.extend(ip.to_le_bytes());
    fields
}

#[test]
fn what_a_cpu_did_while_a_timer_was_late_is_shown() {
    let (here, there) = (0xffff_ffff_8100_0020_u64, 0xffff_ffff_8100_0010_u64);
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0)
        .event(TIMER, 5 * US, &late(30_000, here))
        .close(200 * US, 8);
    let sample = |ip: u64| ip.to_le_bytes();
    let one = packet(1, 0, 0)
        .switch(10 * US, IDLE, THREAD)
        .event(SAMPLE, 15 * US, &sample(here))
        .event(SAMPLE, 20 * US, &sample(there))
        .irq(30 * US, 24, "disk")
        .event(SAMPLE, 32 * US, &sample(here))
        .irq_exit(35 * US, 24)
        .event(SAMPLE, 40 * US, &sample(there))
        .event(SAMPLE, 50 * US, &sample(there))
        .event(TIMER, 61 * US, &late(45_000, here))
        .event(SAMPLE, 62 * US, &sample(here))
        .event(TIMER, 63 * US, &late(44_000, there))
        .switch(90 * US, THREAD, IDLE)
        .close(200 * US, 8);
    write(dir.path(), &[(0, vec![zero]), (1, vec![one])]);
    declare(
        dir.path(),
        &[
            (TIMER, "timer_latency", &TIMER_FIELDS),
            (SAMPLE, "profile_cycles", &["u64 ip"]),
        ],
    );
    let expected = "
a timer of CPU 1 expired 45.0 us late
  due    22:13:20.000016000
  came   22:13:20.000061000  over worker-8 (priority 20) in 0xffffffff81000020

        at       took  what CPU 1 did meanwhile
   -6.0 us    45.0 us  worker-8
   14.0 us     5.0 us  irq 24 disk

   samples  where CPU 1 was meanwhile
         3  0xffffffff81000010
         1  0xffffffff81000020
";
    latency(dir.path(), &["--timer"]).success().stdout(expected);
    let lacks = "has no latency:wakeup_latency";
    latency(dir.path(), &[]).failure().stderr(contains(lacks));
}

const PREEMPT: u32 = 23;
const PREEMPT_FIELDS: [&str; 15] = [
    "text16 comm",
    "i32 tid",
    "i32 pid",
    "i32 prio",
    "u8 preempted",
    "u64 latency",
    "u8 lazy",
    "u64 lazy_before",
    "text16 asker_comm",
    "i32 asker_tid",
    "i32 asker_cpu",
    "u8 asker_in_interrupt",
    "text16 next_comm",
    "i32 next_tid",
    "i32 next_prio",
];

/// Returns an event: `worker` kept its CPU from `sh` for this time.
///
/// - `preempted`: `worker` was preempted at the end.
/// - `lazy`: the request was lazy. `before`: time of an earlier lazy request.
/// - `in_interrupt`: an interrupt over the idle task of CPU 0 made the request, otherwise the task itself.
fn kept(nanoseconds: u64, preempted: bool, lazy: bool, before: u64, in_interrupt: bool) -> Vec<u8> {
    let number = |number: i32| number.to_le_bytes();
    let mut fields = text16(THREAD.1).to_vec();
    fields.extend([number(THREAD.0), number(7), number(20)].concat());
    fields.push(preempted.into());
    fields.extend(nanoseconds.to_le_bytes());
    fields.push(lazy.into());
    fields.extend(before.to_le_bytes());
    fields.extend(text16(IDLE.1));
    fields.extend([number(0), number(0)].concat());
    fields.push(in_interrupt.into());
    fields.extend(text16(SHELL.1));
    fields.extend([number(SHELL.0), number(-41)].concat());
    fields
}

#[test]
fn what_a_cpu_did_while_it_was_kept_is_shown() {
    let dir = TempDir::new().unwrap();
    let of = |longest: Vec<u8>| {
        let zero = packet(0, 0, 0)
            .event(PREEMPT, 5 * US, &kept(30_000, true, false, 0, true))
            .close(200 * US, 8);
        let one = packet(1, 0, 0)
            .switch(10 * US, IDLE, THREAD)
            .irq(30 * US, 24, "disk")
            .irq_exit(35 * US, 24)
            .switch(60 * US, THREAD, SHELL)
            .event(PREEMPT, 61 * US, &longest)
            .switch(90 * US, SHELL, IDLE)
            .close(200 * US, 8);
        write(dir.path(), &[(0, vec![zero]), (1, vec![one])]);
        declare(dir.path(), &[(PREEMPT, "preempt_latency", &PREEMPT_FIELDS)]);
        latency(dir.path(), &["--preempt"]).success()
    };
    of(kept(45_000, true, false, 3_000, true)).stdout(
        "
worker-8 (priority 20), process 7, kept CPU 1 for 45.0 us when it was asked to give it up
  asked  22:13:20.000015000  at once, by an interrupt over idle on CPU 0, 3.0 us after a lazy request
  left   22:13:20.000060000  when it was preempted for sh-7 (priority -41)

        at       took  what CPU 1 did meanwhile
   -5.0 us    45.0 us  worker-8
   15.0 us     5.0 us  irq 24 disk
",
    );
    of(kept(45_000, false, true, 0, false))
        .stdout(contains("  lazily, by idle on CPU 0\n"))
        .stdout(contains("  when it gave it up for sh-7 (priority -41)\n"));
    let lacks = "has no latency:timer_latency";
    latency(dir.path(), &["--timer"])
        .failure()
        .stderr(contains(lacks));
}
