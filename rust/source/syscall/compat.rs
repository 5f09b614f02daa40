// SPDX-License-Identifier: GPL-2.0

//! System calls of 32-bit programs: names by number.
//!
//! `scripts/check syscalls --update` generates the list of x86 from the kernel's `asm/unistd_32.h`. The names are those
//! of the C library's `<sys/syscall.h>`: `stat64`, `mmap2`. Without `--update`, the script compares the list with
//! the headers of a kernel.

use super::numbers::{count, places};
use crate::abi::schema::{Field, FieldType, Integer, LabelPlace, Labels};
use crate::arch::calls::COMPAT as CALLS;
use crate::arch::registers::Register;

/// The field with the number of the call. A number that is not in the list has no name.
pub(super) const NUMBER: Field<'static> = Field::new(
    "id",
    FieldType::Enumeration(Integer::signed(32), Labels::new(CALLS.as_bytes(), &PLACES)),
);

/// The result.
pub(super) const RESULT: Field<'static> =
    Field::new("ret", FieldType::signed(Register::COMPAT_RESULT_BITS));

/// The numbers, and the places of their names in the list.
pub(super) static PLACES: [LabelPlace; count(CALLS)] = places(CALLS);
