// SPDX-License-Identifier: GPL-2.0

//! The thread that writes a trace. It exists before the session starts, so that a session can exclude it.

use anyhow::{anyhow, Context};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use system::priority;

type Job = Box<dyn FnOnce() + Send>;

/// A thread that waits for its work. It ends if this is dropped before.
pub struct Writer(Sender<Job>);

/// The work of a [`Writer`], with its result.
pub struct Writing<T>(Receiver<T>);

impl Writer {
    /// Begins the thread.
    pub fn begin() -> anyhow::Result<Self> {
        let (give, given) = mpsc::channel::<Job>();
        let work = move || {
            priority::raise();
            if let Ok(job) = given.recv() {
                job();
            }
        };
        let thread = thread::Builder::new().name("rtrace".to_owned()).spawn(work);
        thread.context("cannot start a thread")?;
        Ok(Self(give))
    }

    /// Gives the thread its work.
    pub fn write<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Writing<T> {
        let (say, said) = mpsc::channel();
        // If the thread does not exist any more, `end` returns the error.
        let _ = self.0.send(Box::new(move || {
            let _ = say.send(work());
        }));
        Writing(said)
    }
}

impl<T> Writing<T> {
    /// Waits for the end of the work, and returns its result.
    pub fn end(self) -> anyhow::Result<T> {
        let result = self.0.recv();
        result.map_err(|_| anyhow!("the thread that writes the trace panicked"))
    }
}
