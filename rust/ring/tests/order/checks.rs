// SPDX-License-Identifier: GPL-2.0

//! Cases for the seeded faults.

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
pub fn handover(mode: Mode, policy: Policy) {
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

/// The buffer is full: the writer needs the memory that the reader's put frees.
pub fn reuse(mode: Mode, policy: Policy) {
    let case = Case {
        before: &[Write::Fill, Write::Fill],
        write: &[Write::Fill],
        read: &[Read::Get, Read::Put],
    };
    run::all(config(mode, policy), &case, Interrupts::None, 2);
}

/// The reader requests a flush while a record is written.
pub fn flush(mode: Mode, policy: Policy) {
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
