// SPDX-License-Identifier: GPL-2.0

//! The program of a map at an event: finds keys and values in the event's records.

use super::durations::Matched;
use super::stacks::{KeyStacks, StackNames};
use crate::abi::schema::{Field, Integer, Shown};
use crate::filter::compile::{self, FilterNames};
use crate::filter::value::Value;
use crate::input::filter::error::FilterReason;
use crate::input::map::{ColumnKind, LinePart, MapDefinition, DURATION};
use crate::map::bucket;
use crate::map::table::{Column, MapShape, MAX_COLUMNS, MAX_KEY};
use crate::probe::filter::Now;
use kernel::prelude::*;

/// Name of the key that is the event itself.
const EVENT: &str = "event";

/// Name of the key that is the kernel's call stack.
const STACK: &str = "kstack";

/// Name of the key that is the user's call stack.
const USER_STACK: &str = "ustack";

/// The word whose bit distinguishes signs. With this bit inverted, signed numbers have the order of unsigned ones.
const SIGN: u64 = 1 << 63;

/// A number of an event.
pub(crate) enum MapNumber {
    /// A value of the record or of the moment.
    Value(Value, Integer),
    /// The time since the begin.
    Duration,
}

impl MapNumber {
    #[inline(always)]
    fn load(&self, record: &[u8], now: &Now<'_>, duration: u64) -> Option<u64> {
        match self {
            Self::Value(value, _) => value.number(record, now),
            Self::Duration => Some(duration),
        }
    }

    /// Whether it can be negative.
    #[inline(always)]
    pub(crate) fn is_signed(&self) -> bool {
        match self {
            Self::Value(_, integer) => integer.shown == Shown::Signed,
            Self::Duration => false,
        }
    }
}

/// A word, or the words, of a map's key.
pub(crate) enum KeyPart {
    /// The event, by its place among the map's events.
    Event,
    /// A number.
    Number(Value, Integer),
    /// A text of this many words.
    Text(Value, usize),
    /// The bucket of a number.
    Bucket(MapNumber),
    /// The kernel's call stack, by its name.
    Stack,
    /// The user's call stack, by its name; and its process, because other processes have other code at the addresses.
    UserStack,
}

impl KeyPart {
    /// Number of its words.
    pub(crate) fn words(&self) -> usize {
        match self {
            Self::Text(_, words) => *words,
            Self::UserStack => 2,
            Self::Event | Self::Number(..) | Self::Bucket(..) | Self::Stack => 1,
        }
    }

    /// Finds a key in the records whose values have these names.
    fn find<'a>(
        names: FilterNames<'_, impl Iterator<Item = Field<'a>> + Clone>,
        key: LinePart<'_>,
    ) -> Result<Self, WrongPart> {
        Ok(match find(names, key)? {
            (value, Some(integer)) => Self::Number(value, integer),
            (value, None) => Self::Text(value, value.words()),
        })
    }

    /// Whether both parts have the same form, so that the words of both can be compared.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Event, Self::Event)
            | (Self::Stack, Self::Stack)
            | (Self::UserStack, Self::UserStack) => true,
            (Self::Text(_, one), Self::Text(_, other)) => one == other,
            (Self::Number(_, one), Self::Number(_, other)) => one.shown == other.shown,
            (Self::Bucket(one), Self::Bucket(other)) => one.is_signed() == other.is_signed(),
            _ => false,
        }
    }
}

/// The value of a column.
pub(super) struct ColumnValue {
    pub(super) number: MapNumber,
    /// Inverted bits of the number: [`SIGN`] if numbers are compared as signed ones.
    pub(super) inverted: u64,
}

/// The program of a map at one event: the places of keys and values in the event's records.
pub(crate) struct MapProgram {
    keys: KVec<KeyPart>,
    /// A bit for each key whose value is that of the begin.
    begun: u64,
    columns: KVec<ColumnValue>,
    stacks: KeyStacks,
    /// If the map measures durations: the values that are the same at the begin.
    pub(super) matched: Option<Matched>,
}

