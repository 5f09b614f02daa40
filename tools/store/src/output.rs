// SPDX-License-Identifier: GPL-2.0

//! A trace's directory on disk, while it is being written.
//!
//! At every moment, also after `kill -9`, the directory is a valid trace, except for at most one partial packet at
//! the end of each stream file. When a consumer continues the trace, [`StreamFile::open`] cuts that packet off.

use crate::beside::RECORDING;
use crate::folder::{temporary, Folder};
use crate::options::OutputOptions;
use crate::part::ChunkPlace;
use crate::recording::RecordingFile;
use crate::stream_file::StreamFile;
use consumer::transfer::{Failure, Transfer};
use consumer::{Sink, State, Stream};
use ctf::{Metadata, StreamName, METADATA};
use rtrace_abi::ioctl::Packet;
use std::fs;
use std::io;
use std::path::Path;
use system::{regular_file, Error, Result};
use uuid::Uuid;

/// The directory of a trace: a sink that gets packets without a copy.
#[derive(Debug)]
pub struct Output {
    folder: Folder,
    uuid: Uuid,
    options: OutputOptions,
    resumed: bool,
    /// Whether this output made the directory.
    made: bool,
    streams: Vec<StreamFile>,
    recording: RecordingFile,
    transfer: Transfer,
}

impl Output {
    /// Claims `dir` for the trace `uuid`, or for the given part of it: a new or empty directory, or one that holds
    /// the beginning of the same trace or part. An existing directory keeps its permissions. `streams` are the
    /// streams that may be opened later.
    pub(crate) fn begin(
        dir: &Path,
        uuid: Uuid,
        streams: &[StreamName],
        options: OutputOptions,
        part: Option<ChunkPlace>,
    ) -> Result<Self> {
        let held = Self::held(dir)?;
        if let Some(other) = held.filter(|&held| held != uuid) {
            return Err(Self::holds_another(dir, other));
        }
        Self::try_writing(dir, options)?;
        let (folder, made) = Folder::make(dir, options.access)?;
        Ok(Self {
            uuid,
            options,
            resumed: held.is_some(),
            made,
            streams: Vec::new(),
            recording: RecordingFile::begin(&folder, uuid, streams, options.access, part)?,
            transfer: Transfer::new().map_err(Error::system("cannot create a pipe"))?,
            folder,
        })
    }

    /// The error for a directory that holds another trace than the one to be written.
    pub fn holds_another(dir: &Path, held: Uuid) -> Error {
        Error::OutputTaken {
            path: dir.to_owned(),
            reason: format!("holds another trace ({held}): choose a new directory"),
        }
    }

    /// Bytes of its packets.
    pub(crate) fn bytes(&self) -> u64 {
        self.streams.iter().map(StreamFile::bytes).sum()
    }

    /// Checks that files in `dir`, which may be missing, can be made and written in this way, and that no other user
    /// may write to it. Removes all files of the check.
    pub fn try_writing(dir: &Path, options: OutputOptions) -> Result<()> {
        if dir.exists() {
            Folder::open(dir, options.access)?;
        }
        let there = dir.ancestors().find(|dir| dir.exists());
        tempfile::tempfile_in(there.unwrap_or(Path::new(".")))
            .and_then(|file| {
                options.access.set_file(&file)?;
                options.writing.set(&file)
            })
            .map_err(Error::write(dir))
    }

    /// The trace of which `dir` holds a part. [`None`]: the directory is empty or missing.
    pub fn held(dir: &Path) -> Result<Option<Uuid>> {
        if dir.exists() {
            Self::trace_in(dir)
        } else {
            Ok(None)
        }
    }

