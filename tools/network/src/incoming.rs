// SPDX-License-Identifier: GPL-2.0

//! A packet that is being received, as a stream for a sink.

use crate::wire::Wire;
use consumer::Stream;
use rtrace_abi::ioctl::Packet;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

/// The next packet of a connection.
#[derive(Debug)]
pub struct Incoming<'a> {
    wire: &'a mut Wire,
    /// The part of the packet's header that was read and not moved on yet.
    head: &'a [u8],
    /// Number of bytes that were not moved on yet, including those of `head`.
    left: usize,
}

impl<'a> Incoming<'a> {
    /// A packet of `size` bytes. It begins with `head`, which was read already.
    pub fn new(wire: &'a mut Wire, head: &'a [u8], size: usize) -> Self {
        Self {
            wire,
            head,
            left: size,
        }
    }

    /// Reads the rest of the packet, and drops it.
    pub fn skip(&mut self) -> io::Result<()> {
        let left = (self.left - self.head.len()) as u64;
        let skipped = io::copy(&mut self.wire.take(left), &mut io::sink())?;
        if skipped < left {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

impl AsFd for Incoming<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}

impl Stream for Incoming<'_> {
    fn get(&mut self) -> io::Result<Packet> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn splice(&mut self, pipe: BorrowedFd<'_>, len: usize) -> io::Result<usize> {
        let most = len.min(self.left);
        let moved = if self.head.is_empty() {
            self.wire.receive_into(pipe, most)?
        } else {
            let head = &self.head[..self.head.len().min(most)];
            rustix::io::retry_on_intr(|| rustix::io::write(pipe, head))?
        };
        self.head = &self.head[moved.min(self.head.len())..];
        self.left -= moved;
        Ok(moved)
    }

    fn put(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
