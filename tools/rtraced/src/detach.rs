// SPDX-License-Identifier: GPL-2.0

//! Detaching. The program starts itself a second time. The first process ends when the second one waits for a
//! trace or has opened all streams. Until then the second one is an ordinary child, which gets Ctrl-C.

use crate::failure::Failure;
use crate::log::Log;
use anyhow::Context;
use rustix::fs::{fstat, FileType};
use rustix::process::{set_parent_process_death_signal, setsid, Signal};
use rustix::stdio::{dup2_stderr, dup2_stdout};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::process::{Command, ExitCode, Stdio};

/// Output of the second process when it is ready.
const READY: &[u8] = b"ready\n";

/// Runs the first process: starts the second one, and reports its success or its exit code.
pub fn detach() -> Result<ExitCode, Failure> {
    let program = std::env::current_exe().context("cannot find the program file of rtraced")?;
    let mut child = Command::new(program)
        .args(std::env::args_os().skip(1))
        .arg("--detached")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the daemon")?;
    let mut said = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout
            .read_to_end(&mut said)
            .context("cannot read the daemon's output")?;
    }
    if said == READY {
        return Ok(ExitCode::SUCCESS);
    }
    let status = child.wait().context("cannot wait for the daemon")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

/// The state of the second process's detaching.
pub struct Detachment {
    /// Whether the first process waits for `READY`.
    awaited: bool,
}

impl Detachment {
    /// Begins the second process: until it is ready, it ends together with the first one. Without `detached`
    /// there is no first process.
    pub fn begin(detached: bool) -> Result<Self, Failure> {
        if detached {
            set_parent_process_death_signal(Some(Signal::TERM)).context("prctl")?;
        }
        Ok(Self { awaited: detached })
    }

    /// Detaches when the process is ready: gets a session of its own, leaves the terminal, and tells the first
    /// process. From now on `log` writes to the system log, unless standard error is a file. Later calls do
    /// nothing.
    pub fn leave(&mut self, log: &Log) -> Result<(), Failure> {
        if std::mem::take(&mut self.awaited) {
            leave(log)?;
        }
        Ok(())
    }
}

fn leave(log: &Log) -> Result<(), Failure> {
    set_parent_process_death_signal(None).context("prctl")?;
    setsid().context("setsid")?;
    std::env::set_current_dir("/").context("cannot change to /")?;
    let null = OpenOptions::new()
        .write(true)
        .open("/dev/null")
        .context("/dev/null")?;
    // Another program may wait for the end of a pipe or a terminal, but not for that of a file.
    let stderr = fstat(io::stderr()).context("fstat")?;
    if FileType::from_raw_mode(stderr.st_mode) != FileType::RegularFile {
        dup2_stderr(&null).context("dup2")?;
        log.go_to_system();
    }
    let mut stdout = io::stdout();
    stdout
        .write_all(READY)
        .and_then(|()| stdout.flush())
        .context("cannot report to the process that started the daemon")?;
    dup2_stdout(&null).context("dup2")?;
    Ok(())
}
