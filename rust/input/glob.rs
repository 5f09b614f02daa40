// SPDX-License-Identifier: GPL-2.0

//! Shell patterns, as the kernel's `glob_match()` matches them.

/// Whether all of `text` matches `pattern`: `*` stands for any bytes or none, `?` for any
/// byte, `[...]` for one of those in the brackets (a range is `a-z`; `!` in front: for one that
/// is not there), `\` makes the next byte stand for itself. A bracket that is not closed stands
/// for itself.
///
/// Allocates nothing. Only the last `*` is ever tried again, so that no pattern takes
/// exponential time.
pub fn matches(pattern: impl AsRef<[u8]>, text: impl AsRef<[u8]>) -> bool {
    bytes_match(pattern.as_ref(), text.as_ref())
}

fn bytes_match(mut pattern: &[u8], mut text: &[u8]) -> bool {
    // The rest of the pattern behind the last `*`, and the text that it was tried on last.
    let mut star = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            if rest.is_empty() {
                return true;
            }
            star = Some((rest, text));
            pattern = rest;
            continue;
        }
        match text {
            [] => return matches!(pattern, [] | [b'\\']),
            [first, tail @ ..] => {
                if let Some(rest) = after_match(pattern, *first) {
                    (pattern, text) = (rest, tail);
                    continue;
                }
            }
        }
        // The last `*` takes one byte more. A `*` before it need not: what this one can match
        // is all that the other could.
        let Some((rest, [_, tail @ ..])) = star else {
            return false;
        };
        star = Some((rest, tail));
        (pattern, text) = (rest, tail);
    }
}

/// What follows in the pattern if its first element, which is no `*`, matches `byte`.
fn after_match(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (is_match, rest) = match pattern {
        [b'?', rest @ ..] => (true, rest),
        [b'[', rest @ ..] => class(rest, byte).unwrap_or((byte == b'[', rest)),
        // A last `\` has nothing to stand before but the text's end.
        [] | [b'\\'] => return None,
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => (byte == *literal, rest),
    };
    is_match.then_some(rest)
}

/// Whether `byte` is one of a class, whose opening bracket is gone, and what follows the class.
/// [`None`] if it is not closed.
fn class(pattern: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let (inverted, mut rest) = match pattern {
        [b'!', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let mut found = false;
    // The first may be a bracket.
    let mut is_first = true;
    loop {
        let (range, behind) = match rest {
            [b']', behind @ ..] if !is_first => return Some((found != inverted, behind)),
            [from, b'-', to, behind @ ..] if *to != b']' => (*from..=*to, behind),
            [single, behind @ ..] => (*single..=*single, behind),
            [] => return None,
        };
        found |= range.contains(&byte);
        rest = behind;
        is_first = false;
    }
}
