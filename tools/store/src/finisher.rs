// SPDX-License-Identifier: GPL-2.0

//! Syncs chunks to the disk, in a thread. In the consumer's thread the sync would delay reading, and the buffers
//! would run full.

use crate::chunks::{remove_oldest, rename_whole};
use crate::output::Output;
use consumer::{Sink, State};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{sync_channel, SyncSender};
use std::thread::{Builder, JoinHandle};
use system::{Error, Result};
use uuid::Uuid;

/// The number of chunks that may wait. Their files are open. If more come, the consumer waits.
const WAITING: usize = 4;

/// A chunk that gets no more packets.
#[derive(Debug)]
pub struct EndedChunk {
    /// Its number.
    pub number: u64,
    /// Its directory.
    pub output: Output,
    /// The reason of its end.
    pub state: State,
    /// The number of events that the kernel recorded and the chunk will never have.
    pub unwritten: u64,
    /// The text of the kernel's counters; empty if they are gone.
    pub stats: String,
}

/// Completes chunks, in the order in which they arrive.
#[derive(Debug)]
pub struct Finisher {
    dir: PathBuf,
    uuid: Uuid,
    /// The number of complete chunks to keep; all, if [`None`].
    keep: Option<u64>,
    /// Exists while chunks may arrive.
    thread: Option<(SyncSender<EndedChunk>, JoinHandle<Result<()>>)>,
}

impl Finisher {
    /// Makes a finisher for the chunks of the trace `uuid` in `dir`.
    pub fn new(dir: &Path, uuid: Uuid, keep: Option<u64>) -> Self {
        Self {
            dir: dir.to_owned(),
            uuid,
            keep,
            thread: None,
        }
    }

    /// Passes a chunk to the thread. An error is that of an earlier chunk; the chunks after that one stay unfinished.
    pub fn take(&mut self, ended: EndedChunk) -> Result<()> {
        if self.thread.is_none() {
            self.thread = Some(self.spawn()?);
        }
        match &self.thread {
            Some((sender, _)) if sender.send(ended).is_ok() => Ok(()),
            _ => self.wait(),
        }
    }

    /// Waits until all passed chunks are complete.
    pub fn wait(&mut self) -> Result<()> {
        let Some((sender, thread)) = self.thread.take() else {
            return Ok(());
        };
        drop(sender);
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn spawn(&self) -> Result<(SyncSender<EndedChunk>, JoinHandle<Result<()>>)> {
        let (dir, uuid, keep) = (self.dir.clone(), self.uuid, self.keep);
        let (sender, chunks) = sync_channel(WAITING);
        let work = move || {
            let mut chunks = chunks.into_iter();
            chunks.try_for_each(|ended| finish(&dir, uuid, keep, ended))
        };
        let thread = Builder::new().name("chunks".to_owned()).spawn(work);
        Ok((
            sender,
            thread.map_err(Error::system("cannot start a thread"))?,
        ))
    }
}

/// Completes a chunk, and removes the chunks beyond the number to keep.
fn finish(dir: &Path, uuid: Uuid, keep: Option<u64>, ended: EndedChunk) -> Result<()> {
    let EndedChunk {
        number,
        mut output,
        state,
        unwritten,
        stats,
    } = ended;
    output.check()?;
    output.sync()?;
    Box::new(output).end(state, unwritten, &stats)?;
    rename_whole(dir, number)?;
    keep.map_or(Ok(()), |keep| remove_oldest(dir, uuid, keep))
}
