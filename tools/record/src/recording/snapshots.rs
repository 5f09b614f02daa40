// SPDX-License-Identifier: GPL-2.0

//! `rtrace record --snapshot-on`: a flight recorder that writes a snapshot when a condition occurs.

use crate::recording::beginning::next;
use crate::recording::snapshot;
use crate::recording::{say_nothing, Record, Recording, Verdict};
use crate::run::condition::Happened;
use crate::run::workload::{never, Run};
use crate::session::on_drop::StopOnDrop;
use crate::state;
use control::{Session, Trigger};
use network::Directory;
use std::time::Instant;
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
    let interval = conditions.interval.unwrap_or_default();
    let mut stop = Some(stop);
    let mut taken = 0_u64;
    // The begin of the last snapshot, and what has happened too soon after one.
    let (mut last, mut too_soon) = (None::<Instant>, 0);
    let (code, failed) = loop {
        let (happened, code) = next(&mut run, &never)?;
        let is_soon = last.is_some_and(|last| last.elapsed() < interval);
        let is_snapshot = match &happened {
            Some(Happened::Snapshot(_, triggers)) if is_soon => {
                too_soon += triggers.len().max(1);
                false
            }
            happened => {
                happened.iter().for_each(say);
                matches!(happened, Some(Happened::Snapshot(..)))
            }
        };
        left -= u64::from(is_snapshot);
        let is_end = left == 0 || code.is_some() || matches!(happened, Some(Happened::End(_)));
        if is_end {
            // Stop first: the contents of the buffers stay, and no event of rtrace replaces them.
            drop(stop.take());
        }
        if is_snapshot {
            taken += 1;
            last = Some(Instant::now());
            if let Err(error) = take(directory, session, taken) {
                say(format_args!("{error:#}"));
                break (code, true);
            }
            if let Some(Happened::Snapshot(_, triggers)) = &happened {
                say_causes(options, directory, taken, triggers);
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
    if too_soon > 0 {
        say(format_args!(
            "{too_soon} more happened within --snapshot-interval after a snapshot, and caused none"
        ));
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

/// Prints the events that caused a snapshot.
fn say_causes(options: &Record, directory: &Directory, number: u64, triggers: &[Trigger]) {
    let dir = directory.path.join(number.to_string());
    for trigger in triggers {
        match (options.cause)(&dir, trigger) {
            Ok(cause) => cause.iter().for_each(say),
            Err(error) => say(format_args!(
                "the event of the snapshot is not known: {error:#}"
            )),
        }
    }
}

fn take(directory: &Directory, session: &Session, number: u64) -> anyhow::Result<()> {
    let Directory { path, options } = directory;
    Folder::make(path, options.access)?;
    snapshot::take(session, &path.join(number.to_string()), *options)
}
