// SPDX-License-Identifier: GPL-2.0

//! Makes the copies of the ring, each with one fault: see `patch.rs`.

mod patch;

/// Returns the suite that a check belongs to.
fn suite(check: &str) -> &'static str {
    match check.split([',', ':']).next() {
        Some("nested" | "directed" | "lifecycle") => "Ring",
        Some("loom") => "Order",
        Some("shuttle") => "Shuttle",
        _ => panic!("no check {check}"),
    }
}

/// Returns the expression that runs a check of the tests of a module: a case, or a test by its
/// name.
fn call(module: &str, check: &str) -> String {
    let mode = |mode: &str| format!("{module}::ring::Mode::{mode}");
    match check.split(", ").collect::<Vec<_>>()[..] {
        ["nested", scenario, of, depth] => {
            let of = mode(of);
            format!("{module}::ring_tests::nested::one({scenario:?}, {of}, {depth})")
        }
        ["loom", case, of, policy] => {
            let (of, tests) = (mode(of), format!("{module}::order_tests"));
            format!("{tests}::checks::{case}({of}, {tests}::platform::Policy::{policy})")
        }
        ["shuttle", run] => {
            format!("{module}::shuttle_tests::{run}({module}::shuttle_tests::SHORT, 1)")
        }
        _ => format!("{module}::ring_tests::{check}()"),
    }
}

fn main() {
    let room = patch::Room {
        name: "ring",
        suites: &[("Ring", "ring"), ("Order", "order"), ("Shuttle", "shuttle")],
        suite,
        call,
    };
    room.build();
}
