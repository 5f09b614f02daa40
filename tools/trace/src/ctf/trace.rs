// SPDX-License-Identifier: GPL-2.0

//! A trace's directory.

use super::metadata::Metadata;
use crate::chunks::Chunks;
use crate::error::{Error, Result};
use crate::output::METADATA;
use crate::recording::Recording;
use crate::regular_file;
use crate::source::StreamName;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// A trace on disk.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Its description.
    pub metadata: Metadata,
    /// Its stream files, sorted by channel and CPU where their names tell. Of a trace in chunks a
    /// stream has several, one behind the other.
    pub streams: Vec<PathBuf>,
    /// Bytes of the stream files.
    pub bytes: u64,
    /// What the tool that wrote it said in the end, if one did.
    pub recording: Option<Recording>,
}

impl Trace {
    /// Opens the trace in `dir`: that, or all chunks of it.
    pub fn open(dir: &Path) -> Result<Self> {
        let mut parts = Vec::new();
        if dir.is_dir() && !dir.join(METADATA).exists() {
            parts = Chunks::list(dir)?.parts(dir);
        }
        let mut parts = parts.iter().map(|part| Self::open_one(part));
        let Some(first) = parts.next() else {
            return Self::open_one(dir);
        };
        let mut trace = parts.try_fold(first?, |trace, next| Ok(trace.join(next?)))?;
        // The files of a stream stay in the order of the chunks.
        trace.streams.sort_by_cached_key(|path| {
            let file = path.file_name().map(OsStr::to_owned);
            (name_of(path), file)
        });
        Ok(trace)
    }

    /// The files of each stream, in their order.
    pub fn streams_by_name(&self) -> impl Iterator<Item = &[PathBuf]> {
        self.streams.chunk_by(|a, b| a.file_name() == b.file_name())
    }

    /// Opens the trace whose directory is `dir`.
    fn open_one(dir: &Path) -> Result<Self> {
        let path = dir.join(METADATA);
        let text = regular_file::read_to_string(&path).map_err(Error::read(&path))?;
        let metadata = Metadata::parse(&text)?;
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
            metadata,
            streams,
            bytes,
            recording,
        })
    }

    /// What this and the next chunk are together. The next one's description has all that this one's
    /// has.
    fn join(mut self, next: Self) -> Self {
        self.streams.extend(next.streams);
        let recordings = self.recording.zip(next.recording);
        Self {
            metadata: next.metadata,
            streams: self.streams,
            bytes: self.bytes + next.bytes,
            recording: recordings.map(|(this, next)| this.join(next)),
        }
    }
}

/// The stream that a file has by its name; none if it is called otherwise.
pub fn name_of(path: &Path) -> Option<StreamName> {
    path.file_name()?.to_str()?.parse().ok()
}
