// SPDX-License-Identifier: GPL-2.0

//! The checks that find faults, by name.

use super::machine::{Config, Read, Write};
use super::platform::Policy;
use super::ring::Mode;
use super::run::{self, Case, Interrupts};

fn config(mode: Mode, policy: Policy) -> Config {
    Config {
        mode,
        policy,
        origin: 0,
    }
}

/// The reader waits for packets that fill up.
fn handover(mode: Mode, policy: Policy) {
    let case = Case {
        before: &[],
        write: &[Write::Fill, Write::Record(1)],
        read: &[Read::Get, Read::Put, Read::Get, Read::Put],
    };
    let interrupts = match policy {
        Policy::Delivery => Interrupts::None,
        Policy::Interrupt => Interrupts::Barrier,
    };
    run::all(config(mode, policy), &case, interrupts, 2);
}

/// The buffer is full: the writer needs what the reader puts.
fn reuse(mode: Mode, policy: Policy) {
    let case = Case {
        before: &[Write::Fill, Write::Fill],
        write: &[Write::Fill],
        read: &[Read::Get, Read::Put],
    };
    run::all(config(mode, policy), &case, Interrupts::None, 2);
}

/// The reader asks for a flush while a record is written.
fn flush(mode: Mode, policy: Policy) {
    let case = Case {
        before: &[Write::Record(1)],
        write: &[Write::Record(1)],
        read: &[Read::Flush],
    };
    run::all(
        config(mode, policy),
        &case,
        Interrupts::Nested(Write::Switch),
        2,
    );
}

/// Runs one: "loom, CASE, MODE, POLICY".
pub fn run(check: &str) {
    let words = check.split(", ").collect::<Vec<_>>();
    let &["loom", case, mode, policy] = &words[..] else {
        unreachable!("no check {check}");
    };
    let mode = match mode {
        "Discard" => Mode::Discard,
        "Overwrite" => Mode::Overwrite,
        _ => unreachable!("no mode {mode}"),
    };
    let policy = match policy {
        "Delivery" => Policy::Delivery,
        "Interrupt" => Policy::Interrupt,
        _ => unreachable!("no policy {policy}"),
    };
    match case {
        "handover" => handover(mode, policy),
        "reuse" => reuse(mode, policy),
        "flush" => flush(mode, policy),
        _ => unreachable!("no case {case}"),
    }
}
