// SPDX-License-Identifier: GPL-2.0

//! A trace's directory.

use crate::chunks::Chunks;
use crate::recording::Recording;
use ctf::{name_of, Areas, Damage, Merge, Metadata, METADATA};
use rtrace_abi::tsdl;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use system::{regular_file, Error, Result};
use uuid::Uuid;

/// Whether `dir` looks like a trace: it has a description, or chunks.
pub fn is_trace(dir: &Path) -> bool {
    let has_chunks = |chunks: Chunks| !chunks.parts(dir).is_empty();
    dir.join(METADATA).is_file() || Chunks::list(dir).is_ok_and(has_chunks)
}

/// Whether a file or directory looks like a trace of rtrace or of another tracer.
pub fn is_readable(path: &Path) -> bool {
    is_trace(path) || foreign::is_trace(path)
}

/// A trace on disk.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Its description.
    pub metadata: Arc<Metadata>,
    /// Its stream files, sorted by channel and CPU if their names have these. A stream of a trace in chunks has
    /// several files, in the order of the chunks.
    pub streams: Vec<PathBuf>,
    /// Bytes of the stream files.
    pub bytes: u64,
    /// The report of the tool that wrote the trace, if there is one.
    pub recording: Option<Recording>,
    /// Parts of its description that cannot be read.
    pub damages: Vec<Damage>,
    /// A sentence about each thing that a trace of another tracer cannot tell.
    pub notes: Vec<String>,
}

impl Trace {
    /// Opens the trace in `dir`, or all chunks of it; or the trace of another tracer at this path.
    pub fn open(dir: &Path) -> Result<Self> {
        match is_own(dir)? {
            false => match foreign::open(dir)? {
                Some(opened) => Ok(Self::of_foreign(opened)),
                None if dir.is_file() => Err(not_a_trace(
                    dir,
                    "the file has none of the formats that rtrace reads (trace.dat, perf.data; of CTF, a folder)",
                )),
                None => Self::open_own(dir),
            },
            true => Self::open_own(dir),
        }
    }

    fn of_foreign(opened: foreign::Opened) -> Self {
        Self {
            metadata: Arc::new(opened.metadata),
            streams: opened.streams,
            bytes: opened.bytes,
            recording: None,
            damages: Vec::new(),
            notes: opened.notes,
        }
    }

    fn open_own(dir: &Path) -> Result<Self> {
        let mut parts = Vec::new();
        if dir.is_dir() && !dir.join(METADATA).exists() {
            parts = Chunks::list(dir)?.parts(dir);
        }
        if parts.is_empty() {
            if let Some(newest) = newest_snapshot(dir) {
                let why = format!(
                    "it holds snapshots, each a trace: {0}/1 to {0}/{newest}; give one of them",
                    dir.display()
                );
                return Err(not_a_trace(dir, &why));
            }
            return Self::open_one(dir, describe(dir)?);
        }
        // A chunk with a damaged description gets that of another chunk. They differ only in events.
        let mut described: Vec<_> = parts.iter().map(|part| describe(part)).collect();
        let known = described.iter().flatten().next_back();
        let known = known.map(|(metadata, _)| metadata.clone());
        for (part, described) in parts.iter().zip(&mut described) {
            let Some(known) = &known else { continue };
            if let Err(Error::Metadata { .. }) = described {
                let damage = |error: Error| Damage {
                    path: part.join(METADATA),
                    offset: 0,
                    bytes: 0,
                    what: error.to_string(),
                };
                let other = std::mem::replace(described, Ok((known.clone(), Vec::new())));
                if let (Ok((_, damages)), Err(error)) = (described, other) {
                    damages.push(damage(error));
                }
            }
        }
        let traces = parts.iter().zip(described);
        let mut traces = traces.map(|(part, described)| Self::open_one(part, described?));
        let Some(first) = traces.next() else {
            return Self::open_one(dir, describe(dir)?);
        };
        let mut trace = traces.try_fold(first?, |trace, next| Ok(trace.join(next?)))?;
        // The files of a stream stay in the order of the chunks.
        trace.streams.sort_by_cached_key(|path| {
            let file = path.file_name().map(OsStr::to_owned);
            (name_of(path), file)
        });
        Ok(trace)
    }

    /// The files of each stream, in the order of the streams.
    pub fn streams_by_name(&self) -> impl Iterator<Item = &[PathBuf]> {
        let is_own = self.metadata.foreign.is_none();
        self.streams
            .chunk_by(move |a, b| is_own && a.file_name() == b.file_name())
    }

