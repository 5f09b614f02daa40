// SPDX-License-Identifier: GPL-2.0

//! Waits for a trace and writes it.

use crate::detach::Detachment;
use crate::failure::Failure;
use crate::log::Log;
use crate::look::look;
use crate::notify::Notify;
use crate::options::Options;
use crate::pid_file::PidFile;
use crate::snapshots;
use crate::traces::Traces;
use anyhow::anyhow;
use consumer::{Consumer, End, Source, State, Totals};
use control::{LiveTrace, Session, Tracer};
use network::{Destination, Directory};
use std::os::fd::AsFd;
use std::process::ExitCode;
use store::{maps, Claim, Output};
use system::priority;
use system::signals::Signals;
use unwind::Loader;
use uuid::Uuid;

/// Writes one trace, until its end or a signal. The last message is the result.
pub fn serve(options: &Options, log: &Log) -> Result<ExitCode, Failure> {
    let notify = Notify::from_env();
    let mut detachment = Detachment::begin(options.detached)?;
    let mut signals = Signals::catch()?;
    let _pid_file = options
        .pid_file
        .as_deref()
        .map(PidFile::claim)
        .transpose()?;
    let session = Tracer::find(&options.debugfs)?.session(&options.session)?;
    if let (Some(signal), Destination::Directory(directory)) =
        (options.snapshot_on, &options.destination)
    {
        return snapshots::serve(
            directory,
            signal,
            &session,
            &mut signals,
            &mut detachment,
            &notify,
            log,
        );
    }
    // Read before the session's activity: a trace that is started after this has another identity.
    let last = session.uuid()?;
    let traces = match (options.keep_traces, options.destination.directory()) {
        (Some(keep), Some(directory)) => Some(Traces::claim(directory, keep)?),
        _ => None,
    };
    let held = match &traces {
        Some(traces) => has_rest(traces, &session, last)?,
        None => try_writing(&options.destination, last)?,
    };
    system::files::open_many();
    let source = match current(&session, held, options.leftover)? {
        Some(source) => source,
        None => {
            let status = format!(
                "waiting for a trace: session `{}` is not started",
                session.name()
            );
            log.info(&status);
            detachment.leave(log)?;
            notify.ready(&status);
            let Some(source) = wait(&session, last, &mut signals)? else {
                log.info(&Totals::default().to_string());
                notify.stopping();
                return Ok(ExitCode::SUCCESS);
            };
            source
        }
    };
    // Only now that there is a trace: a daemon that waits creates no directory for it.
    let own;
    let (destination, _claim) = match (&traces, options.destination.directory()) {
        (Some(traces), _) => {
            let (directory, claim) = traces.begin(source.uuid())?;
            own = Destination::Directory(directory);
            (&own, Some(claim))
        }
        (None, Some(Directory { path, options: to })) => {
            (&options.destination, Some(Claim::take(path, to.access)?))
        }
        (None, None) => (&options.destination, None),
    };
    let mut consumer = Consumer::open(source, |source| {
        let stop = signals.as_fd().try_clone_to_owned();
        let stop = stop.map_err(system::Error::system("cannot duplicate a descriptor"))?;
        let (uuid, streams) = (source.uuid(), source.streams()?);
        destination.begin(uuid, streams, stop, log.notice())
    })?;
    // The part that an earlier run may have written. A receiver may report only later whether it has that.
    let before = session.stats()?.all.total.read_records;
    let uuid = consumer.source().uuid();
    let status = format!(
        "{} trace {} to {}, {} streams",
        if consumer.sink().resumed() {
            "continuing"
        } else {
            "writing"
        },
        uuid,
        destination,
        consumer.streams()
    );
    log.info(&status);
    detachment.leave(log)?;
    notify.ready(&status);
    let _unwinding = Loader::of_session(&session, &[])?;
    priority::raise();
    let reporting = notify.report(&session);
    let end = consumer.run(&signals);
    drop(reporting);
    notify.stopping();
    let (mut failed, state) = match end {
        Ok(End::Over) => {
            log.info("the trace is over");
            (None, State::Over)
        }
        Ok(End::Stopped) => {
            log.info("stopped by a signal");
            (None, State::Stopped)
        }
        Err(error) => {
            let advice = advice(destination, &error);
            let failure = Failure::from(error);
            log.error(&failure.to_string());
            if let Some(advice) = advice {
                log.error(&advice);
            }
            (Some(failure.exit_code()), State::Failed)
        }
    };
    if let Err(failure) = close(&session, consumer, before, state, log)
        .and_then(|()| save_maps(&session, destination.directory(), uuid))
    {
        failed.get_or_insert(failure.exit_code());
    }
    Ok(failed.unwrap_or(ExitCode::SUCCESS))
}

