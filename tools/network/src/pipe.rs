// SPDX-License-Identifier: GPL-2.0

//! A packet that can be sent several times: its pages in a pipe.
//!
//! The pages are the kernel's own, not copies. The kernel does not write them until the packet is returned. For
//! each sending, tee(2) puts the same pages into another pipe, and splice(2) moves them into the socket.

use consumer::Stream;
use rustix::pipe::{
    fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice, tee, PipeFlags, SpliceFlags,
};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A pipe.
#[derive(Debug)]
pub struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    capacity: usize,
    held: usize,
}

impl Pipe {
    /// Creates an empty pipe.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self {
            capacity: fcntl_getpipe_size(&writer)?,
            reader,
            writer,
            held: 0,
        })
    }

    /// Number of bytes in the pipe.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Moves the packet that `stream` holds, of `size` bytes, into the pipe. After an error the pipe is empty.
    pub fn fill(&mut self, stream: &mut dyn Stream, size: usize) -> io::Result<()> {
        self.make_room(size)?;
        let filled = self.try_fill(stream, size);
        if filled.is_err() {
            *self = Self::new()?;
        }
        filled
    }

    fn try_fill(&mut self, stream: &mut dyn Stream, size: usize) -> io::Result<()> {
        while self.held < size {
            match stream.splice(self.writer.as_fd(), size - self.held)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                moved => self.held += moved,
            }
        }
        Ok(())
    }

    /// Copies the content of `other`, which keeps it. After an error the pipe is empty.
    pub fn copy_of(&mut self, other: &Self) -> io::Result<()> {
        if self.held > 0 {
            *self = Self::new()?;
        }
        self.make_room(other.held)?;
        let copied = rustix::io::retry_on_intr(|| {
            tee(
                &other.reader,
                &self.writer,
                other.held,
                SpliceFlags::NONBLOCK,
            )
        })?;
        if copied < other.held {
            *self = Self::new()?;
            return Err(io::Error::other("a pipe has no room for a packet"));
        }
        self.held = copied;
        Ok(())
    }

    /// Passes the pipe's content to `empty`, which takes all of it or fails. Afterwards the pipe is empty.
    pub fn give<T>(
        &mut self,
        empty: impl FnOnce(BorrowedFd<'_>, usize) -> io::Result<T>,
    ) -> io::Result<T> {
        let given = empty(self.reader.as_fd(), self.held);
        match &given {
            Ok(_) => self.held = 0,
            Err(_) => *self = Self::new()?,
        }
        given
    }

    /// Drops the pipe's content into `null`, which is /dev/null.
    pub fn clear(&mut self, null: &File) -> io::Result<()> {
        self.give(|reader, mut left| {
            while left > 0 {
                match splice(reader, None, null, None, left, SpliceFlags::MOVE)? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    gone => left -= gone,
                }
            }
            Ok(())
        })
    }

    /// Makes room for `size` bytes.
    fn make_room(&mut self, size: usize) -> io::Result<()> {
        if size <= self.capacity {
            return Ok(());
        }
        let made = fcntl_setpipe_size(&self.writer, size).map_err(|cause| {
            let what = format!(
                "no pipe of {size} bytes, the size of a packet: raise \
                 /proc/sys/fs/pipe-max-size, or take smaller sub-buffers: {cause}"
            );
            io::Error::new(io::Error::from(cause).kind(), what)
        })?;
        self.capacity = made;
        Ok(())
    }
}
