// SPDX-License-Identifier: GPL-2.0

//! Place and time of each packet of a trace. With these, a part of the trace can be read without the packets
//! before it.

use ctf::{name_of, Feed, StreamName, StreamReader, METADATA};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use store::Trace;
use system::{regular_file, Error, Result};

/// Bytes of a stream that are read before the range: they show the task that runs on the CPU.
const BEFORE: u64 = 1 << 17;

/// Upper bound of the bytes that one range may need.
const MOST: u64 = 256 << 20;

/// The packets of a trace.
#[derive(Debug)]
pub struct Packets {
    streams: Vec<Stream>,
    /// The text of the trace's description.
    description: String,
}

#[derive(Debug)]
struct Stream {
    name: StreamName,
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
        for (number, files) in trace.streams_by_name().enumerate() {
            let (mut packets, mut last) = (Vec::new(), None);
            for path in files {
                let mut reader = StreamReader::open(path, &trace.metadata)?.after(last);
                loop {
                    match reader.next_packet() {
                        Ok(Some(packet)) => packets.push(Packet {
                            file,
                            offset: packet.at.offset,
                            bytes: packet.at.content(),
                            begin: packet.at.header.timestamp_begin,
                            end: packet.at.header.timestamp_end,
                        }),
                        Ok(None) => break,
                        Err(error) => drop(reader.damage(error)?),
                    }
                }
                last = reader.last();
                file += 1;
            }
            let other = || StreamName {
                channel: "stream".to_owned(),
                cpu: number as u32,
            };
            let name = files.first().and_then(|path| name_of(path));
            streams.push(Stream {
                name: name.unwrap_or_else(other),
                packets,
            });
        }
        let dir = trace.streams.last().and_then(|path| path.parent());
        let path = dir.unwrap_or(Path::new("")).join(METADATA);
        let text = regular_file::read(&path).map_err(Error::read(&path))?;
        Ok(Self {
            streams,
            description: String::from_utf8_lossy(&text).into_owned(),
        })
    }

    /// Returns the packets that overlap a range of clock ticks, with some before and after them. None if these
    /// packets have too many bytes.
    pub fn read(&self, trace: &Trace, from: u64, to: u64) -> Result<Option<Feed>> {
        let ranges: Vec<_> = self
            .streams
            .iter()
            .map(|stream| stream.range(from, to))
            .collect();
        let bytes = ranges.iter().flat_map(|packets| packets.iter());
        if bytes.map(|packet| packet.bytes).sum::<u64>() > MOST {
            return Ok(None);
        }
        let mut feed = Feed::default();
        feed.describe(&self.description)?;
        for (stream, packets) in self.streams.iter().zip(ranges) {
            let number = feed.open(&stream.name);
            let mut open: Option<(u32, File)> = None;
            for packet in packets {
                let path = &trace.streams[packet.file as usize];
                let file = match &open {
                    Some((number, file)) if *number == packet.file => file,
                    _ => {
                        let file = regular_file::open(path).map_err(Error::read(path))?;
                        &open.insert((packet.file, file)).1
                    }
                };
                let mut bytes = vec![0; packet.bytes as usize];
                let read = file.read_exact_at(&mut bytes, packet.offset);
                read.map_err(Error::read(path))?;
                feed.push(number, bytes)?;
            }
        }
        Ok(Some(feed))
    }
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
