// SPDX-License-Identifier: GPL-2.0

//! A trace in a directory of chunks.
//!
//! Each chunk is an [`Output`], whose name marks it as unfinished. When the next chunk begins, a thread syncs the
//! previous one to the disk and gives it its final name. Each packet goes to one chunk, so the chunks together have
//! each packet once.
//!
//! A consumer that continues the trace continues in the last chunk, if that is unfinished. Other unfinished chunks
//! were being synced when the previous consumer died, and are complete.

use crate::chunks::{
    self, remove_oldest, remove_outdated, remove_unfinished, unfinished_path, whole_before,
    whole_path, Stage,
};
use crate::finisher::{EndedChunk, Finisher};
use crate::folder::Folder;
use crate::options::OutputOptions;
use crate::output::Output;
use crate::part::ChunkPlace;
use crate::recording::Recording;
use crate::rotate::{Every, Rotate};
use crate::stream_file::last_packet;
use consumer::stats::TraceStats;
use consumer::{Sink, State, Stream};
use ctf::StreamName;
use rtrace_abi::ioctl::Packet;
use std::fs;
use std::mem;
use std::path::{Path, PathBuf};
use std::time::Instant;
use system::{Error, Result};
use uuid::Uuid;

/// The directory of a trace in chunks.
#[derive(Debug)]
pub struct Rotation {
    dir: PathBuf,
    uuid: Uuid,
    /// Options of each chunk.
    options: OutputOptions,
    every: Every,
    resumed: bool,
    /// Whether this output made the directory.
    made: bool,
    /// The streams that may be opened later.
    possible: Vec<StreamName>,
    /// The open streams, by their numbers, each with its last packet in the chunks before this one.
    streams: Vec<(StreamName, Option<u64>)>,
    metadata: String,
    chunk: Output,
    /// The number of the chunk.
    number: u64,
    /// The last chunk that was complete at the start. A list of all chunks would need more memory with each restart
    /// of a long trace.
    earlier: Option<u64>,
    /// The begin of the chunk's time.
    began: Instant,
    finisher: Finisher,
}

impl Rotation {
    /// Claims `dir` for the trace `uuid`: a new or empty directory, or one that holds chunks of the same trace. An
    /// existing directory keeps its permissions. `streams` are the streams that may be opened later.
    pub fn begin(
        dir: &Path,
        uuid: Uuid,
        streams: &[StreamName],
        options: OutputOptions,
        rotate: Rotate,
    ) -> Result<Self> {
        let held = chunks::held(dir)?;
        if let Some(other) = held.filter(|&held| held != uuid) {
            return Err(Output::holds_another(dir, other));
        }
        Output::try_writing(dir, options)?;
        let (_, made) = Folder::make(dir, options.access)?;
        let mut earlier = None;
        let mut unfinished = Vec::new();
        let mut outdated = Vec::new();
        chunks::each(dir, |stage, number| {
            match stage {
                Stage::Whole => earlier = earlier.max(Some(number)),
                Stage::Unfinished => unfinished.push(number),
                Stage::Outdated => outdated.push(number),
            }
            Ok(())
        })?;
        for number in outdated {
            remove_outdated(dir, number)?;
        }
        unfinished.sort_unstable();
        let last = unfinished.last().copied();
        let going_on = last.filter(|_| last > earlier);
        unfinished.retain(|number| Some(*number) != going_on);
        let mut finisher = Finisher::new(dir, uuid, rotate.keep);
        for &number in &unfinished {
            finisher.take(left_behind(dir, number, uuid, options)?)?;
            earlier = earlier.max(Some(number));
        }
        finisher.wait()?;
        let number = going_on.unwrap_or(earlier.unwrap_or(0) + 1);
        let path = unfinished_path(dir, number);
        let part = match Recording::read(&path, uuid)?.and_then(|recording| recording.part) {
            Some(part) => part,
            None => {
                let before = earlier.map(|number| counters_of(dir, number, uuid));
                ChunkPlace::new(number, before.transpose()?.flatten().as_ref())
            }
        };
        Ok(Self {
            chunk: Output::begin(&path, uuid, streams, options, Some(part))?,
            dir: dir.to_owned(),
            uuid,
            options,
            every: rotate.every,
            resumed: held.is_some(),
            made,
            possible: streams.to_owned(),
            streams: Vec::new(),
            metadata: String::new(),
            number,
            earlier,
            began: Instant::now(),
            finisher,
        })
    }

    /// Begins chunk `number`, with the settings of all chunks.
    fn next(&self, number: u64, part: ChunkPlace) -> Result<Output> {
        let path = unfinished_path(&self.dir, number);
        let (possible, options) = (&self.possible, self.options);
        let mut next = Output::begin(&path, self.uuid, possible, options, Some(part))?;
        next.describe(&self.metadata)?;
        for (stream, _) in &self.streams {
            next.open(stream)?;
        }
        Ok(next)
    }
}

impl Sink for Rotation {
    fn resumed(&self) -> bool {
        self.resumed
    }

    fn describe(&mut self, metadata: &str) -> Result<()> {
        metadata.clone_into(&mut self.metadata);
        self.chunk.describe(metadata)
    }

    fn open(&mut self, stream: &StreamName) -> Result<usize> {
        // A repeated packet may be in any chunk: other streams continued while the packet was not returned.
        let (mut chunk, mut last) = (self.earlier, None);
        while let (Some(number), None) = (chunk, last) {
            let file = whole_path(&self.dir, number).join(stream.to_string());
            last = last_packet(&file, self.uuid)?;
            chunk = whole_before(&self.dir, number)?;
        }
        self.streams.push((stream.clone(), last));
        self.chunk.open(stream)
    }

