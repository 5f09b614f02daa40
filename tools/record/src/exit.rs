// SPDX-License-Identifier: GPL-2.0

//! The exit codes of the program itself, beside those of the command that it runs.

/// An exit code, of rtrace or of a command as a shell reports it.
pub type Code = u8;

/// The command did what it was asked for.
pub const DONE: Code = 0;

/// The trace is damaged, and what can be read was shown; or a check failed.
pub const DAMAGED: Code = 1;

/// The syntax of the command line is right, but it makes no sense.
pub const WRONG_USAGE: Code = 2;

/// Events were lost, and the command line says that this is a failure.
pub const LOST: Code = 124;

/// rtrace failed, not the command that it runs.
pub const FAILED: Code = 125;
