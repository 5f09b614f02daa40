// SPDX-License-Identifier: GPL-2.0

//! The buffers in a dump of a kernel's memory (`rust/abi/dump.rs`). This code trusts no value in the dump: the
//! machine may have stopped at any moment, and a dump may lack parts.

use crate::recovered::{Recovered, Writer};
use crate::remains::{self, Buffer, BufferPackets};
use ctf::{Metadata, StreamName};
use rtrace_abi::dump::{DumpEntry, DumpText, DumpTrace as Listed, Root, MAGIC, VERSION};
use rtrace_abi::region::{checksum, PAGE};
use rtrace_ring::image::Image;
use std::collections::HashSet;
use std::path::Path;
use system::access::Access;
use system::{Error, Result};
use uuid::Uuid;

/// The maximum accepted size of the metadata.
const LONGEST_TEXT: u64 = 1 << 30;

/// A dump.
pub trait Memory {
    /// The addresses of these bytes in the memory of modules, within a page, at a multiple of `align`.
    fn find(&mut self, align: usize, bytes: &[u8]) -> Result<Vec<u64>>;

    /// The bytes at an address. [`None`]: they are not in the dump.
    fn read(&mut self, at: u64, len: usize) -> Result<Option<Vec<u8>>>;
}

/// Something in a dump, or why it cannot be read.
type Readable<T> = std::result::Result<T, String>;

/// The contents of a buffer.
#[derive(Default)]
struct Contents {
    slots: Vec<u8>,
    banks: [Vec<u8>; 2],
}

/// A trace in a dump.
#[derive(Debug)]
pub struct Trace {
    text: String,
    metadata: Metadata,
    entries: Vec<DumpEntry<u64>>,
}

/// The contents of a dump.
#[derive(Debug, Default)]
pub struct DumpContents {
    /// The traces, in the order in which they were begun.
    pub traces: Vec<Trace>,
    /// The parts that cannot be read.
    pub damaged: Vec<String>,
}

/// Finds the traces in a dump. A dump without a list of buffers is an error.
pub fn find(memory: &mut impl Memory) -> Result<DumpContents> {
    let mut roots = Vec::new();
    for at in memory.find(Root::ALIGN, &MAGIC)? {
        let root = memory.read(at, Root::SIZE)?;
        // The module's code contains the magic, too.
        let root = root.as_deref().and_then(Root::parse);
        roots.extend(root.filter(|root| root.address == at));
    }
    let [root] = roots.as_slice() else {
        return Err(unrecoverable(if roots.is_empty() {
            "there is no rtrace in it: the module was not loaded, or the dump lacks its memory"
                .into()
        } else {
            "there is more than one rtrace in it".into()
        }));
    };
    if root.version != VERSION {
        return Err(unrecoverable(format!(
            "the buffers have version {} of the layout, not {VERSION}: use the rtrace that recorded them",
            root.version
        )));
    }

    let mut found = DumpContents::default();
    let (mut next, mut seen) = (root.first, HashSet::new());
    // The list runs from the last to the first.
    let mut listed: Vec<(u64, Vec<DumpEntry<u64>>)> = Vec::new();
    while next != 0 && seen.insert(next) {
        let entry = memory.read(next, DumpEntry::SIZE)?;
        let Some(entry) = entry.as_deref().and_then(DumpEntry::parse) else {
            found
                .damaged
                .push("a part of the list of buffers is not in the dump".to_owned());
            break;
        };
        next = entry.next;
        match listed.iter_mut().find(|(trace, _)| *trace == entry.trace) {
            Some((_, entries)) => entries.push(entry),
            None => listed.push((entry.trace, vec![entry])),
        }
    }
    for (at, mut entries) in listed.into_iter().rev() {
        entries.reverse();
        match metadata(memory, at)? {
            Ok((text, metadata)) => found.traces.push(Trace {
                text,
                metadata,
                entries,
            }),
            Err(why) => found.damaged.push(format!("a trace: {why}")),
        }
    }
    Ok(found)
}

fn unrecoverable(what: String) -> Error {
    Error::Unrecoverable { what }
}

