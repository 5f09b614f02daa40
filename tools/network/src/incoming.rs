// SPDX-License-Identifier: GPL-2.0

//! A packet that comes in, as a stream from which a sink takes it.

use crate::wire::Wire;
use consumer::Stream;
use rtrace_abi::ioctl::Packet;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

/// The one packet that this connection brings next.
#[derive(Debug)]
pub struct Incoming<'a> {
    wire: &'a mut Wire,
    /// What of its header, which was read, has not been moved on.
    head: &'a [u8],
    /// Bytes that have not been moved on, with those of the header.
    left: usize,
}

impl<'a> Incoming<'a> {
    /// A packet of `size` bytes that begins with `head`, which was read already.
    pub fn new(wire: &'a mut Wire, head: &'a [u8], size: usize) -> Self {
        Self {
            wire,
            head,
            left: size,
        }
    }

    /// Reads what is left of it, for nobody.
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
