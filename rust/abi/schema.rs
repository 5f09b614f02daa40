// SPDX-License-Identifier: GPL-2.0

//! Names and types of an event's fields.
//!
//! Fields follow one another without padding, in the order of the schema.

/// How a field lies in the record and how a viewer shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// Unsigned integer of this many bits (8, 16, 32, 64), shown in decimal.
    Unsigned(u8),
    /// Signed integer of this many bits, shown in decimal.
    Signed(u8),
    /// Unsigned integer of this many bits, shown in hexadecimal (addresses, flags).
    Hex(u8),
    /// Array of this many bytes of text, padded with NUL.
    Text(u8),
    /// NUL-terminated string. Its length is known only from the record.
    String,
}

impl FieldType {
    /// Bytes in the record, or [`None`] where only the record knows.
    pub const fn size(self) -> Option<usize> {
        match self {
            Self::Unsigned(bits) | Self::Signed(bits) | Self::Hex(bits) => Some(bits as usize / 8),
            Self::Text(bytes) => Some(bytes as usize),
            Self::String => None,
        }
    }
}

/// One field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Name, as viewers know it; without a leading underscore.
    pub name: &'a str,
    /// Type.
    pub ty: FieldType,
}
