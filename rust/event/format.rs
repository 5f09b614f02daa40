// SPDX-License-Identifier: GPL-2.0

//! Text of an event's `format` file, in the form of ftrace's.

use super::Event;
use crate::abi::schema::{Field, FieldType, Integer, Shown};
use core::fmt::{Display, Formatter, Result, Write};

impl Event {
    /// Writes the text of its `format` file.
    ///
    /// Offsets count from the end of the event header. The size of a string or a sequence is 0, because only
    /// the record knows it. Fields after it have the offsets that they would have without it. In place of
    /// ftrace's `print fmt:` there are the event's other names, if it has any.
    pub(crate) fn write_format(&self, out: &mut dyn Write) -> Result {
        writeln!(out, "name: {}\nformat:", self.name())?;
        let mut offset = 0;
        for field in self.fields() {
            let size = field.ty.size().unwrap_or(0);
            writeln!(
                out,
                "\tfield:{};\toffset:{};\tsize:{};\tsigned:{};",
                Declarator(field),
                offset,
                size,
                u8::from(is_signed(field.ty))
            )?;
            offset += size;
        }
        let mut aliases = self.names().skip(1).peekable();
        if aliases.peek().is_some() {
            out.write_str("\nalias:")?;
            for (subsystem, name) in aliases {
                write!(out, " {subsystem}:{name}")?;
            }
            out.write_str("\n")?;
        }
        Ok(())
    }
}

fn is_signed(ty: FieldType<'_>) -> bool {
    match ty {
        FieldType::Integer(integer) | FieldType::Enumeration(integer, _) => {
            integer.shown == Shown::Signed
        }
        _ => false,
    }
}

/// A field as a declaration in C.
struct Declarator<'a>(Field<'a>);

impl Display for Declarator<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Field { name, ty } = self.0;
        match ty {
            FieldType::Integer(integer) | FieldType::Enumeration(integer, _) => {
                write!(f, "{} {name}", Type(integer))
            }
            FieldType::Array(element, length) => write!(f, "{} {name}[{length}]", Type(element)),
            FieldType::Sequence(element, _) => write!(f, "{} {name}[]", Type(element)),
            FieldType::String => write!(f, "{} {name}[]", Type(Integer::TEXT)),
        }
    }
}

/// An integer's type in C.
struct Type(Integer);

impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let bits = self.0.bits;
        match self.0.shown {
            Shown::Unsigned | Shown::Hex | Shown::Address => write!(f, "u{bits}"),
            Shown::Signed => write!(f, "s{bits}"),
            Shown::Text => f.write_str("char"),
        }
    }
}
