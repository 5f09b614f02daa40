// SPDX-License-Identifier: GPL-2.0

//! Waits for a trace and writes it.

use crate::detach;
use crate::failure::Failure;
use crate::log::Log;
use crate::options::Options;
use crate::pid_file::PidFile;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::process::ExitCode;
use trace::consumer::{Consumer, End};
use trace::live::LiveTrace;
use trace::output::Output;
use trace::priority;
use trace::signals::Signals;
use trace::source::Source;
use trace::totals::Totals;
use trace::tracer::{Session, Tracer};

/// How often the session is asked for a trace.
const ASK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

/// Writes one trace, to its end or to a signal. The closing line says what became of it.
pub fn serve(options: &Options, log: &mut Log) -> Result<ExitCode, Failure> {
    if options.detached {
        detach::attach_to_parent()?;
    }
    let mut signals = Signals::catch()?;
    let _pid_file = options
        .pid_file
        .as_deref()
        .map(PidFile::claim)
        .transpose()?;
    let session = Tracer::find(&options.debugfs)?.session(&options.session)?;
    let Some(source) = wait(&session, options, &mut signals, log)? else {
        log.info(&Totals::default().to_string());
        return Ok(ExitCode::SUCCESS);
    };
    let mut consumer = Consumer::open(source, &options.output, options.writing)?;
    // What an earlier run has brought to this directory.
    let before = if consumer.output().resumed() {
        session.stats()?.total.read_records
    } else {
        0
    };
    log.info(&format!(
        "{} trace {} to {}, {} streams",
        if consumer.output().resumed() {
            "continuing"
        } else {
            "writing"
        },
        consumer.source().uuid(),
        options.output.display(),
        consumer.streams()
    ));
    if options.detached {
        *log = detach::leave()?;
    }
    priority::raise();
    let end = consumer.run(&signals);
    let code = match end {
        Ok(end) => {
            log.info(match end {
                End::Over => "the trace is over",
                End::Stopped => "stopped by a signal",
            });
            ExitCode::SUCCESS
        }
        Err(error) => {
            let is_full = matches!(error, trace::Error::Write { .. });
            let failure = Failure::from(error);
            log.error(&failure.to_string());
            if is_full {
                log.error(&format!(
                    "{} holds a valid trace up to there, and the kernel goes on recording: \
                     make room and start rtraced again to continue",
                    options.output.display()
                ));
            }
            failure.exit_code()
        }
    };
    close(&session, &consumer, before, log);
    Ok(code)
}

/// The session's current trace, as soon as it has one; none if a signal comes first.
fn wait(
    session: &Session,
    options: &Options,
    signals: &mut Signals,
    log: &Log,
) -> Result<Option<LiveTrace>, Failure> {
    let mut said = false;
    loop {
        if let Some(trace) = current(session, options)? {
            return Ok(Some(trace));
        }
        if !said {
            log.info(&format!(
                "waiting for a trace: session `{}` is not started",
                session.name()
            ));
            said = true;
        }
        let mut fds = [PollFd::new(&*signals, PollFlags::IN)];
        let _ = poll(&mut fds, Some(&ASK));
        if !signals.pending().is_empty() {
            return Ok(None);
        }
    }
}

/// A trace with something to read, or the one that the directory holds a part of.
fn current(session: &Session, options: &Options) -> Result<Option<LiveTrace>, Failure> {
    if let Some(trace) = LiveTrace::current(session)? {
        return Ok(Some(trace));
    }
    match Output::held(&options.output)? {
        Some(held) if session.uuid()? == Some(held) => Ok(Some(LiveTrace::open(session)?)),
        _ => Ok(None),
    }
}

/// Says what is on disk and what is lost.
fn close(session: &Session, consumer: &Consumer<LiveTrace>, before: u64, log: &Log) {
    let recorded = before + consumer.written().records;
    let stats = session.stats().map(|stats| stats.total.lost());
    // The counters are the current trace's; a new one may have been started meanwhile.
    let is_current = session
        .uuid()
        .is_ok_and(|uuid| uuid == Some(consumer.source().uuid()));
    match stats {
        Ok(lost) if is_current => log.info(&Totals { recorded, lost }.to_string()),
        _ => log.info(&format!(
            "{recorded} events recorded, an unknown number lost: the kernel's counters are not \
             this trace's any more"
        )),
    }
}
