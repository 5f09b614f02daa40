// SPDX-License-Identifier: GPL-2.0

//! A record as a line of text, in the format of ftrace's `trace_pipe`:
//!
//! ```text
//!             bash-1234    [001]  5912.348170: sched_switch: prev_comm=bash prev_tid=1234 ...
//! ```

use super::records::{FieldPlace, Malformed, RecordHeader, Walk};
use super::schema::{Field, FieldType, Integer, Labels, Shown};
use core::fmt::{self, Write};
use core::num::NonZeroU64;

/// Description of a record, for the parts of its line other than the fields.
#[derive(Clone, Copy, Debug)]
pub struct LineEvent<'a> {
    /// The event's name.
    pub name: &'a str,
    /// The CPU that recorded it.
    pub cpu: u32,
    /// The record's header.
    pub header: RecordHeader,
    /// Ticks of the trace's clock per second.
    pub frequency: NonZeroU64,
}

/// Reason for which a record has no line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLine {
    /// The bytes are not a valid record.
    Malformed,
    /// The output has no room for the line.
    NoRoom,
}

impl From<Malformed> for NoLine {
    fn from(Malformed: Malformed) -> Self {
        Self::Malformed
    }
}

impl From<fmt::Error> for NoLine {
    fn from(_: fmt::Error) -> Self {
        Self::NoRoom
    }
}

/// Writes the line of the record whose header was read. Returns where in the packet the record
/// ends. On failure a part of the line may have been written.
///
/// `contexts` and `fields` return contexts and fields by their index. The contexts `procname` and
/// `tid`, or else `pid`, give the task. The other contexts come after the fields, in braces.
pub fn write<'c, 'f>(
    out: &mut dyn Write,
    packet: &[u8],
    event: &LineEvent<'_>,
    contexts: impl Fn(usize) -> Option<Field<'c>>,
    fields: impl Fn(usize) -> Option<Field<'f>>,
) -> Result<usize, NoLine> {
    const MICROSECONDS: u64 = 1_000_000;
    let RecordHeader { time, end, .. } = event.header;
    let behind = write_task(out, packet, end, &contexts)?;
    let (seconds, rest) = (time / event.frequency, time % event.frequency);
    write!(
        out,
        " [{:03}] {seconds:5}.{:06}: {}:",
        event.cpu,
        rest.saturating_mul(MICROSECONDS) / event.frequency,
        event.name,
    )?;
    let end_of_record = write_fields(out, packet, behind, &fields, " ", |_| true)?;
    let is_left = |name: &str| !matches!(name, COMM | TID | PID);
    if all(&contexts).any(|field| is_left(field.name)) {
        write_fields(out, packet, end, &contexts, " {", is_left)?;
        out.write_char('}')?;
    }
    out.write_char('\n')?;
    Ok(end_of_record)
}

const COMM: &str = "procname";
const TID: &str = "tid";
const PID: &str = "pid";

/// Iterates over all of these fields.
fn all<'a>(fields: impl Fn(usize) -> Option<Field<'a>>) -> impl Iterator<Item = Field<'a>> {
    (0..).map_while(fields)
}

/// Writes the task of an event, as far as the contexts that begin at `at` give it. Returns where
/// these end.
fn write_task<'a>(
    out: &mut dyn Write,
    packet: &[u8],
    at: usize,
    contexts: &impl Fn(usize) -> Option<Field<'a>>,
) -> Result<usize, NoLine> {
    let (mut comm, mut task) = (None, None);
    let mut walk = Walk::new(at, contexts)?;
    while let Some((field, place)) = walk.next(packet)? {
        match field.name {
            COMM => comm = Some(place),
            TID => task = Some(place),
            PID => task = task.or(Some(place)),
            _ => {}
        }
    }
    match comm {
        Some(comm) => {
            let text = text(packet, comm);
            for _ in text.len()..16 {
                out.write_char(' ')?;
            }
            write_text(out, text)?;
        }
        None => write!(out, "{:>16}", "<...>")?,
    }
    match task {
        Some(task) => write!(out, "-{:<7}", number(packet, task.begin, task.integer))?,
        None => write!(out, "-{:<7}", "...")?,
    }
    Ok(walk.end())
}

