// SPDX-License-Identifier: GPL-2.0

//! Seeded faults: copies of the maps with one mistake each, and the check that must find it.
//!
//! `build.rs` makes the copies, and compiles the tests of the maps once for each copy.

#[path = "../../../ring/tests/faults/kill.rs"]
mod kill;

pub use kill::{test, Kill, Suite};

/// Copies of the maps with a fault, and the tests for them. They need not be tidy.
#[allow(warnings, clippy::all)]
mod copies {
    use super::{Kill, Suite};

    include!(concat!(env!("OUT_DIR"), "/faults.rs"));

    /// All faults.
    pub const ALL: &[Kill] = PATCHED;
}

/// All faults that `suite` must find.
pub fn of(suite: Suite) -> Vec<Kill> {
    let all = copies::ALL.iter().copied();
    all.filter(|kill| kill.suite == suite).collect()
}
