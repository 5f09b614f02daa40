// SPDX-License-Identifier: GPL-2.0

//! Place and time of each packet of a trace. With these, a part of the trace can be read without the packets
//! before it.

use ctf::{Merge, StreamReader};
use std::ops::Range;
use std::path::PathBuf;
use store::Trace;
use system::Result;

/// Bytes of a stream that are read before the range: they show the task that runs on the CPU.
const BEFORE: u64 = 1 << 17;

/// Upper bound of the bytes that one range may need.
const MOST: u64 = 256 << 20;

/// The packets of a trace.
#[derive(Debug)]
pub struct Packets {
    streams: Vec<Stream>,
    /// The latest end of packets.
    until: u64,
}

#[derive(Debug)]
struct Stream {
    packets: Vec<Packet>,
}

/// A packet, its times in clock ticks.
#[derive(Clone, Copy, Debug)]
struct Packet {
    /// Place of the file among the files of the trace.
    file: u32,
    offset: u64,
    bytes: u64,
    begin: u64,
    end: u64,
}

impl Packets {
    /// Reads the headers of all packets. Damaged packets are left out.
    pub fn of(trace: &Trace) -> Result<Self> {
        let (mut streams, mut file) = (Vec::new(), 0);
        let until = trace.end()?;
        for files in trace.streams_by_name() {
            let (mut packets, mut last) = (Vec::new(), None);
            for path in files {
                let mut reader = StreamReader::open(path, &trace.metadata)?.after(last);
                loop {
                    match reader.next_packet() {
                        Ok(Some(packet)) => packets.push(Packet {
                            file,
                            offset: packet.at.offset,
                            bytes: packet.at.size(),
                            begin: packet.at.header.timestamp_begin,
                            end: packet.at.header.timestamp_end.min(until),
                        }),
                        Ok(None) => break,
                        Err(error) => drop(reader.damage(error)?),
                    }
                }
                last = reader.last();
                file += 1;
            }
            streams.push(Stream { packets });
        }
        Ok(Self { streams, until })
    }

    /// Returns the items of the packets that overlap a range of clock ticks, with some before and after them, and the
    /// end of the last of these packets. None if they have too many bytes.
    pub fn read(&self, trace: &Trace, from: u64, to: u64) -> Result<Option<(Merge, u64)>> {
        let ranges = self.streams.iter().map(|stream| stream.range(from, to));
        let packets = || ranges.clone().flatten();
        if packets().map(|packet| packet.bytes).sum::<u64>() > MOST {
            return Ok(None);
        }
        let end = packets().map(|packet| packet.end).max();
        let parts = ranges.clone().map(|packets| parts(trace, packets));
        let merge = Merge::of_ranges(&trace.metadata, parts)?.until(self.until);
        Ok(Some((merge, end.unwrap_or(0))))
    }
}

/// The bytes of consecutive packets, with damaged bytes between them, by file.
fn parts(trace: &Trace, packets: &[Packet]) -> Vec<(PathBuf, Range<u64>)> {
    let files = packets.chunk_by(|a, b| a.file == b.file);
    let parts = files.filter_map(|packets| {
        let (first, last) = (packets.first()?, packets.last()?);
        let path = trace.streams.get(first.file as usize)?;
        Some((path.clone(), first.offset..last.offset + last.bytes))
    });
    parts.collect()
}

impl Stream {
    fn range(&self, from: u64, to: u64) -> &[Packet] {
        let packets = &self.packets;
        let mut first = packets.partition_point(|packet| packet.end < from);
        let mut before = 0;
        while first > 0 && before < BEFORE {
            first -= 1;
            before += packets[first].bytes;
        }
        // One further packet ends the open slices.
        let end = packets.partition_point(|packet| packet.begin <= to) + 1;
        &packets[first..end.min(packets.len()).max(first)]
    }
}
