// SPDX-License-Identifier: GPL-2.0

//! Makes the copies of the maps, each with one fault: see `rust/ring/tests/faults/patch.rs`.

#[path = "../../../ring/tests/faults/patch.rs"]
mod patch;

/// Returns the suite that a check belongs to.
fn suite(check: &str) -> &'static str {
    match check.starts_with("loom, ") {
        true => "MapOrder",
        false => "Map",
    }
}

/// Returns the expression that runs a check: a test by its name.
fn call(module: &str, check: &str) -> String {
    match check.strip_prefix("loom, ") {
        Some(test) => format!("{module}::order_tests::{test}()"),
        None => format!("{module}::map_tests::{check}()"),
    }
}

fn main() {
    let room = patch::Room {
        name: "map",
        suites: &[("Map", "map"), ("MapOrder", "order")],
        suite,
        call,
    };
    room.build();
}
