// SPDX-License-Identifier: GPL-2.0

//! Evaluation of a program on a record.

use super::input::glob;
use super::program::{
    BytesAt, Decision, Extent, First, NumberAt, NumberSource, Program, ProgramText, Range, Step,
    Test, TextAt,
};

/// The values of contexts at this moment. The functions may be called in any context in which a
/// probe may run, NMI included.
pub trait Contexts {
    /// Type that holds a text.
    type Text: AsRef<[u8]>;

    /// Returns the number with this id; the caller ignores bits above those of its type. [`None`]:
    /// the value cannot be determined here, and the record is refused.
    fn number(&self, id: u8) -> Option<u64>;

    /// Returns the text with this id, up to its end or a NUL. [`None`]: as for a number.
    fn text(&self, id: u8) -> Option<Self::Text>;
}

impl Program<'_> {
    /// Returns whether the filter accepts a record. `record` has its fields, without the event
    /// header. Any context, NMI included.
    ///
    /// No function is called as long as the steps compare numbers of whole bytes, or contexts.
    #[inline(always)]
    pub fn wants<C: Contexts>(&self, record: &[u8], contexts: &C) -> bool {
        let mut at = 0;
        while let Some(step) = self.steps.get(at) {
            let Test::Range { from, range } = &step.test else {
                return self.wants_from(at, record, contexts);
            };
            let Some(number) = plain(from, record, contexts) else {
                return self.wants_from(at, record, contexts);
            };
            at = step.next(at, range.contains(number));
        }
        at == self.steps.len()
    }

    /// Continues a program at step `at`, before it has passed any field.
    #[inline(never)]
    fn wants_from<C: Contexts>(&self, mut at: usize, record: &[u8], contexts: &C) -> bool {
        let mut state = Evaluation {
            texts: self.texts,
            ..Evaluation::new(record, contexts)
        };
        while let Some(step) = self.steps.get(at) {
            let Some(is_true) = state.test(&step.test) else {
                return false;
            };
            at = step.next(at, is_true);
        }
        at == self.steps.len()
    }
}

impl First {
    /// Returns the filter's decision on a record by this step. `number` returns the number at an
    /// offset of the record; the bits above those of its type are ignored. [`None`]: it knows no
    /// number there. Any context, NMI included.
    #[inline(always)]
    pub fn decides(&self, number: impl FnOnce(usize) -> Option<u64>) -> Decision {
        let Some(number) = number(self.at) else {
            return Decision::Undecided;
        };
        let [if_false, if_true] = &self.decisions;
        // A choice of an address: one load.
        *match self.range.contains(number) {
            true => if_true,
            false => if_false,
        }
    }
}

impl Step {
    /// Returns the step after step `at`, which is this one. It is always a later one. (An index is
    /// far below the largest number.)
    #[inline(always)]
    fn next(&self, at: usize, is_true: bool) -> usize {
        let skipped = if is_true { self.if_true } else { self.if_false };
        at.wrapping_add(1).wrapping_add(skipped.into())
    }
}

impl Range {
    #[inline(always)]
    fn contains(&self, number: u64) -> bool {
        number.wrapping_sub(self.low) & self.mask <= self.span
    }
}

/// Returns a number of whole bytes or of a context, if it exists.
#[inline(always)]
pub(super) fn plain<C: Contexts>(from: &NumberAt, record: &[u8], contexts: &C) -> Option<u64> {
    let at = from.at as usize;
    Some(match from.source {
        NumberSource::U8 => u8::from_le_bytes(load(record, at)?).into(),
        NumberSource::U16 => u16::from_le_bytes(load(record, at)?).into(),
        NumberSource::U32 => u32::from_le_bytes(load(record, at)?).into(),
        NumberSource::U64 => u64::from_le_bytes(load(record, at)?),
        NumberSource::Context => contexts.number(from.at as u8)?,
        NumberSource::Far(_) => return None,
    })
}

#[inline(always)]
fn load<const N: usize>(record: &[u8], at: usize) -> Option<[u8; N]> {
    record.get(at..at.wrapping_add(N))?.try_into().ok()
}

/// A running program. Its functions return [`None`] if a value cannot be read.
pub(super) struct Evaluation<'a, C> {
    texts: &'a [u8],
    record: &'a [u8],
    contexts: &'a C,
    /// Offset of the byte after the last passed field.
    behind: usize,
}

