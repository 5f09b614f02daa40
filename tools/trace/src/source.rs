// SPDX-License-Identifier: GPL-2.0

//! Where packets come from: the seam between the consumer and the kernel.

use crate::error::Result;
use crate::uuid::Uuid;
use rtrace_abi::ioctl::Packet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// One CPU's stream. Its descriptor polls readable when a packet is ready, and hung up when
/// the trace is over and every packet was read.
pub trait Stream: AsFd {
    /// Takes the oldest finished packet.
    ///
    /// `EAGAIN`: none at the moment. `ENODATA`: the trace is over and everything was read.
    fn get(&mut self) -> io::Result<Packet>;

    /// Moves at most `len` further bytes of the packet held into `pipe`; 0 at its end.
    fn splice(&mut self, pipe: BorrowedFd<'_>, len: usize) -> io::Result<usize>;

    /// Gives the packet held back to the writer.
    fn put(&mut self) -> io::Result<()>;

    /// Closes the packet being written, so that it can be taken.
    fn flush(&mut self) -> io::Result<()>;
}

/// A trace being recorded.
pub trait Source {
    /// Its streams.
    type Stream: Stream;

    /// The CPUs that have a stream, or may have one later.
    fn cpus(&self) -> Result<Vec<u32>>;

    /// Opens a CPU's stream; none if the CPU has none in this trace, or none yet.
    fn open(&self, cpu: u32) -> Result<Option<Self::Stream>>;

    /// Identifies the trace.
    fn uuid(&self) -> Uuid;

    /// The description, when it has changed since the last call; the first call gives it.
    fn metadata(&mut self) -> Result<Option<String>>;

    /// Sub-buffers in a stream's buffer: bounds what one flush can make ready.
    fn subbuf_count(&self) -> u64;
}
