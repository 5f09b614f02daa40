// SPDX-License-Identifier: GPL-2.0

//! Start of the command that the user gave.

use crate::exit::Code;
use crate::run::workload;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};
use terminal::say;

/// Looks for the program of a command, if there is one. The error is the exit code of a program that cannot be run; a
/// message says why.
pub fn find(command: &[OsString]) -> Result<Option<PathBuf>, Code> {
    let found = command.first().map(|program| {
        let found = workload::find(program);
        found.map_err(|error| cannot_run(program, &error))
    });
    found.transpose()
}

/// Runs a command by `run`, if there is one. The error is that of [`find`].
pub fn spawn(
    command: &[OsString],
    run: impl FnOnce(Command) -> io::Result<Child>,
) -> Result<Option<Child>, Code> {
    let [program, arguments @ ..] = command else {
        return Ok(None);
    };
    let mut command = Command::new(program);
    command.args(arguments);
    let child = run(command).map_err(|error| cannot_run(program, &error))?;
    Ok(Some(child))
}

/// Reports why a command is not run. Returns the exit code for that.
fn cannot_run(program: &OsStr, error: &io::Error) -> Code {
    let name = match program.is_empty() {
        true => "''".into(),
        false => program.to_string_lossy(),
    };
    say(format_args!("cannot run {name}: {error}"));
    workload::spawn_code(error)
}
