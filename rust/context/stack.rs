// SPDX-License-Identifier: GPL-2.0

//! Call stacks in records: a number of 32 bits, and as many addresses. After the stack of a program: why it ends.

use crate::abi::schema::{Field, FieldType, Integer, LabelPlace, Labels};
use crate::record::memory::Space;
use crate::sys::stack::words_as_bytes;
use crate::sys::user_stack::UserStack;
use crate::unwind::end::{StackEnd, GUESSED};

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

/// The field that says why a program's stack ends.
pub(crate) const fn end(name: &'static str) -> Field<'static> {
    const BYTE: Integer = Integer::unsigned(8);
    const LABELS: Labels<'static> = Labels::new(TEXT.as_bytes(), &PLACES);
    Field::new(name, FieldType::Enumeration(BYTE, LABELS))
}

/// Names of the ends of stacks with a guessed address, in the order of their numbers. Without `guessed_`, each is that of a
/// stack without one.
const TEXT: &str =
    "guessed_whole guessed_limit guessed_unreadable guessed_no_table guessed_no_rules \
                    guessed_no_mapping guessed_unsupported_rule guessed_mappings_changing ";

const ENDS: usize = StackEnd::ALL.len();

const PLACES: [LabelPlace; 2 * ENDS] = {
    let place = LabelPlace {
        first: 0,
        last: 0,
        name: (0, 0),
    };
    let mut places = [place; 2 * ENDS];
    let (mut number, mut begin, mut at) = (0, 0, 0);
    while at < TEXT.len() {
        if TEXT.as_bytes()[at] == b' ' {
            let guessed = number as u64 | GUESSED as u64;
            let own = begin + "guessed_".len() as u32;
            (places[number].first, places[number].last) = (number as u64, number as u64);
            places[number].name = (own, at as u32);
            (places[ENDS + number].first, places[ENDS + number].last) = (guessed, guessed);
            places[ENDS + number].name = (begin, at as u32);
            number += 1;
            begin = at as u32 + 1;
        }
        at += 1;
    }
    assert!(number == ENDS);
    places
};

/// Size of an empty stack in bytes.
pub(crate) const LEAST: usize = size_of::<u32>();

/// Size of a stack in bytes.
#[inline(always)]
pub(crate) fn len(addresses: &[u64]) -> usize {
    LEAST.wrapping_add(size_of_val(addresses))
}

/// Writes a stack.
#[inline(always)]
pub(crate) fn write(addresses: &[u64], space: &mut Space<'_>) {
    space.put(addresses.len() as u32);
    space.put_bytes(words_as_bytes(addresses));
}

/// Size of a program's stack in bytes.
#[inline(always)]
pub(crate) fn user_len(stack: &UserStack) -> usize {
    len(stack.addresses()).wrapping_add(size_of_val(&stack.end))
}

/// Writes a program's stack.
#[inline(always)]
pub(crate) fn write_user(stack: &UserStack, space: &mut Space<'_>) {
    write(stack.addresses(), space);
    space.put(stack.end);
}