impl<'a, C: Contexts> Evaluation<'a, C> {
    /// Starts at the beginning of a record.
    pub(super) fn new(record: &'a [u8], contexts: &'a C) -> Self {
        Self {
            texts: &[],
            record,
            contexts,
            behind: 0,
        }
    }

    pub(super) fn number(&self, from: NumberAt) -> Option<u64> {
        match from.source {
            NumberSource::Far(bytes) => {
                let at = self.behind.checked_add(from.at as usize)?;
                let bytes = self.record.get(at..)?.get(..bytes.into())?;
                let add = |number: u64, byte: &u8| number.wrapping_shl(8) | u64::from(*byte);
                Some(bytes.iter().rev().fold(0, add))
            }
            _ => plain(&from, self.record, self.contexts),
        }
    }

    /// Returns where bytes begin, where they end, and where the next field begins. The caller
    /// checks whether that is after the record's end.
    fn extent(&self, from: BytesAt) -> Option<(usize, usize, usize)> {
        let origin = if from.is_far { self.behind } else { 0 };
        let start = origin.checked_add(from.at as usize)?;
        let len = match from.extent {
            Extent::Fixed(len) => len as usize,
            Extent::Terminated => {
                let len = until_nul(self.record.get(start..)?)?;
                let end = start.wrapping_add(len);
                return Some((start, end, end.wrapping_add(1)));
            }
            Extent::Counted(count, element) => {
                let count = usize::try_from(self.number(count)?).ok()?;
                count.checked_mul(element.into())?
            }
        };
        let end = start.checked_add(len)?;
        Some((start, end, end))
    }

    fn bytes(&self, from: BytesAt) -> Option<&[u8]> {
        let (start, end, _) = self.extent(from)?;
        self.record.get(start..end)
    }

    fn operand(&self, text: ProgramText) -> Option<&[u8]> {
        self.texts.get(text.start.into()..)?.get(..text.len.into())
    }

    pub(super) fn with_text(&self, from: TextAt, test: impl FnOnce(&[u8]) -> bool) -> Option<bool> {
        let up_to_nul = |bytes: &[u8]| {
            let len = until_nul(bytes).unwrap_or(bytes.len());
            Some(test(bytes.get(..len)?))
        };
        match from {
            TextAt::Record(at) => up_to_nul(self.bytes(at)?),
            TextAt::Context(id) => up_to_nul(self.contexts.text(id)?.as_ref()),
        }
    }

    pub(super) fn test(&mut self, test: &Test) -> Option<bool> {
        match *test {
            Test::Range { from, range } => Some(range.contains(self.number(from)?)),
            Test::Member { from, mask, set } => {
                let number = self.number(from)? & mask;
                Some(has(self.operand(set)?, number))
            }
            Test::Equal { from, text } => {
                let operand = self.operand(text)?;
                self.with_text(from, |text| {
                    text.len() == operand.len() && text.iter().zip(operand).all(|(a, b)| a == b)
                })
            }
            Test::Glob { from, pattern } => {
                let pattern = self.operand(pattern)?;
                self.with_text(from, |text| glob::matches(pattern, text))
            }
            Test::SameSet { from, set } => {
                let (one, other) = (self.bytes(from)?, self.operand(set)?);
                let (short, long) = if one.len() < other.len() {
                    (one, other)
                } else {
                    (other, one)
                };
                // A set does not contain a number for which it has no bit.
                let rest = long.get(short.len()..)?;
                let is_same = short.iter().zip(long).all(|(a, b)| a == b);
                Some(is_same && rest.iter().all(|byte| *byte == 0))
            }
            Test::Intersects { from, set } => {
                let (one, other) = (self.bytes(from)?, self.operand(set)?);
                Some(one.iter().zip(other).any(|(a, b)| a & b != 0))
            }
            Test::Pass(from) => {
                (_, _, self.behind) = self.extent(from)?;
                Some(true)
            }
        }
    }
}

/// Number of bytes before the first NUL.
fn until_nul(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == 0)
}

/// Returns whether a set has a member.
fn has(set: &[u8], member: u64) -> bool {
    let byte = usize::try_from(member / 8).ok().and_then(|at| set.get(at));
    byte.is_some_and(|byte| byte.wrapping_shr(member as u32 % 8) & 1 != 0)
}
