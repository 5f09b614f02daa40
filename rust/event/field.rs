// SPDX-License-Identifier: GPL-2.0

//! Types that a field of an event can have.

use crate::abi::schema::FieldType;
use crate::record::memory::{payload, Payload};

/// A fixed-size field: how it lies in the record is its own type, how it is shown is `TYPE`.
pub(crate) trait FieldValue: Payload {
    /// As the schema says it.
    const TYPE: FieldType;
}

macro_rules! integer_fields {
    ($($t:ty => $variant:ident;)*) => { $(
        impl FieldValue for $t {
            const TYPE: FieldType = FieldType::$variant(<$t>::BITS as u8);
        }
    )* };
}

integer_fields! {
    u8 => Unsigned;
    u16 => Unsigned;
    u32 => Unsigned;
    u64 => Unsigned;
    i8 => Signed;
    i16 => Signed;
    i32 => Signed;
    i64 => Signed;
}

payload! {
    /// A number that is shown in hexadecimal: an address, flags.
    pub(crate) struct Hex { value: u64 }
}

impl Hex {
    /// Shows `value`.
    #[inline(always)]
    pub(super) fn new(value: u64) -> Self {
        Self { value }
    }
}

impl FieldValue for Hex {
    const TYPE: FieldType = FieldType::Hex(64);
}

/// Text, padded with NUL.
impl<const N: usize> FieldValue for [u8; N] {
    const TYPE: FieldType = FieldType::Text(N as u8);
}
