// SPDX-License-Identifier: GPL-2.0

//! Tests of the ring on a deterministic platform.
//!
//! What the tests have in common is in [`model`]. `RTRACE_VERIFY=long` makes the searches
//! deeper.

mod directed;
mod equations;
#[path = "../faults/mod.rs"]
mod faults;
mod kills;
mod lifecycle;
mod model;
mod nested;
mod overwrite;
mod random;
