// SPDX-License-Identifier: GPL-2.0

//! The cells of a column that are not written yet.

use crate::column::{width, Column, Kind};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::Result;
use parquet::file::writer::SerializedColumnWriter;
use std::mem::{replace, take};

/// Definition levels: the state of a cell. A cell that is not a list is empty or present.
const EMPTY: i16 = 0;
const THERE: i16 = 1;
/// A list may be present without an item. An item is never empty.
const NO_ITEM: i16 = 1;
const ITEM: i16 = 3;

/// Repetition levels: an item begins a list, or continues it.
const BEGIN: i16 = 0;
const NEXT: i16 = 1;

/// Number of cells for which the writer gets the texts at a time.
const BATCH: usize = 1024;

/// Cells of one column. A value that does not fit the column becomes an empty cell.
pub trait Cells: Send {
    /// Adds a number, given as its bits. A signed integer is sign-extended.
    fn integer(&mut self, _bits: u64) {
        self.null();
    }

    /// Adds a text.
    fn text(&mut self, _text: &str) {
        self.null();
    }

    /// Adds a list of integers, each given as its bits.
    fn list(&mut self, _list: &mut dyn Iterator<Item = u64>) {
        self.null();
    }

    /// Adds an empty cell.
    fn null(&mut self);

    /// Removes all cells, which are in the result.
    fn take(&mut self) -> Box<dyn Cells>;

    /// Writes all cells.
    fn write(self: Box<Self>, to: &mut SerializedColumnWriter<'_>) -> Result<()>;
}

/// The cells of a column; empty at first.
pub fn cells(column: &Column) -> Box<dyn Cells> {
    match column.kind {
        Kind::Time | Kind::Clock => numbers::<Int64Type>(|bits| bits as i64),
        Kind::Flag => numbers::<BoolType>(|bits| bits != 0),
        Kind::Real => numbers::<DoubleType>(f64::from_bits),
        Kind::Text => Box::new(Texts::default()),
        Kind::Integer { bits: 33.., .. } => numbers::<Int64Type>(|bits| bits as i64),
        Kind::Integer { bits, signed } => numbers::<Int32Type>(narrow(bits, signed)),
        Kind::List { bits: 33.., .. } => lists::<Int64Type>(|bits| bits as i64),
        Kind::List { bits, signed } => lists::<Int32Type>(narrow(bits, signed)),
    }
}

/// Cuts an integer to the width of a column of at most 32 bits.
fn narrow(bits: u8, signed: bool) -> fn(u64) -> i32 {
    match (width(bits), signed) {
        (8, true) => |bits| bits as i8 as i32,
        (8, false) => |bits| bits as u8 as i32,
        (16, true) => |bits| bits as i16 as i32,
        (16, false) => |bits| bits as u16 as i32,
        _ => |bits| bits as i32,
    }
}

fn numbers<T: DataType>(of: fn(u64) -> T::T) -> Box<dyn Cells> {
    Box::new(Numbers::<T> {
        values: Vec::new(),
        levels: Levels::default(),
        of,
    })
}

fn lists<T: DataType>(of: fn(u64) -> T::T) -> Box<dyn Cells> {
    Box::new(Lists::<T> {
        values: Vec::new(),
        definitions: Vec::new(),
        repetitions: Vec::new(),
        of,
    })
}

/// The definition levels of cells that are not lists.
#[derive(Default)]
struct Levels {
    /// Number of cells before the first empty one.
    first: usize,
    /// Levels of the cells from the first empty one on.
    rest: Vec<i16>,
}

impl Levels {
    fn there(&mut self) {
        match self.rest.is_empty() {
            true => self.first += 1,
            false => self.rest.push(THERE),
        }
    }

    fn empty(&mut self) {
        self.rest.push(EMPTY);
    }

    /// One level for each cell.
    fn all(self) -> Vec<i16> {
        let mut all = vec![THERE; self.first];
        all.extend(self.rest);
        all
    }
}

struct Numbers<T: DataType> {
    /// The bits of the cells that are not empty.
    values: Vec<u64>,
    levels: Levels,
    of: fn(u64) -> T::T,
}

impl<T: DataType> Cells for Numbers<T> {
    fn integer(&mut self, bits: u64) {
        self.values.push(bits);
        self.levels.there();
    }

    fn null(&mut self) {
        self.levels.empty();
    }

    fn take(&mut self) -> Box<dyn Cells> {
        Box::new(Self {
            values: take(&mut self.values),
            levels: take(&mut self.levels),
            of: self.of,
        })
    }

    fn write(self: Box<Self>, to: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let values: Vec<_> = self.values.into_iter().map(self.of).collect();
        let definitions = self.levels.all();
        let to = to.typed::<T>();
        to.write_batch(&values, Some(&definitions), None).map(drop)
    }
}

struct Lists<T: DataType> {
    /// All items of all lists.
    values: Vec<T::T>,
    /// One level for each item, and for each list without an item.
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    of: fn(u64) -> T::T,
}

impl<T: DataType> Lists<T> {
    fn level(&mut self, definition: i16, repetition: i16) {
        self.definitions.push(definition);
        self.repetitions.push(repetition);
    }
}

impl<T: DataType> Cells for Lists<T> {
    fn list(&mut self, list: &mut dyn Iterator<Item = u64>) {
        let mut repetition = BEGIN;
        for bits in list {
            self.values.push((self.of)(bits));
            self.level(ITEM, repetition);
            repetition = NEXT;
        }
        if repetition == BEGIN {
            self.level(NO_ITEM, BEGIN);
        }
    }

    fn null(&mut self) {
        self.level(EMPTY, BEGIN);
    }

    fn take(&mut self) -> Box<dyn Cells> {
        Box::new(Self {
            values: take(&mut self.values),
            definitions: take(&mut self.definitions),
            repetitions: take(&mut self.repetitions),
            of: self.of,
        })
    }

    fn write(self: Box<Self>, to: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let to = to.typed::<T>();
        let definitions = Some(&self.definitions[..]);
        let repetitions = Some(&self.repetitions[..]);
        to.write_batch(&self.values, definitions, repetitions)
            .map(drop)
    }
}

#[derive(Default)]
struct Texts {
    /// All texts, one after the other.
    bytes: Vec<u8>,
    /// End of each text.
    ends: Vec<usize>,
    levels: Levels,
}

impl Cells for Texts {
    fn text(&mut self, text: &str) {
        self.bytes.extend(text.as_bytes());
        self.ends.push(self.bytes.len());
        self.levels.there();
    }

    fn null(&mut self) {
        self.levels.empty();
    }

    fn take(&mut self) -> Box<dyn Cells> {
        Box::new(take(self))
    }

    fn write(self: Box<Self>, to: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let bytes = ByteArray::from(self.bytes);
        let ends = self.ends.into_iter();
        let mut begin = 0;
        let mut texts = ends.map(|end| bytes.slice(begin, end - replace(&mut begin, end)));
        let to = to.typed::<ByteArrayType>();
        for definitions in self.levels.all().chunks(BATCH) {
            let there = definitions.iter().filter(|level| **level == THERE).count();
            let texts: Vec<_> = texts.by_ref().take(there).collect();
            to.write_batch(&texts, Some(definitions), None)?;
        }
        Ok(())
    }
}
