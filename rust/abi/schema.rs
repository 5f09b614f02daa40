// SPDX-License-Identifier: GPL-2.0

//! Names and types of an event's fields.
//!
//! Fields follow one another in the order of the schema, without padding. A bit field begins
//! at the bit behind the field before, anything else at the next byte.

/// How an integer lies in the record, and how a viewer shows it. Little endian: the lowest bit
/// comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integer {
    /// Its width: 1 to 64 bits in a bit field, else 8, 16, 32 or 64.
    pub bits: u8,
    /// Whether it begins at any bit, not at a byte.
    pub is_bit_field: bool,
    /// How it is shown.
    pub shown: Shown,
}

/// How an integer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// In decimal, unsigned.
    Unsigned,
    /// In decimal, signed.
    Signed,
    /// In hexadecimal (flags, addresses in user space).
    Hex,
    /// In hexadecimal: an address of the kernel, which not everybody may see.
    Address,
    /// As a byte of UTF-8. Several of them are a text, which NULs may follow.
    Text,
}

/// What a value, or several in a row, are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label<'a> {
    /// The name.
    pub name: &'a str,
    /// The first value of that name: sign-extended where the integer is signed.
    pub first: u64,
    /// The last one.
    pub last: u64,
}

/// A [`Label`] whose name stands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelPlace {
    /// As in [`Label`].
    pub first: u64,
    /// As in [`Label`].
    pub last: u64,
    /// Where in the text the name begins and ends, in bytes.
    pub name: (u32, u32),
}

/// What the values of an enumeration are called. All names stand in one text: whoever keeps them needs
/// no memory for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labels<'a> {
    text: &'a [u8],
    places: &'a [LabelPlace],
}

impl<'a> Labels<'a> {
    /// Those at these places of a text. What is no UTF-8 text has the name "".
    pub const fn new(text: &'a [u8], places: &'a [LabelPlace]) -> Self {
        Self { text, places }
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Label<'a>> {
        self.places.iter().map(move |place| {
            let (begin, end) = place.name;
            let name = self.text.get(begin as usize..end as usize);
            Label {
                name: name
                    .and_then(|name| core::str::from_utf8(name).ok())
                    .unwrap_or(""),
                first: place.first,
                last: place.last,
            }
        })
    }
}

/// How a field lies in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType<'a> {
    /// An integer.
    Integer(Integer),
    /// An integer whose values have names; there is one at least.
    Enumeration(Integer, Labels<'a>),
    /// So many integers.
    Array(Integer, u32),
    /// As many integers as the field of this name says: an unsigned one of the same event, which
    /// comes before.
    Sequence(Integer, &'a str),
    /// A NUL-terminated string.
    String,
}

#[allow(dead_code)] // As above.
impl Integer {
    /// A byte of text.
    pub const TEXT: Self = Self::new(8, Shown::Text);

    const fn new(bits: u8, shown: Shown) -> Self {
        Self {
            bits,
            is_bit_field: false,
            shown,
        }
    }

    /// Of 8, 16, 32 or 64 bits.
    pub const fn unsigned(bits: u8) -> Self {
        Self::new(bits, Shown::Unsigned)
    }

    /// Of 8, 16, 32 or 64 bits.
    pub const fn signed(bits: u8) -> Self {
        Self::new(bits, Shown::Signed)
    }

    /// Of 8, 16, 32 or 64 bits.
    pub const fn hex(bits: u8) -> Self {
        Self::new(bits, Shown::Hex)
    }

    /// An address of the kernel.
    pub const fn address() -> Self {
        Self::new(64, Shown::Address)
    }

    /// The same as a bit field of so many bits.
    pub const fn bit_field(self, bits: u8) -> Self {
        Self {
            bits,
            is_bit_field: true,
            ..self
        }
    }

    /// It begins at a multiple of so many bits.
    pub const fn align(self) -> usize {
        if self.is_bit_field {
            1
        } else {
            8
        }
    }
}

impl FieldType<'_> {
    /// Unsigned integer of 8, 16, 32 or 64 bits, shown in decimal.
    pub const fn unsigned(bits: u8) -> Self {
        Self::Integer(Integer::unsigned(bits))
    }

    /// Signed integer, shown in decimal.
    pub const fn signed(bits: u8) -> Self {
        Self::Integer(Integer::signed(bits))
    }

    /// Unsigned integer, shown in hexadecimal.
    pub const fn hex(bits: u8) -> Self {
        Self::Integer(Integer::hex(bits))
    }

    /// An address of the kernel, shown in hexadecimal.
    pub const fn address() -> Self {
        Self::Integer(Integer::address())
    }

    /// Text of at most so many bytes, padded with NUL.
    pub const fn text(bytes: u32) -> Self {
        Self::Array(Integer::TEXT, bytes)
    }

    /// The integer that it is, or that it has several of.
    pub const fn integer(self) -> Option<Integer> {
        match self {
            Self::Integer(integer)
            | Self::Enumeration(integer, _)
            | Self::Array(integer, _)
            | Self::Sequence(integer, _) => Some(integer),
            Self::String => None,
        }
    }

    /// Whether it is an address of the kernel, or has such.
    pub const fn has_addresses(self) -> bool {
        match self.integer() {
            Some(integer) => matches!(integer.shown, Shown::Address),
            None => false,
        }
    }

    /// It begins at a multiple of so many bits.
    pub const fn align(self) -> usize {
        match self.integer() {
            Some(integer) => integer.align(),
            None => 8,
        }
    }

    /// Bits in the record, or [`None`] where only the record knows.
    pub const fn bits(self) -> Option<usize> {
        match self {
            Self::Integer(integer) | Self::Enumeration(integer, _) => Some(integer.bits as usize),
            Self::Array(element, length) => Some(element.bits as usize * length as usize),
            Self::Sequence(..) | Self::String => None,
        }
    }

    /// Whole bytes in the record, or [`None`] where only the record knows.
    pub const fn size(self) -> Option<usize> {
        match self.bits() {
            Some(bits) => Some(bits.div_ceil(8)),
            None => None,
        }
    }
}

/// One field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Name, as viewers know it; without a leading underscore.
    pub name: &'a str,
    /// Type.
    pub ty: FieldType<'a>,
}

impl<'a> Field<'a> {
    /// A field, for the tables of events.
    pub const fn new(name: &'a str, ty: FieldType<'a>) -> Self {
        Self { name, ty }
    }
}
