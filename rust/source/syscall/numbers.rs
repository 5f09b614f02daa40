// SPDX-License-Identifier: GPL-2.0

//! Lists of system calls: one `NUMBER NAME` per line, after comments.

use crate::abi::schema::LabelPlace;

/// Number of lines after the comments.
pub(super) const fn count(text: &str) -> usize {
    let text = text.as_bytes();
    let (mut at, mut lines) = (calls(text), 0);
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
pub(super) const fn places<const COUNT: usize>(text: &str) -> [LabelPlace; COUNT] {
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

/// The number of the call with this name, of a list with these places.
pub(super) const fn number(text: &str, places: &[LabelPlace], name: &[u8]) -> i32 {
    let mut at = 0;
    while !is_named(text, places[at].name, name) {
        at += 1;
    }
    places[at].first as i32
}

/// Whether the list has this name at this place.
pub(super) const fn is_named(text: &str, (begin, end): (u32, u32), name: &[u8]) -> bool {
    let (begin, end) = (begin as usize, end as usize);
    if end - begin != name.len() {
        return false;
    }
    let mut at = 0;
    while at < name.len() && text.as_bytes()[begin + at] == name[at] {
        at += 1;
    }
    at == name.len()
}
