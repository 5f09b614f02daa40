// SPDX-License-Identifier: GPL-2.0

//! Where in a file the records of each CPU are, the names of threads, and the mappings of programs.

use super::attribute::{Attribute, Common};
use super::header::{hexadecimal, Header};
use super::records::{self, Reader, Record};
use super::tasks::{Change, Changes};
use crate::bytes::Source;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use system::Result;

/// Bits of a record's head.
const MMAP_DATA: u16 = 1 << 13;
const EXEC: u16 = 1 << 13;
const HAS_BUILD_ID: u16 = 1 << 14;

/// The protection of code.
const EXECUTABLE: u32 = 4;

/// The meaning of the records of a file.
#[derive(Debug)]
pub struct Kinds {
    /// The recorded events.
    pub attributes: Vec<Attribute>,
    /// The event of each counter.
    by_id: HashMap<u64, usize>,
}

/// The records of a CPU.
#[derive(Clone, Debug, Default)]
pub struct CpuRecords {
    /// Ranges of files, in order.
    pub runs: Vec<(Arc<Source>, Range<u64>)>,
    /// How much earlier than the record before it a record may be.
    pub lateness: u64,
    /// The latest time so far.
    newest: u64,
}

/// Results of the first reading.
#[derive(Debug, Default)]
pub struct Index {
    /// The records of each CPU.
    pub cpus: BTreeMap<u32, CpuRecords>,
    /// The changes of threads and mappings.
    pub changes: Changes,
    /// The number of samples without a CPU, and without a time.
    pub without_cpu: u64,
    pub without_time: u64,
    /// Samples that are lost, by the records at their places.
    pub lost: u64,
    /// Samples that are lost, as perf counted them at the end.
    pub lost_samples: u64,
    /// The number of records of each kind that is not shown.
    pub others: BTreeMap<u32, u64>,
    /// The address of the kernel's code, and its build id if the record of its mapping has it.
    pub kernel: Option<(u64, Option<String>)>,
    /// The end of the readable records, and why they end there.
    pub damage: Option<(u64, String)>,
}

impl Kinds {
    /// The meaning of the records of a file with these events.
    pub fn new(attributes: Vec<Attribute>) -> Self {
        let ids = attributes.iter().enumerate();
        let by_id =
            ids.flat_map(|(place, attribute)| attribute.ids.iter().map(move |id| (*id, place)));
        Self {
            by_id: by_id.collect(),
            attributes,
        }
    }

    /// The event of a record, and its common values. [`None`]: the record is too short, or of no known event.
    pub fn of(&self, record: &Record, body: &[u8]) -> Option<(usize, Common)> {
        let is_sample = record.kind == records::SAMPLE;
        // All events have the id in one place.
        let common = self.attributes.first()?.common(is_sample, body)?;
        if self.attributes.len() == 1 {
            return Some((0, common));
        }
        let place = match common.id {
            Some(id) => self.by_id.get(&id).copied(),
            None => Some(0),
        };
        match place {
            Some(place) => Some((place, self.attributes[place].common(is_sample, body)?)),
            None if is_sample => None,
            None => Some((0, common)),
        }
    }
}

impl Index {
    /// Reads the records of a file.
    pub fn read(header: &Header, kinds: &Kinds, source: &Arc<Source>) -> Result<Self> {
        let mut this = Self::default();
        this.add(kinds, source, header.data.clone());
        if let Some(decompressed) = records::decompressed(source, header.data.clone())? {
            let decompressed = Arc::new(decompressed);
            this.add(kinds, &decompressed, 0..decompressed.length);
        }
        Ok(this)
    }

    fn add(&mut self, kinds: &Kinds, source: &Arc<Source>, range: Range<u64>) {
        let mut reader = Reader::new(source, range);
        loop {
            let record = match reader.next(source) {
                Ok(Some(record)) => record,
                Ok(None) => return,
                Err(error) => {
                    let (offset, what) = match error {
                        system::Error::Corrupt { offset, what, .. } => (offset, what),
                        error => (0, error.to_string()),
                    };
                    self.damage = Some((offset, what));
                    return;
                }
            };
            if record.kind >= records::OF_PERF {
                continue;
            }
            let body = reader.body();
            let is_shown = matches!(
                record.kind,
                records::SAMPLE | records::LOST | records::THROTTLE | records::UNTHROTTLE
            );
            let Some((_, common)) = kinds.of(&record, body) else {
                // The reader of the stream reports it.
                self.cpu(source, &record, 0);
                continue;
            };
            if !is_shown {
                self.change(&record, body, common.time.unwrap_or(0));
                continue;
            }
            if record.kind == records::SAMPLE {
                self.without_cpu += u64::from(common.cpu.is_none());
                self.without_time += u64::from(common.time.is_none());
            }
            if record.kind == records::LOST {
                self.lost = self.lost.saturating_add(long(body, 8).unwrap_or(0));
            }
            let cpu = common.cpu.unwrap_or(0);
            let time = common.time.unwrap_or(0);
            let records = self.cpu(source, &record, cpu);
            records.lateness = records.lateness.max(records.newest.saturating_sub(time));
            records.newest = records.newest.max(time);
        }
    }

