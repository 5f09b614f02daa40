// SPDX-License-Identifier: GPL-2.0

//! The attributes of a recorded event (`struct perf_event_attr`), and the places of values in its records.

/// Bits of the sample type, in the order of the values in a sample.
pub const IDENTIFIER: u64 = 1 << 16;
pub const IP: u64 = 1 << 0;
pub const TID: u64 = 1 << 1;
pub const TIME: u64 = 1 << 2;
pub const ADDRESS: u64 = 1 << 3;
pub const ID: u64 = 1 << 6;
pub const STREAM_ID: u64 = 1 << 9;
pub const CPU: u64 = 1 << 7;
pub const PERIOD: u64 = 1 << 8;
pub const READ: u64 = 1 << 4;
pub const CALLCHAIN: u64 = 1 << 5;
pub const RAW: u64 = 1 << 10;

/// The flag that all records end with the values that a sample begins with.
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// The least size of the attributes.
pub const LEAST: usize = 64;

/// Kinds of events.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const TRACEPOINT: u32 = 2;

/// A recorded event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribute {
    /// Its kind, and which event of the kind it is.
    pub kind: u32,
    pub config: u64,
    /// The values of its samples.
    pub sample_type: u64,
    /// The values of its counters in samples.
    pub read_format: u64,
    /// Its flags.
    pub flags: u64,
    /// perf's name of it.
    pub name: String,
    /// The numbers of its counters.
    pub ids: Vec<u64>,
}

/// The meaning of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A tracepoint with this number.
    Tracepoint(u16),
    /// No samples belong to it.
    Dummy,
    /// Samples under this name.
    Sample(String),
}

/// Values that most records have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Common {
    /// Nanoseconds of the clock.
    pub time: Option<u64>,
    /// The CPU.
    pub cpu: Option<u32>,
    /// The number of the counter.
    pub id: Option<u64>,
}

impl Attribute {
    /// Parses the attributes. [`None`]: they are too short.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        Some(Self {
            kind: word(0)?,
            config: long(8)?,
            sample_type: long(24)?,
            read_format: long(32)?,
            flags: long(40)?,
            name: String::new(),
            ids: Vec::new(),
        })
    }

    /// The size of the attributes, as they themselves tell.
    pub fn size(bytes: &[u8]) -> Option<usize> {
        let size = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?) as usize;
        Some(if size == 0 { LEAST } else { size })
    }

    /// Whether samples have a value.
    pub fn has(&self, value: u64) -> bool {
        self.sample_type & value != 0
    }

    /// The meaning of its samples.
    pub fn meaning(&self) -> Meaning {
        let named = |name: &str| {
            Meaning::Sample(match self.name.as_str() {
                "" => name.to_owned(),
                name => name.to_owned(),
            })
        };
        match (self.kind, self.config) {
            (TRACEPOINT, id) => match u16::try_from(id) {
                Ok(id) => Meaning::Tracepoint(id),
                Err(_) => named("tracepoint"),
            },
            // The upper half is the number of a kind of core.
            (HARDWARE, config) if config as u32 == 0 => {
                Meaning::Sample("profile_cycles".to_owned())
            }
            (SOFTWARE, 0 | 1) => Meaning::Sample("profile_cpu_clock".to_owned()),
            (SOFTWARE, 9) => Meaning::Dummy,
            (kind, config) => named(&format!("event_{kind}_{config:x}")),
        }
    }

    /// The common values of a record of this event. `is_sample`: it is a sample.
    pub fn common(&self, is_sample: bool, body: &[u8]) -> Option<Common> {
        let mut common = Common::default();
        let (order, mut at): (&[u64], usize) = match is_sample {
            true => (&[IDENTIFIER, IP, TID, TIME, ADDRESS, ID, STREAM_ID, CPU], 0),
            false if self.flags & SAMPLE_ID_ALL == 0 => return Some(common),
            false => {
                let order: &[u64] = &[TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER];
                let size = 8 * order.iter().filter(|value| self.has(**value)).count();
                (order, body.len().checked_sub(size)?)
            }
        };
        for value in order.iter().filter(|value| self.has(**value)) {
            let long = u64::from_le_bytes(*body.get(at..)?.first_chunk()?);
            match *value {
                TIME => common.time = Some(long),
                CPU => common.cpu = Some(long as u32),
                // An id that is not at the begin or end is the same one.
                ID | IDENTIFIER => common.id = Some(long),
                _ => {}
            }
            at += 8;
        }
        Some(common)
    }
}
