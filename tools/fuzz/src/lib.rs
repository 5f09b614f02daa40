// SPDX-License-Identifier: GPL-2.0

//! Properties of all code that reads bytes from outside, for any bytes.
//!
//! A [`Target`] takes any bytes, lets the code under test read them, and panics if a property does not hold.
//! `src/main.rs` runs a target under libFuzzer (`scripts/fuzz`). `tests/corpus.rs` runs all targets on the
//! inputs in `corpus/`.

#![forbid(unsafe_code)]

#[path = "../../unwind/tests/tables/made.rs"]
mod made_elf;
#[path = "../../foreign/tests/made/mod.rs"]
mod made_files;
mod report;
mod seeds;
mod target;
mod walk;

pub use seeds::{all as seeds, Seed};
pub use target::{find, Target, TARGETS};
