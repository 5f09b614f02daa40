// SPDX-License-Identifier: GPL-2.0

//! The table of one CPU: open addressing in memory that is reserved at the start.

use super::hash::hash;
use super::word::MapWord;
use core::marker::PhantomData;

/// Maximum number of words of a key.
pub const MAX_KEY: usize = 8;

/// Maximum number of columns.
pub const MAX_COLUMNS: usize = 4;

/// Maximum number of slots of a table.
pub const MAX_SLOTS: usize = 1 << 20;

/// Number of slots in which a key may be: the one that its hash gives, and those after it.
const WINDOW: usize = 32;

/// State of a slot without a key.
const FREE: u64 = 0;
/// State of a slot whose key is being written.
const CLAIMED: u64 = 2;
/// Bit that the state of a slot with a key has. The other bits are those of the key's hash.
const READY: u64 = 1;

/// Words of a slot before its key: the state.
const STATE_WORDS: usize = 1;
/// Words of a slot between its key and its columns: the count.
const COUNT_WORDS: usize = 1;

/// How a column combines the numbers of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Adds them up, wrapping.
    Sum,
    /// Keeps the smallest.
    Min,
    /// Keeps the largest.
    Max,
}

/// The form of a table: the sizes of its key and its columns, and the number of its slots.
#[derive(Clone, Copy, Debug)]
pub struct MapShape {
    key_words: usize,
    columns: [Column; MAX_COLUMNS],
    column_count: usize,
    /// The number of slots, as a power of two.
    slot_bits: u32,
}

impl MapShape {
    /// Makes the form of a table with at least this many slots. [`None`]: there are too many words,
    /// columns or slots, or none.
    pub fn new(key_words: usize, columns: &[Column], slots: usize) -> Option<Self> {
        let is_valid = (1..=MAX_KEY).contains(&key_words)
            && columns.len() <= MAX_COLUMNS
            && (1..=MAX_SLOTS).contains(&slots);
        is_valid.then_some(())?;
        let mut all = [Column::Sum; MAX_COLUMNS];
        all.get_mut(..columns.len())?.copy_from_slice(columns);
        Some(Self {
            key_words,
            columns: all,
            column_count: columns.len(),
            // At least 1, so that a shift by 64 never occurs.
            slot_bits: slots.max(2).next_power_of_two().trailing_zeros(),
        })
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        1_usize.wrapping_shl(self.slot_bits)
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        self.columns.get(..self.column_count).unwrap_or_default()
    }

    /// Number of words that a table needs: its slots, and the values of the updates without a slot.
    pub fn words(&self) -> usize {
        let slots = self.slots().wrapping_mul(self.slot_words());
        slots.wrapping_add(self.value_words())
    }

    #[inline(always)]
    fn value_words(&self) -> usize {
        COUNT_WORDS.wrapping_add(self.column_count)
    }

    #[inline(always)]
    fn slot_words(&self) -> usize {
        let before = STATE_WORDS.wrapping_add(self.key_words);
        before.wrapping_add(self.value_words())
    }
}

/// The sums of a key, or of the updates that found no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapEntry {
    /// The key; words that a key does not have are 0.
    pub key: [u64; MAX_KEY],
    /// Number of updates.
    pub count: u64,
    /// The columns. Before the first update, a minimum is the largest number and a maximum is 0.
    pub columns: [u64; MAX_COLUMNS],
}

impl MapEntry {
    /// An entry without an update.
    pub fn empty(shape: &MapShape) -> Self {
        let mut columns = [0; MAX_COLUMNS];
        for (number, column) in columns.iter_mut().zip(shape.columns()) {
            if *column == Column::Min {
                *number = u64::MAX;
            }
        }
        Self {
            key: [0; MAX_KEY],
            count: 0,
            columns,
        }
    }

    /// Adds an entry of the same key.
    pub fn merge(&mut self, other: &Self, shape: &MapShape) {
        self.count = self.count.wrapping_add(other.count);
        let both = self.columns.iter_mut().zip(&other.columns);
        for ((mine, theirs), column) in both.zip(shape.columns()) {
            *mine = match column {
                Column::Sum => mine.wrapping_add(*theirs),
                Column::Min => (*mine).min(*theirs),
                Column::Max => (*mine).max(*theirs),
            };
        }
    }
}

/// The table of one CPU, in the words `M`, which are 0 at first.
#[derive(Debug)]
pub struct Table<W, M> {
    words: M,
    shape: MapShape,
    /// Number of bits of a hash below those that choose a slot.
    shift: u32,
    /// Number of words of a slot.
    slot_words: usize,
    word: PhantomData<W>,
}

impl<W: MapWord, M: AsRef<[W]>> Table<W, M> {
    /// Makes a table of [`MapShape::words`] words. The words are 0.
    pub fn new(words: M, shape: MapShape) -> Self {
        Self {
            words,
            shape,
            shift: u64::BITS.wrapping_sub(shape.slot_bits),
            slot_words: shape.slot_words(),
            word: PhantomData,
        }
    }

    /// Its words.
    #[inline(always)]
    pub fn words(&self) -> &M {
        &self.words
    }

