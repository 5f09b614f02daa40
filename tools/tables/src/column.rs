// SPDX-License-Identifier: GPL-2.0

//! Columns and their types.

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::errors::Result;
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Type of its values. Each cell may be empty.
    pub kind: ColumnKind,
}

/// Type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// A time: microseconds since the epoch, UTC. It is the finest unit that all engines support.
    Time,
    /// Nanoseconds since the epoch, or another slowly increasing number.
    Clock,
    /// A boolean: whether an integer is not 0.
    Flag,
    /// An integer.
    Integer {
        /// Its width: up to 64 bits.
        bits: u8,
        /// Whether it is signed.
        signed: bool,
    },
    /// A floating-point number.
    Real,
    /// A text. If there are few different texts, the file has each once, and numbers that refer to them: a
    /// dictionary.
    Text,
    /// A list of integers.
    List {
        /// Width of each: up to 64 bits.
        bits: u8,
        /// Whether they are signed.
        signed: bool,
    },
}

impl Column {
    /// A column of this name.
    pub fn new(name: impl Into<String>, kind: ColumnKind) -> Self {
        Self {
            name: name.into(),
            kind,
        }
    }

    /// Its type in a file. Names and nesting are those of Arrow's writers, so that files of different writers
    /// form one table.
    pub(crate) fn field(&self) -> Result<TypePtr> {
        let name = &self.name;
        match self.kind {
            ColumnKind::Time => leaf(name, Physical::INT64, Some(MICROSECONDS)),
            ColumnKind::Clock => leaf(name, Physical::INT64, None),
            ColumnKind::Flag => leaf(name, Physical::BOOLEAN, None),
            ColumnKind::Real => leaf(name, Physical::DOUBLE, None),
            ColumnKind::Text => leaf(name, Physical::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnKind::Integer { bits, signed } => integer(name, bits, signed),
            ColumnKind::List { bits, signed } => {
                let list = Type::group_type_builder("list")
                    .with_repetition(Repetition::REPEATED)
                    .with_fields(vec![integer("item", bits, signed)?]);
                let field = Type::group_type_builder(name)
                    .with_repetition(Repetition::OPTIONAL)
                    .with_logical_type(Some(LogicalType::List))
                    .with_fields(vec![Arc::new(list.build()?)]);
                Ok(Arc::new(field.build()?))
            }
        }
    }
}

impl ColumnKind {
    /// A signed integer of 32 bits, such as a thread id.
    pub const INT: Self = Self::Integer {
        bits: 32,
        signed: true,
    };
    /// A signed integer of 64 bits, such as a number of nanoseconds.
    pub const LONG: Self = Self::Integer {
        bits: 64,
        signed: true,
    };
}

const MICROSECONDS: LogicalType = LogicalType::Timestamp {
    is_adjusted_to_u_t_c: true,
    unit: TimeUnit::MICROS,
};

/// The type of an optional number or text.
fn leaf(name: &str, physical: Physical, logical: Option<LogicalType>) -> Result<TypePtr> {
    let leaf = Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical);
    Ok(Arc::new(leaf.build()?))
}

fn integer(name: &str, bits: u8, signed: bool) -> Result<TypePtr> {
    let integer = |bit_width| LogicalType::Integer {
        bit_width,
        is_signed: signed,
    };
    match (width(bits), signed) {
        (32, true) => leaf(name, Physical::INT32, None),
        (64, true) => leaf(name, Physical::INT64, None),
        (64, false) => leaf(name, Physical::INT64, Some(integer(64))),
        (width, _) => leaf(name, Physical::INT32, Some(integer(width))),
    }
}

/// The smallest width of a column that has room for `bits` bits.
pub(crate) fn width(bits: u8) -> i8 {
    match bits {
        ..=8 => 8,
        9..=16 => 16,
        17..=32 => 32,
        33.. => 64,
    }
}
