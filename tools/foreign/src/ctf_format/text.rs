// SPDX-License-Identifier: GPL-2.0

//! Values of nested types as text, in the form of babeltrace2.

use super::bits::{Bits, Fault, Read};
use super::machine::{has, no_option, Machine};
use super::model::*;
use std::io::Write;

/// Maximum length of the text of an array.
const LONGEST: usize = 1 << 18;

/// Reads a value, and appends its text.
pub fn write(machine: &mut Machine, ty: &Type, bits: &mut Bits<'_>, out: &mut Vec<u8>) -> Read<()> {
    match ty {
        Type::Integer(integer) => {
            let value = machine.integer(integer, bits)?;
            number(integer, value, out);
        }
        Type::Enumeration(integer, labels) => {
            let value = machine.integer(integer, bits)?;
            let is_of = |label: &&Label| has(&[(label.first, label.last)], value);
            match labels.iter().find(is_of) {
                Some(label) => {
                    out.extend_from_slice(b"( ");
                    quote(label.name.as_bytes(), out);
                }
                None => out.extend_from_slice(b"( <unknown>"),
            }
            out.extend_from_slice(b" : container = ");
            number(integer, value, out);
            out.extend_from_slice(b" )");
        }
        Type::Changed(integer, change) => {
            let value = change(machine.integer(integer, bits)?);
            number(integer, value, out);
        }
        Type::Mapped(integer, map) => map(machine.integer(integer, bits)?, out),
        Type::Float {
            bits: size,
            align,
            order,
        } => {
            let value = bits.float(*size, *align, *order)?;
            put(out, format_args!("{value}"));
        }
        Type::String => {
            bits.align(8);
            quote(bits.string()?, out);
        }
        Type::Structure(fields, _) => {
            bits.align(ty.align());
            out.extend_from_slice(b"{");
            for (place, field) in fields.iter().enumerate() {
                let comma = if place > 0 { "," } else { "" };
                let name = field.name.strip_prefix('_').unwrap_or(&field.name);
                put(out, format_args!("{comma} {name} = "));
                write(machine, &field.ty, bits, out)?;
            }
            out.extend_from_slice(b" }");
        }
        Type::Variant(to, choices) => {
            let value = machine.kept[usize::from(to.place)];
            let choice = choices.iter().find(|choice| has(&choice.values, value));
            let choice = choice.ok_or_else(|| no_option(value))?;
            let name = choice.name.strip_prefix('_').unwrap_or(&choice.name);
            put(out, format_args!("{{ {name} = "));
            write(machine, &choice.ty, bits, out)?;
            out.extend_from_slice(b" }");
        }
        Type::Array(element, count, align) => {
            bits.align(element.align().max(*align));
            elements(machine, element, *count, bits, out)?;
        }
        Type::Sequence(element, to, align) => {
            let count = machine.kept_count(to.place)? as u64;
            bits.align(element.align().max(*align));
            elements(machine, element, count, bits, out)?;
        }
    }
    Ok(())
}

fn elements(
    machine: &mut Machine,
    element: &Type,
    count: u64,
    bits: &mut Bits<'_>,
    out: &mut Vec<u8>,
) -> Read<()> {
    if let Type::Integer(integer) = element {
        if integer.is_text && integer.bits == 8 && integer.align <= 8 {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let text = bits.bytes(count)?;
            let length = text.iter().position(|byte| *byte == 0);
            quote(&text[..length.unwrap_or(text.len())], out);
            return Ok(());
        }
    }
    let begin = out.len();
    out.push(b'[');
    for place in 0..count {
        let comma = if place > 0 { "," } else { "" };
        put(out, format_args!("{comma} [{place}] = "));
        let before = bits.at();
        write(machine, element, bits, out)?;
        if out.len() - begin > LONGEST {
            return Err(Fault::Bad(format!(
                "a value of more than {LONGEST} bytes as text"
            )));
        }
        if bits.at() == before && count > 1 << 16 {
            // Elements without a bit: their number says nothing.
            return Err(Fault::Bad(format!("an array of {count} empty elements")));
        }
    }
    out.extend_from_slice(b" ]");
    Ok(())
}

fn number(integer: &Integer, value: u64, out: &mut Vec<u8>) {
    match integer.base {
        Base::Hexadecimal => put(out, format_args!("{:#X}", Masked(integer, value).bits())),
        Base::Octal => put(out, format_args!("0{:o}", Masked(integer, value).bits())),
        Base::Binary => put(out, format_args!("{:#b}", Masked(integer, value).bits())),
        Base::Decimal if integer.is_signed => put(out, format_args!("{}", value as i64)),
        Base::Decimal => put(out, format_args!("{value}")),
    }
}

/// The bits of an integer that are its own.
struct Masked<'a>(&'a Integer, u64);

impl Masked<'_> {
    fn bits(&self) -> u64 {
        match self.0.bits {
            1..=63 => self.1 & ((1 << self.0.bits) - 1),
            _ => self.1,
        }
    }
}

fn quote(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            byte => out.push(*byte),
        }
    }
    out.push(b'"');
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(text);
}
