// SPDX-License-Identifier: GPL-2.0

//! Starts and stops that take long, because the kernel changes the code of many functions.

use crate::exit::Code;
use control::Session;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;
use system::signals::Signals;
use terminal::say;

/// Time after which a message says what takes so long.
const LONG: Duration = Duration::from_secs(1);

const STARTING: &str =
    "still starting: the kernel changes the code of many functions (Ctrl-C ends this)";
const STOPPING: &str = "still stopping: the kernel restores the code of many functions";

/// A signal arrived before the start.
#[derive(Debug, thiserror::Error)]
#[error("stopped by a signal before anything was recorded")]
pub struct Interrupted(i32);

impl Interrupted {
    /// Fails if a signal has arrived.
    pub fn check(signals: &mut Signals) -> Result<(), Self> {
        match signals.pending().first() {
            Some(&signal) => Err(Self(signal)),
            None => Ok(()),
        }
    }

    /// The exit code.
    pub fn code(&self) -> Code {
        u8::try_from(self.0).map_or(128, |signal| 128 + signal)
    }
}

/// Starts the trace. A signal interrupts the start in the kernel. If the signal ends the recording, this is an error.
pub fn start(
    session: &Session,
    signals: &mut Signals,
    patience: Option<&Patience>,
) -> anyhow::Result<()> {
    during(patience, STARTING, || loop {
        if session.try_start()? {
            return Ok(());
        }
        Interrupted::check(signals)?;
    })
}

/// Starts the trace. A signal that ends this process ends the start.
pub fn start_or_die(session: &Session) -> system::Result<()> {
    let patience = Patience::of(session)?;
    during(patience.as_ref(), STARTING, || session.start())
}

/// Stops the trace.
pub fn stop(session: &Session, patience: Option<&Patience>) -> system::Result<()> {
    during(patience, STOPPING, || session.stop())
}

fn during<T>(patience: Option<&Patience>, what: &'static str, work: impl FnOnce() -> T) -> T {
    match patience {
        Some(patience) => patience.during(what, work),
        None => work(),
    }
}

/// A thread that reports long work.
///
/// The thread begins together with the `Patience`. Therefore a recording can exclude the thread, and no thread begins
/// during the trace.
#[derive(Debug)]
pub struct Patience(Sender<Job>);

/// Work: the message about it, and the end of a channel that hangs up when the work is done.
type Job = (&'static str, Receiver<()>);

impl Patience {
    /// Begins the thread, if the session traces functions.
    pub fn of(session: &Session) -> system::Result<Option<Self>> {
        let changed = session.changed_settings()?;
        let functions = changed
            .iter()
            .any(|setting| setting.file == "set_ftrace_filter");
        Ok(functions.then(Self::new))
    }

    /// Begins the thread.
    pub fn new() -> Self {
        Self::with(LONG, say)
    }

    fn with(long: Duration, tell: impl Fn(&'static str) + Send + 'static) -> Self {
        let (jobs, next) = channel::<Job>();
        thread::spawn(move || {
            for (what, done) in next {
                if done.recv_timeout(long) == Err(RecvTimeoutError::Timeout) {
                    tell(what);
                }
            }
        });
        Self(jobs)
    }

    /// Does `work`, and prints the message `what` if that takes long.
    fn during<T>(&self, what: &'static str, work: impl FnOnce() -> T) -> T {
        let (_working, done) = channel();
        // If the thread is gone, no message is printed.
        let _ = self.0.send((what, done));
        work()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_work_is_mentioned() {
        let (told, hear) = channel();
        let told_too = told.clone();
        let quick = Patience::with(Duration::MAX, move |what| told_too.send(what).unwrap_or(()));
        assert_eq!(quick.during("quick", || 1), 1);
        drop(quick);
        let slow = Patience::with(Duration::ZERO, move |what| told.send(what).unwrap_or(()));
        assert_eq!(slow.during("slow", || hear.recv()), Ok("slow"));
        drop(slow);
        // Both threads have ended.
        assert!(hear.recv().is_err());
    }

    #[test]
    fn the_exit_code_is_that_of_a_shell() {
        assert_eq!(Interrupted(2).code(), 130);
    }
}
