// SPDX-License-Identifier: GPL-2.0

//! A stream's file on disk, while it is being written.

use crate::ctf::PacketHeaders;
use crate::error::{Error, Result};
use crate::output::OutputOptions;
use crate::regular_file;
use crate::uuid::Uuid;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

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
    pub fn remove(self) -> Result<()> {
        fs::remove_file(&self.path).map_err(Error::write(&self.path))
    }

    /// Brings it to the disk.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(Error::write(&self.path))
    }
}
