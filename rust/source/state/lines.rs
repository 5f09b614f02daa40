// SPDX-License-Identifier: GPL-2.0

//! The part of the state that user space writes: lines, made into records.

use super::declared::DECLARED;
use super::StateDeclaration;
use crate::input::caret;
use crate::input::state::{Fields, Line};
use crate::source::values::{self, wrong, Failed, Wrong};
use core::ops::Range;
use kernel::prelude::*;

/// The parts to record, in order.
pub(crate) struct LineParts {
    steps: KVVec<Step>,
    /// The fields of all records.
    bytes: KVVec<u8>,
}

enum Step {
    All,
    Threads,
    /// The place of the event among the declared events, and the range of its fields in `bytes`.
    Record(usize, Range<usize>),
}

/// A part to record.
pub(super) enum Part<'a> {
    /// The kernel's part, between begin and end.
    All,
    /// The kernel's part, without begin and end.
    Threads,
    /// An event, by its place among the declared events, and its fields.
    Record(usize, &'a [u8]),
}

/// Reason why lines are refused.
pub(crate) enum LineRefusal<'a> {
    /// A line is wrong.
    Wrong {
        /// The line's number, from 1.
        number: usize,
        /// The line, the place of the error, and the error.
        shown: caret::Caret<'a, Wrong<'static>>,
    },
    /// Memory is lacking.
    Memory,
}

impl From<kernel::alloc::AllocError> for LineRefusal<'_> {
    fn from(_: kernel::alloc::AllocError) -> Self {
        Self::Memory
    }
}

impl LineParts {
    /// Parses lines. May sleep.
    pub(crate) fn parse(text: &str) -> Result<Self, LineRefusal<'_>> {
        let mut parts = Self {
            steps: KVVec::new(),
            bytes: KVVec::new(),
        };
        for (number, line) in (1..).zip(text.split('\n')) {
            let step = match Line::parse(line) {
                None => continue,
                Some(Line::All) => Step::All,
                Some(Line::Threads) => Step::Threads,
                Some(Line::Event { name, fields }) => {
                    let begin = parts.bytes.len();
                    let place = parts.record(line, name, fields).map_err(|failed| {
                        let Failed::Wrong(error) = failed else {
                            return LineRefusal::Memory;
                        };
                        let shown = error.shown(line);
                        LineRefusal::Wrong { number, shown }
                    })?;
                    Step::Record(place, begin..parts.bytes.len())
                }
            };
            parts.steps.push(step, GFP_KERNEL)?;
        }
        Ok(parts)
    }

    /// All parts, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Part<'_>> {
        self.steps.iter().map(|step| match step {
            Step::All => Part::All,
            Step::Threads => Part::Threads,
            Step::Record(place, fields) => {
                Part::Record(*place, self.bytes.get(fields.clone()).unwrap_or(&[]))
            }
        })
    }

    /// Adds the fields of a record, and returns the place of its event.
    fn record(
        &mut self,
        line: &str,
        name: &str,
        mut fields: Fields<'_>,
    ) -> Result<usize, Failed<'static>> {
        let at = line.find(name).unwrap_or(0);
        let place = DECLARED.iter().position(|event| event.name == name);
        let place = place.ok_or(wrong(at, Wrong::NoEvent))?;
        let Some(StateDeclaration {
            fields: declared,
            by_kernel: false,
            ..
        }) = DECLARED.get(place)
        else {
            return Err(wrong(at, Wrong::ByKernel));
        };
        values::append(declared.iter().copied(), &mut fields, &mut self.bytes)?;
        Ok(place)
    }
}