    /// The trace that a directory holds. [`None`]: it is empty. Other contents are an error.
    fn trace_in(dir: &Path) -> Result<Option<Uuid>> {
        let path = dir.join(METADATA);
        match regular_file::read_to_string(&path) {
            Ok(text) => Metadata::find_uuid(&text)
                .map(Some)
                .ok_or_else(|| Error::OutputTaken {
                    path,
                    reason: "is not the metadata of a trace: choose another directory".to_owned(),
                }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let mut entries = fs::read_dir(dir).map_err(Error::read(dir))?;
                // Files that are written before the metadata.
                let is_ours = |name| name == *temporary(METADATA) || name == RECORDING.name;
                if entries.any(|e| e.map_or(true, |e| !is_ours(e.file_name()))) {
                    let reason = "is not empty and not a trace: choose another directory";
                    return Err(Error::OutputTaken {
                        path: dir.to_owned(),
                        reason: reason.into(),
                    });
                }
                Ok(None)
            }
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => Err(Error::OutputTaken {
                path: dir.to_owned(),
                reason: "is not a directory: choose another path".to_owned(),
            }),
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => Err(Error::OutputTaken {
                path,
                reason: format!("{e}: choose another directory"),
            }),
            Err(cause) => Err(Error::Read { path, cause }),
        }
    }
}

impl Sink for Output {
    fn resumed(&self) -> bool {
        self.resumed
    }

    fn describe(&mut self, metadata: &str) -> Result<()> {
        let text = metadata.as_bytes();
        let replaced = self
            .folder
            .replace(METADATA, self.options.access, |out| out.write_all(text));
        replaced.map_err(Error::write(&self.folder.path().join(METADATA)))
    }

    fn open(&mut self, stream: &StreamName) -> Result<usize> {
        let file = StreamFile::open(&self.folder, stream, self.uuid, self.options, self.resumed)?;
        self.streams.push(file);
        Ok(self.streams.len() - 1)
    }

    fn last(&self, stream: usize) -> Option<u64> {
        self.streams[stream].last()
    }

    fn packet(&mut self, stream: usize, packet: &Packet, from: &mut dyn Stream) -> Result<()> {
        let file = &mut self.streams[stream];
        file.reserve(packet.size);
        if let Err(failure) = self.transfer.packet(from, packet.size, file.file()) {
            file.roll_back()?;
            return Err(match failure {
                Failure::Stream(cause) => Error::Stream {
                    stream: file.path().display().to_string(),
                    action: "reading a packet",
                    cause,
                },
                Failure::Output(cause) => Error::Write {
                    path: file.path().to_owned(),
                    cause,
                },
            });
        }
        file.wrote(packet.sequence, packet.size);
        Ok(())
    }

    /// The stream's name is that of its file.
    fn name(&self, stream: usize) -> String {
        self.streams[stream].path().display().to_string()
    }

    fn check(&self) -> Result<()> {
        let removed = |path: &Path, reason: String| Error::Removed {
            path: path.to_owned(),
            reason: format!("{reason} while the trace was written to it"),
        };
        let path = self.folder.path();
        match self.folder.place() {
            Some(now) if now == path => {}
            Some(now) => {
                let reason = format!("the directory was renamed to {}", now.display());
                return Err(removed(path, reason));
            }
            None => {
                let reason = "the directory was removed, or its file system unmounted,";
                return Err(removed(path, reason.to_owned()));
            }
        }
        match self.streams.iter().find(|file| !file.is_linked()) {
            Some(file) => Err(removed(file.path(), "the file was removed".to_owned())),
            None => Ok(()),
        }
    }

    fn is_left(&self, stream: usize) -> bool {
        self.folder.place().is_some() && self.streams[stream].is_linked()
    }

    fn sync(&mut self) -> Result<()> {
        // Closes every file, then returns the first error.
        let streams = self.streams.iter_mut().map(StreamFile::sync);
        streams.fold(Ok(()), Result::and).and(self.folder.sync())
    }

    fn end(self: Box<Self>, state: State, unwritten: u64, stats: &str) -> Result<()> {
        self.check()?;
        self.recording.end(state, unwritten, stats)
    }

    /// Leaves the directory, if it was there before.
    fn discard(self: Box<Self>) -> Result<()> {
        self.folder.remove(RECORDING.name)?;
        for stream in self.streams {
            self.folder.remove(&stream.name().to_string())?;
        }
        self.folder.remove(METADATA)?;
        if self.made {
            let dir = self.folder.path();
            fs::remove_dir(dir).map_err(Error::write(dir))?;
        }
        Ok(())
    }
}
