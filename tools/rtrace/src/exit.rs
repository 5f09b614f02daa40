// SPDX-License-Identifier: GPL-2.0

//! The exit codes of the program itself, beside those of the command that it runs.

use crate::run::workload::Code;

/// A command line whose syntax is right, but that makes no sense.
pub const WRONG_USAGE: Code = 2;

/// rtrace failed, not the command that it runs.
pub const FAILED: Code = 125;
