// SPDX-License-Identifier: GPL-2.0

//! Places of fields that are the same in every record.

use crate::metadata::{FieldLayout, Type};

/// The begins of fields, as far as they are the same in every record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// The first bits of the fields, up to and including the first field of variable size.
    begins: Vec<usize>,
    /// Whether a length is in a field whose place differs between records.
    pub has_far_lengths: bool,
}

impl Places {
    /// The places of these fields.
    pub fn of(fields: &[FieldLayout]) -> Self {
        let mut begins = Vec::with_capacity(fields.len());
        let mut end = Some(0_usize);
        for field in fields {
            let Some(begin) = end.map(|end| end.next_multiple_of(field.ty.align())) else {
                break;
            };
            begins.push(begin);
            end = field.ty.bits().map(|bits| begin + bits);
        }
        let is_far = |field: &FieldLayout| match field.ty {
            Type::Sequence(_, length) => length >= begins.len(),
            _ => false,
        };
        let has_far_lengths = fields.iter().any(is_far);
        Self {
            begins,
            has_far_lengths,
        }
    }

    /// First bit of a field, if it is the same in every record.
    pub fn begin(&self, field: usize) -> Option<usize> {
        self.begins.get(field).copied()
    }

    /// The last field whose place is the same in every record, and its first bit.
    pub fn last(&self) -> Option<(usize, usize)> {
        let begin = self.begins.last()?;
        Some((self.begins.len() - 1, *begin))
    }
}
