// SPDX-License-Identifier: GPL-2.0

//! Names and types of an event's fields.
//!
//! Fields follow one another in the order of the schema, without padding. A bit field begins at the
//! bit after the previous field, any other field at the next byte.

/// The last bytes of a text that was cut: an ellipsis, in UTF-8.
pub const CUT: [u8; 3] = *b"\xe2\x80\xa6";

/// Layout of an integer in the record, and its form in a viewer. Little endian: the lowest bit
/// comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integer {
    /// Width: 1 to 64 bits in a bit field, else 8, 16, 32 or 64.
    pub bits: u8,
    /// Whether it may begin at any bit, instead of at a byte.
    pub is_bit_field: bool,
    /// Form in a viewer.
    pub shown: Shown,
}

/// Form of an integer in a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// In decimal, unsigned.
    Unsigned,
    /// In decimal, signed.
    Signed,
    /// In hexadecimal (flags, addresses in user space).
    Hex,
    /// In hexadecimal: an address of the kernel, which not every reader may see.
    Address,
    /// As a byte of UTF-8. Several of them are a text, which may end with NULs.
    Text,
}

/// Name of a value, or of a range of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label<'a> {
    /// The name.
    pub name: &'a str,
    /// First value of that name; sign-extended if the integer is signed.
    pub first: u64,
    /// Last value of that name.
    pub last: u64,
}

/// A [`Label`] whose name is a part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelPlace {
    /// As in [`Label`].
    pub first: u64,
    /// As in [`Label`].
    pub last: u64,
    /// Begin and end of the name in the text, in bytes.
    pub name: (u32, u32),
}

/// Names of the values of an enumeration. All names are in one text, so that they need only one
/// allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labels<'a> {
    text: &'a [u8],
    places: &'a [LabelPlace],
}

impl<'a> Labels<'a> {
    /// Makes labels of places in a text. A name that is not UTF-8 becomes "".
    pub const fn new(text: &'a [u8], places: &'a [LabelPlace]) -> Self {
        Self { text, places }
    }

    /// Iterates over the labels.
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

/// Layout of a field in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType<'a> {
    /// An integer.
    Integer(Integer),
    /// An integer whose values have names; there is at least one name.
    Enumeration(Integer, Labels<'a>),
    /// This many integers.
    Array(Integer, u32),
    /// Integers whose number is the value of the field with this name. That field is an earlier,
    /// unsigned one of the same event.
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

    /// An integer of 8, 16, 32 or 64 bits.
    pub const fn unsigned(bits: u8) -> Self {
        Self::new(bits, Shown::Unsigned)
    }

    /// An integer of 8, 16, 32 or 64 bits.
    pub const fn signed(bits: u8) -> Self {
        Self::new(bits, Shown::Signed)
    }

    /// An integer of 8, 16, 32 or 64 bits.
    pub const fn hex(bits: u8) -> Self {
        Self::new(bits, Shown::Hex)
    }

    /// An address of the kernel.
    pub const fn address() -> Self {
        Self::new(64, Shown::Address)
    }

    /// The same integer as a bit field of this many bits.
    pub const fn bit_field(self, bits: u8) -> Self {
        Self {
            bits,
            is_bit_field: true,
            ..self
        }
    }

    /// Alignment in bits.
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

    /// Text of at most this many bytes, padded with NULs.
    pub const fn text(bytes: u32) -> Self {
        Self::Array(Integer::TEXT, bytes)
    }

    /// Its integer type, or that of its elements.
    pub const fn integer(self) -> Option<Integer> {
        match self {
            Self::Integer(integer)
            | Self::Enumeration(integer, _)
            | Self::Array(integer, _)
            | Self::Sequence(integer, _) => Some(integer),
            Self::String => None,
        }
    }

    /// Returns whether it is an address of the kernel, or contains addresses.
    pub const fn has_addresses(self) -> bool {
        match self.integer() {
            Some(integer) => matches!(integer.shown, Shown::Address),
            None => false,
        }
    }

    /// Alignment in bits.
    pub const fn align(self) -> usize {
        match self.integer() {
            Some(integer) => integer.align(),
            None => 8,
        }
    }

    /// Size in bits; [`None`] if only the record has it.
    pub const fn bits(self) -> Option<usize> {
        match self {
            Self::Integer(integer) | Self::Enumeration(integer, _) => Some(integer.bits as usize),
            Self::Array(element, length) => Some(element.bits as usize * length as usize),
            Self::Sequence(..) | Self::String => None,
        }
    }

    /// Size in bytes, rounded up; [`None`] if only the record has it.
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
    /// Name in viewers, without a leading underscore.
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