/// Writes the shown fields of those that begin at `at`, with `before` in front of the first.
/// Returns where they end. The length of a sequence is not shown, because the sequence is.
fn write_fields<'a>(
    out: &mut dyn Write,
    packet: &[u8],
    at: usize,
    fields: &impl Fn(usize) -> Option<Field<'a>>,
    before: &str,
    is_shown: impl Fn(&str) -> bool,
) -> Result<usize, NoLine> {
    let is_length = |name: &str| {
        let is_its =
            |field: Field<'_>| matches!(field.ty, FieldType::Sequence(_, its) if its == name);
        all(fields).any(is_its)
    };
    let mut separator = before;
    let mut walk = Walk::new(at, fields)?;
    while let Some((field, place)) = walk.next(packet)? {
        if is_shown(field.name) && !is_length(field.name) {
            write!(out, "{separator}{}=", field.name)?;
            write_value(out, packet, field.ty, place)?;
            separator = " ";
        }
    }
    Ok(walk.end())
}

fn write_value(
    out: &mut dyn Write,
    packet: &[u8],
    ty: FieldType<'_>,
    place: FieldPlace,
) -> fmt::Result {
    let FieldPlace {
        begin,
        end,
        integer,
    } = place;
    match ty {
        _ if integer.shown == Shown::Text => write_text(out, text(packet, place)),
        FieldType::Enumeration(_, labels) => {
            let value = number(packet, begin, integer);
            match label(labels, integer, value) {
                Some(name) => out.write_str(name),
                None => write_number(out, integer, value),
            }
        }
        FieldType::Integer(_) | FieldType::String => {
            write_number(out, integer, number(packet, begin, integer))
        }
        FieldType::Array(..) | FieldType::Sequence(..) => {
            out.write_char('{')?;
            let bits = usize::from(integer.bits).max(1);
            for (place, at) in (begin..end).step_by(bits).enumerate() {
                if place != 0 {
                    out.write_char(',')?;
                }
                write_number(out, integer, number(packet, at, integer))?;
            }
            out.write_char('}')
        }
    }
}

fn write_number(out: &mut dyn Write, integer: Integer, value: u64) -> fmt::Result {
    match integer.shown {
        Shown::Signed => write!(out, "{}", value as i64),
        Shown::Hex | Shown::Address => write!(out, "{value:#x}"),
        Shown::Unsigned | Shown::Text => write!(out, "{value}"),
    }
}

/// Returns the first name of the value.
fn label(labels: Labels<'_>, integer: Integer, value: u64) -> Option<&str> {
    // So that signed values compare like unsigned ones.
    let turn = match integer.shown {
        Shown::Signed => 1 << 63,
        _ => 0,
    };
    let has = |first: u64, last: u64| (first ^ turn..=last ^ turn).contains(&(value ^ turn));
    let mut labels = labels.iter();
    let label = labels.find(|label| has(label.first, label.last))?;
    Some(label.name)
}

/// Returns the integer whose lowest bit is `bit`, sign-extended if it is signed. The integer lies
/// in the packet.
fn number(packet: &[u8], bit: usize, integer: Integer) -> u64 {
    let bits = usize::from(integer.bits);
    let bytes = packet.get(bit / 8..bit.saturating_add(bits).div_ceil(8));
    // Bit by bit from the highest byte, or byte by byte for an integer of whole bytes.
    let step = if integer.is_bit_field { 1 } else { 8 };
    let mut value = 0_u64;
    for at in (0..bits).step_by(step).rev() {
        let at = bit % 8 + at;
        let byte = bytes.and_then(|bytes| bytes.get(at / 8)).copied();
        let part = byte.unwrap_or(0) >> (at % 8);
        value = value.wrapping_shl(step as u32) | (u64::from(part) & ((1 << step) - 1));
    }
    let unused = 64_u32.saturating_sub(integer.bits.into());
    if integer.shown == Shown::Signed && unused < 64 {
        return ((value << unused) as i64 >> unused) as u64;
    }
    value
}

/// Returns the bytes of a text, up to a NUL.
fn text(packet: &[u8], place: FieldPlace) -> &[u8] {
    let bytes = packet.get(place.begin / 8..place.end / 8).unwrap_or(&[]);
    let end = bytes.iter().position(|byte| *byte == 0);
    bytes.get(..end.unwrap_or(bytes.len())).unwrap_or(&[])
}

/// Writes a text on its line: control characters, and bytes that are not UTF-8, as `\xHH`.
fn write_text(out: &mut dyn Write, text: &[u8]) -> fmt::Result {
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    write!(out, "\\x{byte:02x}")?;
                }
            } else {
                out.write_char(c)?;
            }
        }
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}")?;
        }
    }
    Ok(())
}
