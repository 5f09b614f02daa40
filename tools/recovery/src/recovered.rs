// SPDX-License-Identifier: GPL-2.0

//! Makes a trace on disk of the buffers that a kernel left in its memory.

use crate::region::Region;
use crate::remains::BufferPackets;
use ctf::{encode, StreamName, METADATA};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use store::{Claim, Folder, Output};
use system::access::Access;
use system::{Error, Result};

/// The number of written packets, and the parts that are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Packets.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Committed records that are not in the trace, because an uncommitted record lies among them.
    pub torn: u64,
    /// The parts that could not be read, and their places.
    pub damaged: Vec<String>,
}

/// A trace that is being written.
#[derive(Debug)]
pub struct Writer {
    _claim: Claim,
    folder: Folder,
    access: Access,
    written: Recovered,
}

impl Writer {
    /// Begins a trace in `dir`, a new or empty directory.
    pub fn begin(dir: &Path, access: Access) -> Result<Self> {
        if Output::held(dir)?.is_some() {
            return Err(Error::OutputTaken {
                path: dir.to_owned(),
                reason: "holds a trace: choose a new directory".to_owned(),
            });
        }
        let claim = Claim::take(dir, access)?;
        Ok(Self {
            _claim: claim,
            folder: Folder::open(dir, access)?,
            access,
            written: Recovered::default(),
        })
    }

    /// Notes a part that could not be read.
    pub fn damaged(&mut self, what: String) {
        self.written.damaged.push(what);
    }

    /// Writes a stream, and syncs it to the disk.
    pub fn stream(&mut self, name: &StreamName, stream: &BufferPackets<'_>) -> Result<()> {
        let written = &mut self.written;
        written.torn = written.torn.saturating_add(stream.torn);
        let damaged = stream.damaged.iter();
        written
            .damaged
            .extend(damaged.map(|what| format!("{name}: {what}")));
        let name = name.to_string();
        let path = self.folder.path().join(&name);
        let file = self.folder.create(&name, self.access)?;
        let mut out = BufWriter::new(file);
        for packet in &stream.packets {
            let header = encode(&packet.header);
            let (size, content) = (
                packet.header.packet_size / 8,
                packet.header.content_size / 8,
            );
            let padding = size.saturating_sub(content);
            out.write_all(&header)
                .and_then(|()| out.write_all(packet.events))
                .and_then(|()| io::copy(&mut io::Read::take(io::repeat(0), padding), &mut out))
                .map_err(Error::write(&path))?;
            written.packets += 1;
            written.bytes += size;
        }
        let synced = out.into_inner().map_err(io::IntoInnerError::into_error);
        synced
            .and_then(|file: File| file.sync_all())
            .map_err(Error::write(&path))
    }

    /// Writes the metadata. This comes last: a directory with metadata is a trace.
    pub fn end(self, metadata: &str) -> Result<Recovered> {
        let text = metadata.as_bytes();
        self.folder
            .replace(METADATA, self.access, |out| out.write_all(text))
            .map_err(Error::write(&self.folder.path().join(METADATA)))?;
        Ok(self.written)
    }
}

/// Writes the trace of a region to `dir`, a new or empty directory, and syncs it to the disk.
pub fn write(region: &Region<'_>, dir: &Path, access: Access) -> Result<Recovered> {
    let channel = region.channel()?.to_owned();
    let mut writer = Writer::begin(dir, access)?;
    for (cpu, stream) in region.streams() {
        let name = StreamName {
            channel: channel.clone(),
            cpu,
        };
        writer.stream(&name, &stream)?;
    }
    writer.end(region.metadata())
}
