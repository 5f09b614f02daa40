// SPDX-License-Identifier: GPL-2.0

//! Exit codes of errors, the same in all commands. A command line that makes no sense is an error of clap.

use analysis::loss::Damaged;
use anyhow::Error;
use record::exit::{Code, DAMAGED, FAILED, WRONG_USAGE};
use record::run::condition::NoTrigger;
use record::session::patience::Interrupted;
use record::session::setup::NothingChosen;
use terminal::say;

/// Reports the error and returns the exit code.
pub fn report(error: &Error) -> Code {
    if let Some(usage) = error.downcast_ref::<clap::Error>() {
        usage.exit();
    }
    say(format_args!("{error:#}"));
    if let Some(interrupted) = error.downcast_ref::<Interrupted>() {
        interrupted.code()
    } else if error.is::<NothingChosen>() || error.is::<NoTrigger>() {
        WRONG_USAGE
    } else if error.is::<Damaged>() {
        DAMAGED
    } else {
        FAILED
    }
}
