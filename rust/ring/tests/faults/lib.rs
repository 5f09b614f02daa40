// SPDX-License-Identifier: GPL-2.0

//! Seeded faults: copies of the ring with one mistake each, and the check that must find it.
//!
//! Each mistake was made once, in print or during the development of this ring. Each is a patch in
//! this folder, which names the checks that find it. `build.rs` makes the copies, and compiles the
//! ring's own tests once for each copy: a module for each patch, and [`right`] for the unchanged
//! ring. A few mistakes are outside the ring, in the tests' platform.

mod kill;

pub use kill::{problems, Kill, Suite};

/// Copies of the ring with a fault, and the tests for them. They need not be tidy.
#[allow(warnings, clippy::all)]
mod copies {
    use super::{Kill, Suite};

    include!(concat!(env!("OUT_DIR"), "/faults.rs"));

    /// All faults with a patch.
    pub const ALL: &[Kill] = PATCHED;
}

use copies::no_exchange;
use copies::no_exchange::order_tests::outside as in_place;
pub use copies::right;
use right::order_tests::checks::{flush, handover};
use right::order_tests::outside::with;
use right::order_tests::outside::Outside::{NoBarrier, SwitchElsewhere};
use right::order_tests::platform::Policy;
use right::ring::Mode;

const NO_BARRIER: Kill = Kill {
    suite: Suite::Order,
    fault: "NoBarrier",
    text: "Neither side executes a barrier at delivery (no W1, no R1). Strikes in the platform.",
    check: "loom, handover, Discard, Delivery",
    message: "Concurrent read and write accesses",
    run: || with(NoBarrier, || handover(Mode::Discard, Policy::Delivery)),
    without: || handover(Mode::Discard, Policy::Delivery),
};

/// Mistakes outside the ring.
const AROUND: [Kill; 6] = [
    NO_BARRIER,
    Kill {
        check: "loom, handover, Overwrite, Delivery",
        run: || with(NoBarrier, || handover(Mode::Overwrite, Policy::Delivery)),
        without: || handover(Mode::Overwrite, Policy::Delivery),
        ..NO_BARRIER
    },
    Kill {
        check: "loom, handover, Discard, Interrupt",
        run: || with(NoBarrier, || handover(Mode::Discard, Policy::Interrupt)),
        without: || handover(Mode::Discard, Policy::Interrupt),
        ..NO_BARRIER
    },
    Kill {
        check: "loom, handover, Overwrite, Interrupt",
        run: || with(NoBarrier, || handover(Mode::Overwrite, Policy::Interrupt)),
        without: || handover(Mode::Overwrite, Policy::Interrupt),
        ..NO_BARRIER
    },
    Kill {
        fault: "RelaxedRcnt on NoExchange",
        text: "Equation (1) uses an `rcnt` that was read relaxed (no W2).",
        check: "loom, reuse, Discard, Delivery",
        run: || in_place::with(in_place::Outside::RelaxedRcnt, reuse_in_place),
        without: reuse_in_place,
        ..NO_BARRIER
    },
    Kill {
        fault: "SwitchElsewhere",
        text: "The reader's CPU switches the packet, not the writer's. Strikes in the reader.",
        check: "loom, flush, Discard, Delivery",
        message: "Concurrent write accesses",
        run: || with(SwitchElsewhere, || flush(Mode::Discard, Policy::Delivery)),
        without: || flush(Mode::Discard, Policy::Delivery),
        ..NO_BARRIER
    },
];

fn reuse_in_place() {
    use no_exchange::order_tests::{checks::reuse, platform::Policy};
    reuse(no_exchange::ring::Mode::Discard, Policy::Delivery);
}

/// All faults that `suite` must find.
pub fn of(suite: Suite) -> Vec<Kill> {
    let all = copies::ALL.iter().chain(&AROUND).copied();
    all.filter(|kill| kill.suite == suite).collect()
}

/// Requires that the checks find all faults of `suite`, and that Documentation/internals/verification.md
/// lists them.
pub fn test(suite: Suite) {
    kill::test(suite, &of(suite));
}
