// SPDX-License-Identifier: GPL-2.0

//! One packet's way: splice from the stream into a pipe, splice from the pipe into a file.
//! No byte passes through this process's memory.

use crate::source::Stream;
use rustix::pipe::{fcntl_setpipe_size, pipe_with, splice, PipeFlags, SpliceFlags};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Which side of a transfer failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The stream.
    Stream(io::Error),
    /// The output file.
    Output(io::Error),
}

/// A pipe, empty between packets.
#[derive(Debug)]
pub(crate) struct Transfer {
    reader: OwnedFd,
    writer: OwnedFd,
    capacity: usize,
}

impl Transfer {
    pub(crate) fn new() -> io::Result<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self {
            reader,
            writer,
            capacity: 64 << 10,
        })
    }

    /// Moves the whole packet held, `size` bytes, to the file's current position.
    ///
    /// After a failure the pipe is a new one, so that no byte of this packet is left in it;
    /// the file may have got a part of the packet.
    pub(crate) fn packet(
        &mut self,
        stream: &mut dyn Stream,
        size: u64,
        file: &File,
    ) -> Result<(), Failure> {
        let moved = self.try_packet(stream, size, file);
        if moved.is_err() {
            *self = Self::new().map_err(Failure::Stream)?;
        }
        moved
    }

    fn try_packet(
        &mut self,
        stream: &mut dyn Stream,
        size: u64,
        file: &File,
    ) -> Result<(), Failure> {
        self.enlarge(size);
        let mut left = size;
        while left > 0 {
            let wanted = left.min(self.capacity as u64) as usize;
            let taken = stream
                .splice(self.writer.as_fd(), wanted)
                .map_err(Failure::Stream)?;
            if taken == 0 {
                return Err(Failure::Stream(io::ErrorKind::UnexpectedEof.into()));
            }
            self.empty_into(file, taken).map_err(Failure::Output)?;
            left = left.saturating_sub(taken as u64);
        }
        Ok(())
    }

    fn empty_into(&self, file: &File, mut left: usize) -> io::Result<()> {
        while left > 0 {
            let written = rustix::io::retry_on_intr(|| {
                splice(&self.reader, None, file, None, left, SpliceFlags::MOVE)
            })?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            left -= written;
        }
        Ok(())
    }

    /// Makes room for a whole packet where the system lets us; else it goes in parts.
    fn enlarge(&mut self, size: u64) {
        let wanted = usize::try_from(size).unwrap_or(usize::MAX).min(1 << 30);
        if wanted > self.capacity {
            if let Ok(capacity) = fcntl_setpipe_size(&self.writer, wanted) {
                self.capacity = capacity;
            } else if let Ok(capacity) = fcntl_setpipe_size(&self.writer, 1 << 20) {
                self.capacity = capacity.max(self.capacity);
            }
        }
    }
}
