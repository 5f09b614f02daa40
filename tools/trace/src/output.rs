// SPDX-License-Identifier: GPL-2.0

//! A trace's directory on disk, while it is being written.
//!
//! At every moment, also after `kill -9`, it is a valid trace but for at most one partial
//! packet at the end of each stream file; [`Output::stream`] cuts that off when a consumer
//! comes back.

use crate::access::Access;
use crate::ctf::{Metadata, PacketHeaders};
use crate::error::{Error, Result};
use crate::regular_file;
use crate::source::StreamName;
use crate::uuid::Uuid;
use crate::writing::Writing;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The file that describes the trace.
pub const METADATA: &str = "metadata";

/// Where the metadata is written before it takes its name.
const METADATA_NEW: &str = ".metadata.new";

/// How a trace is written to its directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputOptions {
    /// Whether the page cache comes between.
    pub writing: Writing,
    /// Who may read it.
    pub access: Access,
}

/// The directory of a trace.
#[derive(Debug)]
pub struct Output {
    dir: PathBuf,
    uuid: Uuid,
    options: OutputOptions,
    resumed: bool,
    /// Whether the directory was not there before.
    made: bool,
}

impl Output {
    /// Takes `dir` for the trace `uuid`: a new or empty directory, or one that holds a part
    /// of this very trace. Nothing is written to it yet. A directory that is there already keeps
    /// its permissions.
    pub fn prepare(dir: &Path, uuid: Uuid, options: OutputOptions) -> Result<Self> {
        let held = Self::held(dir)?;
        if let Some(other) = held.filter(|&held| held != uuid) {
            return Err(Self::holds_another(dir, other));
        }
        Self::try_writing(dir, options)?;
        Ok(Self {
            dir: dir.to_owned(),
            uuid,
            options,
            resumed: held.is_some(),
            made: make_dir(dir, options.access).map_err(Error::write(dir))?,
        })
    }

    /// The error of a directory that holds a trace which is not the one to be written.
    pub fn holds_another(dir: &Path, held: Uuid) -> Error {
        Error::OutputTaken {
            path: dir.to_owned(),
            reason: format!("holds another trace ({held}): choose a new directory"),
        }
    }

    /// Makes sure that files in `dir`, which need not be there yet, can be made and written
    /// like this. Nothing is left of what it tries that with.
    pub fn try_writing(dir: &Path, options: OutputOptions) -> Result<()> {
        let there = dir.ancestors().find(|dir| dir.exists());
        tempfile::tempfile_in(there.unwrap_or(Path::new(".")))
            .and_then(|file| {
                options.access.set_file(&file)?;
                options.writing.set(&file)
            })
            .map_err(Error::write(dir))
    }

    /// The trace that `dir` holds a part of; none if it is empty or not there.
    pub fn held(dir: &Path) -> Result<Option<Uuid>> {
        if dir.exists() {
            Self::trace_in(dir)
        } else {
            Ok(None)
        }
    }

