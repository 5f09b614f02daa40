// SPDX-License-Identifier: GPL-2.0

//! Where packets come from: the seam between the consumer and the kernel.

use ctf::StreamName;
use rtrace_abi::ioctl::Packet;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use system::Result;
use uuid::Uuid;

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

    /// Has memory ready for [`take_all`](Self::take_all).
    ///
    /// `EOPNOTSUPP`: packets of this stream are not overwritten, or there is nothing to take at once.
    fn prepare(&mut self) -> io::Result<()> {
        Err(Errno::OPNOTSUPP.into())
    }

    /// Closes the packet being written and takes all packets at one moment: the next ones that
    /// [`get`](Self::get) gives, so many.
    fn take_all(&mut self) -> io::Result<u64> {
        Err(Errno::OPNOTSUPP.into())
    }
}

/// A trace being recorded.
pub trait Source {
    /// Its streams.
    type Stream: Stream;

    /// The streams that there are, or may be later.
    fn streams(&self) -> Result<Vec<StreamName>>;

    /// Opens a stream; none if the trace has no such one, or not yet.
    fn open(&self, stream: &StreamName) -> Result<Option<Self::Stream>>;

    /// Identifies the trace.
    fn uuid(&self) -> Uuid;

    /// The description, when it has changed since the last call; the first call gives it.
    fn metadata(&mut self) -> Result<Option<String>>;

    /// The text of the kernel's counters of this trace; empty if they are gone.
    fn counters(&self) -> Result<String>;

    /// For each stream the number that its next packet will have, all at about the same moment; none
    /// for those to which nothing is written any more.
    fn next_packets(&self) -> Result<BTreeMap<StreamName, u64>>;

    /// Sub-buffers in a stream's buffer: bounds what one flush can make ready.
    fn subbuf_count(&self, stream: &StreamName) -> u64;
}
