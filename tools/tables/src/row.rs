// SPDX-License-Identifier: GPL-2.0

//! A row that is being filled.

use crate::cells::Cells;
use crate::rows::Taken;
use std::slice::IterMut;

/// Memory of a cell or of a list's item: a number or the end of a text, and its levels.
const CELL: usize = 12;

/// A row to fill, cell by cell, in the order of the columns. Cells that are not filled are empty.
pub struct Row<'a>(To<'a>);

enum To<'a> {
    /// Columns of a file, and the size of all rows.
    Columns(IterMut<'a, Cells>, &'a mut usize),
    /// A program.
    Program(Taken<'a>),
}

impl<'a> Row<'a> {
    /// The next row of these columns. Its size is added to `held`.
    pub(crate) fn new(cells: &'a mut [Cells], held: &'a mut usize) -> Self {
        Self(To::Columns(cells.iter_mut(), held))
    }

    /// A row that a program takes.
    pub(crate) fn taken(row: Taken<'a>) -> Self {
        Self(To::Program(row))
    }

    /// Fills a cell with an integer, given as its bits. A signed one is sign-extended.
    pub fn integer(&mut self, bits: u64) {
        match &mut self.0 {
            To::Columns(..) => self.cell(0, |cells| cells.integer(bits)),
            To::Program(row) => row.integer(bits),
        }
    }

    /// Fills a cell with a signed integer, if there is one.
    pub fn number(&mut self, number: Option<i64>) {
        match number {
            Some(number) => self.integer(number as u64),
            None => self.null(),
        }
    }

    /// Fills a cell of a column of floating-point numbers.
    pub fn real(&mut self, number: f64) {
        self.integer(number.to_bits());
    }

    /// Fills a cell with a text, if there is one. Invalid UTF-8 is replaced.
    pub fn text(&mut self, text: Option<&[u8]>) {
        let Some(text) = text else {
            return self.null();
        };
        if let To::Program(row) = &mut self.0 {
            return row.text(text);
        }
        let text = String::from_utf8_lossy(text);
        self.cell(text.len(), |cells| cells.text(&text));
    }

    /// Fills a cell with a list of integers, each given as its bits.
    pub fn list(&mut self, list: impl Iterator<Item = u64>) {
        if let To::Program(row) = &mut self.0 {
            return row.list(list);
        }
        let mut length = 0;
        self.cell(0, |cells| cells.list(list.inspect(|_| length += 1)));
        if let To::Columns(_, held) = &mut self.0 {
            **held += length * CELL;
        }
    }

    /// Leaves a cell empty.
    pub fn null(&mut self) {
        match &mut self.0 {
            To::Columns(..) => self.cell(0, Cells::null),
            To::Program(row) => row.null(),
        }
    }

    /// Fills the next cell of a file, with a text of `bytes` bytes.
    fn cell(&mut self, bytes: usize, fill: impl FnOnce(&mut Cells)) {
        let To::Columns(columns, held) = &mut self.0 else {
            return;
        };
        if let Some(cells) = columns.next() {
            **held += bytes + CELL;
            fill(cells);
        }
    }
}

impl Drop for Row<'_> {
    fn drop(&mut self) {
        while matches!(&self.0, To::Columns(columns, _) if columns.len() > 0) {
            self.null();
        }
    }
}
