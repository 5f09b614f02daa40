// SPDX-License-Identifier: GPL-2.0

//! Which of the checks here finds which fault.

use crate::faults::{self, Kill, Suite};
use crate::machine::{Config, Read, Write};
use crate::platform::Policy;
use crate::run::{self, Case, Interrupts};
use rtrace_ring::fault::Fault;
use rtrace_ring::Mode;

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

/// A fault, perhaps on top of others, that loom finds with that mode and policy.
macro_rules! order {
    ($fault:ident $(on $with:ident)*, $check:ident, $mode:ident, $policy:ident, $message:literal) => {
        Kill {
            fault: Fault::$fault,
            with: &[$(Fault::$with)*],
            check: concat!(
                "loom, ", stringify!($check), ", ", stringify!($mode), ", ", stringify!($policy)
            ),
            run: || $check(Mode::$mode, Policy::$policy),
            message: $message,
        }
    };
}

#[test]
#[rustfmt::skip]
fn each_fault_is_found() {
    faults::test(Suite::Order, &[
        order!(NoBarrier, handover, Discard, Delivery, "Concurrent read and write accesses"),
        order!(NoBarrier, handover, Overwrite, Delivery, "Concurrent read and write accesses"),
        order!(NoBarrier, handover, Discard, Interrupt, "Concurrent read and write accesses"),
        order!(NoBarrier, handover, Overwrite, Interrupt, "Concurrent read and write accesses"),
        order!(RelaxedRcnt on NoExchange, reuse, Discard, Delivery, "Concurrent read and write accesses"),
        order!(SwitchElsewhere, flush, Discard, Delivery, "Concurrent write accesses"),
    ]);
}

/// W2 is a second lock: memory comes back to the writer by the exchange, which orders it
/// already. Without the exchange it is the only one; see above.
#[test]
fn a_relaxed_rcnt_does_no_harm_where_memory_is_exchanged() {
    for mode in [Mode::Discard, Mode::Overwrite] {
        faults::with(&[Fault::RelaxedRcnt], || {
            reuse(mode, Policy::Delivery);
            handover(mode, Policy::Delivery);
        });
    }
}
