// SPDX-License-Identifier: GPL-2.0

//! Tests of the ring on a deterministic platform.
//!
//! What the tests have in common is in [`model`]. `RTRACE_VERIFY=long` makes the searches
//! deeper.

#[cfg(not(fault))]
mod aux;
pub mod directed;
#[cfg(not(fault))]
mod equations;
#[cfg(not(fault))]
mod image;
pub mod lifecycle;
mod model;
pub mod nested;
#[cfg(not(fault))]
mod overwrite;
#[cfg(not(fault))]
mod random;
#[path = "../common/say.rs"]
mod say;
#[path = "../common/slots.rs"]
mod slots;

// Those of tests/faults take their own.
#[cfg(fault)]
use super::ring;
#[cfg(not(fault))]
use rtrace_ring as ring;
