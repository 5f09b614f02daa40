// SPDX-License-Identifier: GPL-2.0

//! A channel with one buffer, of the CPU to which the writer is pinned, and an event in the channel.

use crate::platform::{Polling, Process};
use anyhow::{anyhow, Context, Result};
use core::mem::offset_of;
use rtrace_abi::header::Layout;
use rtrace_abi::packet::PacketHeader;
use rtrace_record::buffer::{self, Shape};
use rtrace_record::clock::TraceClock;
use rtrace_record::gate;
use rtrace_record::header::RecordLabel;
use rtrace_record::packet::Identity;
use rtrace_ring::consume::Reader;
use rtrace_ring::lost::Lost;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

/// The buffer.
pub(crate) type Buffer = buffer::Buffer<Process>;
type Gates = gate::Gates<Process, Buffer>;
type Ways = gate::Ways<Process, Buffer>;
/// A writer on the CPU whose buffer accepts a record.
pub(crate) type Entry<'a> = buffer::Entry<'a, Process>;
/// A writer on the CPU whose buffer may accept a record.
pub(crate) type Stopped<'a> = buffer::Stopped<'a, Process>;

/// One buffer that records.
pub(crate) struct Channel {
    gates: Gates,
    buffer: Arc<Buffer>,
    reader: Mutex<Reader>,
}

impl Channel {
    /// Creates the channel.
    pub(crate) fn new(shape: Shape, clock: TraceClock<Process>) -> Result<Self> {
        let identity = Identity {
            cpu: 0,
            uuid: [0; 16],
            stream_id: 0,
        };
        let buffer = Buffer::new(shape, identity, clock, Process::new()?, Polling)
            .map_err(|why| anyhow!("no buffer: {why:?}"))?;
        let buffer = Arc::new(buffer);
        let gates = Gates::new().context("no gates")?;
        gates.cell(0).context("no CPU 0")?.set(buffer.clone());
        gates.open(0);
        let reader = Mutex::new(buffer.ring().reader());
        Ok(Self {
            gates,
            buffer,
            reader,
        })
    }

    /// Moves the oldest packet out: get, copy, put. Returns the number of its records; [`None`] if there is no
    /// packet.
    pub(crate) fn drain(&self, out: &mut Output) -> Result<Option<u64>> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(packet) = self.buffer.ring().get(&mut reader) else {
            return Ok(None);
        };
        let memory = self.buffer.packet(&reader, &packet);
        let memory = memory.context("no memory")?;
        let bytes = memory.word(offset_of!(PacketHeader, packet_size)) / 8;
        out.write(memory.bytes(0, bytes as usize))?;
        self.buffer.ring().put(&mut reader);
        Ok(Some(packet.records))
    }

    /// Number of records that are or were in the buffer.
    pub(crate) fn recorded(&self) -> u64 {
        self.buffer.ring().recorded()
    }

    /// Number of records that were refused because the buffer was full.
    pub(crate) fn full(&self) -> u64 {
        self.buffer.ring().lost().get(Lost::Full)
    }

    /// Number of records that were refused for any reason.
    pub(crate) fn discarded(&self) -> u64 {
        self.buffer.ring().lost().discarded()
    }
}

/// Output of a reader: a file that is overwritten again and again.
#[derive(Debug)]
pub(crate) struct Output {
    file: File,
    size: u64,
    at: u64,
}

impl Output {
    /// Writes into `file`, which grows to `size` bytes.
    pub(crate) fn new(file: File, size: u64) -> Self {
        Self { file, size, at: 0 }
    }

    /// Writes the bytes; this is the only copy.
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.at + bytes.len() as u64 > self.size {
            self.at = 0;
        }
        self.file.write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}

/// An event that is recorded; the counterpart of the module's rust/probe/mod.rs.
pub(crate) struct Probe {
    gates: Ways,
    pub(crate) label: RecordLabel,
}

impl Probe {
    /// The event with this number, in a channel with compact headers.
    pub(crate) fn new(channel: &Channel, number: u32) -> Self {
        Self {
            gates: channel.gates.ways().clone(),
            label: RecordLabel::in_layout(number, Layout::Compact),
        }
    }

    /// Enters this CPU's buffer.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<Entry<'_>, Stopped<'_>> {
        self.gates.enter()
    }

    /// Decides on a writer that was stopped on its way to the buffer, with a record of at least `least` bytes.
    #[inline(always)]
    pub(crate) fn admit<'a>(&self, stopped: Stopped<'a>, least: u64) -> Option<Entry<'a>> {
        // The gate is never closed.
        let entered = stopped.pass().ok()?;
        Buffer::admit(entered, least)
    }
}