impl MapProgram {
    /// Finds the keys and values of a map in the records whose values have these names. A key that the records lack is a
    /// value of the begin, if the records of the begins have these names `begins`. May sleep.
    pub(crate) fn new<'a, 'b>(
        names: FilterNames<'_, impl Iterator<Item = Field<'a>> + Clone>,
        begins: Option<FilterNames<'_, impl Iterator<Item = Field<'b>> + Clone>>,
        definition: &MapDefinition<'_>,
    ) -> Result<Self, WrongPart> {
        let mut keys = KVec::new();
        let mut begun = 0;
        for key in definition.keys.into_iter().flat_map(LinePart::items) {
            let part = match key.text {
                EVENT => KeyPart::Event,
                STACK => KeyPart::Stack,
                USER_STACK => KeyPart::UserStack,
                _ => match (KeyPart::find(names.clone(), key), &begins) {
                    (Ok(part), _) => part,
                    (Err(wrong), Some(begins)) => {
                        // The error is that of the end.
                        let part = KeyPart::find(begins.clone(), key).map_err(|_| wrong)?;
                        begun |= 1 << keys.len();
                        part
                    }
                    (Err(wrong), None) => return Err(wrong),
                },
            };
            keys.push(part, GFP_KERNEL)?;
        }
        let measures = definition.begins.is_some();
        let number_of = |part: LinePart<'_>| match part.text {
            DURATION if measures => Ok(MapNumber::Duration),
            _ => find_number(names.clone(), part),
        };
        if let Some(part) = definition.hist {
            let number = number_of(part)?;
            keys.push(KeyPart::Bucket(number), GFP_KERNEL)?;
        }
        let mut columns = KVec::new();
        for (kind, part) in definition.columns.iter().flatten() {
            let number = number_of(*part)?;
            let is_compared = !matches!(kind, ColumnKind::Sum);
            let inverted = match number.is_signed() && is_compared {
                true => SIGN,
                false => 0,
            };
            columns.push(ColumnValue { number, inverted }, GFP_KERNEL)?;
        }
        let matched = match definition.begins {
            Some(_) => {
                let end = definition.matched.map(|(_, end)| end);
                Some(Matched::new(names, end)?)
            }
            None => None,
        };
        Ok(Self {
            stacks: KeyStacks {
                kernel: keys.iter().any(|key| matches!(key, KeyPart::Stack)),
                user: keys.iter().any(|key| matches!(key, KeyPart::UserStack)),
            },
            keys,
            begun,
            columns,
            matched,
        })
    }

    /// Whether a key is a value of the begin.
    pub(super) fn has_begun(&self) -> bool {
        self.begun != 0
    }

    /// Whether the key at this place is a value of the begin.
    fn is_begun(&self, place: usize) -> bool {
        self.begun.wrapping_shr(place as u32) & 1 != 0
    }

    /// The number of words that a begin keeps for its end: those of the keys that are values of the begin.
    pub(crate) fn kept_words(&self) -> usize {
        let keys = self.keys.iter().enumerate();
        let kept = keys.filter(|(place, _)| self.is_begun(*place));
        kept.map(|(_, key)| key.words()).sum()
    }

    /// The keys.
    pub(crate) fn keys(&self) -> &[KeyPart] {
        &self.keys
    }

    /// The call stacks that are keys.
    pub(crate) fn stacks(&self) -> KeyStacks {
        self.stacks
    }

    /// The values of the columns.
    pub(super) fn columns(&self) -> &[ColumnValue] {
        &self.columns
    }

    /// Whether the columns of the map's tables have the form that this event's values need.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.keys.len() == other.keys.len()
            && self.begun == other.begun
            && Iterator::zip(self.keys.iter(), other.keys.iter())
                .all(|(one, other)| one.is_like(other))
            && Iterator::zip(self.columns.iter(), other.columns.iter())
                .all(|(one, other)| one.number.is_signed() == other.number.is_signed())
    }

    /// The form of the map's tables. [`None`]: the key is too long.
    pub(crate) fn shape(&self, definition: &MapDefinition<'_>) -> Option<MapShape> {
        let words = self.keys.iter().map(KeyPart::words).sum::<usize>().max(1);
        let mut columns = [Column::Sum; MAX_COLUMNS];
        let kinds = definition.columns.iter().flatten().map(|(kind, _)| *kind);
        for (column, kind) in columns.iter_mut().zip(kinds) {
            *column = match kind {
                ColumnKind::Sum => Column::Sum,
                ColumnKind::Min => Column::Min,
                ColumnKind::Max => Column::Max,
            };
        }
        let columns = columns.get(..self.columns.len())?;
        MapShape::new(words, columns, definition.size as usize)
    }

    /// The number of a column, as its value is; and whether it is signed.
    pub(crate) fn number(&self, column: usize, stored: u64) -> (u64, bool) {
        match self.columns.get(column) {
            Some(ColumnValue { number, inverted }) => (stored ^ inverted, number.is_signed()),
            None => (stored, false),
        }
    }

    /// Writes the key of a record, which has these call stacks, and the numbers of its columns. `kept` has the words that
    /// [`KeptKeys`] wrote at the begin; without `BEGUN` there are none. [`None`]: the record lacks a value.
    #[inline(always)]
    pub(super) fn load<const BEGUN: bool>(
        &self,
        event: u64,
        record: &[u8],
        now: &Now<'_>,
        (duration, StackNames([kernel, user, pid]), mut kept): (u64, &StackNames, &[u64]),
        key: &mut [u64; MAX_KEY],
        numbers: &mut [u64; MAX_COLUMNS],
    ) -> Option<()> {
        let mut rest = &mut key[..];
        let mut begun = self.begun;
        for part in &self.keys {
            let is_begun = BEGUN && begun & 1 != 0;
            begun >>= 1;
            if is_begun {
                let words = part.words();
                let (to, after) = rest.split_at_mut_checked(words)?;
                let (own, others) = kept.split_at_checked(words)?;
                for (to, word) in to.iter_mut().zip(own) {
                    *to = *word;
                }
                (rest, kept) = (after, others);
                continue;
            }
            if let KeyPart::Text(value, words) = part {
                let (to, after) = rest.split_at_mut_checked(*words)?;
                value.text(record, now, to)?;
                rest = after;
                continue;
            }
            let (to, mut after) = rest.split_first_mut()?;
            *to = match part {
                KeyPart::Number(value, _) => value.number(record, now)?,
                KeyPart::Bucket(number) => {
                    let loaded = number.load(record, now, duration)?;
                    match number.is_signed() {
                        true => bucket::of_signed(loaded),
                        false => bucket::of(loaded),
                    }
                }
                KeyPart::Stack => *kernel,
                KeyPart::UserStack => {
                    let (process, others) = after.split_first_mut()?;
                    *process = *pid;
                    after = others;
                    *user
                }
                KeyPart::Event | KeyPart::Text(..) => event,
            };
            rest = after;
        }
        for (to, ColumnValue { number, inverted }) in numbers.iter_mut().zip(&self.columns) {
            *to = number.load(record, now, duration)? ^ inverted;
        }
        Some(())
    }
}

