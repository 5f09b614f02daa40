// SPDX-License-Identifier: GPL-2.0

//! Where packets come from: the seam between the consumer and the kernel.

use crate::error::Result;
use crate::uuid::Uuid;
use rtrace_abi::ioctl::Packet;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::str::FromStr;

/// What a stream of an AUX area has in front of its channel's name. So its file is hidden: readers of
/// CTF take all others for streams of events.
const AUX: &str = ".aux_";

/// Which stream of a trace: that of a channel on a CPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamName {
    /// The channel's name, behind `.aux_` if it is the stream of its AUX area.
    pub channel: String,
    /// The CPU.
    pub cpu: u32,
}

impl StreamName {
    /// That of the channel's AUX area.
    pub fn of_area(channel: &str, cpu: u32) -> Self {
        Self {
            channel: format!("{AUX}{channel}"),
            cpu,
        }
    }

    /// The channel whose AUX area it is of, if it is of one.
    pub fn area(&self) -> Option<&str> {
        self.channel.strip_prefix(AUX)
    }
}

/// As the stream's file in a trace is called.
impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_cpu{}", self.channel, self.cpu)
    }
}

impl FromStr for StreamName {
    type Err = ();

    fn from_str(name: &str) -> std::result::Result<Self, ()> {
        let (channel, cpu) = name.rsplit_once("_cpu").ok_or(())?;
        Ok(Self {
            channel: channel.to_owned(),
            cpu: cpu.parse().map_err(drop)?,
        })
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_called_as_their_files() {
        for (file, channel, cpu) in [
            ("channel0_cpu0", "channel0", 0),
            ("a_cpu1_cpu17", "a_cpu1", 17),
            (".aux_channel0_cpu2", ".aux_channel0", 2),
        ] {
            let name: StreamName = file.parse().unwrap();
            assert_eq!((name.channel.as_str(), name.cpu), (channel, cpu));
            assert_eq!(name.to_string(), file);
        }
        let area = StreamName::of_area("channel0", 2);
        assert_eq!(area.to_string(), ".aux_channel0_cpu2");
        assert_eq!(area.area(), Some("channel0"));
        assert_eq!("channel0_cpu2".parse::<StreamName>().unwrap().area(), None);
        for other in ["", "metadata", "channel0_cpu", "channel0_cpux", "cpu0"] {
            assert!(other.parse::<StreamName>().is_err(), "{other}");
        }
    }
}
