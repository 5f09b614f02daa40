// SPDX-License-Identifier: GPL-2.0

//! The order of memory accesses: a writer and a reader on two CPUs, under loom.
//!
//! `tests/ring` searches interleavings on one CPU, where each store is visible at once. Here a load
//! may return an old value wherever no order forbids it. loom reports a race if a byte of a packet
//! is read and written without an order between the two. The two suites complement one another:
//! here the cases are few and small.

/// Payload bytes; loom finds their races.
mod cell {
    pub use loom::cell::UnsafeCell;
}
#[cfg(not(fault))]
mod aux;
#[cfg(fault)]
pub mod checks;
mod cpu;
mod log;
mod machine;
pub mod outside;
pub mod platform;
mod run;
#[path = "../common/say.rs"]
mod say;
#[path = "../common/slots.rs"]
mod slots;

// The copies in tests/faults use rings of their own.
#[cfg(fault)]
use super::ring;
#[cfg(not(fault))]
use rtrace_ring as ring;

use machine::{Config, Read, Write};
use platform::Policy;
use ring::Mode;
use run::{Case, Interrupts};
use std::time::Instant;
use Read::{Get, Put, Snapshot, Unget};
use Write::{Fill, Record, Switch};

const CASES: [Case; 6] = [
    // Packets that fill up, and a reader that waits for them.
    Case {
        before: &[],
        write: &[Fill, Record(1), Record(1)],
        read: &[Get, Put, Get, Put],
    },
    // Packets that the timer closes.
    Case {
        before: &[],
        write: &[Record(1), Switch, Record(1), Switch],
        read: &[Get, Put],
    },
    // The buffer is full: put frees the memory that the writer needs, or races with push.
    Case {
        before: &[Fill, Fill],
        write: &[Fill, Fill],
        read: &[Get, Put],
    },
    // As above, with a packet that the timer closes.
    Case {
        before: &[Fill, Fill],
        write: &[Record(1), Switch, Record(1)],
        read: &[Get, Put, Get, Put],
    },
    // A record that does not fit closes the previous packet.
    Case {
        before: &[Fill, Record(1)],
        write: &[Fill, Record(1)],
        read: &[Get, Put],
    },
    // The reader returns a packet while the writer may want its slot.
    Case {
        before: &[Fill, Fill],
        write: &[Fill],
        read: &[Get, Unget, Get, Put],
    },
];

/// Smaller cases, for searches with many interrupts.
const SMALL: [Case; 3] = [
    Case {
        before: &[],
        write: &[Record(1), Switch, Record(1), Switch],
        read: &[Get, Put],
    },
    // Put races with push.
    Case {
        before: &[Fill, Fill],
        write: &[Fill],
        read: &[Get, Put],
    },
    // The reader returns a packet while the writer takes its slot.
    Case {
        before: &[Fill, Fill],
        write: &[Fill],
        read: &[Get, Unget],
    },
];

/// Snapshots of a flight recorder.
const SNAPSHOTS: [Case; 3] = [
    // The snapshot takes the packet being written, too.
    Case {
        before: &[Fill, Fill, Record(1)],
        write: &[Record(1), Fill, Fill],
        read: &[Snapshot, Put, Put],
    },
    // The snapshot's reader is closed.
    Case {
        before: &[Fill, Record(1)],
        write: &[Record(1), Fill],
        read: &[Snapshot, Put, Unget, Get, Put],
    },
    // Two snapshots, one after the other.
    Case {
        before: &[Fill],
        write: &[Record(1), Fill],
        read: &[Snapshot, Put, Snapshot, Put],
    },
];

/// Searches all executions of `cases` in `mode` with up to `preemptions` preemptions of a thread.
fn search(cases: &[Case], mode: Mode, policy: Policy, interrupts: Interrupts, preemptions: usize) {
    let begin = Instant::now();
    let config = Config {
        mode,
        policy,
        origin: 0,
    };
    let executions: usize = cases
        .iter()
        .map(|case| run::all(config, case, interrupts, preemptions))
        .sum();
    say::say(&format!(
        "order: {mode:?}, {policy:?}, {interrupts:?}, {} cases, {preemptions} preemptions: \
         {executions} executions, {:.1} s",
        cases.len(),
        begin.elapsed().as_secs_f32()
    ));
}

/// Runs all searches with this policy and these interrupts.
fn each(policy: Policy, interrupts: Interrupts) {
    let more = usize::from(long());
    match interrupts {
        Interrupts::None | Interrupts::Barrier => {
            search(&CASES, Mode::Discard, policy, interrupts, 2 + more);
            let overwrite = if interrupts == Interrupts::None { 2 } else { 1 };
            search(
                &CASES,
                Mode::Overwrite,
                policy,
                interrupts,
                overwrite + more,
            );
        }
        // Each nested context is tried at each operation, so the executions multiply.
        Interrupts::Nested(_) => {
            search(&CASES, Mode::Discard, policy, interrupts, 2 + more);
            search(&SMALL, Mode::Overwrite, policy, interrupts, 1 + more);
            if long() {
                search(&CASES, Mode::Overwrite, policy, interrupts, 1);
            }
        }
        Interrupts::Both(_) => {
            search(&SMALL, Mode::Discard, policy, interrupts, 1 + more);
            search(&SMALL, Mode::Overwrite, policy, interrupts, more);
            if long() {
                search(&CASES, Mode::Discard, policy, interrupts, 1);
            }
        }
        Interrupts::Snapshot => {
            search(&SNAPSHOTS, Mode::Overwrite, policy, interrupts, 1 + more);
        }
    }
}

/// Returns whether to search for minutes instead of seconds.
fn long() -> bool {
    std::env::var("RTRACE_VERIFY").is_ok_and(|value| value == "long")
}

/// The writer executes the barrier at delivery.
#[test]
fn barrier_at_delivery() {
    each(Policy::Delivery, Interrupts::None);
}

#[test]
fn barrier_at_delivery_and_nested_records() {
    each(Policy::Delivery, Interrupts::Nested(Record(1)));
}

#[test]
fn barrier_at_delivery_and_the_timer() {
    each(Policy::Delivery, Interrupts::Nested(Switch));
}

/// The default policy, the paper's: the writer has no barrier, and the reader interrupts the
/// writer's CPU.
#[test]
fn barrier_by_interrupt() {
    each(Policy::Interrupt, Interrupts::Barrier);
}

#[test]
fn barrier_by_interrupt_and_nested_records() {
    each(Policy::Interrupt, Interrupts::Both(Record(1)));
}

#[test]
fn barrier_by_interrupt_and_the_timer() {
    each(Policy::Interrupt, Interrupts::Both(Switch));
}

/// The exchange of a snapshot, which is the same with both policies.
#[test]
fn snapshots() {
    each(Policy::Delivery, Interrupts::Snapshot);
}
