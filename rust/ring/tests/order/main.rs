// SPDX-License-Identifier: GPL-2.0

//! The order of memory accesses: a writer and a reader on two CPUs, under loom.
//!
//! What `tests/ring` goes through is interleavings on one CPU, where every access is seen at
//! once. Here a load may see an old value wherever nothing forbids it, and a byte of a packet
//! that is read and written without an order between the two is found as a race. The two
//! complement one another: here the cases are few and small.

mod cpu;
mod machine;
mod platform;
mod run;

use machine::{Config, Read, Write};
use platform::Policy;
use rtrace_ring::Mode;
use run::{must_fail, Case, Interrupts};
use std::io::Write as _;
use Read::{Flush, Get, Put, Unget};
use Write::{Fill, Record, Switch};

const CASES: [Case; 5] = [
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
    // The buffer is full: put frees what the writer needs, or races with push.
    Case {
        before: &[Fill, Fill],
        write: &[Fill, Fill],
        read: &[Get, Put],
    },
    // A record that does not fit closes the packet before.
    Case {
        before: &[Fill, Record(1)],
        write: &[Fill, Record(1)],
        read: &[Get, Put],
    },
    // A packet is given back while the writer may want it.
    Case {
        before: &[Fill, Fill],
        write: &[Fill],
        read: &[Get, Unget, Get, Put],
    },
];

/// All the cases in both modes. In overwrite mode with an interrupt there are too many
/// executions: then only that of the timer.
fn each(policy: Policy, interrupts: Interrupts) {
    for mode in [Mode::Discard, Mode::Overwrite] {
        let all = mode == Mode::Discard || interrupts == Interrupts::None;
        let cases = if all { &CASES[..] } else { &CASES[1..2] };
        let executions: usize = cases
            .iter()
            .map(|case| run::all(Config { mode, policy }, case, interrupts))
            .sum();
        // Not captured: how much was searched belongs to the result.
        let _ = writeln!(
            std::io::stderr(),
            "order: {mode:?}, {policy:?}, {interrupts:?}: {executions} executions"
        );
    }
}

/// The policy that ships: the writer's barrier is at delivery.
#[test]
fn barrier_at_delivery() {
    each(Policy::Delivery, Interrupts::None);
}

/// As before, with a nested record at each of the writer's operations.
#[test]
fn barrier_at_delivery_and_nested_writers() {
    each(Policy::Delivery, Interrupts::Record);
}

/// The policy of the paper: the writer has no barrier, the reader interrupts its CPU.
#[test]
fn barrier_by_interrupt() {
    each(Policy::Interrupt, Interrupts::Barrier);
}

/// Shows that the other tests would find what they look for.
#[test]
fn no_barrier_is_found() {
    for mode in [Mode::Discard, Mode::Overwrite] {
        let config = Config {
            mode,
            policy: Policy::Nothing,
        };
        must_fail("Causality violation", || {
            run::all(config, &CASES[0], Interrupts::None);
        });
    }
}

/// A flush must run on the buffer's CPU.
#[test]
fn a_flush_from_elsewhere_is_found() {
    let case = Case {
        before: &[Record(1)],
        write: &[Record(1)],
        read: &[Flush],
    };
    let config = Config {
        mode: Mode::Discard,
        policy: Policy::Delivery,
    };
    must_fail("", || {
        run::all(config, &case, Interrupts::None);
    });
}
