// SPDX-License-Identifier: GPL-2.0

//! Tables of this machine's programs, beside gimli's answers; and tables of files that a test makes.

mod host;
mod made;
#[cfg(target_arch = "x86_64")]
mod own_stack;
mod small;
mod truth;