/// The keys of a map that are values of the begin, at one event that begins a duration.
pub(crate) struct KeptKeys(KVec<KeyPart>);

impl KeptKeys {
    /// Finds the keys that the begin keeps for `program`, the program of an end, in the records whose values have these
    /// names. May sleep.
    pub(crate) fn new<'a>(
        names: FilterNames<'_, impl Iterator<Item = Field<'a>> + Clone>,
        definition: &MapDefinition<'_>,
        program: &MapProgram,
    ) -> Result<Self, WrongPart> {
        let mut kept = KVec::new();
        let keys = definition.keys.into_iter().flat_map(LinePart::items);
        let keys = Iterator::zip(keys, &program.keys).enumerate();
        for (_, (key, form)) in keys.filter(|(place, _)| program.is_begun(*place)) {
            let part = KeyPart::find(names.clone(), key)?;
            if !part.is_like(form) {
                let (at, reason) = (key.at, PartReason::OtherType);
                return Err(WrongPart { at, reason });
            }
            kept.push(part, GFP_KERNEL)?;
        }
        Ok(Self(kept))
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes the words of a record's keys. [`None`]: the record lacks one.
    #[inline(always)]
    pub(super) fn load(&self, record: &[u8], now: &Now<'_>, to: &mut [u64]) -> Option<()> {
        let mut rest = to;
        for part in &self.0 {
            let (own, after) = rest.split_at_mut_checked(part.words())?;
            match part {
                KeyPart::Text(value, _) => value.text(record, now, own)?,
                KeyPart::Number(value, _) => *own.first_mut()? = value.number(record, now)?,
                _ => return None,
            }
            rest = after;
        }
        Some(())
    }
}

