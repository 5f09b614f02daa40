// SPDX-License-Identifier: GPL-2.0

//! What must hold of everything that reads bytes from outside, whatever the bytes are.
//!
//! A [`Target`] takes any bytes, has the code under test read them, and panics where that breaks
//! its word. `src/main.rs` runs a target under libFuzzer (`scripts/fuzz`); `tests/corpus.rs` runs
//! all of them on the inputs that are kept in `corpus/`.

#![forbid(unsafe_code)]

#[allow(dead_code)]
#[path = "../../rtrace/src/new_file.rs"]
mod new_file;
mod report;
mod seeds;
mod symbols;
mod target;
#[allow(dead_code)]
#[path = "../../rtrace/src/terminal.rs"]
mod terminal;
mod walk;

pub use seeds::{all as seeds, Seed};
pub use target::{find, Target, TARGETS};