/// The metadata of the listed trace, or the reason why they are missing.
fn metadata(memory: &mut impl Memory, at: u64) -> Result<Readable<(String, Metadata)>> {
    let missing = || Ok(Err("its metadata are not in the dump".to_owned()));
    let trace = memory.read(at, Listed::SIZE)?;
    let Some(trace) = trace.as_deref().and_then(Listed::parse) else {
        return missing();
    };
    let text = memory.read(trace.text, DumpText::SIZE)?;
    let Some(text) = text.as_deref().and_then(DumpText::parse) else {
        return missing();
    };
    if text.len > LONGEST_TEXT {
        return Ok(Err("its metadata are damaged".to_owned()));
    }
    let Some(bytes) = memory.read(text.bytes, text.len as usize)? else {
        return missing();
    };
    let is_whole = checksum(&bytes) == text.sum;
    let Some(text) = String::from_utf8(bytes).ok().filter(|_| is_whole) else {
        return Ok(Err("its metadata are damaged".to_owned()));
    };
    Ok(match Metadata::parse(&text) {
        Ok(metadata) if metadata.uuid.into_bytes() == trace.uuid => Ok((text, metadata)),
        Ok(_) => Err("its metadata are of another trace".to_owned()),
        Err(error) => Err(error.to_string()),
    })
}

impl Trace {
    /// The identity of the trace.
    pub fn uuid(&self) -> Uuid {
        self.metadata.uuid
    }

    /// The session that recorded it, if it has a name.
    pub fn session(&self) -> Option<&str> {
        let name = self.metadata.env.get("trace_name")?;
        remains::name(name.as_bytes())
    }

    /// Writes it to `dir`, a new or empty directory, and brings it to the disk.
    pub fn write(&self, memory: &mut impl Memory, dir: &Path, access: Access) -> Result<Recovered> {
        let mut writer = Writer::begin(dir, access)?;
        for entry in &self.entries {
            let Some(channel) = remains::name(&entry.name) else {
                writer.damaged("a buffer of a channel without a name".to_owned());
                continue;
            };
            let name = StreamName {
                channel: channel.to_owned(),
                cpu: entry.cpu,
            };
            // One after the other, because all together may exceed this machine's memory.
            let read = read(memory, entry)?;
            let stream = match &read {
                Ok(Contents { slots, banks }) => Buffer {
                    cpu: entry.cpu,
                    stream_id: entry.stream_id,
                    subbuf_size: entry.subbuf_size,
                    subbuf_count: entry.subbuf_count,
                    page: PAGE,
                    slots,
                    banks: banks.each_ref().map(Vec::as_slice),
                }
                .stream(&self.metadata),
                Err(why) => BufferPackets::damaged(why),
            };
            writer.stream(&name, &stream)?;
        }
        writer.end(&self.text)
    }
}

/// A buffer's slots and sub-buffers, or why they cannot be read.
fn read(memory: &mut impl Memory, entry: &DumpEntry<u64>) -> Result<Readable<Contents>> {
    let (size, count) = (entry.subbuf_size, entry.subbuf_count);
    let bytes = count
        .checked_add(1)
        .and_then(|count| count.checked_mul(size));
    let slots = count.checked_mul(Image::SIZE as u64);
    let lens = slots.zip(bytes);
    if let Some(why) = remains::refusal(size, count) {
        return Ok(Err(why));
    }
    let Some((slots, bytes)) = lens else {
        return Ok(Err(format!(
            "{count} sub-buffers of {size} bytes are impossible"
        )));
    };
    if entry.slots == 0 || entry.subbufs == [0; 2] {
        // The buffer was being made.
        return Ok(Ok(Contents::default()));
    }
    let Some(slots) = memory.read(entry.slots, slots as usize)? else {
        return Ok(Err("its slots are not in the dump".to_owned()));
    };
    let mut banks = [Vec::new(), Vec::new()];
    for (bank, first) in banks.iter_mut().zip(entry.subbufs) {
        if first == 0 {
            continue;
        }
        if bank.try_reserve_exact(bytes as usize).is_err() {
            return Ok(Err(format!("there is no memory for its {bytes} bytes")));
        }
        for index in 0..=count {
            match memory.read(first.wrapping_add(index * size), size as usize)? {
                Some(subbuf) => bank.extend_from_slice(&subbuf),
                // A packet there then has no header.
                None => bank.resize(bank.len() + size as usize, 0),
            }
        }
    }
    Ok(Ok(Contents { slots, banks }))
}
