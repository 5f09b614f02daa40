// SPDX-License-Identifier: GPL-2.0

//! Call stacks in records: a number of 32 bits, and as many addresses.

use crate::abi::schema::{Field, FieldType, Integer};
use crate::record::memory::Space;
use crate::sys::stack::CallStack;

/// The event's fields, with names that follow LTTng's example.
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

/// Size of an empty stack in bytes.
pub(crate) const LEAST: usize = size_of::<u32>();

/// Size of the stack in bytes.
#[inline(always)]
pub(crate) fn len(stack: &CallStack) -> usize {
    LEAST.wrapping_add(stack.bytes().len())
}

/// Writes the stack.
#[inline(always)]
pub(crate) fn write(stack: &CallStack, space: &mut Space<'_>) {
    space.put(stack.addresses().len() as u32);
    space.put_bytes(stack.bytes());
}
