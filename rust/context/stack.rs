// SPDX-License-Identifier: GPL-2.0

//! A call stack in a record: a number of 32 bits, and as many addresses.

use crate::abi::schema::{Field, FieldType, Integer};
use crate::record::memory::Space;
use crate::sys::stack::CallStack;

/// It, as fields, with names by LTTng's example.
pub(crate) const fn fields(
    length: &'static str,
    name: &'static str,
    address: Integer,
) -> [Field<'static>; 2] {
    [
        Field::new(length, FieldType::unsigned(32)),
        Field::new(name, FieldType::Sequence(address, length)),
    ]
}

/// Bytes of an empty one.
pub(crate) const LEAST: usize = size_of::<u32>();

/// Its bytes.
#[inline(always)]
pub(crate) fn len(stack: &CallStack) -> usize {
    LEAST.wrapping_add(stack.bytes().len())
}

/// Lays it down.
#[inline(always)]
pub(crate) fn write(stack: &CallStack, space: &mut Space<'_>) {
    space.put(stack.addresses().len() as u32);
    space.put_bytes(stack.bytes());
}
