// SPDX-License-Identifier: GPL-2.0

//! The exit codes of the program itself, beside those of the command that it runs.

/// An exit code, of rtrace or of a command as a shell reports it.
pub type Code = u8;

/// A command line whose syntax is right, but that makes no sense.
pub const WRONG_USAGE: Code = 2;

/// rtrace failed, not the command that it runs.
pub const FAILED: Code = 125;
