// SPDX-License-Identifier: GPL-2.0

//! A trace's description, as the format has it: of CTF 1.8 and of CTF 2.

use std::collections::BTreeMap;
use uuid::Uuid;

/// Contents of the `metadata` file.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// The trace, if it has an id.
    pub uuid: Option<Uuid>,
    /// The begin of each packet.
    pub packet_header: Option<Type>,
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// The clocks.
    pub clocks: Vec<ClockClass>,
    /// The stream classes.
    pub streams: Vec<StreamClass>,
    /// Whether names may have an underscore before them, which is no part of them.
    pub has_underscores: bool,
}

/// A clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockClass {
    /// Its name in the description.
    pub name: String,
    /// Its identity: clocks of two traces with one identity are the same.
    pub identity: Option<String>,
    /// Ticks per second.
    pub frequency: u64,
    /// Whole seconds from the epoch to clock value 0.
    pub offset_s: i64,
    /// Remaining ticks.
    pub offset: u64,
    /// Whether its times are since the epoch.
    pub is_absolute: bool,
}

/// The common properties of several streams.
#[derive(Clone, Debug, Default)]
pub struct StreamClass {
    /// Its number.
    pub id: u64,
    /// The part of a packet between its header and its events.
    pub packet_context: Option<Type>,
    /// The begin of each event.
    pub header: Option<Type>,
    /// The values between the header of an event and its own context.
    pub context: Option<Type>,
    /// The name of its clock, if the description of the stream names it.
    pub clock: Option<String>,
    /// Its events.
    pub events: Vec<EventClass>,
}

/// An event.
#[derive(Clone, Debug, Default)]
pub struct EventClass {
    /// Its number in the stream class.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Values before its fields.
    pub context: Option<Type>,
    /// Its fields.
    pub payload: Option<Type>,
}

/// The order of the bytes of a number, and of the bits of a bit field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The lowest byte comes first.
    #[default]
    Little,
    /// The highest byte comes first.
    Big,
}

/// The form of an integer in a viewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// In decimal.
    #[default]
    Decimal,
    /// In hexadecimal.
    Hexadecimal,
    /// In octal.
    Octal,
    /// In binary.
    Binary,
}

/// The meaning of a field for the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The first word of a packet.
    Magic,
    /// The id of the trace.
    Uuid,
    /// The number of the stream class.
    StreamClass,
    /// The number of the stream in its class.
    Stream,
    /// The begin of the packet.
    Begin,
    /// The end of the packet.
    End,
    /// The number of bits of the packet up to its padding.
    ContentSize,
    /// The number of bits of the packet.
    PacketSize,
    /// The number of the packet in its stream.
    Number,
    /// The number of discarded events.
    Discarded,
    /// The CPU.
    Cpu,
    /// The number of the event in its stream class.
    EventId,
    /// The time of the event.
    Time,
}

/// An integer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Integer {
    /// Its width: 1 to 64. 0: a number of any length, seven bits in each byte.
    pub bits: u8,
    /// Its alignment in bits.
    pub align: u32,
    /// Whether it is signed.
    pub is_signed: bool,
    /// The order of its bytes.
    pub order: Order,
    /// Its form in a viewer.
    pub base: Base,
    /// Whether it is a byte of a text.
    pub is_text: bool,
    /// The name of the clock whose value it is.
    pub clock: Option<String>,
    /// The place in which its value is kept for a later field.
    pub save: Option<u16>,
}

/// A name of consecutive values of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The name.
    pub name: String,
    /// The first value, as 64 bits.
    pub first: u64,
    /// The last value.
    pub last: u64,
}

/// The number of elements of a sequence, or the choice of a variant: the value of an earlier field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The path of the field, as the description has it.
    pub path: Vec<String>,
    /// The place in which its value is kept.
    pub place: u16,
}

impl Reference {
    /// A reference to the field with this path.
    pub fn new(path: Vec<String>) -> Self {
        Self { path, place: 0 }
    }
}

/// A type of fields.
#[derive(Clone, Debug)]
pub enum Type {
    /// An integer.
    Integer(Integer),
    /// An integer whose values have names.
    Enumeration(Integer, Vec<Label>),
    /// An integer that becomes another one.
    Changed(Integer, fn(u64) -> u64),
    /// An integer that becomes a text, which a function appends.
    Mapped(Integer, fn(u64, &mut Vec<u8>)),
    /// A number in floating point, of 32 or 64 bits.
    Float { bits: u8, align: u32, order: Order },
    /// A NUL-terminated string.
    String,
    /// Fields one after the other.
    Structure(Vec<Field>, u32),
    /// One of several types. The labels of the chosen option have the value of the reference.
    Variant(Reference, Vec<Choice>),
    /// A number of elements.
    Array(Box<Type>, u64, u32),
    /// A number of elements that an earlier field has.
    Sequence(Box<Type>, Reference, u32),
}

/// An option of a variant.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// The values that choose it: first and last. Empty in CTF 1.8 until the reference is resolved.
    pub values: Vec<(u64, u64)>,
}

/// A field of a structure.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Its meaning for the reader.
    pub role: Option<Role>,
}

impl Type {
    /// The alignment of its begin in bits.
    pub fn align(&self) -> u32 {
        match self {
            Self::Integer(integer)
            | Self::Enumeration(integer, _)
            | Self::Changed(integer, _)
            | Self::Mapped(integer, _) => integer.align,
            Self::Float { align, .. } => *align,
            Self::String => 8,
            Self::Structure(fields, align) => {
                let fields = fields.iter().map(|field| field.ty.align());
                fields.fold(*align, u32::max)
            }
            Self::Variant(..) => 1,
            Self::Array(element, _, align) | Self::Sequence(element, _, align) => {
                element.align().max(*align)
            }
        }
    }

    /// The number of types in it, and itself.
    pub fn parts(&self) -> usize {
        1 + match self {
            Self::Structure(fields, _) => fields.iter().map(|field| field.ty.parts()).sum(),
            Self::Variant(_, choices) => choices.iter().map(|choice| choice.ty.parts()).sum(),
            Self::Array(element, ..) | Self::Sequence(element, ..) => element.parts(),
            Self::Enumeration(_, labels) => labels.len(),
            _ => 0_usize,
        }
    }

    /// The fields, if it is a structure.
    pub fn fields(&self) -> &[Field] {
        match self {
            Self::Structure(fields, _) => fields,
            _ => &[],
        }
    }
}
