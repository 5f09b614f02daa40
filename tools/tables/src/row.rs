// SPDX-License-Identifier: GPL-2.0

//! A row that is being filled.

use crate::cells::Cells;
use std::slice::IterMut;

/// Memory of a cell or of a list's item: a number or the end of a text, and its levels.
const CELL: usize = 12;

/// A row to fill, cell by cell, in the order of the columns. Cells that are not filled are empty.
pub struct Row<'a> {
    cells: IterMut<'a, Box<dyn Cells>>,
    held: &'a mut usize,
}

impl<'a> Row<'a> {
    /// The next row of these columns. Its size is added to `held`.
    pub(crate) fn new(cells: &'a mut [Box<dyn Cells>], held: &'a mut usize) -> Self {
        let cells = cells.iter_mut();
        Self { cells, held }
    }

    /// Fills a cell with an integer, given as its bits. A signed one is sign-extended.
    pub fn integer(&mut self, bits: u64) {
        self.cell(0, |cells| cells.integer(bits));
    }

    /// Fills a cell with a signed integer, if there is one.
    pub fn number(&mut self, number: Option<i64>) {
        match number {
            Some(number) => self.integer(number as u64),
            None => self.null(),
        }
    }

    /// Fills a cell with a text, if there is one. Invalid UTF-8 is replaced.
    pub fn text(&mut self, text: Option<&[u8]>) {
        let Some(text) = text else {
            return self.null();
        };
        let text = String::from_utf8_lossy(text);
        self.cell(text.len(), |cells| cells.text(&text));
    }

    /// Fills a cell with a list of integers, each given as its bits.
    pub fn list(&mut self, list: impl Iterator<Item = u64>) {
        let mut length = 0;
        self.cell(0, |cells| cells.list(&mut list.inspect(|_| length += 1)));
        *self.held += length * CELL;
    }

    /// Leaves a cell empty.
    pub fn null(&mut self) {
        self.cell(0, |cells| cells.null());
    }

    /// Fills the next cell, with a text of `bytes` bytes.
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
