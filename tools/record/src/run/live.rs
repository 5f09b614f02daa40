// SPDX-License-Identifier: GPL-2.0

//! A temporary session whose events a view reads while it records.

use crate::exit::Code;
use crate::place::Place;
use crate::run::condition::Conditions;
use crate::run::watch::Watch;
use crate::run::workload::{never, Run, RunEvent};
use crate::session::advice;
use crate::session::on_drop::StopOnDrop;
use crate::session::patience;
use crate::session::setup::Setup;
use crate::session::tasks::Ends;
use crate::session::temporary::Temporary;
use anyhow::{bail, Context};
use consumer::viewer::{View, Viewer};
use consumer::{Consumer, State, Totals};
use control::{LiveTrace, Session};
use rustix::pipe::{pipe_with, PipeFlags};
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::Child;
use std::thread;
use system::priority;
use system::signals::Signals;
use terminal::{conclude, say};
use unwind::Loader;

/// A recording session and the sources that its user waits for.
pub struct Recording<'a> {
    /// The session.
    pub session: &'a Session,
    /// The ends of the chosen processes.
    pub ends: Option<Ends>,
    /// The signals that this process received.
    pub signals: Signals,
    /// Hangs up when the view stops reading: it failed, or the reader of its output is gone.
    pub over: BorrowedFd<'a>,
}

impl Recording<'_> {
    /// Waits until the command has ended, or without one for a signal. Returns the exit code.
    pub fn wait(self, command: Option<Child>) -> anyhow::Result<Code> {
        let conditions = Conditions::default();
        let watch = Watch::new(&conditions, self.session)?;
        let mut run = Run::new(command, self.signals, &conditions, watch, self.ends)?;
        loop {
            if let RunEvent::Ended(code) = run.next(self.over)? {
                return Ok(code);
            }
        }
    }
}

/// Whether an error means that the reader of the output is gone.
pub fn is_closed(error: &system::Error) -> bool {
    matches!(error, system::Error::Write { cause, .. } if cause.kind() == ErrorKind::BrokenPipe)
}

/// Records in a temporary session with the settings `setup`, without the threads `excluded`, and passes the events to
/// `view` until `wait` returns. If stacks are recorded, those of `programs` are whole from their begin on. Then reports
/// losses, and returns the result of `wait`. The thread that runs the view calls `excluded` again.
///
/// A view that fails because the reader of its output is gone is no error.
pub fn look<T>(
    place: &Place,
    setup: &Setup,
    excluded: &(dyn Fn() -> Vec<u32> + Sync),
    programs: &[PathBuf],
    view: impl View + 'static,
    wait: impl FnOnce(Recording<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let tracer = place.tracer()?;
    let mut signals = Signals::catch()?;
    let temporary = Temporary::create(&tracer, None)?;
    let session = temporary.session();
    setup.apply(session)?;
    let _unwinding = Loader::of_session(session, programs)?;
    let ends = setup.tasks.ends()?;
    let exclude = || match excluded().as_slice() {
        [] => Ok(()),
        threads => session.exclude_tasks(threads),
    };
    let patience = setup.functions.patience();
    exclude()?;
    setup.functions.check_signals(&mut signals)?;
    symbols::see_modules();
    patience::start(session, &mut signals, patience.as_ref())?;
    let stop = StopOnDrop { session, patience };
    // The kernel looks for signals before a step. A signal may have arrived during the last step.
    setup.functions.check_signals(&mut signals)?;
    let source = LiveTrace::open(session)?.only_events();
    let uuid = session.uuid()?;
    let mut consumer = Consumer::open(source, |_| Ok(Box::new(Viewer::new(view)?)))?;
    let (over, alive) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
    // The consumer ends when the trace is stopped and drained.
    let never = never()?;
    let (waited, result) = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let _alive = alive;
            priority::raise();
            exclude()?;
            consumer.run(&never)
        });
        let waited = wait(Recording {
            session,
            ends,
            signals,
            over: over.as_fd(),
        });
        drop(stop);
        (waited, thread.join())
    });
    let result = result.unwrap_or_else(|panic| resume_unwind(panic));
    match result {
        Err(error) if is_closed(&error) => return waited,
        result => result?,
    };
    let waited = waited?;
    if !session.exists() || session.uuid()? != uuid {
        bail!(
            "another process destroyed or started session `{}`: the number of lost events is unknown",
            session.name()
        );
    }
    let recorded = consumer.written().records;
    let (stats, text) = session.stats_and_text()?;
    match consumer.into_sink().end(State::Over, 0, &text) {
        Err(error) if is_closed(&error) => return Ok(waited),
        ended => ended?,
    }
    for line in advice::on_loss(session, &stats)? {
        say(line);
    }
    let totals = Totals::of(&stats.all.total, recorded);
    conclude(totals.lost == 0, totals);
    Ok(waited)
}
