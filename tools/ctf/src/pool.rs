// SPDX-License-Identifier: GPL-2.0

//! Threads that fill batches.
//!
//! There is a job for each stream whose next batch is wanted. No job waits. So a thread that needs the result of a
//! job can meanwhile do jobs that no other thread has begun.

use crate::batch::Batch;
use crate::source::Source;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// A stream and its next batch.
#[derive(Debug)]
pub(super) struct Filled {
    pub source: Box<Source>,
    pub batch: Batch,
}

/// A batch to fill.
#[derive(Debug)]
pub(super) struct Job {
    /// The stream, and the memory for the batch.
    pub filled: Filled,
    /// The channel to which the batch is sent.
    pub to: SyncSender<Filled>,
}

impl Job {
    fn run(mut self) {
        self.filled.source.fill(&mut self.filled.batch);
        // The receiver may have ended.
        let _ = self.to.send(self.filled);
    }
}

/// The threads. They end after the pool is dropped.
#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    jobs: Mutex<Jobs>,
    /// Signalled for each new job, and at the end.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Jobs {
    queue: VecDeque<Job>,
    is_over: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does jobs until the pool is dropped.
    fn work(&self) {
        let mut jobs = self.lock();
        while !jobs.is_over {
            jobs = match jobs.queue.pop_front() {
                Some(job) => {
                    drop(jobs);
                    job.run();
                    self.lock()
                }
                None => {
                    let jobs = self.changed.wait(jobs);
                    jobs.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }
}

impl Pool {
    /// Starts this number of threads, or as many as the system allows.
    pub fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared::default());
        for _ in 0..threads {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name("decode".to_owned());
            if thread.spawn(move || shared.work()).is_err() {
                break;
            }
        }
        Self { shared }
    }

    /// Adds a job.
    pub fn post(&self, job: Job) {
        self.shared.lock().queue.push_back(job);
        self.shared.changed.notify_one();
    }

    /// Waits for the result of a job, and does other jobs meanwhile. [`None`]: the thread that did the job has
    /// panicked.
    pub fn wait(&self, result: &Receiver<Filled>) -> Option<Filled> {
        loop {
            if let Ok(filled) = result.try_recv() {
                return Some(filled);
            }
            let Some(job) = self.shared.lock().queue.pop_front() else {
                return result.recv().ok();
            };
            job.run();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut jobs = self.shared.lock();
        jobs.is_over = true;
        jobs.queue.clear();
        self.shared.changed.notify_all();
    }
}
