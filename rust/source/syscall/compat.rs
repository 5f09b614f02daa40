// SPDX-License-Identifier: GPL-2.0

//! System calls of 32-bit programs: names by number.
//!
//! `scripts/check-syscalls --update` generates `compat.txt` from the kernel's `asm/unistd_32.h`. The names are those
//! of the C library's `<sys/syscall.h>`: `stat64`, `mmap2`. Without `--update`, the script compares the file with
//! the headers of a kernel.

use crate::abi::schema::{Field, FieldType, Integer, LabelPlace, Labels};

/// The field with the number of the call. A number that is not in the list has no name.
pub(super) const NUMBER: Field<'static> = Field::new(
    "id",
    FieldType::Enumeration(Integer::signed(32), Labels::new(CALLS.as_bytes(), &PLACES)),
);

/// The numbers, and the places of their names in the list.
static PLACES: [LabelPlace; count(CALLS.as_bytes(), calls(CALLS.as_bytes()))] = places(CALLS);

/// Number of lines from `at` on.
const fn count(text: &[u8], mut at: usize) -> usize {
    let mut lines = 0;
    while at < text.len() {
        lines += (text[at] == b'\n') as usize;
        at += 1;
    }
    lines
}

/// The place where the lines after the comments begin.
const fn calls(text: &[u8]) -> usize {
    let (mut at, mut in_comment) = (0, false);
    while in_comment || text[at] == b'#' {
        in_comment = text[at] != b'\n';
        at += 1;
    }
    at
}

/// The number of each line after the comments, and the place of its name.
const fn places<const COUNT: usize>(text: &str) -> [LabelPlace; COUNT] {
    let text = text.as_bytes();
    let mut places = [LabelPlace {
        first: 0,
        last: 0,
        name: (0, 0),
    }; COUNT];
    let (mut at, mut line) = (calls(text), 0);
    while line < COUNT {
        let mut number = 0;
        while text[at] != b' ' {
            assert!(
                text[at].is_ascii_digit(),
                "a line does not begin with a number"
            );
            number = number * 10 + (text[at] - b'0') as u64;
            at += 1;
        }
        let begin = at + 1;
        while text[at] != b'\n' {
            at += 1;
        }
        places[line] = LabelPlace {
            first: number,
            last: number,
            name: (begin as u32, at as u32),
        };
        at += 1;
        line += 1;
    }
    places
}

/// One `NUMBER NAME` per line, after the comments.
const CALLS: &str = include_str!("compat.txt");