/// Checks, before any wait, that a trace can be written to `destination`, and that a directory has nothing but
/// a part of the `last` trace. Returns whether it is known to have that part.
fn try_writing(destination: &Destination, last: Option<Uuid>) -> Result<bool, Failure> {
    destination.check_credentials()?;
    let Some(Directory { path, options }) = destination.directory() else {
        return Ok(false);
    };
    let held = options.held(path)?;
    if let Some(other) = held.filter(|_| held != last) {
        return Err(Output::holds_another(path, other).into());
    }
    Output::try_writing(path, *options)?;
    if path.exists() {
        // Reports now, and not when the trace begins, that another program writes to the directory.
        drop(Claim::take(path, options.access)?);
    }
    Ok(held.is_some())
}

/// Whether `traces` has a part of the `last` trace, and the kernel has more of it.
fn has_rest(traces: &Traces<'_>, session: &Session, last: Option<Uuid>) -> Result<bool, Failure> {
    let part = last.map(|uuid| traces.part_of(uuid)).transpose()?;
    if part.flatten().is_none() {
        return Ok(false);
    }
    let unread = LiveTrace::open(session).and_then(|trace| trace.has_packets());
    match unread {
        // The trace was dropped, or another reader reads the rest.
        Err(system::Error::NoTrace { .. } | system::Error::StreamBusy { .. }) => Ok(false),
        unread => Ok(unread?),
    }
}

/// Advice for the user after an error in writing to `destination`, if there is any.
fn advice(destination: &Destination, error: &system::Error) -> Option<String> {
    match (destination, error) {
        (Destination::Directory(Directory { path, .. }), system::Error::Write { .. }) => {
            Some(format!(
                "{} holds a valid trace up to this error, and the kernel still records: free some space and start rtraced again to continue",
                path.display()
            ))
        }
        (Destination::Receiver { .. }, system::Error::System { .. }) => Some(
            "the events that the receiver lacks are in the kernel's buffers: start rtraced again to send them"
                .to_owned(),
        ),
        _ => None,
    }
}

/// The trace that can be written at once: the one that is being recorded; or a stopped one, if the directory
/// `held` a part of it, or with `leftover`.
fn current(session: &Session, held: bool, leftover: bool) -> Result<Option<LiveTrace>, Failure> {
    if session.is_active()? || held {
        return Ok(Some(LiveTrace::open(session)?));
    }
    if !leftover {
        return Ok(None);
    }
    match LiveTrace::open(session) {
        Ok(trace) if trace.has_packets()? => Ok(Some(trace)),
        Ok(_) | Err(system::Error::NoTrace { .. }) => {
            let name = session.name();
            Err(anyhow!("session `{name}` has nothing left to read").into())
        }
        Err(e) => Err(e.into()),
    }
}

/// Waits for the first trace after the `last` one, even if it has been stopped already. [`None`]: a signal
/// arrived first.
fn wait(
    session: &Session,
    last: Option<Uuid>,
    signals: &mut Signals,
) -> Result<Option<LiveTrace>, Failure> {
    loop {
        let uuid = session.uuid()?;
        if uuid.is_some() && uuid != last {
            return Ok(Some(LiveTrace::open(session)?));
        }
        if !look(signals).is_empty() {
            return Ok(None);
        }
    }
}

/// Writes what the session's maps have counted beside the trace.
fn save_maps(session: &Session, directory: Option<&Directory>, uuid: Uuid) -> Result<(), Failure> {
    let Some(Directory { path, options }) = directory.filter(|_| session.exists()) else {
        return Ok(());
    };
    match session.maps_text()? {
        text if text.is_empty() => Ok(()),
        text => Ok(maps::save(path, uuid, &text, options.access)?),
    }
}

/// Ends the trace, and reports the numbers of written and lost events. If the end fails, its error is logged
/// before them.
fn close(
    session: &Session,
    consumer: Consumer<LiveTrace>,
    before: u64,
    state: State,
    log: &Log,
) -> Result<(), Failure> {
    let before = if consumer.sink().resumed() { before } else { 0 };
    let removed = consumer.removed().records;
    // If the packets of this run were removed, those of earlier runs were removed, too.
    let before = if removed > 0 { 0 } else { before };
    let recorded = before + consumer.written().records;
    let stats = session.stats_and_text();
    // The counters are those of the session's trace now, which may be a new one.
    let is_current = session
        .uuid()
        .is_ok_and(|uuid| uuid == Some(consumer.source().uuid()));
    let stats = stats.ok().filter(|_| is_current);
    let text = stats.as_ref().map_or("", |(_, text)| text);
    let ended = consumer.into_sink().end(state, 0, text);
    let ended = ended.map_err(Failure::from).inspect_err(|failure| {
        log.error(&failure.to_string());
    });
    match stats {
        Some((stats, _)) => {
            let lost = stats.all.total.lost() + removed;
            match session.aux_losses() {
                Ok(areas) if areas.any() => log.info(&areas.to_string()),
                Ok(_) => {}
                Err(error) => log.error(&error.to_string()),
            }
            log.info(&Totals { recorded, lost }.to_string());
        }
        None => log.info(&format!(
            "{recorded} events recorded, an unknown number lost: the kernel's counters now belong to another trace"
        )),
    }
    ended
}