    /// Adds a record to those of a CPU.
    fn cpu(&mut self, source: &Arc<Source>, record: &Record, cpu: u32) -> &mut CpuRecords {
        let records = self.cpus.entry(cpu).or_default();
        let end = record.offset + record.size;
        match records.runs.last_mut() {
            Some((last, range)) if Arc::ptr_eq(last, source) && range.end == record.offset => {
                range.end = end;
            }
            _ => records.runs.push((Arc::clone(source), record.offset..end)),
        }
        records
    }

    /// Notes a change of threads or mappings.
    fn change(&mut self, record: &Record, body: &[u8], time: u64) {
        let change = match record.kind {
            records::NAME => name(record, body),
            records::FORK => thread(body).map(|[pid, parent, tid, by]| Change::Fork {
                pid,
                parent,
                tid,
                by,
            }),
            records::EXIT => thread(body).map(|[pid, _, tid, _]| Change::Exit { pid, tid }),
            records::MMAP | records::MMAP2 => self.map(record, body),
            records::LOST_SAMPLES => {
                let lost = long(body, 0).unwrap_or(0);
                self.lost_samples = self.lost_samples.saturating_add(lost);
                None
            }
            kind => {
                *self.others.entry(kind).or_default() += 1;
                None
            }
        };
        if let Some(change) = change {
            self.changes.add(time, change);
        }
    }

    /// The mapping of code in a record.
    fn map(&mut self, record: &Record, body: &[u8]) -> Option<Change> {
        let pid = word(body, 0)? as i32;
        let [address, length, offset] = [long(body, 8)?, long(body, 16)?, long(body, 24)?];
        let (is_code, id, path) = match record.kind {
            records::MMAP => (record.misc & MMAP_DATA == 0, None, body.get(32..)?),
            _ => {
                let id = (record.misc & HAS_BUILD_ID != 0).then(|| {
                    let length = usize::from(body.get(32).copied().unwrap_or(0)).min(20);
                    body.get(36..36 + length).map(hexadecimal)
                });
                (
                    word(body, 56)? & EXECUTABLE != 0,
                    id.flatten(),
                    body.get(64..)?,
                )
            }
        };
        let path = String::from_utf8_lossy(text(path)).into_owned();
        if pid == -1 {
            if path.starts_with("[kernel.kallsyms]") {
                self.kernel.get_or_insert((address, id));
            }
            return None;
        }
        let is_file = path.starts_with('/') && !path.starts_with("//") || path == "[vdso]";
        let is_whole = length > 0 && address.checked_add(length).is_some();
        (is_code && is_file && is_whole && pid >= 0).then_some(Change::Map {
            pid,
            address,
            length,
            offset,
            id,
            path,
        })
    }
}

/// The name of a thread in a record.
fn name(record: &Record, body: &[u8]) -> Option<Change> {
    Some(Change::Name {
        pid: word(body, 0)? as i32,
        tid: word(body, 4)? as i32,
        name: text(body.get(8..)?).to_vec(),
        is_exec: record.misc & EXEC != 0,
    })
}

/// The process, parent, thread and its creator in a record.
fn thread(body: &[u8]) -> Option<[i32; 4]> {
    let [pid, parent, tid, by] = [0, 4, 8, 12].map(|at| word(body, at));
    Some([pid?, parent?, tid?, by?].map(|id| id as i32))
}

fn word(body: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*body.get(at..)?.first_chunk()?))
}

/// The 64 bits at a place of a record.
pub fn long(body: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*body.get(at..)?.first_chunk()?))
}

fn text(bytes: &[u8]) -> &[u8] {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    &bytes[..end]
}
