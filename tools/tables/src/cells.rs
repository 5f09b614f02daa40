// SPDX-License-Identifier: GPL-2.0

//! The rows of a file that are not written yet.

use crate::column::{width, ColumnKind};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::Result;
use parquet::file::writer::{SerializedColumnWriter, SerializedRowGroupWriter};
use std::borrow::Cow;
use std::io::Write;
use std::iter::repeat_n;
use std::mem::{replace, take};
use std::ops::Range;
use system::printing;

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

/// Approximate memory of a cell or of a list's item, in bytes, without the bytes of a text.
const CELL: usize = 12;

/// Cells per word of a row's mask.
const MASK: usize = u64::BITS as usize;

/// The rows of a file that are not written yet. A row is added in one place of memory, because that is quick. The
/// thread that writes the rows divides them into columns.
pub struct Cells {
    kinds: Vec<ColumnKind>,
    /// Number of words of a row's mask.
    masks: usize,
    /// A word for each cell, row by row. The words of a row follow its mask, which has a bit for each cell that is
    /// not empty.
    ///
    /// The word of a number is the number's bits. The word of a text or list is its place in `texts` or `lists`.
    words: Vec<u64>,
    texts: Runs<u8>,
    /// Lists of integers, each given as its bits.
    lists: Runs<u64>,
    /// The next column of the last row.
    next: usize,
    /// Approximate size in bytes.
    held: usize,
}

impl Cells {
    /// Rows of columns of these kinds; none at first.
    pub fn new(kinds: Vec<ColumnKind>) -> Self {
        Self {
            masks: kinds.len().div_ceil(MASK),
            kinds,
            words: Vec::new(),
            texts: Runs::default(),
            lists: Runs::default(),
            next: 0,
            held: 0,
        }
    }

