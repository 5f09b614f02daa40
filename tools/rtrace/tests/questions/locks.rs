// SPDX-License-Identifier: GPL-2.0

//! `rtrace report --locks`.

use super::machine::{packets, Loss, Random, TICK_NS};
use super::{
    declare, declare_contexts, forget, json, packet, report, row, write, IDLE, SHELL, THREAD, US,
};
use predicates::str::contains;
use serde_json::Value;
use std::path::Path;
use synthetic::{PacketBuilder, WAKING};
use tempfile::TempDir;

const BEGIN: u32 = 50;
const END: u32 = 51;
const FUTEX: u32 = 52;
const FUTEX_EXIT: u32 = 53;

/// `LCB_F_SPIN`, `LCB_F_MUTEX`
const SPIN: u32 = 1;
const MUTEX: u32 = 1 << 5;

const LOCK: u64 = 0xffff_8880_0000_1000;
const OTHER: u64 = 0xffff_8880_0000_2000;

/// `FUTEX_WAIT | FUTEX_PRIVATE_FLAG`, `FUTEX_WAKE | FUTEX_PRIVATE_FLAG`
const WAIT: i32 = 128;
const WAKE: i32 = 129;

fn describe(dir: &Path) {
    declare(
        dir,
        &[
            (BEGIN, "contention_begin", &["u64 lock_addr", "u32 flags"]),
            (END, "contention_end", &["u64 lock_addr", "i32 ret"]),
            (FUTEX, "syscall_entry_futex", &["u64 uaddr", "i32 op"]),
            (FUTEX_EXIT, "syscall_exit_futex", &["i64 ret"]),
        ],
    );
}

fn begin(packet: PacketBuilder, time: u64, lock: u64, flags: u32) -> PacketBuilder {
    let payload = [&lock.to_le_bytes()[..], &flags.to_le_bytes()].concat();
    packet.event(BEGIN, time, &payload)
}

fn end(packet: PacketBuilder, time: u64, lock: u64, ret: i32) -> PacketBuilder {
    let payload = [&lock.to_le_bytes()[..], &ret.to_le_bytes()].concat();
    packet.event(END, time, &payload)
}

fn futex(packet: PacketBuilder, time: u64, uaddr: u64, op: i32) -> PacketBuilder {
    let payload = [&uaddr.to_le_bytes()[..], &op.to_le_bytes()].concat();
    packet.event(FUTEX, time, &payload)
}

fn futex_exit(packet: PacketBuilder, time: u64, ret: i64) -> PacketBuilder {
    packet.event(FUTEX_EXIT, time, &ret.to_le_bytes())
}

/// Writes a trace. `sh` waits for a mutex, first spinning and then asleep, and meanwhile an interrupt spins.
/// `worker` fails to get the mutex. The idle tasks of both CPUs wait for one lock at the same time. Two waits
/// for futexes end, and one does not.
fn known(dir: &Path) {
    let zero = packet(0, 0, 0).switch(5 * US, IDLE, SHELL);
    let zero = begin(zero, 10 * US, LOCK, MUTEX | SPIN);
    let zero = begin(zero, 11 * US, OTHER, SPIN);
    let zero = end(zero, 13 * US, OTHER, 0);
    let zero = begin(zero, 15 * US, LOCK, MUTEX).switch_from(16 * US, SHELL, 2, IDLE);
    let zero = begin(zero, 20 * US, OTHER, SPIN);
    let zero = end(zero, 25 * US, OTHER, 0).close(300 * US, 8);
    let one = packet(1, 0, 0).switch_from(19 * US, THREAD, 1, IDLE);
    let one = begin(one, 21 * US, OTHER, SPIN);
    let one = end(one, 24 * US, OTHER, 0).switch(40 * US, IDLE, SHELL);
    let one = end(one, 50 * US, LOCK, 0);
    let one = futex(one, 60 * US, 0x1000, WAIT).switch_from(61 * US, SHELL, 1, THREAD);
    let one = begin(one, 62 * US, LOCK, MUTEX);
    let one = end(one, 65 * US, LOCK, -4).fork(66 * US, THREAD, SHELL, THREAD.0);
    let one = futex(one, 70 * US, 0x2000, WAKE);
    let one = futex_exit(one, 71 * US, 1);
    let one = futex(one, 72 * US, 0x2000, WAIT);
    let one = futex_exit(one, 80 * US, -110).switch_from(90 * US, THREAD, 1, SHELL);
    let one = futex_exit(one, 100 * US, 0);
    let one = futex(one, 110 * US, 0x1000, WAIT).switch_from(120 * US, SHELL, 1, IDLE);
    write(dir, &[(0, vec![zero]), (1, vec![one.close(300 * US, 8)])]);
    describe(dir);
}

