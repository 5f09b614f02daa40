// SPDX-License-Identifier: GPL-2.0

//! Labels in the module's form, for targets that generate labels.

use rtrace_abi::schema::{LabelPlace, Labels};

/// The labels of a field.
#[derive(Default)]
pub struct OwnLabels {
    text: Vec<u8>,
    places: Vec<LabelPlace>,
}

impl OwnLabels {
    /// Adds a label.
    pub fn push(&mut self, name: &str, first: u64, last: u64) {
        let begin = self.text.len() as u32;
        self.text.extend_from_slice(name.as_bytes());
        self.places.push(LabelPlace {
            first,
            last,
            name: (begin, self.text.len() as u32),
        });
    }

    /// All labels.
    pub fn get(&self) -> Labels<'_> {
        Labels::new(&self.text, &self.places)
    }
}
