// SPDX-License-Identifier: GPL-2.0

//! Performs the steps that translate the fields of a packet.

use super::bits::{Bits, Fault, Read};
use super::model::*;
use super::plan::{Count, Step};
use super::text;
use uuid::Uuid;

/// Maximum number of bytes that one value may have.
const LONGEST: usize = 16 << 20;

/// The values that were read so far, as far as they are needed.
#[derive(Debug, Default)]
pub struct Machine {
    /// The kept values.
    pub kept: Vec<u64>,
    /// Values with a meaning.
    pub found: Found,
    /// The clock.
    pub now: u64,
}

/// Values with a meaning for the reader.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    pub magic: Option<u64>,
    pub uuid: Option<Uuid>,
    pub class: Option<u64>,
    pub stream: Option<u64>,
    pub begin: Option<u64>,
    pub end: Option<u64>,
    pub content: Option<u64>,
    pub size: Option<u64>,
    pub number: Option<u64>,
    /// The number of discarded events, and the bits of that number.
    pub discarded: Option<(u64, u8)>,
    pub cpu: Option<u64>,
    pub id: Option<u64>,
    pub has_time: bool,
}

impl Machine {
    /// A machine that keeps this number of values.
    pub fn new(places: u16) -> Self {
        Self {
            kept: vec![0; usize::from(places)],
            ..Self::default()
        }
    }

    /// Performs steps. Appends what they write to `out`.
    #[inline]
    pub fn run(&mut self, steps: &[Step], bits: &mut Bits<'_>, out: &mut Vec<u8>) -> Read<()> {
        for step in steps {
            match step {
                Step::Copy(count) => out.extend_from_slice(bits.bytes(*count as usize)?),
                Step::Align(align) => bits.align(*align),
                Step::String => {
                    let text = bits.string()?;
                    out.extend_from_slice(text);
                    out.push(0);
                }
                Step::Integer(integer, width, role) => {
                    let value = self.integer(integer, bits)?;
                    out.extend_from_slice(&value.to_le_bytes()[..usize::from(*width)]);
                    if let Some(role) = role {
                        self.found(*role, integer, value);
                    }
                }
                step => self.rare(step, bits, out)?,
            }
        }
        Ok(())
    }

    /// Performs one of the steps that few events have.
    fn rare(&mut self, step: &Step, bits: &mut Bits<'_>, out: &mut Vec<u8>) -> Read<()> {
        match step {
            Step::Skip(count) => bits.skip(*count),
            Step::Bytes(count) => out.extend_from_slice(bits.bytes(self.count(*count)?)?),
            Step::Integers(count, integer, width) => {
                for _ in 0..self.count(*count)? {
                    let value = self.integer(integer, bits)?;
                    out.extend_from_slice(&value.to_le_bytes()[..usize::from(*width)]);
                }
            }
            Step::Float {
                bits: size,
                align,
                order,
            } => {
                let value = bits.float(*size, *align, *order)?;
                out.extend_from_slice(&value.to_le_bytes());
            }
            Step::Changed(integer, width, change) => {
                let value = change(self.integer(integer, bits)?);
                out.extend_from_slice(&value.to_le_bytes()[..usize::from(*width)]);
            }
            Step::Mapped(integer, map) => {
                let value = self.integer(integer, bits)?;
                map(value, out);
                out.push(0);
            }
            Step::Uuid => {
                let bytes = bits.bytes(16)?;
                self.found.uuid = Uuid::from_slice(bytes).ok();
            }
            Step::Length(place) => {
                let length = self.count(Count::Kept(*place))?;
                out.extend_from_slice(&(length as u32).to_le_bytes());
            }
            Step::Text(ty) => {
                let before = out.len();
                text::write(self, ty, bits, out)?;
                // A text has no NUL.
                let text = &mut out[before..];
                text.iter_mut()
                    .filter(|byte| **byte == 0)
                    .for_each(|byte| *byte = b'?');
                out.push(0);
            }
            Step::Ignore(ty) => text::write(self, ty, bits, &mut Vec::new())?,
            Step::Choose(place, options) => {
                let value = self.kept[usize::from(*place)];
                let option = options.iter().find(|(values, _)| has(values, value));
                let (_, steps) = option.ok_or_else(|| no_option(value))?;
                self.run(steps, bits, out)?;
            }
            Step::Copy(_) | Step::Align(_) | Step::String | Step::Integer(..) => {}
        }
        Ok(())
    }

    /// Reads an integer. Keeps its value for later fields.
    #[inline]
    pub fn integer(&mut self, integer: &Integer, bits: &mut Bits<'_>) -> Read<u64> {
        let value = bits.integer(integer)?;
        if let Some(place) = integer.save {
            self.kept[usize::from(place)] = value;
        }
        Ok(value)
    }

    /// A number of elements.
    fn count(&self, count: Count) -> Read<usize> {
        match count {
            Count::Fixed(count) => Ok(count as usize),
            Count::Kept(place) => self.kept_count(place),
        }
    }

    /// The number of elements in a place.
    pub fn kept_count(&self, place: u16) -> Read<usize> {
        let value = self.kept[usize::from(place)];
        match usize::try_from(value) {
            Ok(count) if count <= LONGEST => Ok(count),
            _ => Err(Fault::Bad(format!("a sequence of {value} elements"))),
        }
    }

    fn found(&mut self, role: Role, integer: &Integer, value: u64) {
        let found = &mut self.found;
        match role {
            Role::Magic => found.magic = Some(value),
            Role::StreamClass => found.class = Some(value),
            Role::Stream => found.stream = Some(value),
            Role::Begin => found.begin = Some(value),
            Role::End => found.end = Some(value),
            Role::ContentSize => found.content = Some(value),
            Role::PacketSize => found.size = Some(value),
            Role::Number => found.number = Some(value),
            Role::Discarded => found.discarded = Some((value, integer.bits)),
            Role::Cpu => found.cpu = Some(value),
            Role::EventId => found.id = Some(value),
            Role::Time => self.tick(value, integer.bits),
            Role::Uuid => {}
        }
    }

    /// Sets the low bits of the clock, which goes only forward.
    #[inline]
    pub fn tick(&mut self, low: u64, bits: u8) {
        self.found.has_time = true;
        self.now = match bits {
            1..=63 => {
                let wrap = 1 << bits;
                let time = self.now & !(wrap - 1) | low & (wrap - 1);
                if time < self.now {
                    time.saturating_add(wrap)
                } else {
                    time
                }
            }
            _ => low,
        };
    }
}

/// Whether a value is one of an option's.
pub fn has(values: &[(u64, u64)], value: u64) -> bool {
    let is_in = |(first, last): &(u64, u64)| match *first as i64 <= *last as i64 {
        true => (*first as i64..=*last as i64).contains(&(value as i64)),
        false => (*first..=*last).contains(&value),
    };
    values.iter().any(is_in)
}

/// The fault of a variant whose value chooses no option.
pub fn no_option(value: u64) -> Fault {
    Fault::Bad(format!("a variant has no option for the value {value}"))
}
