// SPDX-License-Identifier: GPL-2.0

//! From the kernel's record of an event to the trace's record: first the fields of fixed size, without padding,
//! then the others, as in the kernel's own events that probes record (`events/stages.h`).

use crate::abi::schema::{FieldType, Integer};
use crate::record::memory::{Space, Tail};
use crate::source::description::{DescribedType, Description};
use crate::sys::trace_event::{TraceField, TraceFields};
use kernel::prelude::*;

/// Places of the fields in the kernel's record.
#[derive(PartialEq, Eq)]
pub(super) struct PerfLayout {
    /// Bytes that are copied unchanged, in this order.
    fixed: KVec<Part>,
    /// Total size of `fixed`.
    fixed_len: usize,
    varying: KVec<Varying>,
}

/// A contiguous range of bytes.
#[derive(PartialEq, Eq)]
struct Part {
    begin: usize,
    len: usize,
}

/// A field of variable size. The record contains its place.
#[derive(PartialEq, Eq)]
struct Varying {
    begin: usize,
    /// Whether that place is relative to the end of the word that contains it.
    is_relative: bool,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// Text, ended by a NUL.
    Text,
    /// Elements; the number is the base-2 logarithm of their size in bytes.
    Elements(u32),
}

/// A record of the kernel's, written in the trace's form.
pub(super) struct PerfRecord<'a> {
    pub(super) layout: &'a PerfLayout,
    pub(super) bytes: &'a [u8],
}

/// Describes the fields of an event's records, and their places. `EINVAL`: a trace cannot contain them. May
/// sleep.
pub(super) fn describe(
    event: &impl TraceFields,
    subsystem: &str,
    name: &str,
) -> Result<(Description, PerfLayout)> {
    let mut description = Description::new(subsystem.as_bytes(), name.as_bytes())?;
    let mut layout = PerfLayout {
        fixed: KVec::new(),
        fixed_len: 0,
        varying: KVec::new(),
    };
    event.each_field(|field| match Varying::of(&field)? {
        None => {
            description.add_field(field.name.as_bytes(), fixed(&field)?)?;
            layout.add_fixed(field.offset, field.size)
        }
        Some(_) => Ok(()),
    })?;
    event.each_field(|field| {
        if let Some((varying, kind)) = Varying::of(&field)? {
            description.add_field(field.name.as_bytes(), kind)?;
            layout.varying.push(varying, GFP_KERNEL)?;
        }
        Ok(())
    })?;
    Ok((description, layout))
}

/// The fields that ftrace adds to each record of a user's probe: its address, the function, and the return
/// address.
const OF_PROBES: [&str; 3] = ["__probe_ip", "__probe_func", "__probe_ret_ip"];

/// The type of a field of fixed size.
fn fixed(field: &TraceField<'_>) -> Result<DescribedType> {
    if OF_PROBES.contains(&field.name) && field.size == size_of::<u64>() {
        return Ok(DescribedType::Fixed(FieldType::address()));
    }
    let bytes = |count: usize| -> Result<DescribedType> {
        let count = u32::try_from(count)?;
        Ok(DescribedType::Fixed(FieldType::Array(
            Integer::unsigned(8),
            count,
        )))
    };
    let Some((element, count)) = field.ty.strip_suffix(']').and_then(|ty| ty.split_once('['))
    else {
        return match number(field.ty, field.size, field.is_signed) {
            Some(number) if field.is_address && number == Integer::unsigned(64) => {
                Ok(DescribedType::Fixed(FieldType::address()))
            }
            Some(number) => Ok(DescribedType::Fixed(FieldType::Integer(number))),
            None => bytes(field.size),
        };
    };
    let count = match field.count {
        0 => count.parse().unwrap_or(0),
        count => count,
    };
    let element = element.trim_end();
    if element == "char" {
        return Ok(DescribedType::Fixed(FieldType::text(u32::try_from(
            field.size,
        )?)));
    }
    let number = match field.size.checked_div(count) {
        Some(size) if size * count == field.size => number(element, size, field.is_signed),
        _ => None,
    };
    match number {
        Some(number) => Ok(DescribedType::Fixed(FieldType::Array(
            number,
            u32::try_from(count)?,
        ))),
        None => bytes(field.size),
    }
}

/// The number with this C type and size. [`None`]: the type is not a number.
fn number(ty: &str, size: usize, is_signed: bool) -> Option<Integer> {
    let bits = match size {
        1 | 2 | 4 | 8 => (size * 8) as u8,
        _ => return None,
    };
    let is_composed = ty.starts_with("struct ") || ty.starts_with("union ");
    Some(match ty {
        _ if ty.contains('*') && size == 8 => Integer::address(),
        _ if is_composed => return None,
        // As C has it for the events of events/stages.h: only `signed char` is signed.
        "char" => Integer::unsigned(bits),
        _ if is_signed => Integer::signed(bits),
        _ => Integer::unsigned(bits),
    })
}

