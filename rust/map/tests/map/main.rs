// SPDX-License-Identifier: GPL-2.0

//! The tables on words of the host.

#[cfg(not(fault))]
mod begins;
pub mod buckets;
pub mod nested;
pub mod pairs;
#[cfg(not(fault))]
mod random;
pub mod stacks;
pub mod table;
mod words;

// The copies in tests/faults use maps of their own.
#[cfg(fault)]
use super::map;
#[cfg(not(fault))]
use rtrace_map as map;
