// SPDX-License-Identifier: GPL-2.0

//! Compiles types of a description to rtrace's layouts, and to the steps that translate their fields.
//!
//! Integers of 8, 16, 32 and 64 bits stay as they are, others are widened. The fields of a structure become fields
//! `STRUCTURE.FIELD`. A value for which rtrace has no layout, such as a variant or an array of structures, becomes a
//! text.

use super::model::*;
use ctf::{FieldLayout, Label as OwnLabel, Type as OwnType};
use rtrace_abi::schema::Integer as OwnInteger;

/// A step of a translation.
#[derive(Clone, Debug)]
pub enum Step {
    /// Goes to a multiple of a number of bits.
    Align(u32),
    /// Skips bits.
    Skip(u32),
    /// Copies bytes.
    Copy(u32),
    /// Translates an integer to this number of bytes.
    Integer(Integer, u8, Option<Role>),
    /// Translates an integer to another one of this number of bytes.
    Changed(Integer, u8, fn(u64) -> u64),
    /// Translates an integer to a text.
    Mapped(Integer, fn(u64, &mut Vec<u8>)),
    /// Translates a number in floating point to 64 bits.
    Float { bits: u8, align: u32, order: Order },
    /// Copies a string with its NUL.
    String,
    /// Translates several integers, each to this number of bytes.
    Integers(Count, Integer, u8),
    /// Copies several bytes.
    Bytes(Count),
    /// Reads the bytes of an id.
    Uuid,
    /// Writes a kept value as the 32-bit length of the next field.
    Length(u16),
    /// Writes a value as text, with a NUL.
    Text(Type),
    /// Reads a value, and writes nothing.
    Ignore(Type),
    /// Performs the steps of a chosen option. Writes nothing.
    Choose(u16, Vec<Option_>),
}

/// The values that choose an option, and its steps.
pub type Option_ = (Vec<(u64, u64)>, Vec<Step>);

/// A number of elements.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// This number.
    Fixed(u32),
    /// The kept value in this place.
    Kept(u16),
}

/// The known place of the next field: its bit is `offset` after a multiple of `modulus`.
#[derive(Clone, Copy, Debug)]
struct Place {
    modulus: u32,
    offset: u32,
}

/// The layouts of fields and the steps that write them.
#[derive(Debug)]
pub struct Plan {
    /// The layouts.
    pub fields: Vec<FieldLayout>,
    /// The steps.
    pub steps: Vec<Step>,
    /// Places of kept values, and the fields that have them.
    lengths: Vec<(u16, usize)>,
    place: Place,
    /// Whether names may have an underscore before them.
    has_underscores: bool,
    /// Whether values are written.
    is_written: bool,
}

impl Plan {
    /// A plan without fields.
    pub fn new(has_underscores: bool) -> Self {
        Self {
            fields: Vec::new(),
            steps: Vec::new(),
            lengths: Vec::new(),
            place: Place {
                modulus: 1,
                offset: 0,
            },
            has_underscores,
            is_written: true,
        }
    }

    /// A plan that reads fields and writes those without a meaning for the reader.
    pub fn of_header(ty: Option<&Type>, has_underscores: bool) -> Self {
        let mut this = Self::new(has_underscores);
        this.add_header(ty);
        this
    }

    /// Adds the fields of a scope.
    pub fn add(&mut self, ty: Option<&Type>) {
        let Some(ty) = ty else { return };
        self.align(ty.align());
        for field in ty.fields() {
            self.field(&field.name, "", &field.ty, None);
        }
    }

    fn add_header(&mut self, ty: Option<&Type>) {
        let Some(ty) = ty else { return };
        self.align(ty.align());
        for field in ty.fields() {
            let is_known = field.role.is_some() || has_role(&field.ty);
            self.is_written = !is_known;
            self.field(&field.name, "", &field.ty, field.role);
        }
        self.is_written = true;
    }

    /// A plan that reads the header of an event, and writes nothing.
    pub fn of_event_header(ty: Option<&Type>) -> Vec<Step> {
        let mut this = Self::new(false);
        this.is_written = false;
        if let Some(ty) = ty {
            this.align(ty.align());
            for field in ty.fields() {
                this.field(&field.name, "", &field.ty, field.role);
            }
        }
        this.steps
    }

    fn align(&mut self, align: u32) {
        let Place { modulus, offset } = self.place;
        if align <= modulus {
            let skip = offset.wrapping_neg() & (align - 1);
            if skip > 0 {
                self.steps.push(Step::Skip(skip));
                self.place.offset = (offset + skip) & (modulus - 1);
            }
        } else {
            self.steps.push(Step::Align(align));
            self.place = Place {
                modulus: align,
                offset: 0,
            };
        }
    }