#[test]
fn waits_are_measured() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let answer = &json(&["--locks"], dir.path())["locks"];
    let locks = &answer["kernel"];
    assert_eq!(locks.as_array().unwrap().len(), 2, "{locks}");
    let mutex = row(locks, "kind", "mutex");
    assert_eq!(mutex["address"], "0xffff888000001000");
    assert_eq!((&mutex["timed"], &mutex["failed"]), (&2.into(), &1.into()));
    assert_eq!(
        (&mutex["total_ns"], &mutex["max_ns"]),
        (&43_000.into(), &40_000.into())
    );
    assert_eq!(
        (&mutex["longest"]["tid"], &mutex["longest"]["comm"]),
        (&7.into(), &"sh".into())
    );
    assert_eq!(mutex["longest_begin_ns"], 1_700_000_000_000_010_000_u64);
    let spinlock = row(locks, "kind", "spinlock");
    assert_eq!(
        (&spinlock["timed"], &spinlock["total_ns"]),
        (&3.into(), &10_000.into())
    );
    assert_eq!(
        (&spinlock["max_ns"], &spinlock["longest"]["tid"]),
        (&5_000.into(), &0.into())
    );
    let futexes = &answer["futexes"];
    assert_eq!(futexes.as_array().unwrap().len(), 3, "{futexes}");
    let first = row(futexes, "uaddr", "0x1000");
    assert_eq!(
        (&first["timed"], &first["total_ns"]),
        (&1.into(), &40_000.into())
    );
    let second = row(futexes, "uaddr", "0x2000");
    assert_eq!(
        (&second["timed"], &second["failed"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        (&second["pid"], &second["total_ns"]),
        (&8.into(), &8_000.into())
    );
    // The process of the thread is known by now.
    let open: Vec<_> = futexes.as_array().unwrap().iter().collect();
    let open = open.iter().find(|row| row["unfinished"] == 1).unwrap();
    assert_eq!(
        (&open["uaddr"], &open["pid"]),
        (&"0x1000".into(), &8.into())
    );
}

/// The holder of a lock is the thread that woke the waiting one, if the wait ended with the lock.
#[test]
fn holders_are_the_threads_that_wake() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0).switch(5 * US, IDLE, SHELL);
    let zero = futex(zero, 10 * US, 0x1000, WAIT)
        .switch_from(11 * US, SHELL, 1, IDLE)
        .switch(25 * US, IDLE, SHELL);
    // This wait ends by a timer, whose interrupt is not recorded.
    let zero = futex(futex_exit(zero, 30 * US, 0), 40 * US, 0x1000, WAIT)
        .switch_from(41 * US, SHELL, 1, IDLE)
        .switch(55 * US, IDLE, SHELL);
    let zero = futex_exit(zero, 60 * US, -110);
    let zero = begin(zero, 62 * US, LOCK, SPIN);
    let zero = end(zero, 64 * US, LOCK, 0);
    let zero = begin(zero, 65 * US, OTHER, MUTEX)
        .switch_from(66 * US, SHELL, 2, IDLE)
        .switch(73 * US, IDLE, SHELL);
    let zero = end(zero, 75 * US, OTHER, 0);
    let zero = futex(zero, 80 * US, 0x2000, WAIT).switch_from(81 * US, SHELL, 1, IDLE);
    let one = packet(1, 0, 0)
        .switch(5 * US, IDLE, THREAD)
        .wake(WAKING, 20 * US, SHELL)
        .wake(WAKING, 50 * US, SHELL)
        .wake(WAKING, 70 * US, SHELL);
    let streams = [
        (0, vec![zero.close(300 * US, 8)]),
        (1, vec![one.close(300 * US, 8)]),
    ];
    write(dir.path(), &streams);
    describe(dir.path());
    let waiters = &json(&["--locks"], dir.path())["locks"]["waiters"];
    let rows = waiters.as_array().unwrap().iter();
    let rows: Vec<_> = rows
        .map(|row| {
            assert_eq!(row["waiter"]["tid"], 7, "{row}");
            let columns = ["waits", "failed", "unfinished", "total_ns"];
            let [waits, failed, open, total] = columns.map(|column| row[column].as_u64().unwrap());
            let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
            let lock = format!("{} {}", text(&row["kind"]), text(&row["address"]));
            (
                lock,
                text(&row["holder"]["comm"]),
                [waits, failed, open, total],
            )
        })
        .collect();
    let expected = [
        ("futex 0x1000", "?", [1, 1, 0, 20_000]),
        ("futex 0x1000", "worker", [1, 0, 0, 20_000]),
        ("mutex 0xffff888000002000", "worker", [1, 0, 0, 10_000]),
        ("spinlock 0xffff888000001000", "?", [1, 0, 0, 2_000]),
        ("futex 0x2000", "?", [1, 0, 1, 0]),
    ];
    let expected = expected.map(|(lock, by, numbers)| (lock.to_owned(), by.to_owned(), numbers));
    assert_eq!(rows, expected, "{waiters}");
    report(&["--locks"], dir.path())
        .assert()
        .success()
        .stdout(contains(
            "sh (7)                   worker (8)               mutex       0xffff888000002000\n",
        ));
    let dir = TempDir::new().unwrap();
    known(dir.path());
    forget(dir.path(), "sched_waking");
    report(&["--locks"], dir.path())
        .assert()
        .success()
        .stdout(contains("The holders are not in the trace"));
}

