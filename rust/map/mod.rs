// SPDX-License-Identifier: GPL-2.0

//! Maps: sums by key, which events update where they fire.
//!
//! Each CPU has a [`Table`](table::Table) of its own. The CPU's contexts update it, any CPU reads it.
//! A reader adds up the tables of all CPUs, and stops none of them.
//!
//! [`Pairs`](pairs::Pairs) measure durations: from an event to another one with the same key, on any CPUs.
//! [`NumberBegins`](begins::NumberBegins) do the same for keys that are one small number, at a lower cost.
//! [`Stacks`](stacks::Stacks) give names to call stacks, which are then keys.
//!
//! The code has no pointer, no kernel call and no allocation; the caller provides the words.
//! kbuild compiles these files into the module; cargo compiles the same files for the tests.
//!
//! # Words
//!
//! | word | written by | how |
//! | --- | --- | --- |
//! | state (slot) | writer | local cmpxchg from free to claimed, then a release store: ready |
//! | key (slot) | the context that claimed the slot | store; the key never changes after that |
//! | count, sums (slot) | writer | local add |
//! | minima, maxima (slot) | writer | local cmpxchg |
//! | state (slot of pairs) | any CPU | shared cmpxchg to changing, then a release store |
//! | key, time (slot of pairs) | the context that changes the slot | store |
//! | begin of a small number | any CPU | shared cmpxchg |
//! | state (slot of stacks) | any CPU | shared cmpxchg from free to claimed, then a release store of the stack's name |
//! | number, addresses (slot of stacks) | the context that claimed the slot | store; they never change after that |
//!
//! # Contexts
//!
//! The *writer* runs on the table's CPU with preemption disabled, in any context. A nested context
//! (interrupt, NMI) returns before the interrupted context continues. In a slot that the interrupted
//! context has claimed, the key may be missing, so the nested context uses the next slot. So a table may
//! have a key in two slots, and readers add up the two.
//!
//! A reader that runs at the same time as a writer may see an update's count without its sum. It never sees
//! an incomplete key. An update that ended before the read began is complete.

#![cfg_attr(not(MODULE), no_std)]
#![forbid(unsafe_code)]

pub mod begins;
pub mod bucket;
mod hash;
pub mod pairs;
pub mod stacks;
pub mod table;
pub mod word;
