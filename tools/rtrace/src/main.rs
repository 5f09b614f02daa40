// SPDX-License-Identifier: GPL-2.0

//! The command `rtrace`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    rtrace::main()
}