#[test]
fn text_has_the_same() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    report(&["--locks"], dir.path())
        .assert()
        .success()
        .stdout(contains(
            "       2       1     0    43.0 us    21.5 us     3.1 us    40.0 us    40.0 us    40.0 us  \
             mutex       0xffff888000001000 -                  sh (7)\n",
        ))
        .stdout(contains("0x2000                8  worker           worker (8)\n"))
        .stdout(contains("Percentiles are at most 10% too large."));
}

#[test]
fn what_the_trace_lacks_is_said() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), &[(0, vec![packet(0, 0, 0).close(US, 8)])]);
    describe(dir.path());
    report(&["--locks"], dir.path())
        .assert()
        .success()
        .stdout(contains("No thread had to wait for a lock of the kernel."))
        .stdout(contains("No thread waited for a futex."));
    forget(dir.path(), "contention_begin");
    report(&["--locks"], dir.path())
        .assert()
        .success()
        .stdout(contains("Locks of the kernel are not in the trace"));
    forget(dir.path(), "syscall_entry_futex");
    report(&["--locks"], dir.path())
        .assert()
        .code(125)
        .stderr(contains(
            "--locks needs contention_begin and contention_end, or",
        ));
}

/// With the context `tid`, the question needs no other events. With call stacks, a lock has a row for each
/// place.
#[test]
fn contexts_say_who_waits_and_where() {
    let dir = TempDir::new().unwrap();
    let record = |tid: i32, place: u64, ret: i32| {
        let stack = [place, 0xffff_ffff_8100_0000]
            .map(u64::to_le_bytes)
            .concat();
        let head = [tid, 2].map(i32::to_le_bytes).concat();
        let fields = [&LOCK.to_le_bytes()[..], &ret.to_le_bytes()].concat();
        [head, stack, fields].concat()
    };
    let flags = MUTEX as i32;
    let places = [0xffff_ffff_8123_4567, 0xffff_ffff_89ab_cdef];
    let zero = packet(0, 0, 0)
        .event(BEGIN, 10 * US, &record(7, places[0], flags))
        .event(BEGIN, 12 * US, &record(8, places[1], flags))
        .event(END, 20 * US, &record(8, places[1], 0))
        .close(100 * US, 8);
    let one = packet(1, 0, 0)
        .event(END, 30 * US, &record(7, places[0], 0))
        .close(100 * US, 8);
    write(dir.path(), &[(0, vec![zero]), (1, vec![one])]);
    describe(dir.path());
    forget(dir.path(), "sched_switch");
    let stack = "integer { size = 64; align = 8; signed = false; base = 16; }";
    let contexts = format!(
        "\t\tinteger {{ size = 32; align = 8; signed = true; }} _tid;\n\
         \t\tinteger {{ size = 32; align = 8; signed = false; }} __callstack_kernel_length;\n\
         \t\t{stack} _callstack_kernel[__callstack_kernel_length];\n"
    );
    declare_contexts(dir.path(), &contexts);
    let locks = &json(&["--locks"], dir.path())["locks"]["kernel"];
    assert_eq!(locks.as_array().unwrap().len(), 2, "{locks}");
    for (place, tid, ns) in [
        ("0xffffffff81234567", 7, 20_000),
        ("0xffffffff89abcdef", 8, 8_000),
    ] {
        let lock = row(locks, "place", place);
        assert_eq!((&lock["timed"], &lock["total_ns"]), (&1.into(), &ns.into()));
        assert_eq!(lock["longest"]["tid"], tid);
    }
}

