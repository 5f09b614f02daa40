// SPDX-License-Identifier: GPL-2.0

//! Where packets go: the seam between the consumer and what it writes.

use crate::source::Stream;
use crate::state::State;
use ctf::StreamName;
use rtrace_abi::ioctl::Packet;
use std::fmt::Debug;
use std::os::fd::BorrowedFd;
use std::time::Instant;
use system::Result;

/// Takes the packets of one trace.
pub trait Sink: Debug + Send {
    /// Whether it held a part of the trace before.
    fn resumed(&self) -> bool;

    /// Takes the description, whole or not at all. It covers all packets up to the next call.
    fn describe(&mut self, metadata: &str) -> Result<()>;

    /// Gets ready for the packets of a stream; the number by which it is called from now on.
    fn open(&mut self, stream: &StreamName) -> Result<usize>;

    /// The number of the last packet of a stream that it has: all of it, where an end of this program
    /// does not take it away.
    fn last(&self, stream: usize) -> Option<u64>;

    /// Whether it has a packet, which may then be given back.
    fn has(&self, stream: usize, sequence: u64) -> bool {
        self.last(stream).is_some_and(|last| sequence <= last)
    }

    /// Takes all of the packet that `from` holds, whose number is `stream`. After an error it has
    /// nothing of it. Without one it has it, or it is on its way and [`last`](Self::last) will say when it
    /// has it; until then it gets no other one of the stream.
    fn packet(&mut self, stream: usize, packet: &Packet, from: &mut dyn Stream) -> Result<()>;

    /// What messages call a stream.
    fn name(&self, stream: usize) -> String;

    /// Becomes readable when there is something to [`attend`](Self::attend) to; none for a sink that has a
    /// packet as soon as it has taken it.
    fn news(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Attends to what came; it may have more packets then.
    fn attend(&mut self) -> Result<()> {
        Ok(())
    }

    /// Whether it shall [`turn`](Self::turn) before it gets a packet of so many bytes.
    fn is_full(&self, _bytes: u64) -> bool {
        false
    }

    /// When it shall get what the buffers hold and then [`turn`](Self::turn), if it shall.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// What comes goes elsewhere. `stats` reads the text of the kernel's counters (empty if they are
    /// gone).
    fn turn(&mut self, _stats: &dyn Fn() -> Result<String>) -> Result<()> {
        Ok(())
    }

    /// Makes durable what it has.
    fn sync(&mut self) -> Result<()>;

    /// No packet comes any more. Notes why, how many events the kernel recorded that it will never
    /// have, and the text of the kernel's counters (empty if they are gone).
    fn end(self: Box<Self>, state: State, unwritten: u64, stats: &str) -> Result<()>;

    /// Removes what it has made, for a trace that nobody wants. It must not have held anything
    /// before.
    fn discard(self: Box<Self>) -> Result<()>;
}
