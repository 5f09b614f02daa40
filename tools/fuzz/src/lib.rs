// SPDX-License-Identifier: GPL-2.0

//! What must hold of everything that reads bytes from outside, whatever the bytes are.
//!
//! A [`Target`] takes any bytes, has the code under test read them, and panics where that breaks
//! its word. `src/main.rs` runs a target under libFuzzer (`scripts/fuzz`); `tests/corpus.rs` runs
//! all of them on the inputs that are kept in `corpus/`.

#![forbid(unsafe_code)]

mod report;
mod seeds;
mod target;
mod walk;

pub use seeds::{all as seeds, Seed};
pub use target::{find, Target, TARGETS};
