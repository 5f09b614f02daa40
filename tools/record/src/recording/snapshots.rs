// SPDX-License-Identifier: GPL-2.0

//! `rtrace record --snapshot-on`: a flight recorder that writes a snapshot when a condition occurs.

use crate::recording::beginning::Begun;
use crate::recording::snapshot;
use crate::recording::{say_nothing, Record, Recording, Verdict};
use crate::run::condition::Happened;
use crate::run::workload::RunEvent;
use crate::session::on_drop::StopOnDrop;
use crate::state;
use anyhow::Context;
use control::Session;
use network::Directory;
use rustix::pipe::{pipe_with, PipeFlags};
use store::Folder;
use terminal::say;

/// Writes snapshots to directories 1, 2, ... in `directory`, until the command ends or the requested number of
/// snapshots is written.
pub fn record<'a>(
    options: &'a Record,
    directory: &Directory,
    session: &Session,
    stop: StopOnDrop<'_>,
    begin: impl FnOnce() -> anyhow::Result<Begun<'a>>,
) -> anyhow::Result<Recording<'a>> {
    // `never` never becomes readable: `_kept` keeps the pipe open, and no code writes to it.
    let (never, _kept) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
    let mut run = match begin()? {
        Begun::Not(code) => return Ok(Recording::NotBegun(code)),
        Begun::Running(run) => run,
    };
    let conditions = &options.conditions;
    let mut left = conditions.snapshots.unwrap_or(u64::MAX);
    let mut stop = Some(stop);
    let mut taken = 0_u64;
    let (code, failed) = loop {
        let (happened, code) = match run.next(&never)? {
            RunEvent::Happened(happened) => (Some(happened), None),
            RunEvent::Ended(code) => (run.failure(code), Some(code)),
        };
        if let Some(happened) = &happened {
            say(happened);
        }
        let is_snapshot = matches!(happened, Some(Happened::Snapshot(_)));
        left -= u64::from(is_snapshot);
        let is_end = left == 0 || code.is_some() || matches!(happened, Some(Happened::End(_)));
        if is_end {
            // Stop first: the contents of the buffers stay, and no event of rtrace replaces them.
            drop(stop.take());
        }
        if is_snapshot {
            taken += 1;
            if let Err(error) = take(directory, session, taken) {
                say(format_args!("{error:#}"));
                break (code, true);
            }
            // The first snapshot took the state that was recorded at the start.
            if options.setup.state && !is_end {
                state::record(session)?;
            }
        }
        if is_end {
            break (code, false);
        }
    };
    if taken == 0 {
        say_nothing();
    }
    let lost = options.fail_on_loss
        && (session.stats()?.all.total.discarded() > 0 || session.aux_losses()?.any());
    Ok(Recording::Done {
        run,
        code,
        verdict: match failed {
            true => Verdict::Failed,
            false if lost => Verdict::Lost,
            false => Verdict::Fine,
        },
    })
}

fn take(directory: &Directory, session: &Session, number: u64) -> anyhow::Result<()> {
    let Directory { path, options } = directory;
    Folder::make(path, options.access)?;
    snapshot::take(session, &path.join(number.to_string()), *options)
}
