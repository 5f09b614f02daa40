// SPDX-License-Identifier: GPL-2.0

//! The path of one packet: splice from the stream into a pipe, splice from the pipe into a file. No byte passes
//! through this process's memory, unless the caller asks for the bytes.

use crate::source::Stream;
use rustix::pipe::{
    fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice, PipeFlags, SpliceFlags,
};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// The side of a transfer that failed.
#[derive(Debug)]
pub enum Failure {
    /// The stream.
    Stream(io::Error),
    /// The output file.
    Output(io::Error),
}

/// A pipe, empty between packets.
#[derive(Debug)]
pub struct Transfer {
    reader: OwnedFd,
    writer: OwnedFd,
    capacity: usize,
}

impl Transfer {
    /// Makes the pipe.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        Self::of(reader, writer)
    }

    /// Uses this empty pipe. Users other than root with many pipes get small ones.
    fn of(reader: OwnedFd, writer: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            capacity: fcntl_getpipe_size(&writer)?,
            reader,
            writer,
        })
    }

    /// Moves the whole held packet, `size` bytes, to the file's current position.
    ///
    /// After a failure the pipe is replaced, so that no byte of this packet is left in it. The file may have a part
    /// of the packet.
    pub fn packet(
        &mut self,
        stream: &mut dyn Stream,
        size: u64,
        file: &File,
    ) -> Result<(), Failure> {
        self.move_packet(stream, size, |pipe, length| splice_into(file, pipe, length))
    }

    /// Reads the whole held packet, `size` bytes, into memory.
    pub fn read_packet(&mut self, stream: &mut dyn Stream, size: u64) -> Result<Vec<u8>, Failure> {
        let mut packet = Vec::new();
        self.move_packet(stream, size, |pipe, length| {
            let at = packet.len();
            packet.resize(at + length, 0);
            read_exactly(pipe, &mut packet[at..])
        })?;
        Ok(packet)
    }

    /// Moves the packet through the pipe: `empty` takes a number of bytes out of it.
    fn move_packet(
        &mut self,
        stream: &mut dyn Stream,
        size: u64,
        empty: impl FnMut(&OwnedFd, usize) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let moved = self.try_packet(stream, size, empty);
        if moved.is_err() {
            *self = Self::new().map_err(Failure::Stream)?;
        }
        moved
    }

    fn try_packet(
        &mut self,
        stream: &mut dyn Stream,
        size: u64,
        mut empty: impl FnMut(&OwnedFd, usize) -> io::Result<()>,
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
            empty(&self.reader, taken).map_err(Failure::Output)?;
            left = left.saturating_sub(taken as u64);
        }
        Ok(())
    }

    /// Makes room for a whole packet, if the system allows it. Otherwise the packet moves in parts.
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

fn splice_into(file: &File, pipe: &OwnedFd, mut left: usize) -> io::Result<()> {
    while left > 0 {
        let written =
            rustix::io::retry_on_intr(|| splice(pipe, None, file, None, left, SpliceFlags::MOVE))?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        left -= written;
    }
    Ok(())
}

fn read_exactly(pipe: &OwnedFd, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = rustix::io::retry_on_intr(|| rustix::io::read(pipe, &mut *bytes))?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[read..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtrace_abi::ioctl::Packet;
    use std::os::fd::BorrowedFd;

    /// Writes all bytes, or fails where that would block.
    struct Bytes(OwnedFd);

    impl AsFd for Bytes {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    impl Stream for Bytes {
        fn get(&mut self) -> io::Result<Packet> {
            unreachable!()
        }

        fn splice(&mut self, pipe: BorrowedFd<'_>, len: usize) -> io::Result<usize> {
            let written = rustix::io::write(pipe, &vec![7; len])?;
            assert_eq!(written, len, "more than the pipe has room for");
            Ok(written)
        }

        fn put(&mut self) -> io::Result<()> {
            unreachable!()
        }

        fn flush(&mut self) -> io::Result<()> {
            unreachable!()
        }
    }

    #[test]
    fn a_pipe_that_the_system_made_small() {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        fcntl_setpipe_size(&writer, 4096).unwrap();
        let mut transfer = Transfer::of(reader, writer).unwrap();
        let mut stream = Bytes(transfer.reader.try_clone().unwrap());
        let packet = transfer.read_packet(&mut stream, 20_000).unwrap();
        assert_eq!(packet, vec![7; 20_000]);
    }
}
