// SPDX-License-Identifier: GPL-2.0

//! Columns and their types.

use arrow_schema::{DataType, Field, TimeUnit};

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it holds. Each cell may be empty.
    pub kind: Kind,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A time: microseconds since the epoch, UTC. It is the finest that every engine takes.
    Time,
    /// Nanoseconds since the epoch, or another number that goes up slowly.
    Clock,
    /// Yes or no: an integer that is not 0, or is.
    Flag,
    /// An integer.
    Integer {
        /// How wide it is: up to 64.
        bits: u8,
        /// Whether it has a sign.
        signed: bool,
    },
    /// A text.
    Text,
    /// One of few texts: a dictionary.
    Name,
    /// Integers.
    List {
        /// How wide each is: up to 64.
        bits: u8,
        /// Whether they have signs.
        signed: bool,
    },
}

impl Column {
    /// A column of this name.
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
        }
    }

    pub(crate) fn field(&self) -> Field {
        Field::new(&self.name, self.kind.data_type(), true)
    }
}

impl Kind {
    /// An integer of 32 bits with a sign: an id of a thread, say.
    pub const INT: Self = Self::Integer {
        bits: 32,
        signed: true,
    };
    /// One of 64 bits with a sign: a number of nanoseconds, say.
    pub const LONG: Self = Self::Integer {
        bits: 64,
        signed: true,
    };

    pub(crate) fn data_type(self) -> DataType {
        match self {
            Self::Time => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Clock => DataType::Int64,
            Self::Flag => DataType::Boolean,
            Self::Integer { bits, signed } => integer(bits, signed),
            Self::Text => DataType::Utf8,
            Self::Name => DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into()),
            Self::List { bits, signed } => DataType::new_list(integer(bits, signed), true),
        }
    }
}

/// The narrowest type that has so many bits.
fn integer(bits: u8, signed: bool) -> DataType {
    match (bits, signed) {
        (0..=8, true) => DataType::Int8,
        (0..=8, false) => DataType::UInt8,
        (9..=16, true) => DataType::Int16,
        (9..=16, false) => DataType::UInt16,
        (17..=32, true) => DataType::Int32,
        (17..=32, false) => DataType::UInt32,
        (33.., true) => DataType::Int64,
        (33.., false) => DataType::UInt64,
    }
}
