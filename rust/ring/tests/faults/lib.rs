// SPDX-License-Identifier: GPL-2.0

//! Seeded faults: copies of the ring with one mistake each, and the check that must find it.
//!
//! Each mistake was made once, in print or during the development of this ring. Each is a patch in
//! this folder, which names the checks that find it. `build.rs` makes the copies, and compiles the
//! ring's own tests once for each copy: a module for each patch, and [`right`] for the unchanged
//! ring. A few mistakes are outside the ring, in the tests' platform.

pub mod table;

use std::any::Any;
use std::time::{Duration, Instant};

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

/// The suite that finds a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// `tests/ring`: one CPU at a time; each store is visible at once.
    Ring,
    /// `tests/order`: two CPUs, weak memory.
    Order,
    /// `tests/shuttle`: two CPUs, long random runs. No fault is found by this suite alone.
    Shuttle,
}

/// A fault, and a check that finds it.
#[derive(Clone, Copy)]
pub struct Kill {
    /// The suite of the check.
    pub suite: Suite,
    /// Name of the fault. After "on" follows the fault that `run` and `without` both have.
    pub fault: &'static str,
    /// Description of the mistake.
    pub text: &'static str,
    /// Name of the check.
    pub check: &'static str,
    /// Text of the check's failure.
    pub message: &'static str,
    /// Runs the check with the fault.
    pub run: fn(),
    /// Runs the check without the fault. It passes.
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

/// Runs a check. Returns its message if it fails.
fn outcome(check: fn()) -> (Option<String>, Duration) {
    let begin = Instant::now();
    // On its own thread, so that thread-local state of a failed check is dropped.
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
    /// The line of this fault in Documentation/verification.md.
    fn line(&self) -> String {
        format!(
            "| {} | {} | {} | {} |\n",
            self.fault, self.text, self.check, self.message
        )
    }

    /// Returns an error if the check does not find the fault, or fails for another reason.
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

/// Returns the problems of `kills`. A check must find each fault, for the reason named, and pass
/// without the fault.
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

/// Requires that the checks find all faults of `suite`, and that Documentation/verification.md
/// lists them.
pub fn test(suite: Suite) {
    let kills = of(suite);
    let mut wrong = problems(&kills);
    if let Err(what) = table::check(suite, &kills.iter().map(Kill::line).collect::<String>()) {
        wrong.push(what);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