/// The reason why a map cannot have an event.
pub(crate) struct WrongPart {
    /// Position in the line.
    pub(crate) at: usize,
    /// The reason.
    pub(crate) reason: PartReason,
}

/// See [`WrongPart`].
pub(crate) enum PartReason {
    /// The event lacks the value, or has another one of that name.
    Value(FilterReason),
    /// The event has no duration, and the map measures none.
    NoDuration,
    /// The value has another type at another event.
    OtherType,
    /// The value is a text.
    Text,
    /// The value is an address of the kernel.
    Address,
    /// There is no memory.
    Memory,
}

impl From<kernel::alloc::AllocError> for WrongPart {
    fn from(_: kernel::alloc::AllocError) -> Self {
        let (at, reason) = (0, PartReason::Memory);
        Self { at, reason }
    }
}

impl core::fmt::Display for PartReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Value(reason) => write!(f, "{reason}"),
            Self::NoDuration => f.write_str("a duration needs 'from EVENT'"),
            Self::OtherType => f.write_str("the value has another type here"),
            Self::Text => f.write_str("a text is not a number"),
            Self::Address => f.write_str("an address of the kernel is not a number"),
            Self::Memory => f.write_str("there is no memory"),
        }
    }
}

/// Finds a value by its name.
fn find<'a>(
    names: FilterNames<'_, impl Iterator<Item = Field<'a>> + Clone>,
    part: LinePart<'_>,
) -> Result<(Value, Option<Integer>), WrongPart> {
    let wrong = |reason| {
        let at = part.at;
        WrongPart { at, reason }
    };
    let found = compile::find(part.text, names);
    let value = found.map_err(|reason| wrong(PartReason::Value(reason)))?;
    let integer = value.integer();
    Ok((value, integer))
}

/// As [`find`], for a value that is no text.
pub(super) fn find_integer<'a>(
    names: FilterNames<'_, impl Iterator<Item = Field<'a>> + Clone>,
    part: LinePart<'_>,
) -> Result<(Value, Integer), WrongPart> {
    let (value, integer) = find(names, part)?;
    let (at, reason) = (part.at, PartReason::Text);
    Ok((value, integer.ok_or(WrongPart { at, reason })?))
}

/// As [`find`], for a number.
pub(super) fn find_number<'a>(
    names: FilterNames<'_, impl Iterator<Item = Field<'a>> + Clone>,
    part: LinePart<'_>,
) -> Result<MapNumber, WrongPart> {
    let found = find_integer(names, part).map_err(|wrong| match wrong.reason {
        PartReason::Value(_) if part.text == DURATION => WrongPart {
            reason: PartReason::NoDuration,
            ..wrong
        },
        _ => wrong,
    });
    let (value, integer) = found?;
    if integer.shown == Shown::Address {
        let (at, reason) = (part.at, PartReason::Address);
        return Err(WrongPart { at, reason });
    }
    Ok(MapNumber::Value(value, integer))
}