    /// Merges its streams by time.
    pub fn merge(&self) -> Result<Merge> {
        let merge = Merge::new(&self.metadata, self.streams_by_name())?;
        Ok(merge.until(self.end()?))
    }

    /// The time by the trace's clock after which nothing was recorded, even if packets end later. `u64::MAX`: no packet
    /// does.
    ///
    /// In older traces a packet ends when it was closed, up to a second after the stop. The state of a thread must not
    /// be extended to then. So an older trace ends at its last event, on any CPU. With switches of threads, that event
    /// is close to the stop, because a thread runs to stop the trace. Without them no state is extended, and the end
    /// of the last packet is the better end.
    pub fn end(&self) -> Result<u64> {
        let metadata = &*self.metadata;
        let mut classes = metadata.streams.iter();
        let has_switches = classes.any(|class| {
            let mut events = class.events.values();
            events.any(|event| event.name == "sched_switch")
        });
        if metadata.foreign.is_some() || metadata.env.contains_key(tsdl::TRACE_END) || !has_switches
        {
            return Ok(u64::MAX);
        }
        let mut end = None;
        for path in &self.streams {
            end = end.max(ctf::last_time(path, metadata)?);
        }
        Ok(end.unwrap_or(u64::MAX))
    }

    /// Opens the trace in the directory `dir`, which has this description.
    fn open_one(dir: &Path, (metadata, damages): (Metadata, Vec<Damage>)) -> Result<Self> {
        let mut streams = Vec::new();
        let mut bytes = 0;
        for entry in fs::read_dir(dir).map_err(Error::read(dir))? {
            let entry = entry.map_err(Error::read(dir))?;
            let (path, name) = (entry.path(), entry.file_name());
            let kind = fs::metadata(&path).map_err(Error::read(&path))?;
            if kind.is_file() && name != METADATA && !name.to_string_lossy().starts_with('.') {
                bytes += kind.len();
                streams.push(path);
            }
        }
        streams.sort_by_cached_key(|path| (name_of(path), path.clone()));
        let recording = Recording::read(dir, metadata.uuid)?;
        Ok(Self {
            metadata: Arc::new(metadata),
            streams,
            bytes,
            recording,
            damages,
            notes: Vec::new(),
        })
    }

    /// This chunk and the next one together. The next description contains this one's.
    fn join(mut self, next: Self) -> Self {
        self.streams.extend(next.streams);
        self.damages.extend(next.damages);
        let recordings = self.recording.zip(next.recording);
        Self {
            metadata: next.metadata,
            streams: self.streams,
            damages: self.damages,
            bytes: self.bytes + next.bytes,
            recording: recordings.map(|(this, next)| this.join(next)),
            notes: self.notes,
        }
    }
}

/// Whether the path has a trace of rtrace's, or chunks of one, or nothing that a trace could be.
fn is_own(path: &Path) -> Result<bool> {
    let file = path.join(METADATA);
    if file.exists() {
        let text = regular_file::read(&file).map_err(Error::read(&file))?;
        return Ok(ctf::is_own(&text));
    }
    Ok(!path.exists() || path.is_dir() && !Chunks::list(path)?.parts(path).is_empty())
}

/// The description of the trace in `dir`, and its parts that cannot be read.
fn describe(dir: &Path) -> Result<(Metadata, Vec<Damage>)> {
    let path = dir.join(METADATA);
    let text = regular_file::read(&path).map_err(Error::read(&path))?;
    Metadata::parse_damaged(&text, &path)
}

/// Finds the AUX areas of the trace `uuid` in `dir`: beside its streams, or in all its chunks.
pub fn areas(dir: &Path, uuid: Uuid) -> Result<Areas> {
    let mut dirs = vec![dir.to_owned()];
    if !dir.join(METADATA).exists() {
        dirs = Chunks::list(dir)?.parts(dir);
    }
    Areas::find(&dirs, uuid)
}

/// The refusal of a path, with its reason.
fn not_a_trace(path: &Path, why: &str) -> Error {
    let what = format!("{} is not a trace", path.display());
    Error::system(what)(io::Error::other(why))
}

/// The number of the newest snapshot in a directory that `rtrace record --snapshot-on` wrote.
fn newest_snapshot(dir: &Path) -> Option<u64> {
    if dir.join(METADATA).exists() {
        return None;
    }
    let entries = fs::read_dir(dir).ok()?;
    let numbers = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let number = entry.file_name().to_str()?.parse().ok()?;
        entry.path().join(METADATA).exists().then_some(number)
    });
    numbers.max()
}
