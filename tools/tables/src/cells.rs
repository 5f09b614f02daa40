// SPDX-License-Identifier: GPL-2.0

//! The cells of a column that are not written yet.

use crate::column::{width, Kind};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::Result;
use parquet::file::writer::SerializedColumnWriter;
use std::mem::replace;

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
pub enum Cells {
    /// Cells of a column of numbers.
    Numbers(Numbers),
    /// Cells of a column of texts.
    Texts(Texts),
    /// Cells of a column of lists.
    Lists(Lists),
}

impl Cells {
    /// The cells of a column; empty at first.
    pub fn new(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Texts(Texts::default()),
            Kind::List { .. } => Self::Lists(Lists::default()),
            _ => Self::Numbers(Numbers::default()),
        }
    }

    /// Adds a number, given as its bits. A signed integer is sign-extended.
    #[inline]
    pub fn integer(&mut self, bits: u64) {
        match self {
            Self::Numbers(numbers) => {
                numbers.values.push(bits);
                numbers.levels.there();
            }
            _ => self.null(),
        }
    }

    /// Adds a text.
    #[inline]
    pub fn text(&mut self, text: &str) {
        match self {
            Self::Texts(texts) => {
                texts.bytes.extend(text.as_bytes());
                texts.ends.push(texts.bytes.len());
                texts.levels.there();
            }
            _ => self.null(),
        }
    }

    /// Adds a list of integers, each given as its bits.
    pub fn list(&mut self, list: impl Iterator<Item = u64>) {
        match self {
            Self::Lists(lists) => lists.list(list),
            _ => self.null(),
        }
    }

    /// Adds an empty cell.
    #[inline]
    pub fn null(&mut self) {
        match self {
            Self::Numbers(numbers) => numbers.levels.empty(),
            Self::Texts(texts) => texts.levels.empty(),
            Self::Lists(lists) => lists.level(EMPTY, BEGIN),
        }
    }

    /// Writes all cells to a column of this kind.
    pub fn write(self, kind: Kind, to: &mut SerializedColumnWriter<'_>) -> Result<()> {
        match self {
            Self::Numbers(numbers) => match kind {
                Kind::Flag => numbers.write::<BoolType>(|bits| bits != 0, to),
                Kind::Real => numbers.write::<DoubleType>(f64::from_bits, to),
                Kind::Integer { bits, signed } if bits <= 32 => {
                    numbers.write::<Int32Type>(narrow(bits, signed), to)
                }
                _ => numbers.write::<Int64Type>(|bits| bits as i64, to),
            },
            Self::Texts(texts) => texts.write(to),
            Self::Lists(lists) => match kind {
                Kind::List { bits, signed } if bits <= 32 => {
                    lists.write::<Int32Type>(narrow(bits, signed), to)
                }
                _ => lists.write::<Int64Type>(|bits| bits as i64, to),
            },
        }
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

/// The definition levels of cells that are not lists.
#[derive(Default)]
struct Levels {
    /// Number of cells before the first empty one.
    first: usize,
    /// Levels of the cells from the first empty one on.
    rest: Vec<i16>,
}

impl Levels {
    #[inline]
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

/// Cells with numbers.
#[derive(Default)]
pub struct Numbers {
    /// The bits of the cells that are not empty.
    values: Vec<u64>,
    levels: Levels,
}

impl Numbers {
    fn write<T: DataType>(
        self,
        of: impl Fn(u64) -> T::T,
        to: &mut SerializedColumnWriter<'_>,
    ) -> Result<()> {
        let values: Vec<_> = self.values.into_iter().map(of).collect();
        let definitions = self.levels.all();
        let to = to.typed::<T>();
        to.write_batch(&values, Some(&definitions), None).map(drop)
    }
}

/// Cells with lists of integers.
#[derive(Default)]
pub struct Lists {
    /// The bits of all items of all lists.
    values: Vec<u64>,
    /// One level for each item, and for each list without an item.
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
}

impl Lists {
    fn level(&mut self, definition: i16, repetition: i16) {
        self.definitions.push(definition);
        self.repetitions.push(repetition);
    }

    fn list(&mut self, list: impl Iterator<Item = u64>) {
        let mut repetition = BEGIN;
        for bits in list {
            self.values.push(bits);
            self.level(ITEM, repetition);
            repetition = NEXT;
        }
        if repetition == BEGIN {
            self.level(NO_ITEM, BEGIN);
        }
    }

    fn write<T: DataType>(
        self,
        of: impl Fn(u64) -> T::T,
        to: &mut SerializedColumnWriter<'_>,
    ) -> Result<()> {
        let values: Vec<_> = self.values.into_iter().map(of).collect();
        let to = to.typed::<T>();
        let definitions = Some(&self.definitions[..]);
        let repetitions = Some(&self.repetitions[..]);
        to.write_batch(&values, definitions, repetitions).map(drop)
    }
}

/// Cells with texts.
#[derive(Default)]
pub struct Texts {
    /// All texts, one after the other.
    bytes: Vec<u8>,
    /// End of each text.
    ends: Vec<usize>,
    levels: Levels,
}

impl Texts {
    fn write(self, to: &mut SerializedColumnWriter<'_>) -> Result<()> {
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
