// SPDX-License-Identifier: GPL-2.0

//! x86-64.

pub(crate) mod preempt;
pub(crate) mod word;
