// SPDX-License-Identifier: GPL-2.0

//! Seeded faults: the ring with one mistake in each copy, and what must find it.
//!
//! Each is a mistake that was made, in print or on the way here: a patch in this folder, which says
//! what finds it. `build.rs` makes the copies, and compiles the ring's own tests once for each: a
//! module for each patch, and [`right`] for the ring as it is. A few mistakes are made around the
//! ring, by the tests' platform.

pub mod table;

use std::any::Any;
use std::time::{Duration, Instant};

/// What a fault's copy of the ring, and the tests for it, need not be: tidy.
#[allow(warnings, clippy::all)]
mod copies {
    use super::{Kill, Suite};

    include!(concat!(env!("OUT_DIR"), "/faults.rs"));

    /// All that the patches say.
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

/// The tests that find a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// `tests/ring`: one CPU at a time, every access seen at once.
    Ring,
    /// `tests/order`: two CPUs, weak memory.
    Order,
    /// `tests/shuttle`: two CPUs, long random runs. No fault is left to these alone.
    Shuttle,
}

/// A fault, and what finds it.
#[derive(Clone, Copy)]
pub struct Kill {
    /// What it belongs to.
    pub suite: Suite,
    /// The fault's name; with "on", what else is wrong with it and without it.
    pub fault: &'static str,
    /// What is wrong.
    pub text: &'static str,
    /// The check's name.
    pub check: &'static str,
    /// What the check says when it finds the fault.
    pub message: &'static str,
    /// The check on what has the fault.
    pub run: fn(),
    /// The check on what has not. It passes.
    pub without: fn(),
}

const NO_BARRIER: Kill = Kill {
    suite: Suite::Order,
    fault: "NoBarrier",
    text: "Neither side executes a barrier at delivery (no W1, no R1). Strikes in the platform.",
    check: "loom, handover, Discard, Delivery",
    message: "Concurrent read and write accesses",
    run: || with(NoBarrier, || handover(Mode::Discard, Policy::Delivery)),
    without: || handover(Mode::Discard, Policy::Delivery),
};

/// Mistakes around the ring.
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
        text: "Equation (1) goes by an `rcnt` that was read relaxed (no W2).",
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

/// All that `suite` has to find.
pub fn of(suite: Suite) -> Vec<Kill> {
    let all = copies::ALL.iter().chain(&AROUND).copied();
    all.filter(|kill| kill.suite == suite).collect()
}

/// Runs a check. Returns what it says if it fails.
fn outcome(check: fn()) -> (Option<String>, Duration) {
    let begin = Instant::now();
    // Its own thread, so that what a failed check leaves in thread-local words is gone.
    let ended = std::thread::spawn(check).join();
    let failure = ended.err().map(|panic| message(&*panic));
    (failure, begin.elapsed())
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").into()
}

impl Kill {
    /// Its line in Documentation/verification.md.
    fn line(&self) -> String {
        format!(
            "| {} | {} | {} | {} |\n",
            self.fault, self.text, self.check, self.message
        )
    }

    /// Returns what is wrong if the fault is not found, or something else is.
    fn test(&self) -> Result<Duration, String> {
        let Self { fault, check, .. } = self;
        match outcome(self.run) {
            (None, _) => Err(format!("{fault} survives {check}")),
            (Some(message), _) if !message.contains(self.message) => Err(format!(
                "{fault} makes {check} fail for another reason: {message}"
            )),
            (Some(_), took) => Ok(took),
        }
    }
}

/// What is wrong with `kills`: each must be found, for the reason named, by a check that passes without
/// the fault.
pub fn problems(kills: &[Kill]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut passed = Vec::new();
    for kill in kills {
        let ground = kill.fault.split_once(" on ").map(|(_, ground)| ground);
        if !passed.contains(&(kill.check, ground)) {
            if let (Some(message), _) = outcome(kill.without) {
                wrong.push(format!(
                    "{} fails without {}: {message}",
                    kill.check, kill.fault
                ));
                continue;
            }
            passed.push((kill.check, ground));
        }
        match kill.test() {
            Ok(took) => eprintln!(
                "killed: {}: {}: {}: {:.2} s",
                kill.fault,
                kill.check,
                kill.message,
                took.as_secs_f32()
            ),
            Err(what) => wrong.push(what),
        }
    }
    wrong
}

/// Requires that all that `suite` has to find is found, and that Documentation/verification.md says
/// so.
pub fn test(suite: Suite) {
    let kills = of(suite);
    let mut wrong = problems(&kills);
    if let Err(what) = table::check(suite, &kills.iter().map(Kill::line).collect::<String>()) {
        wrong.push(what);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
