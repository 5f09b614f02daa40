// SPDX-License-Identifier: GPL-2.0

//! `rtrace record --snapshot-on`: a flight recorder that writes a snapshot when a condition occurs.

use crate::recording::beginning::next;
use crate::recording::snapshot;
use crate::recording::{say_nothing, Record, Recording, Verdict};
use crate::run::condition::Happened;
use crate::run::workload::{never, Run};
use crate::session::on_drop::StopOnDrop;
use crate::state;
use control::Session;
use network::Directory;
use store::Folder;
use terminal::say;

/// Writes snapshots to directories 1, 2, ... in `directory`, until the command ends or the requested number of
/// snapshots is written.
pub fn record<'a>(
    options: &'a Record,
    directory: &Directory,
    session: &Session,
    stop: StopOnDrop<'_>,
    mut run: Box<Run<'a>>,
) -> anyhow::Result<Recording<'a>> {
    let never = never()?;
    let conditions = &options.conditions;
    let mut left = conditions.snapshots.unwrap_or(u64::MAX);
    let mut stop = Some(stop);
    let mut taken = 0_u64;
    let (code, failed) = loop {
        let (happened, code) = next(&mut run, &never)?;
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