    /// Goes over a field of this number of bits.
    fn pass(&mut self, bits: u64) {
        let mask = u64::from(self.place.modulus - 1);
        self.place.offset = ((u64::from(self.place.offset) + (bits & mask)) & mask) as u32;
    }

    /// Goes over a field of an unknown number of units of bits.
    fn pass_unknown(&mut self, unit: u32) {
        let unit = 1 << unit.max(1).trailing_zeros();
        let modulus = self.place.modulus.min(unit);
        self.place = Place {
            modulus,
            offset: self.place.offset & (modulus - 1),
        };
    }

    /// Adds the layout of a field.
    fn layout(&mut self, prefix: &str, name: &str, ty: OwnType) {
        if self.is_written {
            let name = self.plain(name);
            self.fields.push(FieldLayout {
                name: format!("{prefix}{name}"),
                ty,
            });
        }
    }

    fn plain<'a>(&self, name: &'a str) -> &'a str {
        match self.has_underscores {
            true => name.strip_prefix('_').unwrap_or(name),
            false => name,
        }
    }

    fn field(&mut self, name: &str, prefix: &str, ty: &Type, role: Option<Role>) {
        match ty {
            Type::Integer(integer) => {
                let own = own(integer);
                self.integer(integer, role);
                self.note(integer);
                self.layout(prefix, name, OwnType::Integer(own));
            }
            Type::Enumeration(integer, labels) => {
                self.integer(integer, role);
                let labels = labels.iter().map(|label| OwnLabel {
                    name: label.name.clone(),
                    first: label.first,
                    last: label.last,
                });
                let ty = OwnType::Enumeration(own(integer), labels.collect());
                self.layout(prefix, name, ty);
            }
            Type::Mapped(..) | Type::Changed(..) if !self.is_written => self.other(ty),
            Type::Changed(integer, change) => {
                self.align(integer.align);
                let step = Step::Changed(integer.clone(), width(integer), *change);
                self.steps.push(step);
                self.pass(integer.bits.into());
                self.layout(prefix, name, OwnType::Integer(own(integer)));
            }
            Type::Mapped(integer, map) => {
                self.align(integer.align);
                self.steps.push(Step::Mapped(integer.clone(), *map));
                self.pass(integer.bits.into());
                self.layout(prefix, name, OwnType::String);
            }
            Type::Float { .. } if !self.is_written => self.other(ty),
            Type::Float { bits, align, order } => {
                self.align(*align);
                self.steps.push(Step::Float {
                    bits: *bits,
                    align: 1,
                    order: *order,
                });
                self.pass(u64::from(*bits));
                self.layout(prefix, name, OwnType::Float);
            }
            Type::String if self.is_written => {
                self.align(8);
                self.steps.push(Step::String);
                self.pass_unknown(8);
                self.layout(prefix, name, OwnType::String);
            }
            Type::Structure(fields, _) => {
                self.align(ty.align());
                let inner = format!("{prefix}{}.", self.plain(name));
                for field in fields {
                    self.field(&field.name, &inner, &field.ty, field.role);
                }
            }
            Type::Array(element, count, align) => match (&**element, u32::try_from(*count)) {
                (Type::Integer(integer), Ok(16))
                    if role == Some(Role::Uuid) && integer.bits == 8 =>
                {
                    self.align(ty.align());
                    self.steps.push(Step::Uuid);
                    self.pass(128);
                }
                (Type::Integer(integer), Ok(count))
                    if self.is_written && integer.save.is_none() && integer.bits > 0 =>
                {
                    self.align(integer.align.max(*align));
                    self.layout(prefix, name, OwnType::Array(element_of(integer), count));
                    if integer.bits == 8 && integer.align <= 8 && self.is_at_byte() {
                        self.copy(count);
                    } else {
                        let step =
                            Step::Integers(Count::Fixed(count), integer.clone(), width(integer));
                        self.steps.push(step);
                    }
                    match integer.bits.into() {
                        bits if integer.align <= bits && bits % integer.align == 0 => {
                            self.pass(u64::from(bits) * u64::from(count));
                        }
                        _ => self.pass_unknown(1),
                    }
                }
                _ => self.text(prefix, name, ty),
            },
            Type::Sequence(element, to, align) => match &**element {
                Type::Integer(integer)
                    if self.is_written && integer.save.is_none() && integer.bits > 0 =>
                {
                    // The kept value may be in another scope, or signed.
                    let known = self
                        .lengths
                        .iter()
                        .rev()
                        .find(|(place, _)| *place == to.place);
                    let length = match known {
                        Some((_, field)) => *field,
                        None => {
                            self.steps.push(Step::Length(to.place));
                            let length = format!("_{}_length", self.plain(name));
                            self.fields.push(FieldLayout {
                                name: length,
                                ty: OwnType::Integer(OwnInteger::unsigned(32)),
                            });
                            self.fields.len() - 1
                        }
                    };
                    self.align(integer.align.max(*align));
                    self.layout(prefix, name, OwnType::Sequence(element_of(integer), length));
                    let is_bytes = integer.bits == 8 && integer.align <= 8 && self.is_at_byte();
                    let count = Count::Kept(to.place);
                    self.steps.push(match is_bytes {
                        true => Step::Bytes(count),
                        false => Step::Integers(count, integer.clone(), width(integer)),
                    });
                    self.pass_unknown(match integer.align <= u32::from(integer.bits) {
                        true => integer.bits.into(),
                        false => 1,
                    });
                }
                _ => self.text(prefix, name, ty),
            },
            Type::Variant(to, choices) if has_role(ty) => {
                // The header of an event.
                let options = choices.iter().map(|choice| {
                    let mut inner = Self::new(false);
                    inner.is_written = false;
                    inner.field(&choice.name, "", &choice.ty, None);
                    (choice.values.clone(), inner.steps)
                });
                self.steps.push(Step::Choose(to.place, options.collect()));
                self.pass_unknown(1);
            }
            Type::String | Type::Variant(..) => self.text(prefix, name, ty),
        }
    }

    /// Keeps the number of a field that may be the length of a later one.
    fn note(&mut self, integer: &Integer) {
        if let (Some(place), false, true) = (integer.save, integer.is_signed, self.is_written) {
            self.lengths.push((place, self.fields.len()));
        }
    }

    fn is_at_byte(&self) -> bool {
        self.place.modulus >= 8 && self.place.offset % 8 == 0
    }

    fn integer(&mut self, integer: &Integer, role: Option<Role>) {
        self.align(integer.align);
        let width = if self.is_written { width(integer) } else { 0 };
        let is_plain = integer.order == Order::Little || integer.bits == 8;
        if self.is_at_byte()
            && is_plain
            && integer.save.is_none()
            && role.is_none()
            && matches!(integer.bits, 8 | 16 | 32 | 64)
            && self.is_written
        {
            self.copy(u32::from(integer.bits) / 8);
        } else {
            self.steps.push(Step::Integer(integer.clone(), width, role));
        }
        match integer.bits {
            0 => self.pass_unknown(8),
            bits => self.pass(bits.into()),
        }
    }

    fn copy(&mut self, bytes: u32) {
        if let Some(Step::Copy(before)) = self.steps.last_mut() {
            if let Some(sum) = before.checked_add(bytes) {
                *before = sum;
                return;
            }
        }
        self.steps.push(Step::Copy(bytes));
    }

    /// Adds a value that becomes a text.
    fn text(&mut self, prefix: &str, name: &str, ty: &Type) {
        if !self.is_written {
            return self.other(ty);
        }
        self.layout(prefix, name, OwnType::String);
        self.align(ty.align());
        self.steps.push(Step::Text(ty.clone()));
        self.pass_unknown(1);
    }

    /// Adds a value that is not written.
    fn other(&mut self, ty: &Type) {
        self.align(ty.align());
        self.steps.push(Step::Ignore(ty.clone()));
        self.pass_unknown(1);
    }
}

/// Whether a type has a field with a meaning for the reader.
fn has_role(ty: &Type) -> bool {
    match ty {
        Type::Structure(fields, _) => fields
            .iter()
            .any(|field| field.role.is_some() || has_role(&field.ty)),
        Type::Variant(_, choices) => choices.iter().any(|choice| has_role(&choice.ty)),
        _ => false,
    }
}

/// The number of bytes that an integer has in a record.
pub fn width(integer: &Integer) -> u8 {
    match integer.bits {
        1..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        _ => 8,
    }
}

/// The type of an integer in a record.
fn own(integer: &Integer) -> OwnInteger {
    let bits = 8 * width(integer);
    match (integer.base, integer.is_signed) {
        (Base::Hexadecimal, _) => OwnInteger::hex(bits),
        (_, true) => OwnInteger::signed(bits),
        (_, false) => OwnInteger::unsigned(bits),
    }
}

/// The type of an element of an array.
fn element_of(integer: &Integer) -> OwnInteger {
    match integer.is_text && integer.bits == 8 {
        true => OwnInteger::TEXT,
        false => own(integer),
    }
}