    fn last(&self, stream: usize) -> Option<u64> {
        let (_, before) = self.streams[stream];
        self.chunk.last(stream).max(before)
    }

    fn packet(&mut self, stream: usize, packet: &Packet, from: &mut dyn Stream) -> Result<()> {
        self.chunk.packet(stream, packet, from)
    }

    fn name(&self, stream: usize) -> String {
        self.chunk.name(stream)
    }

    fn is_full(&self, bytes: u64) -> bool {
        let held = self.chunk.bytes();
        match self.every {
            Every::Size(size) => held > 0 && held.saturating_add(bytes) > size,
            Every::Time(_) => false,
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self.every {
            Every::Size(_) => None,
            Every::Time(time) => self.began.checked_add(time),
        }
    }

    fn turn(&mut self, stats: &dyn Fn() -> Result<String>) -> Result<()> {
        let stats = stats()?;
        let number = self.number + 1;
        let part = ChunkPlace::new(number, TraceStats::parse(&stats).ok().as_ref());
        let next = self.next(number, part).inspect_err(|_| {
            // The error itself matters, not that of the removal.
            let _ = remove_unfinished(&self.dir, number);
        })?;
        for number in 0..self.streams.len() {
            self.streams[number].1 = self.last(number);
        }
        // Counts from the last deadline, so that deadlines do not drift. Missed deadlines are skipped.
        let now = Instant::now();
        self.began = self.deadline().unwrap_or(now);
        if self.deadline().is_some_and(|next| next <= now) {
            self.began = now;
        }
        self.finisher.take(EndedChunk {
            number: mem::replace(&mut self.number, number),
            output: mem::replace(&mut self.chunk, next),
            state: State::Stopped,
            unwritten: 0,
            stats,
        })
    }

    fn check(&self) -> Result<()> {
        self.chunk.check()
    }

    /// The earlier chunks count as the current one does.
    fn is_left(&self, stream: usize) -> bool {
        self.chunk.is_left(stream)
    }

    fn sync(&mut self) -> Result<()> {
        let chunk = self.chunk.sync();
        self.finisher.wait().and(chunk)
    }

    fn end(mut self: Box<Self>, state: State, unwritten: u64, stats: &str) -> Result<()> {
        self.finisher.take(EndedChunk {
            number: self.number,
            output: self.chunk,
            state,
            unwritten,
            stats: stats.to_owned(),
        })?;
        self.finisher.wait()
    }

    /// Leaves the directory, if it existed before.
    fn discard(mut self: Box<Self>) -> Result<()> {
        self.finisher.wait()?;
        Box::new(self.chunk).discard()?;
        remove_oldest(&self.dir, self.uuid, 0)?;
        if self.made {
            fs::remove_dir(&self.dir).map_err(Error::write(&self.dir))?;
        }
        Ok(())
    }
}

/// A chunk that was being synced when its writer died. Its final counters are lost; the next chunk tells what was
/// lost until then.
fn left_behind(dir: &Path, number: u64, uuid: Uuid, options: OutputOptions) -> Result<EndedChunk> {
    let path = unfinished_path(dir, number);
    let recording = Recording::read(&path, uuid)?;
    let part = recording.and_then(|recording| recording.part);
    let mut output = Output::begin(&path, uuid, &[], options, part)?;
    for stream in streams_in(&path)? {
        output.open(&stream)?;
    }
    Ok(EndedChunk {
        number,
        output,
        state: State::Stopped,
        unwritten: 0,
        stats: String::new(),
    })
}

/// The streams that have a file in the directory.
fn streams_in(dir: &Path) -> Result<Vec<StreamName>> {
    let mut streams = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::read(dir))? {
        let name = entry.map_err(Error::read(dir))?.file_name();
        streams.extend(name.to_str().and_then(|name| name.parse().ok()));
    }
    Ok(streams)
}

/// The counters at the end of a chunk, if it has any.
fn counters_of(dir: &Path, number: u64, uuid: Uuid) -> Result<Option<TraceStats>> {
    let recording = Recording::read(&whole_path(dir, number), uuid)?;
    Ok(recording.and_then(|recording| recording.stats))
}

impl OutputOptions {
    /// The trace of which `dir` holds a part, written in this way. [`None`]: the directory is empty or missing.
    pub fn held(self, dir: &Path) -> Result<Option<Uuid>> {
        match self.rotate {
            None => Output::held(dir),
            Some(_) => chunks::held(dir),
        }
    }

    /// Claims `dir` for the trace `uuid`, written in this way: a new or empty directory, or one that holds a part of
    /// the same trace. `streams` are the streams that may be opened later.
    pub fn begin(self, dir: &Path, uuid: Uuid, streams: &[StreamName]) -> Result<Box<dyn Sink>> {
        if let Some(rotate) = self.rotate {
            return Ok(Box::new(Rotation::begin(dir, uuid, streams, self, rotate)?));
        }
        let is_resumed = Output::held(dir)? == Some(uuid);
        if is_resumed && Recording::read(dir, uuid)?.is_some_and(|r| r.part.is_some()) {
            return Err(Error::OutputTaken {
                path: dir.to_owned(),
                reason: "is a chunk of this trace: choose another directory".to_owned(),
            });
        }
        Ok(Box::new(Output::begin(dir, uuid, streams, self, None)?))
    }
}
