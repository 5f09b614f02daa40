// SPDX-License-Identifier: GPL-2.0

//! A stream's file on disk, while it is being written.

use crate::ctf::{PacketAt, PacketHeaders};
use crate::error::{Error, Result};
use crate::output::OutputOptions;
use crate::regular_file;
use crate::uuid::Uuid;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The number of the last whole packet of the trace `uuid` in the file `path`; none if it has none, or
/// is not there.
pub fn last_packet(path: &Path, uuid: Uuid) -> Result<Option<u64>> {
    let file = match regular_file::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(Error::read(path))?,
    };
    let last = last_whole(path, &file, uuid)?;
    Ok(last.map(|packet| packet.header.packet_seq_num))
}

fn last_whole(path: &Path, file: &File, uuid: Uuid) -> Result<Option<PacketAt>> {
    let mut packets = PacketHeaders::new(path, file, Some(uuid))?;
    let mut last = None;
    while let Some(packet) = packets.next_whole()? {
        last = Some(packet);
    }
    Ok(last)
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
    /// Opens it, or makes it, at the end of its last whole packet. Every packet in it must be one of
    /// the trace `uuid`.
    pub fn open(path: PathBuf, uuid: Uuid, options: OutputOptions) -> Result<Self> {
        let file = regular_file::open_or_create(&path).map_err(Error::write(&path))?;
        options
            .access
            .set_file(&file)
            .map_err(Error::write(&path))?;
        let last = last_whole(&path, &file, uuid)?;
        // Headers are no whole pages: they were read before.
        options.writing.set(&file).map_err(Error::write(&path))?;
        let mut stream = Self {
            path,
            file,
            end: last.map_or(0, |packet| packet.end()),
            last: last.map(|packet| packet.header.packet_seq_num),
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

    /// Bytes of its whole packets.
    pub fn bytes(&self) -> u64 {
        self.end
    }

    /// The number of its last whole packet.
    pub fn last(&self) -> Option<u64> {
        self.last
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
    pub fn remove(self) -> Result<()> {
        fs::remove_file(&self.path).map_err(Error::write(&self.path))
    }

    /// Brings it to the disk.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(Error::write(&self.path))
    }
}
