// SPDX-License-Identifier: GPL-2.0

//! The layouts of events and fields, and the events of a stream class by id.

use rtrace_abi::schema::{Integer, Shown};
use std::collections::HashMap;
use std::ops::Index;

/// The layout of an event's payload in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLayout {
    /// The stream class that it belongs to.
    pub stream_id: u32,
    /// Its number in that class.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its fields, in order.
    pub fields: Vec<FieldLayout>,
    /// The size of the payload in bytes, if it is the same in every record.
    pub size: Option<usize>,
    /// Places of the fields.
    pub(super) places: Places,
}

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldLayout {
    /// Its name, without the underscore that TSDL puts before it.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// The layout of a field in a record: that of a [`FieldType`] of the module, without references to the module.
///
/// [`FieldType`]: rtrace_abi::schema::FieldType
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// An integer.
    Integer(Integer),
    /// An integer whose values have names.
    Enumeration(Integer, Vec<Label>),
    /// An array of this number of integers.
    Array(Integer, u32),
    /// A sequence of integers. The earlier unsigned field with this number is its length.
    Sequence(Integer, usize),
    /// A number in floating point, of 64 bits. Only traces of other formats have such fields.
    Float,
    /// A NUL-terminated string.
    String,
}

/// A name of one value of an enumeration, or of consecutive values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The name.
    pub name: String,
    /// The first value of that name: sign-extended, if the integer is signed.
    pub first: u64,
    /// The last value.
    pub last: u64,
}

impl Type {
    /// Whether its integers are shown in hexadecimal.
    pub fn is_hex(&self) -> bool {
        match self {
            Self::Integer(integer)
            | Self::Enumeration(integer, _)
            | Self::Array(integer, _)
            | Self::Sequence(integer, _) => matches!(integer.shown, Shown::Hex | Shown::Address),
            Self::Float | Self::String => false,
        }
    }

    /// The alignment of its begin, in bits.
    pub fn align(&self) -> usize {
        match self {
            Self::Integer(integer)
            | Self::Enumeration(integer, _)
            | Self::Array(integer, _)
            | Self::Sequence(integer, _) => integer.align(),
            Self::Float | Self::String => 8,
        }
    }

    /// The size in bits. [`None`]: it depends on the record.
    pub fn bits(&self) -> Option<usize> {
        match self {
            Self::Integer(integer) | Self::Enumeration(integer, _) => Some(integer.bits.into()),
            Self::Float => Some(64),
            Self::Array(element, length) => Some(usize::from(element.bits) * *length as usize),
            Self::Sequence(..) | Self::String => None,
        }
    }
}

impl EventLayout {
    /// Makes the layout of an event with these fields.
    pub fn new(stream_id: u32, id: u32, name: String, fields: Vec<FieldLayout>) -> Self {
        Self {
            stream_id,
            id,
            name,
            size: size(&fields),
            places: Places::of(&fields),
            fields,
        }
    }

    /// The number of the field called `name`.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}

/// The size of fields in bytes. [`None`]: it depends on the record.
pub(super) fn size(fields: &[FieldLayout]) -> Option<usize> {
    let bits = fields.iter().try_fold(0_usize, |end, field| {
        Some(end.next_multiple_of(field.ty.align()) + field.ty.bits()?)
    });
    bits.map(|bits| bits.div_ceil(8))
}

/// The begins of fields, as far as they are the same in every record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// The first bits of the fields, up to and including the first field of variable size.
    begins: Vec<usize>,
    /// Whether a length is in a field whose place differs between records.
    pub has_far_lengths: bool,
}

impl Places {
    /// The places of these fields.
    pub fn of(fields: &[FieldLayout]) -> Self {
        let mut begins = Vec::with_capacity(fields.len());
        let mut end = Some(0_usize);
        for field in fields {
            let Some(begin) = end.map(|end| end.next_multiple_of(field.ty.align())) else {
                break;
            };
            begins.push(begin);
            end = field.ty.bits().map(|bits| begin + bits);
        }
        let is_far = |field: &FieldLayout| match field.ty {
            Type::Sequence(_, length) => length >= begins.len(),
            _ => false,
        };
        let has_far_lengths = fields.iter().any(is_far);
        Self {
            begins,
            has_far_lengths,
        }
    }

    /// First bit of a field, if it is the same in every record.
    pub fn begin(&self, field: usize) -> Option<usize> {
        self.begins.get(field).copied()
    }

    /// The last field whose place is the same in every record, and its first bit.
    pub fn last(&self) -> Option<(usize, usize)> {
        let begin = self.begins.last()?;
        Some((self.begins.len() - 1, *begin))
    }
}

/// Ids below this number have an entry in the index, for any number of events.
const FIRST_IDS: usize = 64;

/// The events of a stream class. The module numbers them from 0 on, so an index finds them; an id far beyond
/// their number is in a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventLayouts {
    /// In the order of the description.
    all: Vec<EventLayout>,
    /// By id: an index in `all`, or [`NONE`].
    index: Vec<u32>,
    /// The indices of the other ids.
    far: HashMap<u32, u32>,
}

/// No index.
const NONE: u32 = u32::MAX;

impl EventLayouts {
    /// Number of events.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is no event.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The event with this id.
    pub fn get(&self, id: &u32) -> Option<&EventLayout> {
        self.at(self.place(*id)?)
    }

    /// All events, in the order of the description.
    pub fn values(&self) -> impl Iterator<Item = &EventLayout> + Clone {
        self.all.iter()
    }

    /// Adds an event. Returns false if there is one with its id.
    pub fn insert(&mut self, event: EventLayout) -> bool {
        let (id, place) = (event.id, self.all.len() as u32);
        if self.place(id).is_some() {
            return false;
        }
        // The size of the index is at most a multiple of the number of events.
        let reach = FIRST_IDS + 4 * self.all.len();
        match usize::try_from(id) {
            Ok(id) if id < reach => {
                if self.index.len() <= id {
                    self.index.resize(id + 1, NONE);
                }
                self.index[id] = place;
            }
            _ => {
                self.far.insert(id, place);
            }
        }
        self.all.push(event);
        true
    }

    /// The index of an id, for [`Self::at`].
    pub(super) fn place(&self, id: u32) -> Option<u32> {
        match self.index.get(id as usize) {
            Some(&place) if place != NONE => Some(place),
            _ if self.far.is_empty() => None,
            _ => self.far.get(&id).copied(),
        }
    }

    /// The event with this index.
    pub(super) fn at(&self, place: u32) -> Option<&EventLayout> {
        self.all.get(place as usize)
    }
}

impl Index<&u32> for EventLayouts {
    type Output = EventLayout;

    /// The event with this id, which must be there.
    fn index(&self, id: &u32) -> &EventLayout {
        self.get(id).expect("an event with this id")
    }
}