    /// Takes the rows, and leaves none.
    pub fn take(&mut self) -> Self {
        let mut none = Self::new(self.kinds.clone());
        // The next group will have a similar size.
        none.words.reserve(self.words.len());
        none.texts.items.reserve(self.texts.items.len());
        none.texts.ends.reserve(self.texts.ends.len());
        replace(self, none)
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Approximate size in bytes.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Number of words of a row.
    fn stride(&self) -> usize {
        self.masks + self.kinds.len()
    }

    /// Adds a row, whose cells are empty. The next cell is its first one.
    #[inline]
    pub fn row(&mut self) {
        self.next = 0;
        self.held += self.kinds.len() * CELL;
        self.words.resize(self.words.len() + self.stride(), 0);
    }

    /// Kind of the next cell's column, if there is one. The following cell is the next one from now on.
    #[inline]
    fn kind(&mut self) -> Option<ColumnKind> {
        let kind = self.kinds.get(self.next).copied();
        self.next += 1;
        kind
    }

    /// Fills the cell before the next one.
    #[inline]
    fn fill(&mut self, word: u64) {
        let place = self.next - 1;
        let begin = self.words.len() - self.stride();
        if let Some(row) = self.words.get_mut(begin..) {
            row[place / MASK] |= 1 << (place % MASK);
            row[self.masks + place] = word;
        }
    }

    /// Fills a cell with a number, given as its bits. A signed integer is sign-extended. A value that does not fit
    /// the column leaves the cell empty.
    #[inline]
    pub fn integer(&mut self, bits: u64) {
        if !matches!(
            self.kind(),
            None | Some(ColumnKind::Text | ColumnKind::List { .. })
        ) {
            self.fill(bits);
        }
    }

    /// Fills a cell with a text, which becomes UTF-8 later.
    #[inline]
    pub fn text(&mut self, text: &[u8]) {
        if let Some(kind) = self.kind() {
            self.held += text.len();
            if kind == ColumnKind::Text {
                self.texts.items.extend_from_slice(text);
                let place = self.texts.end();
                self.fill(place);
            }
        }
    }

    /// Fills a cell with a list of integers, each given as its bits.
    pub fn list(&mut self, list: impl Iterator<Item = u64>) {
        if let Some(ColumnKind::List { .. }) = self.kind() {
            let before = self.lists.items.len();
            self.lists.items.extend(list);
            self.held += (self.lists.items.len() - before) * CELL;
            let place = self.lists.end();
            self.fill(place);
        }
    }

    /// Leaves a cell empty.
    #[inline]
    pub fn null(&mut self) {
        self.next += 1;
    }

    /// Writes the rows as a group of rows, column by column.
    pub fn write<W: Write + Send>(
        mut self,
        to: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<()> {
        // Plain texts are UTF-8, and stay as they are.
        let is_plain = self.texts.items.is_ascii() && !self.texts.items.contains(&b'\\');
        let texts = ByteArray::from(take(&mut self.texts.items));
        for (place, kind) in self.kinds.iter().enumerate() {
            let Some(mut to) = to.next_column()? else {
                break;
            };
            match *kind {
                ColumnKind::Flag => self.numbers::<BoolType>(place, |bits| bits != 0, &mut to)?,
                ColumnKind::Real => self.numbers::<DoubleType>(place, f64::from_bits, &mut to)?,
                ColumnKind::Integer { bits, signed } if bits <= 32 => {
                    self.numbers::<Int32Type>(place, narrow(bits, signed), &mut to)?
                }
                ColumnKind::Integer { .. } | ColumnKind::Time | ColumnKind::Clock => {
                    self.numbers::<Int64Type>(place, |bits| bits as i64, &mut to)?
                }
                ColumnKind::Text => self.texts(place, &texts, is_plain, &mut to)?,
                ColumnKind::List { bits, signed } if bits <= 32 => {
                    self.lists::<Int32Type>(place, narrow(bits, signed), &mut to)?
                }
                ColumnKind::List { .. } => {
                    self.lists::<Int64Type>(place, |bits| bits as i64, &mut to)?
                }
            }
            to.close()?;
        }
        Ok(())
    }

    /// The words of a column's cells; none for an empty cell.
    fn column(&self, place: usize) -> impl Iterator<Item = Option<u64>> + '_ {
        let (mask, bit) = (place / MASK, 1 << (place % MASK));
        let word = self.masks + place;
        let rows = self.words.chunks_exact(self.stride());
        rows.map(move |row| (row[mask] & bit != 0).then(|| row[word]))
    }

    fn numbers<T: DataType>(
        &self,
        place: usize,
        of: impl Fn(u64) -> T::T,
        to: &mut SerializedColumnWriter<'_>,
    ) -> Result<()> {
        let rows = self.words.len() / self.stride();
        let (mut values, mut definitions) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        for word in self.column(place) {
            definitions.push(if word.is_some() { THERE } else { EMPTY });
            values.extend(word.map(&of));
        }
        let to = to.typed::<T>();
        to.write_batch(&values, Some(&definitions), None).map(drop)
    }

    fn texts(
        &self,
        place: usize,
        texts: &ByteArray,
        is_plain: bool,
        to: &mut SerializedColumnWriter<'_>,
    ) -> Result<()> {
        let to = to.typed::<ByteArrayType>();
        let mut words = self.column(place).peekable();
        while words.peek().is_some() {
            let (mut values, mut definitions) = (Vec::new(), Vec::new());
            for word in words.by_ref().take(BATCH) {
                definitions.push(if word.is_some() { THERE } else { EMPTY });
                values.extend(word.map(|word| {
                    let Range { start, end } = self.texts.range(word);
                    let text = texts.slice(start, end - start);
                    match is_plain {
                        true => text,
                        false => match printing::text(text.data()) {
                            Cow::Borrowed(_) => text,
                            Cow::Owned(text) => ByteArray::from(text.into_bytes()),
                        },
                    }
                }));
            }
            to.write_batch(&values, Some(&definitions), None)?;
        }
        Ok(())
    }

    fn lists<T: DataType>(
        &self,
        place: usize,
        of: impl Fn(u64) -> T::T,
        to: &mut SerializedColumnWriter<'_>,
    ) -> Result<()> {
        let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
        for word in self.column(place) {
            let list = word.map(|word| &self.lists.items[self.lists.range(word)]);
            let items = list.map_or(0, <[u64]>::len);
            values.extend(list.unwrap_or_default().iter().map(|bits| of(*bits)));
            match list {
                None => definitions.push(EMPTY),
                Some([]) => definitions.push(NO_ITEM),
                Some(_) => definitions.extend(repeat_n(ITEM, items)),
            }
            repetitions.push(BEGIN);
            repetitions.extend(repeat_n(NEXT, items.saturating_sub(1)));
        }
        let to = to.typed::<T>();
        to.write_batch(&values, Some(&definitions), Some(&repetitions))
            .map(drop)
    }
}

/// Texts or lists, one after the other.
struct Runs<T> {
    items: Vec<T>,
    /// End of each.
    ends: Vec<usize>,
}

impl<T> Runs<T> {
    /// Ends a text or list. Returns its place.
    fn end(&mut self) -> u64 {
        self.ends.push(self.items.len());
        self.ends.len() as u64 - 1
    }

    /// The items of the text or list at this place.
    fn range(&self, place: u64) -> Range<usize> {
        let place = place as usize;
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        begin..self.ends[place]
    }
}

impl<T> Default for Runs<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            ends: Vec::new(),
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
