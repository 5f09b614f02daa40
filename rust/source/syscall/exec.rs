// SPDX-License-Identifier: GPL-2.0

//! The exit of an `execve` that replaces a program by one of the other kind, of 32 or of 64 bits.
//!
//! Each kind of program has numbers of its own. On some processors the number at the exit is the one that the former
//! program gave. There the exit belongs to the former program's kind, as the entry does.

use super::{compat, numbers::number, LISTED};
use crate::arch::calls::{COMPAT, NATIVE};
use crate::arch::registers::Register;
use crate::sys::args::Registers;

/// The numbers of execve(2) and execveat(2), of 64-bit programs.
const NUMBERS: [i32; 2] = [
    number(NATIVE, &LISTED, b"execve"),
    number(NATIVE, &LISTED, b"execveat"),
];
/// The numbers of execve(2) and execveat(2), of 32-bit programs.
const COMPAT_NUMBERS: [i32; 2] = [
    number(COMPAT, &compat::PLACES, b"execve"),
    number(COMPAT, &compat::PLACES, b"execveat"),
];

/// Whether the call that ends with these registers may be such an `execve`. Few others are.
#[inline(always)]
pub(super) fn may_end(registers: &Registers) -> bool {
    Register::CLEARED_BY_EXEC.is_some_and(|[given, _]| registers.get(given) == 0)
}

/// Whether the call that ends with these registers is one of 32-bit programs, if it may be such an `execve`.
/// `is_compat` says whether the program has 32 bits now.
#[inline(always)]
pub(super) fn ends_compat(registers: &Registers, is_compat: bool) -> bool {
    let numbers = match is_compat {
        true => NUMBERS,
        false => COMPAT_NUMBERS,
    };
    // Each other call of these numbers leaves its number in one of both registers.
    let is_exec = Register::CLEARED_BY_EXEC
        .is_some_and(|given| given.into_iter().all(|given| registers.get(given) == 0))
        && numbers.contains(&registers.number());
    is_compat != is_exec
}
