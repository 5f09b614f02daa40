// SPDX-License-Identifier: GPL-2.0

//! Begin and end of a trace, from the headers of its packets.

use ctf::StreamReader;
use store::Trace;
use system::Result;

/// Begin and end of a trace, in nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub begin: i64,
    pub end: i64,
}

impl Extent {
    /// Returns the extent of a trace. In each file, the first damaged packet and all later packets do not
    /// count.
    pub fn of(trace: &Trace) -> Result<Self> {
        let (mut begin, mut end) = (u64::MAX, 0);
        let until = trace.end()?;
        for path in &trace.streams {
            let mut reader = StreamReader::open(path, &trace.metadata)?;
            while let Ok(Some(packet)) = reader.next_packet() {
                begin = begin.min(packet.at.header.timestamp_begin);
                end = end.max(packet.at.header.timestamp_end);
            }
        }
        let end = end.min(until);
        let clock = &trace.metadata.clock;
        let ns = |ticks| i64::try_from(clock.since_epoch(ticks)).unwrap_or(i64::MAX);
        Ok(Self {
            begin: ns(begin.min(end)),
            end: ns(end),
        })
    }

    /// Returns the length in nanoseconds.
    pub fn length(self) -> u64 {
        self.end.abs_diff(self.begin)
    }
}
