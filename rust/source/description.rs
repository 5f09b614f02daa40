// SPDX-License-Identifier: GPL-2.0

//! Descriptions of events, as other modules give them.

use crate::abi::schema::{Field, FieldType, Integer, LabelPlace, Labels, Shown};
use crate::input::pattern::OF_PROGRAMS;
use crate::input::program;
use core::ops::Range;
use kernel::prelude::*;

/// A subsystem and a name.
pub(crate) type FullName<'a> = (&'a str, &'a str);

/// The most fields that an event may have.
const MAX_FIELDS: usize = 64;

/// The type of the field before an array of variable length: the number of the array's elements.
const LENGTH: FieldType<'static> = FieldType::unsigned(32);

/// Names and fields of an event.
#[derive(PartialEq, Eq)]
pub(crate) struct Description {
    /// All names, one after the other.
    text: KVec<u8>,
    subsystem: Name,
    name: Name,
    fields: KVec<(Name, DescribedType)>,
    /// For each field whose values have names: the place of the field, and the range of its labels in `labels`.
    named: KVec<(usize, Range<usize>)>,
    labels: KVec<LabelPlace>,
    /// Total bytes of all fields of fixed size.
    fixed: usize,
}

/// The place of a name in the text.
type Name = Range<u16>;

/// A field's type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DescribedType {
    /// An integer, or an array with a known number of integers.
    Fixed(FieldType<'static>),
    /// An array of integers; the field before says how many.
    Sequence(Integer),
    /// A NUL-terminated string.
    String,
}

impl Description {
    /// The description of an event of a program, without fields: the subsystem is `user.PROVIDER`. In its text subsystem
    /// and name are beside each other, with a colon between them. `EINVAL`: a name is not valid. May sleep.
    pub(crate) fn of_program(provider: &str, name: &str) -> Result<Self> {
        let mut description = Self::empty();
        for text in [OF_PROGRAMS, provider] {
            description.add_text(text.as_bytes())?;
        }
        description.subsystem = description.name_from(0)?;
        description.add_text(b":")?;
        description.name = description.add_name(name.as_bytes(), program::NAME_MAX)?;
        Ok(description)
    }

    /// `user.PROVIDER:NAME` of an event of a program.
    pub(crate) fn program_name(&self) -> &str {
        self.text(&(self.subsystem.start..self.name.end))
    }

    /// A copy. May sleep.
    pub(crate) fn try_clone(&self) -> Result<Self> {
        let mut copy = Self {
            subsystem: self.subsystem.clone(),
            name: self.name.clone(),
            fixed: self.fixed,
            ..Self::empty()
        };
        copy.text.extend_from_slice(&self.text, GFP_KERNEL)?;
        copy.fields.extend_from_slice(&self.fields, GFP_KERNEL)?;
        copy.named.extend_from_slice(&self.named, GFP_KERNEL)?;
        copy.labels.extend_from_slice(&self.labels, GFP_KERNEL)?;
        Ok(copy)
    }

    fn empty() -> Self {
        Self {
            text: KVec::new(),
            subsystem: 0..0,
            name: 0..0,
            fields: KVec::new(),
            named: KVec::new(),
            labels: KVec::new(),
            fixed: 0,
        }
    }

    /// The description of an event without fields. `EINVAL`: a name is not a C identifier, or is too long. May
    /// sleep.
    pub(crate) fn new(subsystem: &[u8], name: &[u8]) -> Result<Self> {
        let mut description = Self::empty();
        // Some of the kernel's subsystems have a '-' in their names.
        let between = subsystem.split(|&byte| byte == b'-');
        between.into_iter().try_for_each(|part| check(part, 31))?;
        if subsystem.len() > 31 {
            return Err(EINVAL);
        }
        description.subsystem = description.add_text(subsystem)?;
        description.name = description.add_name(name, 63)?;
        Ok(description)
    }

    /// Adds a field after the others; an array of variable length takes two fields. `EINVAL`: as for
    /// [`new`](Self::new), or there are too many fields.
    pub(crate) fn add_field(&mut self, name: &[u8], kind: DescribedType) -> Result {
        check(name, 31)?;
        match kind {
            DescribedType::Fixed(ty) => self.fixed += ty.size().ok_or(EINVAL)?,
            DescribedType::Sequence(_) => {
                let begin = self.text.len();
                for part in [&b"_"[..], name, b"_length"] {
                    self.text.extend_from_slice(part, GFP_KERNEL)?;
                }
                let length = self.name_from(begin)?;
                self.push(length, DescribedType::Fixed(LENGTH))?;
            }
            DescribedType::String => {}
        }
        let name = self.add_name(name, 31)?;
        self.push(name, kind)
    }

    /// Names a value of the last field; does nothing if the value has a name already, or if `name` is empty.
    /// `EINVAL`: the field is not an integer, or `name` is not text of one line. May sleep.
    pub(crate) fn add_label(&mut self, value: u64, name: &[u8]) -> Result {
        let Some((_, DescribedType::Fixed(FieldType::Integer(integer)))) = self.fields.last()
        else {
            return Err(EINVAL);
        };
        let value = extended(value, *integer);
        let text = core::str::from_utf8(name).map_err(|_| EINVAL)?;
        if text.chars().any(char::is_control) {
            return Err(EINVAL);
        }
        let field = self.fields.len() - 1;
        let begin = match self.named.last() {
            Some((last, labels)) if *last == field => labels.start,
            _ => self.labels.len(),
        };
        let mut known = self.labels.iter().skip(begin);
        if name.is_empty() || known.any(|label| label.first == value) {
            return Ok(());
        }
        let name = self.add_text(name)?;
        let place = LabelPlace {
            first: value,
            last: value,
            name: (name.start.into(), name.end.into()),
        };
        self.labels.push(place, GFP_KERNEL)?;
        match self.named.last_mut() {
            Some((last, labels)) if *last == field => labels.end = self.labels.len(),
            _ => self
                .named
                .push((field, begin..self.labels.len()), GFP_KERNEL)?,
        }
        Ok(())
    }