    /// Adds 1 to the count of a key, and these numbers to its columns. Any context, NMI included, of
    /// the table's CPU.
    ///
    /// `key` has at least as many words as the table's keys, and `numbers` has one number for each column.
    #[inline(always)]
    pub fn update(&self, key: &[u64], numbers: &[u64]) {
        let key = key.get(..self.shape.key_words).unwrap_or_default();
        let hash = hash(key);
        let ready = hash | READY;
        let mask = self.shape.slots().wrapping_sub(1);
        let first = hash.wrapping_shr(self.shift) as usize;
        for step in 0..WINDOW {
            let index = first.wrapping_add(step) & mask;
            if let Some(values) = self.find(index, ready, key) {
                return self.add(values, numbers);
            }
        }
        self.add(self.overflow_values(), numbers);
    }

    /// As [`update`](Self::update), for a key of `K` words, which is the size of the table's keys, and at most
    /// one column, if the key is in the first of its slots. Returns whether it is.
    #[inline(always)]
    pub fn update_known<const K: usize>(&self, key: &[u64; K], number: Option<u64>) -> bool {
        let hash = hash(key);
        let first = hash.wrapping_shr(self.shift) as usize;
        let before = STATE_WORDS.wrapping_add(K).wrapping_add(COUNT_WORDS);
        let first = first.wrapping_mul(self.slot_words);
        let Some(slot) = self.words.as_ref().get(first..) else {
            return false;
        };
        let Some((head, columns)) = slot.split_at_checked(before) else {
            return false;
        };
        let ([state, known @ ..], [.., count]) = (head, head) else {
            return false;
        };
        let is_same = state.load() == hash | READY
            && known
                .iter()
                .zip(key)
                .all(|(word, value)| word.load() == *value);
        if is_same {
            count.increment();
            if let (Some(number), [word, ..], [column, ..]) = (number, columns, &self.shape.columns)
            {
                change(word, *column, number);
            }
        }
        is_same
    }

    /// Returns the values of the slot if it has this key, or is free and takes it.
    #[inline(always)]
    fn find(&self, index: usize, ready: u64, key: &[u64]) -> Option<&[W]> {
        let size = self.shape.slot_words();
        let slot = self.words.as_ref().get(index.wrapping_mul(size)..)?;
        let (state, rest) = slot.split_first()?;
        let (known, values) = rest.split_at_checked(self.shape.key_words)?;
        let mut found = state.load();
        if found == FREE {
            if state.compare_exchange(FREE, CLAIMED) {
                for (word, value) in known.iter().zip(key) {
                    word.store(*value);
                }
                state.store_release(ready);
                return Some(values);
            }
            // A nested context has taken the slot. It has ended, so the slot has its key.
            found = state.load();
        }
        let is_same = found == ready
            && known
                .iter()
                .zip(key)
                .all(|(word, value)| word.load() == *value);
        is_same.then_some(values)
    }

    #[inline(always)]
    fn add(&self, values: &[W], numbers: &[u64]) {
        let Some((count, columns)) = values.split_first() else {
            return;
        };
        count.add(1);
        let both = columns.iter().zip(numbers);
        for ((word, number), column) in both.zip(self.shape.columns()) {
            change(word, *column, *number);
        }
    }

    /// The values of the updates that found no slot.
    #[inline(always)]
    fn overflow_values(&self) -> &[W] {
        let slots = self.shape.slots().wrapping_mul(self.shape.slot_words());
        self.words.as_ref().get(slots..).unwrap_or_default()
    }

    /// Calls `each` with the entry of each slot that has a key. Any CPU.
    pub fn for_each<E>(&self, mut each: impl FnMut(MapEntry) -> Result<(), E>) -> Result<(), E> {
        let size = self.shape.slot_words();
        for slot in self
            .words
            .as_ref()
            .chunks_exact(size)
            .take(self.shape.slots())
        {
            let Some((state, rest)) = slot.split_first() else {
                break;
            };
            if state.load_acquire() & READY == 0 {
                continue;
            }
            let Some((key, values)) = rest.split_at_checked(self.shape.key_words) else {
                break;
            };
            each(self.entry(key, values))?;
        }
        Ok(())
    }

    /// The sums of the updates that found no slot. Any CPU.
    pub fn overflow(&self) -> MapEntry {
        self.entry(&[], self.overflow_values())
    }

    fn entry(&self, key: &[W], values: &[W]) -> MapEntry {
        let mut entry = MapEntry {
            key: [0; MAX_KEY],
            count: 0,
            columns: [0; MAX_COLUMNS],
        };
        for (to, word) in entry.key.iter_mut().zip(key) {
            *to = word.load();
        }
        let mut values = values.iter();
        entry.count = values.next().map_or(0, |count| count.load());
        let both = entry.columns.iter_mut().zip(values);
        for ((to, word), column) in both.zip(self.shape.columns()) {
            *to = match column {
                Column::Sum | Column::Max => word.load(),
                Column::Min => !word.load(),
            };
        }
        entry
    }
}

/// Combines the column's word with a number.
#[inline(always)]
fn change<W: MapWord>(word: &W, column: Column, number: u64) {
    match column {
        Column::Sum => word.add(number),
        Column::Min => raise(word, !number),
        Column::Max => raise(word, number),
    }
}

/// Sets the word to `number` if it is smaller. A minimum is stored inverted, so that 0 is the value
/// before the first update.
#[inline(always)]
fn raise<W: MapWord>(word: &W, number: u64) {
    loop {
        let known = word.load();
        if known >= number || word.compare_exchange(known, number) {
            return;
        }
        // A nested context has raised the word. Each nested context ends, so this loop ends, too.
    }
}
