// SPDX-License-Identifier: GPL-2.0

//! The interface between the consumer and the kernel.

use ctf::StreamName;
use rtrace_abi::ioctl::Packet;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use system::Result;
use uuid::Uuid;

/// One CPU's stream. Its descriptor polls readable when a packet is ready, and hung up when the trace is over and
/// every packet was read.
pub trait Stream: AsFd {
    /// Takes the oldest finished packet.
    ///
    /// `EAGAIN`: no packet is ready. `ENODATA`: the trace is over and everything was read.
    fn get(&mut self) -> io::Result<Packet>;

    /// Moves at most `len` further bytes of the packet held into `pipe`; 0 at its end.
    fn splice(&mut self, pipe: BorrowedFd<'_>, len: usize) -> io::Result<usize>;

    /// Returns the held packet to the writer.
    fn put(&mut self) -> io::Result<()>;

    /// Closes the open packet, so that it can be taken.
    fn flush(&mut self) -> io::Result<()>;

    /// Reserves memory for [`take_all`](Self::take_all).
    ///
    /// `EOPNOTSUPP`: packets of this stream are not overwritten, or the stream cannot take all packets at once.
    fn prepare(&mut self) -> io::Result<()> {
        Err(Errno::OPNOTSUPP.into())
    }

    /// Closes the open packet and takes all packets at one moment. Returns their number: the next packets from
    /// [`get`](Self::get) are these.
    fn take_all(&mut self) -> io::Result<u64> {
        Err(Errno::OPNOTSUPP.into())
    }
}

/// A trace being recorded.
pub trait Source {
    /// Its streams.
    type Stream: Stream;

    /// The streams that exist, or may exist later.
    fn streams(&self) -> Result<Vec<StreamName>>;

    /// Opens a stream. [`None`]: the trace does not have it, or not yet.
    fn open(&self, stream: &StreamName) -> Result<Option<Self::Stream>>;

    /// UUID of the trace.
    fn uuid(&self) -> Uuid;

    /// The description, if it has changed since the last call. The first call returns it.
    fn metadata(&mut self) -> Result<Option<String>>;

    /// The text of the kernel's counters of this trace; empty if they are gone.
    fn counters(&self) -> Result<String>;

    /// The number of each stream's next packet, all at about the same moment. A stream is missing if no writer uses it
    /// any more.
    fn next_packets(&self) -> Result<BTreeMap<StreamName, u64>>;

    /// The number of sub-buffers in a stream's buffer. It bounds the result of one flush.
    fn subbuf_count(&self, stream: &StreamName) -> u64;
}
