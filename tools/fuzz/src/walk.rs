// SPDX-License-Identifier: GPL-2.0

//! Reads a stream file with the trace reader, and checks the reader at each step.

use crate::report::{self, Contents};
use ctf::{Event, Metadata, StreamReader, Value};
use rtrace_abi::packet::PacketHeader;
use rustix::fs::{memfd_create, MemfdFlags};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use system::{Error, Result};

/// Minimum size of an event: the compact header.
const LEAST_EVENT: u64 = rtrace_abi::header::COMPACT_SIZE as u64;

/// An event as owned values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its id.
    pub id: u32,
    /// Its time.
    pub timestamp: u64,
    /// Its fields.
    pub values: Vec<Field>,
}

/// A field's value as owned values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    Unsigned(u64),
    Signed(i64),
    Text(Vec<u8>),
    Integers(Vec<Field>),
}

impl From<Value<'_>> for Field {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Unsigned(number) => Self::Unsigned(number),
            Value::Signed(number) => Self::Signed(number),
            // Only traces of other formats have such values.
            Value::Float(number) => Self::Unsigned(number.to_bits()),
            Value::Text(text) => Self::Text(text.to_vec()),
            Value::Integers(integers) => Self::Integers(integers.map(Self::from).collect()),
        }
    }
}

/// Events of a stream file with these contents, by one reader. [`stream`] compares all readers.
pub fn events(metadata: &Metadata, bytes: &[u8]) -> Result<Vec<Recorded>> {
    let (_file, path) = in_memory(bytes);
    packets(metadata, &path, bytes.len() as u64).map(|(_, events)| events)
}

/// All events of a stream file with these contents, by all readers.
pub fn stream(metadata: &Metadata, bytes: &[u8]) -> Result<Vec<Recorded>> {
    let (_file, path) = in_memory(bytes);
    let walked = packets(metadata, &path, bytes.len() as u64);
    let all = behind_damage(metadata, &path, bytes.len() as u64);
    report::check(metadata, &path, &all);
    match &walked {
        Ok((packets, events)) => {
            assert_eq!((all.packets, all.events), (*packets, events.len() as u64))
        }
        Err(Error::Corrupt { offset, .. }) => assert!(*offset < bytes.len() as u64),
        Err(other) => panic!("{other}"),
    }
    walked.map(|(_, events)| events)
}

fn packets(metadata: &Metadata, path: &Path, length: u64) -> Result<(u64, Vec<Recorded>)> {
    let mut reader = StreamReader::open(path, metadata)?;
    let (mut at, mut packets, mut out) = (0, 0, Vec::new());
    while let Some(packet) = reader.next_packet()? {
        assert_eq!(packet.at.offset, at);
        assert!(packet.at.content() <= packet.at.size());
        assert!(packet.at.size() <= length - at);
        at = packet.at.end();
        packets += 1;
        let header = packet.at.header;
        let mut now = header.timestamp_begin;
        let mut left = (packet.at.content() - PacketHeader::SIZE as u64) / LEAST_EVENT;
        let mut events = packet.events();
        while let Some(event) = events.next() {
            let Ok(event) = event else {
                assert!(events.next().is_none(), "an event after a corrupt one");
                return event.map(|_| unreachable!());
            };
            left = left.checked_sub(1).expect("no more events than fit");
            assert!(now <= event.timestamp && event.timestamp <= header.timestamp_end);
            now = event.timestamp;
            out.push(recorded(&event));
        }
    }
    assert_eq!(at + reader.partial(), length);
    Ok((packets, out))
}

/// Reads a file past its damaged places, with a window that is too small for most events.
fn behind_damage(metadata: &Metadata, path: &Path, length: u64) -> Contents {
    let reader = StreamReader::open(path, metadata).expect("a file");
    let mut reader = reader.window(16);
    let (mut all, mut end) = (Contents::default(), 0);
    loop {
        let error = match reader.next_packet() {
            Ok(None) => return all,
            Ok(Some(packet)) => {
                let at = *packet.at;
                assert!(end <= at.offset && at.end() <= length);
                end = at.offset;
                all.packets += 1;
                let mut now = at.header.timestamp_begin;
                loop {
                    match reader.next_event() {
                        Ok(None) => break None,
                        Ok(Some(event)) => {
                            assert!(now <= event.timestamp);
                            assert!(event.timestamp <= at.header.timestamp_end);
                            now = event.timestamp;
                            all.events += 1;
                        }
                        Err(error) => break Some(error),
                    }
                }
            }
            Err(error) => Some(error),
        };
        if let Some(error) = error {
            let damage = reader.damage(error).expect("a file that can be read");
            assert!(damage.bytes > 0 && end <= damage.offset);
            assert!(damage.offset + damage.bytes <= length);
            end = damage.offset;
            all.places += 1;
        }
    }
}

fn recorded(event: &Event<'_>) -> Recorded {
    let fields = event.layout.fields.len();
    assert!(event.value(fields).is_none());
    let value = |field| Field::from(event.value(field).expect("every field has a value"));
    Recorded {
        id: event.layout.id,
        timestamp: event.timestamp,
        values: (0..fields).map(value).collect(),
    }
}

/// A file with these contents, and a path to it that is valid while the file is open.
pub fn in_memory(bytes: &[u8]) -> (File, PathBuf) {
    let mut file = File::from(memfd_create("stream", MemfdFlags::CLOEXEC).expect("a memfd"));
    file.write_all(bytes).expect("memory");
    let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
    (file, path)
}
