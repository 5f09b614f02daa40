// SPDX-License-Identifier: GPL-2.0

//! The interface between the consumer and its output.

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
    /// Returns whether the sink already had a part of the trace when it was made.
    fn resumed(&self) -> bool;

    /// Takes the description, completely or not at all. The description covers all packets up to the next call.
    fn describe(&mut self, metadata: &str) -> Result<()>;

    /// Prepares for the packets of a stream. Returns the number that identifies the stream from now on.
    fn open(&mut self, stream: &StreamName) -> Result<usize>;

    /// The number of the last packet of a stream that the sink has. The sink has a packet if all its bytes are where
    /// they outlive this program.
    fn last(&self, stream: usize) -> Option<u64>;

    /// Returns whether the sink has a packet. Then the packet may be returned to the kernel.
    fn has(&self, stream: usize, sequence: u64) -> bool {
        self.last(stream).is_some_and(|last| sequence <= last)
    }

    /// Takes the whole packet that `from` holds, for the stream `stream`. After an error the sink has no byte of the
    /// packet. After success the sink has the packet, or the packet is on its way: then [`last`](Self::last) shows its
    /// number when it has arrived. Until then the sink gets no other packet of the stream.
    fn packet(&mut self, stream: usize, packet: &Packet, from: &mut dyn Stream) -> Result<()>;

    /// The name of a stream in messages.
    fn name(&self, stream: usize) -> String;

    /// A descriptor that is readable when [`attend`](Self::attend) has work. [`None`]: the sink has each packet as
    /// soon as it has taken it.
    fn news(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Handles the news. Afterwards the sink may have more packets.
    fn attend(&mut self) -> Result<()> {
        Ok(())
    }

    /// Returns whether the caller must call [`turn`](Self::turn) before it passes a packet of this size.
    fn is_full(&self, _bytes: u64) -> bool {
        false
    }

    /// The time, if any, at which the caller must pass the contents of the buffers, then call [`turn`](Self::turn).
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Begins the next chunk, which gets all later packets. `stats` reads the text of the kernel's counters (empty
    /// if they are gone).
    fn turn(&mut self, _stats: &dyn Fn() -> Result<String>) -> Result<()> {
        Ok(())
    }

    /// Checks that the sink's packets are still where readers look for them: a user may remove a trace while it is
    /// written.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Returns whether the packets of a stream still exist.
    fn is_left(&self, _stream: usize) -> bool {
        true
    }

    /// Makes the sink's packets durable.
    fn sync(&mut self) -> Result<()>;

    /// Ends the output: no packet follows. Stores the reason, the number of events that the kernel recorded and that
    /// the sink will never have, and the text of the kernel's counters (empty if they are gone).
    fn end(self: Box<Self>, state: State, unwritten: u64, stats: &str) -> Result<()>;

    /// Removes all that the sink has made, for a discarded trace. Only for a sink that was not
    /// [resumed](Self::resumed).
    fn discard(self: Box<Self>) -> Result<()>;
}
