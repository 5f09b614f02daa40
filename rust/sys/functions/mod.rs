// SPDX-License-Identifier: GPL-2.0

//! Functions of the kernel and its modules that can be traced: their names and addresses, and hooks for their
//! entries and returns.

pub(crate) mod begin;
pub(crate) mod call;
pub(crate) mod names;
pub(crate) mod unloading;

/// Number of functions that are hooked in one step. A caller can give up between two steps.
///
/// ftrace visits all functions in each step. So a kernel of usual size has two steps.
pub(crate) const STEP: usize = 24 << 10;
