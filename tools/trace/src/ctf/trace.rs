// SPDX-License-Identifier: GPL-2.0

//! A trace's directory.

use super::metadata::Metadata;
use crate::error::{Error, Result};
use crate::output::METADATA;
use crate::recording::Recording;
use crate::regular_file;
use crate::source::StreamName;
use std::fs;
use std::path::{Path, PathBuf};

/// A trace on disk.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Its description.
    pub metadata: Metadata,
    /// Its stream files, sorted by channel and CPU where their names tell.
    pub streams: Vec<PathBuf>,
    /// Bytes of the stream files.
    pub bytes: u64,
    /// What the tool that wrote it said in the end, if one did.
    pub recording: Option<Recording>,
}

impl Trace {
    /// Opens the trace in `dir`.
    pub fn open(dir: &Path) -> Result<Self> {
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
}

/// The stream that a file has by its name; none if it is called otherwise.
pub fn name_of(path: &Path) -> Option<StreamName> {
    path.file_name()?.to_str()?.parse().ok()
}
