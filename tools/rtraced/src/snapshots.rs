// SPDX-License-Identifier: GPL-2.0

//! `--snapshot-on`: writes the contents of the buffers at each signal.

use crate::detach::Detachment;
use crate::failure::Failure;
use crate::log::Log;
use crate::look::look;
use crate::notify::Notify;
use control::snapshot::{self, Snapshot};
use control::Session;
use network::Directory;
use rustix::process::Signal;
use std::process::ExitCode;
use store::{Claim, Output};
use system::priority;
use system::signals::Signals;
use unwind::Loader;

/// Serves a signal until another one arrives, or the session is gone.
pub fn serve(
    directory: &Directory,
    signal: Signal,
    session: &Session,
    signals: &mut Signals,
    detachment: &mut Detachment,
    notify: &Notify,
    log: &Log,
) -> Result<ExitCode, Failure> {
    let Directory { path: dir, options } = directory;
    let mut number = snapshot::next_number(dir)?;
    Output::try_writing(dir, *options)?;
    let _claim = Claim::take(dir, options.access)?;
    let status = format!(
        "writing a snapshot of session `{}` to {} at each SIG{}",
        session.name(),
        dir.display(),
        if signal == Signal::USR1 {
            "USR1"
        } else {
            "USR2"
        }
    );
    log.info(&status);
    detachment.leave(log)?;
    notify.ready(&status);
    let _unwinding = Loader::of_session(session, &[])?;
    priority::raise();
    let mut code = None;
    loop {
        let came = look(signals);
        if came.contains(&signal.as_raw()) {
            if let Err(error) = take(directory, session, number, log) {
                let failure = Failure::from(error);
                log.error(&failure.to_string());
                code.get_or_insert(failure.exit_code());
            }
            // The number stays if the snapshot was refused before its directory was created.
            number += u64::from(dir.join(number.to_string()).exists());
        }
        let end = if came.iter().any(|other| *other != signal.as_raw()) {
            "stopped by a signal"
        } else if !session.exists() {
            "the session was destroyed"
        } else {
            continue;
        };
        log.info(end);
        notify.stopping();
        return Ok(code.unwrap_or(ExitCode::SUCCESS));
    }
}

/// Writes the snapshot with this number.
fn take(directory: &Directory, session: &Session, number: u64, log: &Log) -> system::Result<()> {
    let dir = directory.path.join(number.to_string());
    let Snapshot {
        written,
        totals,
        exposed,
        failure,
    } = snapshot::take(session, &dir, directory.options)?;
    let totals = totals.map_or_else(
        || "an unknown number of events lost".to_owned(),
        |totals| totals.to_string(),
    );
    log.info(&format!(
        "snapshot in {} ({} packets): {totals}",
        dir.display(),
        written.packets
    ));
    if let Some(exposed) = exposed {
        log.info(&exposed.to_string());
    }
    failure.map_or(Ok(()), Err)
}