    /// The trace that a directory holds; none if it is empty. Anything else is an error.
    fn trace_in(dir: &Path) -> Result<Option<Uuid>> {
        let path = dir.join(METADATA);
        match regular_file::read_to_string(&path) {
            Ok(text) => Metadata::find_uuid(&text)
                .map(Some)
                .ok_or_else(|| Error::OutputTaken {
                    path,
                    reason: "is no metadata of a trace: choose another directory".to_owned(),
                }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let mut entries = fs::read_dir(dir).map_err(Error::read(dir))?;
                let foreign = entries.any(|e| e.map_or(true, |e| e.file_name() != METADATA_NEW));
                if foreign {
                    let reason = "is neither empty nor a trace: choose another directory";
                    return Err(Error::OutputTaken {
                        path: dir.to_owned(),
                        reason: reason.into(),
                    });
                }
                Ok(None)
            }
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => Err(Error::OutputTaken {
                path: dir.to_owned(),
                reason: "is no directory: choose another place".to_owned(),
            }),
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => Err(Error::OutputTaken {
                path,
                reason: format!("{e}: choose another directory"),
            }),
            Err(cause) => Err(Error::Read { path, cause }),
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether it held a part of the trace already.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Writes the description, whole or not at all.
    pub fn write_metadata(&self, text: &str) -> Result<()> {
        let path = self.dir.join(METADATA);
        let new = self.dir.join(METADATA_NEW);
        replace(&path, &new, text.as_bytes(), self.options.access).map_err(Error::write(&path))
    }

    /// Opens a stream's file at the end of its last whole packet.
    pub fn stream(&self, name: &StreamName) -> Result<StreamFile> {
        let path = self.dir.join(name.to_string());
        StreamFile::open(path, self.uuid, self.options)
    }

    /// Removes the description, and the directory if it was made for the trace. The stream files
    /// must be gone.
    pub(crate) fn remove(&self) -> Result<()> {
        let path = self.dir.join(METADATA);
        fs::remove_file(&path).map_err(Error::write(&path))?;
        if self.made {
            fs::remove_dir(&self.dir).map_err(Error::write(&self.dir))?;
        }
        Ok(())
    }

    /// Makes names durable as well.
    pub fn sync(&self) -> Result<()> {
        File::open(&self.dir)
            .and_then(|d| d.sync_all())
            .map_err(Error::write(&self.dir))
    }
}

/// Makes the directory `dir`, unless it is there; whether it was made. Directories above it are
/// made as mkdir(1) makes them.
pub fn make_dir(dir: &Path, access: Access) -> io::Result<bool> {
    if let Some(above) = dir.parent() {
        fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => {
            access.set_directory(&File::open(dir)?)?;
            Ok(true)
        }
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(false),
        Err(e) => Err(e),
    }
}

/// Replaces `path` by a file with these contents and permissions, by way of `new` beside it: at
/// each moment the old contents or the new are there whole.
pub fn replace(path: &Path, new: &Path, contents: &[u8], access: Access) -> io::Result<()> {
    let written = create_new(new)
        .and_then(|mut file| {
            access.set_file(&file)?;
            file.write_all(contents)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(new, path));
    if written.is_err() {
        let _ = fs::remove_file(new);
        return written;
    }
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => File::open(dir)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// Makes a file for its owner alone. One of that name, left by a process that was killed, goes.
fn create_new(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// One stream's file, open for appending packets.
#[derive(Debug)]
pub struct StreamFile {
    path: PathBuf,
    file: File,
    /// End of the last whole packet.
    end: u64,
    /// The sequence number of that packet.
    last: Option<u64>,
}

impl StreamFile {
    fn open(path: PathBuf, uuid: Uuid, options: OutputOptions) -> Result<Self> {
        let file = regular_file::open_or_create(&path).map_err(Error::write(&path))?;
        options
            .access
            .set_file(&file)
            .map_err(Error::write(&path))?;
        let mut packets = PacketHeaders::new(&path, &file, Some(uuid))?;
        let (mut end, mut last) = (0, None);
        while let Some(packet) = packets.next_whole()? {
            end = packet.end();
            last = Some(packet.header.packet_seq_num);
        }
        // Headers are no whole pages: they were read before.
        options.writing.set(&file).map_err(Error::write(&path))?;
        let mut stream = Self {
            path,
            file,
            end,
            last,
        };
        stream.roll_back()?;
        Ok(stream)
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the next packet goes.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether the packet is on disk: it was written, and its reader died before it gave it
    /// back.
    pub fn has(&self, sequence: u64) -> bool {
        self.last.is_some_and(|last| sequence <= last)
    }

    /// A packet was written whole.
    pub fn wrote(&mut self, sequence: u64, size: u64) {
        self.end += size;
        self.last = Some(sequence);
    }

    /// Cuts the file back to its last whole packet.
    pub fn roll_back(&mut self) -> Result<()> {
        self.file
            .set_len(self.end)
            .and_then(|()| self.file.seek(SeekFrom::Start(self.end)))
            .map(drop)
            .map_err(Error::write(&self.path))
    }

    /// Removes it.
    pub(crate) fn remove(self) -> Result<()> {
        fs::remove_file(&self.path).map_err(Error::write(&self.path))
    }

    /// Brings it to the disk.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(Error::write(&self.path))
    }
}