    /// The labels of the field at this place, if it has any.
    fn labels(&self, place: usize) -> Option<Labels<'_>> {
        let (_, labels) = self.named.iter().find(|(field, _)| *field == place)?;
        Some(Labels::new(&self.text, self.labels.get(labels.clone())?))
    }

    fn push(&mut self, name: Name, kind: DescribedType) -> Result {
        if self.fields.len() == MAX_FIELDS {
            return Err(EINVAL);
        }
        Ok(self.fields.push((name, kind), GFP_KERNEL)?)
    }

    fn add_name(&mut self, name: &[u8], longest: usize) -> Result<Name> {
        check(name, longest)?;
        self.add_text(name)
    }

    fn add_text(&mut self, text: &[u8]) -> Result<Name> {
        let begin = self.text.len();
        self.text.extend_from_slice(text, GFP_KERNEL)?;
        self.name_from(begin)
    }

    fn name_from(&self, begin: usize) -> Result<Name> {
        Ok(u16::try_from(begin)?..u16::try_from(self.text.len())?)
    }

    fn text(&self, name: &Name) -> &str {
        let bytes = self
            .text
            .get(usize::from(name.start)..usize::from(name.end));
        core::str::from_utf8(bytes.unwrap_or(&[])).unwrap_or("")
    }

    /// Subsystem and name.
    pub(crate) fn full_name(&self) -> FullName<'_> {
        (self.text(&self.subsystem), self.text(&self.name))
    }

    /// The field at this place in the record.
    pub(crate) fn field(&self, place: usize) -> Option<Field<'_>> {
        let (name, kind) = self.fields.get(place)?;
        let ty = match *kind {
            DescribedType::Fixed(FieldType::Integer(integer)) => match self.labels(place) {
                Some(labels) => FieldType::Enumeration(integer, labels),
                None => FieldType::Integer(integer),
            },
            DescribedType::Fixed(ty) => ty,
            DescribedType::Sequence(element) => {
                let (length, _) = self.fields.get(place.checked_sub(1)?)?;
                FieldType::Sequence(element, self.text(length))
            }
            DescribedType::String => FieldType::String,
        };
        Some(Field::new(self.text(name), ty))
    }

    /// Whether the fields have the same names and types as another event's, whatever names their values have.
    pub(crate) fn has_fields_of(&self, other: &Self) -> bool {
        let same = |((name, kind), (other_name, other_kind)): (
            &(Name, DescribedType),
            &(Name, DescribedType),
        )| { self.text(name) == other.text(other_name) && kind == other_kind };
        self.fields.len() == other.fields.len() && self.fields.iter().zip(&other.fields).all(same)
    }

    /// Whether both descriptions can come from the same description of the kernel's: this compares names and
    /// sizes only, because the kernel's own description does not always say what a value means.
    pub(crate) fn is_outlined_as(&self, other: &Self) -> bool {
        self.outline().eq(other.outline())
    }

    /// The name of each field of the kernel's, and its size if that is fixed.
    fn outline(&self) -> impl Iterator<Item = (&str, Option<usize>)> {
        let next = self.fields.iter().skip(1).map(|(_, kind)| Some(kind));
        let fields = self.fields.iter().zip(Iterator::chain(next, [None]));
        // The kernel does not count the length of an array as a field.
        let fields = fields.filter(|(_, next)| !matches!(next, Some(DescribedType::Sequence(_))));
        fields.map(|((name, kind), _)| match kind {
            DescribedType::Fixed(ty) => (self.text(name), ty.size()),
            DescribedType::Sequence(_) | DescribedType::String => (self.text(name), None),
        })
    }

    /// Total bytes of the fields of fixed size, without the lengths of arrays of variable length.
    pub(crate) fn fixed(&self) -> usize {
        self.fixed
    }

    /// Whether the sizes of the event's records differ.
    pub(crate) fn varies(&self) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|(_, kind)| !matches!(kind, DescribedType::Fixed(_)))
    }

    /// Whether no field is of variable size, except perhaps a string at the end.
    pub(crate) fn has_only_last_string(&self) -> bool {
        let mut fields = self.fields.iter().rev();
        let last = fields.next();
        fields.all(|(_, kind)| matches!(kind, DescribedType::Fixed(_)))
            && !last.is_some_and(|(_, kind)| matches!(kind, DescribedType::Sequence(_)))
    }
}

/// The 64-bit value of an integer's lowest bits: extended with its sign, or with zeros.
fn extended(value: u64, integer: Integer) -> u64 {
    let unused = 64 - u32::from(integer.bits);
    let value = value << unused;
    if integer.shown == Shown::Signed {
        ((value as i64) >> unused) as u64
    } else {
        value >> unused
    }
}

/// `EINVAL`: the name is not a C identifier, or is longer than `longest` bytes.
fn check(name: &[u8], longest: usize) -> Result {
    let is_identifier = name
        .iter()
        .all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.first().is_some_and(|first| !first.is_ascii_digit());
    if is_identifier && name.len() <= longest {
        Ok(())
    } else {
        Err(EINVAL)
    }
}