impl Varying {
    /// The field and its type if it is of variable size; [`None`] if it is of fixed size.
    fn of(field: &TraceField<'_>) -> Result<Option<(Self, DescribedType)>> {
        let (is_relative, ty) = match field.ty.strip_prefix("__rel_loc ") {
            Some(ty) => (true, ty),
            None => match field.ty.strip_prefix("__data_loc ") {
                Some(ty) => (false, ty),
                None => return Ok(None),
            },
        };
        // An array of such fields is not supported.
        if field.size != size_of::<u32>() {
            return Err(EINVAL);
        }
        let element = ty.strip_suffix("[]").unwrap_or(ty).trim_end();
        let (what, kind) = match element {
            "char" => (What::Text, DescribedType::String),
            _ => {
                let element = self::element(element);
                let bytes = element.bits / 8;
                (
                    What::Elements(bytes.trailing_zeros()),
                    DescribedType::Sequence(element),
                )
            }
        };
        let varying = Self {
            begin: field.offset,
            is_relative,
            what,
        };
        Ok(Some((varying, kind)))
    }

    /// The field's bytes; empty if the record does not contain the place that it names.
    #[inline(always)]
    fn bytes<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        let end = self.begin.wrapping_add(size_of::<u32>());
        let place = match record.get(self.begin..end) {
            Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
            _ => 0,
        };
        // As in the kernel's macros: the offset is in the lower half, the length in the upper half.
        let (begin, len) = ((place & 0xffff) as usize, (place >> 16) as usize);
        let begin = begin.wrapping_add(if self.is_relative { end } else { 0 });
        let bytes = record.get(begin..begin.wrapping_add(len)).unwrap_or(&[]);
        match self.what {
            What::Text => {
                let end = bytes.iter().position(|&byte| byte == 0);
                bytes.get(..end.unwrap_or(bytes.len())).unwrap_or(&[])
            }
            What::Elements(power) => {
                let whole = bytes.len().wrapping_shr(power).wrapping_shl(power);
                bytes.get(..whole).unwrap_or(&[])
            }
        }
    }
}

/// The element of an array of variable length, by its C type: the kernel says its size nowhere else. Elements
/// of other types are bytes.
fn element(ty: &str) -> Integer {
    match ty.trim_start_matches("__") {
        ty if ty.contains('*') => Integer::address(),
        "s8" | "int8_t" | "signed char" => Integer::signed(8),
        "u16" | "le16" | "be16" | "uint16_t" | "unsigned short" => Integer::unsigned(16),
        "s16" | "int16_t" | "short" => Integer::signed(16),
        "u32" | "le32" | "be32" | "uint32_t" | "unsigned int" => Integer::unsigned(32),
        "s32" | "int32_t" | "int" => Integer::signed(32),
        "u64" | "le64" | "be64" | "uint64_t" | "unsigned long" | "unsigned long long"
        | "size_t" | "cpumask_t" => Integer::unsigned(64),
        "s64" | "int64_t" | "long" | "long long" => Integer::signed(64),
        _ => Integer::unsigned(8),
    }
}

impl PerfLayout {
    fn add_fixed(&mut self, begin: usize, len: usize) -> Result {
        self.fixed_len += len;
        match self.fixed.last_mut() {
            Some(last) if last.begin + last.len == begin => last.len += len,
            _ => self.fixed.push(Part { begin, len }, GFP_KERNEL)?,
        }
        Ok(())
    }
}

impl Tail for PerfRecord<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        let mut len = self.layout.fixed_len;
        for varying in &self.layout.varying {
            let more = match varying.what {
                What::Text => size_of::<u8>(),
                What::Elements(_) => size_of::<u32>(),
            };
            len = len
                .wrapping_add(varying.bytes(self.bytes).len())
                .wrapping_add(more);
        }
        len
    }

    #[inline(always)]
    fn write(&self, mut space: Space<'_>) {
        for Part { begin, len } in &self.layout.fixed {
            match self.bytes.get(*begin..begin.wrapping_add(*len)) {
                Some(bytes) => space.put_bytes(bytes),
                None => (0..*len).for_each(|_| space.put(0u8)),
            }
        }
        for varying in &self.layout.varying {
            let bytes = varying.bytes(self.bytes);
            match varying.what {
                What::Text => {
                    space.put_bytes(bytes);
                    space.put(0u8);
                }
                What::Elements(power) => {
                    space.put(bytes.len().wrapping_shr(power) as u32);
                    space.put_bytes(bytes);
                }
            }
        }
    }
}
