// SPDX-License-Identifier: GPL-2.0

//! A row that is being filled.

use crate::cells::Cells;
use std::slice::IterMut;

/// Bytes of a cell, or an item of a list: a number, or where a text ends, and its levels.
const CELL: usize = 12;

/// A row to be filled, cell by cell, in the order of the columns. Cells that are not filled are empty.
pub struct Row<'a> {
    cells: IterMut<'a, Box<dyn Cells>>,
    held: &'a mut usize,
}

impl<'a> Row<'a> {
    /// The next row of these columns. Its bytes are added to `held`.
    pub(crate) fn new(cells: &'a mut [Box<dyn Cells>], held: &'a mut usize) -> Self {
        let cells = cells.iter_mut();
        Self { cells, held }
    }

    /// An integer as its bits: a signed one as sign-extended.
    pub fn integer(&mut self, bits: u64) {
        self.cell(0, |cells| cells.integer(bits));
    }

    /// A signed integer, if there is one.
    pub fn number(&mut self, number: Option<i64>) {
        match number {
            Some(number) => self.integer(number as u64),
            None => self.null(),
        }
    }

    /// A text, if there is one. What is not UTF-8 in it is replaced.
    pub fn text(&mut self, text: Option<&[u8]>) {
        let Some(text) = text else {
            return self.null();
        };
        let text = String::from_utf8_lossy(text);
        self.cell(text.len(), |cells| cells.text(&text));
    }

    /// Integers, each as its bits.
    pub fn list(&mut self, list: impl Iterator<Item = u64>) {
        let mut length = 0;
        self.cell(0, |cells| cells.list(&mut list.inspect(|_| length += 1)));
        *self.held += length * CELL;
    }

    /// An empty cell.
    pub fn null(&mut self) {
        self.cell(0, |cells| cells.null());
    }

    /// Fills the next cell, with a text of so many bytes.
    fn cell(&mut self, bytes: usize, fill: impl FnOnce(&mut dyn Cells)) {
        if let Some(cells) = self.cells.next() {
            *self.held += bytes + CELL;
            fill(cells.as_mut());
        }
    }
}

impl Drop for Row<'_> {
    fn drop(&mut self) {
        while self.cells.len() > 0 {
            self.null();
        }
    }
}
