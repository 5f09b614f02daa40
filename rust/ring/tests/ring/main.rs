// SPDX-License-Identifier: GPL-2.0

//! Tests of the ring on a deterministic platform.
//!
//! [`model`] has the code that the tests share. `RTRACE_VERIFY=long` makes the searches deeper.

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

// The copies in tests/faults use rings of their own.
#[cfg(fault)]
use super::ring;
#[cfg(not(fault))]
use rtrace_ring as ring;
