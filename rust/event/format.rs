// SPDX-License-Identifier: GPL-2.0

//! What an event's `format` file says, in the form that ftrace's have.

use crate::abi::schema::{Field, FieldType};
use core::fmt::{Display, Formatter, Result, Write};

/// Writes the `format` text of event `id`; nothing if there is no such event.
///
/// Offsets count from the end of the event header. A string's size is 0: only the record
/// knows it, and the offset of a string behind another is that of the first. Where ftrace has a
/// `print fmt:`, there are the event's other names, if it has any.
pub(crate) fn format(id: u32, out: &mut dyn Write) -> Result {
    let Some(event) = super::get(id) else {
        return Ok(());
    };
    writeln!(out, "name: {}\nformat:", event.name())?;
    let mut offset = 0;
    for field in event.fields() {
        let size = field.ty.size().unwrap_or(0);
        let signed = u8::from(matches!(field.ty, FieldType::Signed(_)));
        writeln!(
            out,
            "\tfield:{};\toffset:{offset};\tsize:{size};\tsigned:{signed};",
            Declarator(field)
        )?;
        offset += size;
    }
    let mut aliases = event.names().skip(1).peekable();
    if aliases.peek().is_some() {
        out.write_str("\nalias:")?;
        for (subsystem, name) in aliases {
            write!(out, " {subsystem}:{name}")?;
        }
        out.write_str("\n")?;
    }
    Ok(())
}

/// A field as C would declare it.
struct Declarator(Field<'static>);

impl Display for Declarator {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let name = self.0.name;
        match self.0.ty {
            FieldType::Unsigned(bits) | FieldType::Hex(bits) => write!(f, "u{bits} {name}"),
            FieldType::Signed(bits) => write!(f, "s{bits} {name}"),
            FieldType::Text(bytes) => write!(f, "char {name}[{bytes}]"),
            FieldType::String => write!(f, "char {name}[]"),
        }
    }
}
