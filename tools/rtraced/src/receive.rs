// SPDX-License-Identifier: GPL-2.0

//! `--listen`: receives traces of other machines, or of this one.

use crate::detach::Detachment;
use crate::failure::Failure;
use crate::log::Log;
use crate::notify::Notify;
use crate::pid_file::PidFile;
use anyhow::anyhow;
use network::{Credentials, Directory, Receiver, Security};
use std::path::PathBuf;
use std::process::ExitCode;
use store::{Folder, Output};
use system::signals::Signals;

/// Settings for receiving.
pub struct Receive {
    /// Address to listen at.
    pub address: String,
    /// Protection of connections.
    pub security: Security<Credentials>,
    /// Directory for the traces.
    pub directory: Directory,
    /// Maximum size of all traces in the directory, if there is a limit.
    pub quota: Option<u64>,
    /// File for the process id.
    pub pid_file: Option<PathBuf>,
    /// Detach as soon as it listens.
    pub detached: bool,
}

/// Receives traces until a signal arrives.
pub fn receive(options: &Receive, log: &Log) -> Result<ExitCode, Failure> {
    let notify = Notify::from_env();
    let mut detachment = Detachment::begin(options.detached)?;
    let signals = Signals::catch()?;
    let _pid_file = options
        .pid_file
        .as_deref()
        .map(PidFile::claim)
        .transpose()?;
    let Directory {
        path,
        options: output,
    } = &options.directory;
    Output::try_writing(path, *output)?;
    Folder::make(path, output.access)?;
    let security = options.security.server().map_err(|error| anyhow!(error))?;
    system::files::open_many();
    let receiver = Receiver::bind(
        &options.address,
        security,
        path.clone(),
        *output,
        options.quota,
        log.notice(),
    )?;
    let status = format!(
        "listening at {}; traces go to {}",
        receiver.address()?,
        path.display()
    );
    log.info(&status);
    detachment.leave(log)?;
    notify.ready(&status);
    receiver.run(&signals)?;
    notify.stopping();
    log.info("stopped by a signal");
    Ok(ExitCode::SUCCESS)
}
