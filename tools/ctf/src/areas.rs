// SPDX-License-Identifier: GPL-2.0

//! The AUX areas of a trace: raw bytes, beside the streams of events. Events tell where in an area their bytes are.

use crate::damage::Damage;
use crate::header::{PacketAt, PacketHeaders};
use crate::stream_name::{name_of, StreamName};
use rtrace_abi::aux::AuxHeader;
use rtrace_abi::packet::PacketHeader;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use system::{regular_file, Error, Result};
use uuid::Uuid;

/// The length of the header of an area's packet after the common packet header.
const REST: usize = AuxHeader::SIZE - PacketHeader::SIZE;

/// The areas of a trace, by stream class (that of the area's channel) and CPU.
#[derive(Debug, Default)]
pub struct Areas {
    areas: BTreeMap<(u32, u32), Area>,
    /// Places of their files that cannot be read.
    pub damages: Vec<Damage>,
}

/// A CPU's bytes, as far as the trace has them.
#[derive(Debug, Default)]
pub struct Area {
    channel: String,
    files: Vec<(PathBuf, File)>,
    /// The parts, by their position in the stream.
    parts: BTreeMap<u64, Part>,
    lost: u64,
}

/// Consecutive bytes in a file.
#[derive(Clone, Copy, Debug)]
struct Part {
    file: usize,
    /// Their offset in the file.
    at: u64,
    bytes: u64,
}

impl Areas {
    /// Finds the areas of the trace `uuid` in `dirs`, beside its streams. Bytes that are no packet of the trace are
    /// damage.
    pub fn find(dirs: &[PathBuf], uuid: Uuid) -> Result<Self> {
        let mut areas = Self::default();
        for dir in dirs {
            for entry in fs::read_dir(dir).map_err(Error::read(dir))? {
                let path = entry.map_err(Error::read(dir))?.path();
                let name = name_of(&path);
                if let Some(channel) = name.as_ref().and_then(StreamName::area) {
                    areas.add(&path, channel, uuid)?;
                }
            }
        }
        Ok(areas)
    }

