// SPDX-License-Identifier: GPL-2.0

//! A row that is being filled.

use crate::cells::Cells;
use crate::rows::Taken;

/// A row to fill, cell by cell, in the order of the columns. Cells that are not filled are empty.
pub struct Row<'a>(To<'a>);

enum To<'a> {
    /// A file.
    File(&'a mut Cells),
    /// A program.
    Program(Taken<'a>),
}

impl<'a> Row<'a> {
    /// The next row of a file.
    pub(crate) fn new(cells: &'a mut Cells) -> Self {
        cells.row();
        Self(To::File(cells))
    }

    /// A row that a program takes.
    pub(crate) fn taken(row: Taken<'a>) -> Self {
        Self(To::Program(row))
    }

    /// Fills a cell with an integer, given as its bits. A signed one is sign-extended.
    #[inline]
    pub fn integer(&mut self, bits: u64) {
        match &mut self.0 {
            To::File(cells) => cells.integer(bits),
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
        match (text, &mut self.0) {
            (Some(text), To::File(cells)) => cells.text(text),
            (Some(text), To::Program(row)) => row.text(text),
            (None, _) => self.null(),
        }
    }

    /// Fills a cell with a list of integers, each given as its bits.
    pub fn list(&mut self, list: impl Iterator<Item = u64>) {
        match &mut self.0 {
            To::File(cells) => cells.list(list),
            To::Program(row) => row.list(list),
        }
    }

    /// Leaves a cell empty.
    pub fn null(&mut self) {
        match &mut self.0 {
            To::File(cells) => cells.null(),
            To::Program(row) => row.null(),
        }
    }
}
