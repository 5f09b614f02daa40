// SPDX-License-Identifier: GPL-2.0

//! Values of fields as text, as ftrace shows them.

use ctf::{Event, FieldLayout, Type, Value};
use rtrace_abi::schema::{Integer, Shown};
use std::fmt::{self, Display, Formatter, Write};
use system::printing::Line;

/// A value as text: always on one line, whatever bytes a text contains.
pub struct AsText<'a>(pub &'a Type, pub Value<'a>);

impl Display for AsText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(ty, value) = self;
        match (value, ty) {
            (Value::Text(text), _) => Line(text).fmt(f),
            (Value::Integers(integers), Type::Array(element, _) | Type::Sequence(element, _)) => {
                f.write_char('{')?;
                for (place, value) in integers.enumerate() {
                    if place > 0 {
                        f.write_char(',')?;
                    }
                    integer(f, element, value)?;
                }
                f.write_char('}')
            }
            (value, Type::Enumeration(element, _)) => match ty.value_name(*value) {
                Some(name) => Line(name.as_bytes()).fmt(f),
                None => integer(f, element, *value),
            },
            (Value::Float(number), _) => write!(f, "{number}"),
            (value, Type::Integer(element)) => integer(f, element, *value),
            // Arrays and texts have no values of other kinds.
            (_, Type::Array(..) | Type::Sequence(..) | Type::Float | Type::String) => Ok(()),
        }
    }
}

fn integer(f: &mut Formatter<'_>, element: &Integer, value: Value<'_>) -> fmt::Result {
    match value {
        Value::Signed(number) => write!(f, "{number}"),
        Value::Unsigned(number) if is_hex(element) => write!(f, "{number:#x}"),
        Value::Unsigned(number) => write!(f, "{number}"),
        Value::Float(_) | Value::Text(_) | Value::Integers(_) => Ok(()),
    }
}

/// Whether an integer is shown in hexadecimal.
pub fn is_hex(integer: &Integer) -> bool {
    matches!(integer.shown, Shown::Hex | Shown::Address)
}

/// Whether a field only holds the length of another field.
pub fn is_length(field: &FieldLayout) -> bool {
    field.name.starts_with('_') && field.name.ends_with("_length")
}

/// Returns the shown fields of an event.
pub fn fields<'a>(event: &Event<'a>) -> impl Iterator<Item = (&'a FieldLayout, Value<'a>)> {
    event.fields().filter(|(field, _)| !is_length(field))
}

/// Whether a context is shown beside an event's fields. Call stacks are not, nor contexts that name the task:
/// every format has its own place for the task.
pub fn is_shown_context(field: &FieldLayout) -> bool {
    let special = ["tid", "procname"].contains(&field.name.as_str());
    !special && !field.name.starts_with("callstack_") && !is_length(field)
}

/// The fields of an event as `name=value`, and in braces the contexts that are shown.
pub struct Pairs<'a>(pub &'a Event<'a>);

impl Display for Pairs<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (place, (field, value)) in fields(self.0).enumerate() {
            let gap = if place > 0 { " " } else { "" };
            write!(f, "{gap}{}={}", field.name, AsText(&field.ty, value))?;
        }
        Contexts(self.0).fmt(f)
    }
}

/// The shown contexts of an event: in braces, after a blank. Empty without contexts.
pub struct Contexts<'a>(pub &'a Event<'a>);

impl Display for Contexts<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let contexts = self.0.contexts();
        let mut gap = " {";
        for (field, value) in contexts.filter(|(field, _)| is_shown_context(field)) {
            write!(f, "{gap}{}={}", field.name, AsText(&field.ty, value))?;
            gap = " ";
        }
        f.write_str(if gap == " " { "}" } else { "" })
    }
}
