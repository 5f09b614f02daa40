// SPDX-License-Identifier: GPL-2.0

//! A single value of a record, or of the moment.

use super::abi::schema::{Integer, Shown, CUT};
use super::evaluate::{plain, Contexts, Evaluation};
use super::program::{Extent, NumberAt, NumberSource, Step, TextAt};

/// Maximum number of fields of variable size before a value.
pub(super) const MAX_PASSED: usize = 4;

/// Size of a text as words; a longer text is cut.
pub const MAX_TEXT_WORDS: usize = 4;

/// A value of an event's records: a field, or a context.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    /// Steps that pass the fields of variable size before it.
    steps: [Step; MAX_PASSED],
    /// Number of these steps.
    step_count: u8,
    place: ValuePlace,
}

/// Location of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum ValuePlace {
    Number(NumberAt, Integer),
    Text(TextAt),
}

/// The place of a value that is at the same place of all records.
#[derive(Clone, Copy, Debug)]
pub enum FixedPlace {
    /// A number at this offset.
    Number(usize),
    /// A text of 16 bytes at this offset.
    Text(usize),
    /// The context with this id.
    Context(u8),
}

impl Value {
    pub(super) const fn new(
        steps: [Step; MAX_PASSED],
        step_count: usize,
        place: ValuePlace,
    ) -> Self {
        let step_count = step_count as u8;
        Self {
            steps,
            step_count,
            place,
        }
    }

    /// The number's type; [`None`] if the value is a text.
    pub const fn integer(&self) -> Option<Integer> {
        match self.place {
            ValuePlace::Number(_, integer) => Some(integer),
            ValuePlace::Text(_) => None,
        }
    }

    /// The value's place, if all records have the value at the same one.
    pub fn fixed_place(&self) -> Option<FixedPlace> {
        match self.place {
            ValuePlace::Number(NumberAt { source, at }, _) => match source {
                NumberSource::Context => Some(FixedPlace::Context(at as u8)),
                NumberSource::Far(_) => None,
                _ => Some(FixedPlace::Number(at as usize)),
            },
            ValuePlace::Text(TextAt::Context(id)) => Some(FixedPlace::Context(id)),
            ValuePlace::Text(TextAt::Record(bytes)) => match bytes.extent {
                Extent::Fixed(16) if !bytes.is_far => Some(FixedPlace::Text(bytes.at as usize)),
                _ => None,
            },
        }
    }

    /// Number of words that the value needs.
    pub fn words(&self) -> usize {
        match self.place {
            ValuePlace::Number(..) => 1,
            ValuePlace::Text(TextAt::Context(_)) => 2,
            ValuePlace::Text(TextAt::Record(bytes)) => match bytes.extent {
                Extent::Fixed(len) => (len as usize).div_ceil(8).clamp(1, MAX_TEXT_WORDS),
                Extent::Terminated | Extent::Counted(..) => MAX_TEXT_WORDS,
            },
        }
    }

    /// Returns the number, sign-extended if it is signed. [`None`]: the record has none, or the value
    /// is a text. Any context, NMI included.
    #[inline(always)]
    pub fn number<C: Contexts>(&self, record: &[u8], contexts: &C) -> Option<u64> {
        let ValuePlace::Number(from, integer) = &self.place else {
            return None;
        };
        let number = match from.source {
            NumberSource::Far(_) => self.far(record, contexts)?,
            _ => plain(from, record, contexts)?,
        };
        Some(extend(number, integer))
    }

    /// As [`number`](Self::number), after fields of variable size.
    #[inline(never)]
    fn far<C: Contexts>(&self, record: &[u8], contexts: &C) -> Option<u64> {
        match &self.place {
            ValuePlace::Number(from, _) => self.passed(record, contexts)?.number(*from),
            ValuePlace::Text(_) => None,
        }
    }

    /// Writes the text up to its NUL, and NULs after it, in the order of little endian. A text that is
    /// too long is cut, and ends in [`CUT`]. [`None`]: as for a number. Any context, NMI included.
    #[inline(never)]
    pub fn text<C: Contexts>(&self, record: &[u8], contexts: &C, to: &mut [u64]) -> Option<()> {
        let ValuePlace::Text(from) = self.place else {
            return None;
        };
        self.passed(record, contexts)?.with_text(from, |text| {
            let mut bytes = text.iter();
            for word in &mut *to {
                *word = 0;
                for (shift, byte) in (0..u64::BITS).step_by(8).zip(&mut bytes) {
                    *word |= u64::from(*byte).wrapping_shl(shift);
                }
            }
            if let (Some(_), Some(last)) = (bytes.next(), to.last_mut()) {
                let [a, b, c] = CUT;
                let mark = u64::from_le_bytes([0, 0, 0, 0, 0, a, b, c]);
                *last = (*last & ((1 << 40) - 1)) | mark;
            }
            true
        })?;
        Some(())
    }

    fn passed<'a, C: Contexts>(
        &self,
        record: &'a [u8],
        contexts: &'a C,
    ) -> Option<Evaluation<'a, C>> {
        let mut state = Evaluation::new(record, contexts);
        for step in self.steps.iter().take(self.step_count.into()) {
            state.test(&step.test)?;
        }
        Some(state)
    }
}

/// Returns a number whose bits above those of its type are the sign, or 0.
#[inline(always)]
fn extend(number: u64, integer: &Integer) -> u64 {
    let unused = u64::BITS.wrapping_sub(integer.bits.into());
    let shifted = number.wrapping_shl(unused);
    if integer.shown == Shown::Signed {
        (shifted as i64).wrapping_shr(unused) as u64
    } else {
        shifted.wrapping_shr(unused)
    }
}