    fn add(&mut self, path: &Path, channel: &str, uuid: Uuid) -> Result<()> {
        let file = regular_file::open(path).map_err(Error::read(path))?;
        let mut headers = PacketHeaders::new(path, &file, Some(uuid))?;
        let (mut key, mut parts, mut lost) = (None, Vec::new(), 0);
        loop {
            let packet = match headers.next_whole() {
                Ok(Some(packet)) => packet,
                Ok(None) => break,
                Err(Error::Corrupt { offset, what, .. }) => {
                    let next = headers.find(offset + 1, headers.length());
                    let next = next.map_or(headers.length(), |next| next.offset);
                    headers.seek(next);
                    self.damage(path, offset, next - offset, what);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let mut rest = [0; REST];
            headers.read_exact_at(&mut rest, packet.offset + PacketHeader::SIZE as u64)?;
            let header = AuxHeader::from_bytes(packet.header, &rest);
            let Some((at, bytes)) = place(&header, &packet) else {
                let what = format!(
                    "{} bytes at {} in a packet of {}",
                    header.bytes,
                    header.offset,
                    packet.content()
                );
                self.damage(path, packet.offset, packet.size(), what);
                continue;
            };
            key.get_or_insert((header.packet.stream_id, header.packet.cpu_id));
            lost = header.packet.events_discarded;
            parts.push((header.position, at, bytes));
        }
        if let Some(key) = key {
            let area = self.areas.entry(key).or_default();
            channel.clone_into(&mut area.channel);
            let number = area.files.len();
            area.files.push((path.to_owned(), file));
            area.lost = area.lost.max(lost);
            for (position, at, bytes) in parts.into_iter().filter(|(_, _, bytes)| *bytes > 0) {
                let part = Part {
                    file: number,
                    at,
                    bytes,
                };
                area.parts.insert(position, part);
            }
        }
        Ok(())
    }

    /// The area of a CPU in the channel of a stream class, if it exists.
    pub fn of(&self, stream_id: u32, cpu: u32) -> Option<&Area> {
        self.areas.get(&(stream_id, cpu))
    }

    fn damage(&mut self, path: &Path, offset: u64, bytes: u64, what: String) {
        self.damages.push(Damage {
            path: path.to_owned(),
            offset,
            bytes,
            what,
        });
    }
}

/// The offset in the file of a packet's own bytes, and their number. [`None`]: they are not in the file.
fn place(header: &AuxHeader, packet: &PacketAt) -> Option<(u64, u64)> {
    let end = match header.bytes {
        // The packet only reports losses.
        0 => AuxHeader::SIZE as u64,
        bytes => header.offset.checked_add(bytes)?,
    };
    header.position.checked_add(header.bytes)?;
    let is_in = AuxHeader::SIZE as u64 <= packet.content() && end <= packet.content();
    is_in.then_some((packet.offset.checked_add(header.offset)?, header.bytes))
}

impl Area {
    /// The name of its channel.
    pub fn channel(&self) -> &str {
        &self.channel
    }

    /// The number of bytes that found no room in the whole trace, as far as the stream tells.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The present bytes among the `size` bytes from `position` on: for each part its file, its offset there, and its
    /// length. Bytes that are present twice (a reader died in overwrite mode) appear once.
    fn parts(&self, position: u64, size: u64) -> impl Iterator<Item = (usize, u64, u64)> + '_ {
        let end = position.saturating_add(size);
        let first = self.parts.range(..=position).next_back();
        let first = first.map_or(position, |(begin, _)| *begin);
        let mut done = position;
        self.parts
            .range(first..end)
            .filter_map(move |(begin, part)| {
                let from = done.max(*begin);
                let to = end.min(begin + part.bytes);
                if from >= to {
                    return None;
                }
                done = to;
                Some((part.file, part.at + (from - begin), to - from))
            })
    }

    /// The number of present bytes among the `size` bytes from `position` on.
    pub fn has(&self, position: u64, size: u64) -> u64 {
        self.parts(position, size).map(|(_, _, bytes)| bytes).sum()
    }

    /// Reads `size` bytes from `position` on. [`None`]: some of them are missing.
    pub fn read(&self, position: u64, size: u64) -> Result<Option<Vec<u8>>> {
        if self.has(position, size) != size {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        for (file, at, count) in self.parts(position, size) {
            let (path, file) = &self.files[file];
            let begin = bytes.len();
            bytes.resize(begin + count as usize, 0);
            let read = file.read_exact_at(&mut bytes[begin..], at);
            read.map_err(Error::read(path))?;
        }
        Ok(Some(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::METADATA;
    use rtrace_abi::packet::MAGIC;

    const UUID: Uuid = Uuid::from_bytes([7; 16]);
    const PAGE: u64 = 4096;

    /// A packet of CPU 1 with these bytes of its stream. Each byte is its own position.
    fn packet(position: u64, bytes: u64) -> Vec<u8> {
        let offset = PAGE + position % PAGE;
        let content = if bytes == 0 {
            AuxHeader::SIZE as u64
        } else {
            offset + bytes
        };
        let size = content.next_multiple_of(PAGE);
        let header = AuxHeader {
            packet: PacketHeader {
                magic: MAGIC,
                uuid: UUID.into_bytes(),
                stream_id: 2,
                stream_instance_id: 1,
                timestamp_begin: 0,
                timestamp_end: 0,
                content_size: content * 8,
                packet_size: size * 8,
                packet_seq_num: 0,
                events_discarded: position,
                cpu_id: 1,
            },
            position,
            offset,
            bytes,
        };
        let mut packet = vec![0xee; size as usize];
        packet[..AuxHeader::SIZE].copy_from_slice(&header.to_bytes());
        for at in 0..bytes {
            packet[(offset + at) as usize] = (position + at) as u8;
        }
        packet
    }

    fn find(file: &[u8]) -> Result<Areas> {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(METADATA), "").unwrap();
        fs::write(dir.path().join(".aux_raw_cpu1"), file).unwrap();
        // The trace has no areas.
        for other in ["raw_cpu1", ".aux_raw", ".mappings"] {
            fs::write(dir.path().join(other), "?").unwrap();
        }
        Areas::find(&[dir.path().to_owned()], UUID)
    }

    #[test]
    fn bytes_are_found_across_packets() {
        let file = [
            packet(10, 90),
            packet(100, 5000),
            packet(6000, 7),
            packet(6007, 0),
        ];
        let areas = find(&file.concat()).unwrap();
        assert!(areas.of(2, 0).is_none() && areas.of(1, 1).is_none());
        let area = areas.of(2, 1).unwrap();
        assert_eq!((area.channel(), area.lost()), ("raw", 6007));
        for (position, size, there) in [
            (10, 5090, 5090),
            (0, 20, 10),
            (99, 2, 2),
            (5090, 1000, 17),
            (6006, 100, 1),
            (7000, 1, 0),
            (u64::MAX, u64::MAX, 0),
            (20, 0, 0),
        ] {
            assert_eq!(area.has(position, size), there, "{position} {size}");
            let bytes = area.read(position, size).unwrap();
            let expected = (position..position.saturating_add(there)).map(|at| at as u8);
            let expected = (there == size).then(|| expected.collect::<Vec<_>>());
            assert_eq!(bytes, expected, "{position} {size}");
        }
    }

    #[test]
    fn the_last_packet_may_be_cut() {
        let mut file = [packet(0, 100), packet(100, 5000)].concat();
        file.pop();
        let areas = find(&file).unwrap();
        assert_eq!(areas.of(2, 1).unwrap().has(0, 1000), 100);
    }

    #[test]
    fn garbage_is_damage() {
        let with = |at: usize, word: u64| {
            let mut file = packet(0, 100);
            file[at..at + 8].copy_from_slice(&word.to_le_bytes());
            find(&file).unwrap().damages.remove(0).to_string()
        };
        let (offset, bytes) = (PacketHeader::SIZE + 8, PacketHeader::SIZE + 16);
        for (at, word) in [
            (offset, PAGE + 1),
            (offset, u64::MAX),
            (bytes, 101),
            (bytes, u64::MAX - 10),
        ] {
            let why = with(at, word);
            assert!(why.contains("in a packet of 4196"), "{why}");
        }
        assert!(with(0, 0).contains("no packet begins here"));
        let mut file = packet(0, 100);
        file[4] = 8;
        // The packet after the damage is found.
        file.extend(packet(100, 50));
        let mut areas = find(&file).unwrap();
        assert_eq!(areas.of(2, 1).unwrap().has(0, 100), 0);
        assert_eq!(areas.of(2, 1).unwrap().has(100, 1000), 50);
        let why = areas.damages.remove(0).to_string();
        assert!(why.contains("another trace"), "{why}");
    }
}
