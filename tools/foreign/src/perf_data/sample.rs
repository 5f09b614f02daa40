// SPDX-License-Identifier: GPL-2.0

//! The values of a sample.

use super::attribute::{self as values, Attribute};

/// Bits of the format of counters in a sample.
const ENABLED: u64 = 1 << 0;
const RUNNING: u64 = 1 << 1;
const COUNTER_ID: u64 = 1 << 2;
const GROUP: u64 = 1 << 3;
const LOST: u64 = 1 << 4;

/// Addresses from this one on are no addresses: they tell what follows.
const MARKERS: u64 = -4095_i64 as u64;
const KERNEL: u64 = -128_i64 as u64;
const USER: u64 = -512_i64 as u64;

/// A sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample<'a> {
    /// The address of the code.
    pub ip: u64,
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// An address of data.
    pub address: u64,
    /// The number of events since the last sample.
    pub period: u64,
    /// The call stack: addresses, the innermost first, with marks between the kernel's and the program's.
    chain: &'a [u8],
    /// The record of a tracepoint.
    pub raw: &'a [u8],
}

/// Reads values one after the other.
struct Values<'a>(&'a [u8]);

impl<'a> Values<'a> {
    fn long(&mut self) -> Option<u64> {
        let (value, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*value))
    }

    fn skip(&mut self, longs: u64) -> Option<()> {
        self.bytes(longs.checked_mul(8)?).map(drop)
    }

    fn bytes(&mut self, bytes: u64) -> Option<&'a [u8]> {
        let (value, rest) = self.0.split_at_checked(usize::try_from(bytes).ok()?)?;
        self.0 = rest;
        Some(value)
    }
}

impl<'a> Sample<'a> {
    /// Parses a sample. [`None`]: it is too short.
    pub fn parse(attribute: &Attribute, body: &'a [u8]) -> Option<Self> {
        let mut this = Self::default();
        let mut values = Values(body);
        let has = |value| attribute.has(value);
        if has(values::IDENTIFIER) {
            values.long()?;
        }
        if has(values::IP) {
            this.ip = values.long()?;
        }
        if has(values::TID) {
            let both = values.long()?;
            (this.pid, this.tid) = (both as i32, (both >> 32) as i32);
        }
        if has(values::TIME) {
            values.long()?;
        }
        if has(values::ADDRESS) {
            this.address = values.long()?;
        }
        for value in [values::ID, values::STREAM_ID, values::CPU] {
            values.skip(has(value).into())?;
        }
        if has(values::PERIOD) {
            this.period = values.long()?;
        }
        if has(values::READ) {
            counters(attribute.read_format, &mut values)?;
        }
        if has(values::CALLCHAIN) {
            let count = values.long()?;
            this.chain = values.bytes(count.checked_mul(8)?)?;
        }
        if has(values::RAW) {
            let size = values.bytes(4)?.first_chunk()?;
            this.raw = values.bytes(u32::from_le_bytes(*size).into())?;
        }
        Some(this)
    }

    /// Appends the addresses of the kernel's stack or of the program's, and their number before them.
    pub fn stack(&self, is_kernel: bool, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&[0; 4]);
        let (mut is_in, mut count) = (false, 0_u32);
        for address in self.chain.chunks_exact(8) {
            let value = u64::from_le_bytes(address.first_chunk().copied().unwrap_or_default());
            if value >= MARKERS {
                is_in = value == if is_kernel { KERNEL } else { USER };
            } else if is_in {
                out.extend_from_slice(address);
                count += 1;
            }
        }
        out[begin..begin + 4].copy_from_slice(&count.to_le_bytes());
    }
}

/// Skips the counters.
fn counters(format: u64, values: &mut Values<'_>) -> Option<()> {
    let has = |bit| u64::from(format & bit != 0);
    let times = has(ENABLED) + has(RUNNING);
    let each = 1 + has(COUNTER_ID) + has(LOST);
    match format & GROUP {
        0 => values.skip(times + each),
        _ => {
            let count = values.long()?;
            values.skip(times)?;
            values.skip(count.checked_mul(each)?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(sample_type: u64, read_format: u64) -> Attribute {
        Attribute {
            sample_type,
            read_format,
            ..Attribute::default()
        }
    }

    fn longs(values: &[u64]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    }

    #[test]
    fn values_are_found_after_groups_of_counters() {
        let kind = values::IP | values::TID | values::READ | values::CALLCHAIN | values::RAW;
        let attribute = attribute(kind, GROUP | ENABLED | COUNTER_ID | LOST);
        let mut body = longs(&[0x10, 7 | (8 << 32)]);
        // Two counters: time; value, id, lost of each.
        body.extend(longs(&[2, 99, 1, 2, 3, 4, 5, 6]));
        body.extend(longs(&[5, KERNEL, 0xff, USER, 0x1, 0x2]));
        body.extend_from_slice(&3_u32.to_le_bytes());
        body.extend_from_slice(b"abc");
        let sample = Sample::parse(&attribute, &body).unwrap();
        assert_eq!(
            (sample.ip, sample.pid, sample.tid, sample.raw),
            (0x10, 7, 8, &b"abc"[..])
        );
        let stack = |is_kernel| {
            let mut out = Vec::new();
            sample.stack(is_kernel, &mut out);
            out
        };
        assert_eq!(
            stack(true),
            [&1_u32.to_le_bytes()[..], &longs(&[0xff])].concat()
        );
        assert_eq!(
            stack(false),
            [&2_u32.to_le_bytes()[..], &longs(&[1, 2])].concat()
        );
        for length in 0..body.len() {
            assert_eq!(Sample::parse(&attribute, &body[..length]), None);
        }
    }

    #[test]
    fn wrong_numbers_are_refused() {
        let body = longs(&[1 << 61, 0]);
        assert_eq!(Sample::parse(&attribute(values::CALLCHAIN, 0), &body), None);
        assert_eq!(
            Sample::parse(
                &attribute(values::READ, GROUP | COUNTER_ID | LOST),
                &longs(&[u64::MAX, 0])
            ),
            None
        );
    }
}