#[derive(Clone, Copy)]
enum Step {
    Begin,
    Sleep,
    Run,
    End,
}

fn step(packet: PacketBuilder, time: u64, (step, tid): (Step, i32)) -> PacketBuilder {
    match step {
        Step::Begin => begin(packet, time, LOCK, MUTEX),
        Step::Sleep => packet.switch_from(time, (tid, "worker"), 2, IDLE),
        Step::Run => packet.switch(time, IDLE, (tid, "worker")),
        Step::End => end(packet, time, LOCK, 0),
    }
}

/// Every wait takes the same time, on two CPUs. An end matched with another wait would have another duration.
#[test]
fn no_wait_is_measured_across_a_loss() {
    const TICKS: u64 = 700;
    let mut timed = 0;
    for seed in 0..60 {
        let loss = [Loss::Nothing, Loss::Packets, Loss::Events][seed as usize % 3];
        let random = &mut Random(seed);
        let mut events = vec![Vec::new(); 2];
        let (mut time, mut on) = (10, 0);
        events[on].push((time, (Step::Run, 7)));
        for _ in 0..100 {
            time += 20 + random.below(400);
            let next = random.below(2) as usize;
            for (after, cpu, step) in [
                (0, on, Step::Begin),
                (100, on, Step::Sleep),
                (600, next, Step::Run),
                (TICKS, next, Step::End),
            ] {
                events[cpu].push((time + after, (step, 7)));
            }
            time += TICKS;
            on = next;
        }
        let streams: Vec<_> = (0_u32..)
            .zip(&events)
            .map(|(cpu, events)| (cpu, packets(random, cpu, events, loss, time, step)))
            .collect();
        let dir = TempDir::new().unwrap();
        write(dir.path(), &streams);
        describe(dir.path());
        let locks = &json(&["--locks"], dir.path())["locks"]["kernel"];
        let count = locks[0]["timed"].as_u64().unwrap_or(0);
        if count > 0 {
            let ns = TICKS * TICK_NS;
            assert_eq!(locks[0]["total_ns"], count * ns, "{seed}: {locks}");
            assert_eq!(locks[0]["max_ns"], ns, "{seed}: {locks}");
        }
        assert!(count == 100 || loss != Loss::Nothing, "{seed}: {locks}");
        timed += count;
    }
    assert!(timed > 2_500, "{timed}");
}
