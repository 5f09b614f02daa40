// SPDX-License-Identifier: GPL-2.0

//! Shell patterns, with the semantics of the kernel's `glob_match()`.

/// Returns whether the whole `text` matches `pattern`:
/// - `*` matches any number of bytes, 0 included;
/// - `?` matches any byte;
/// - `[...]` matches one of the bytes in the brackets (a range is `a-z`), or, after `[!`, one that
///   is not in them;
/// - `\` makes the next byte match only itself;
/// - a bracket that is not closed matches itself.
///
/// Allocates no memory. Only the last `*` is ever tried again, so no pattern takes exponential
/// time.
pub fn matches(pattern: impl AsRef<[u8]>, text: impl AsRef<[u8]>) -> bool {
    bytes_match(pattern.as_ref(), text.as_ref())
}

/// Length in bytes of the shortest texts that can match `pattern`.
pub fn shortest(pattern: impl AsRef<[u8]>) -> usize {
    let mut pattern = pattern.as_ref();
    let mut len = 0_usize;
    loop {
        let (bytes, rest) = match pattern {
            // A last `\` matches the end.
            [] | [b'\\'] => return len,
            [b'*', rest @ ..] => (0, rest),
            [b'[', rest @ ..] => (1, class(rest, 0).map_or(rest, |(_, behind)| behind)),
            [b'\\', _, rest @ ..] | [_, rest @ ..] => (1, rest),
        };
        len = len.wrapping_add(bytes);
        pattern = rest;
    }
}

fn bytes_match(mut pattern: &[u8], mut text: &[u8]) -> bool {
    // The pattern after the last `*`, and the text where that was last tried.
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
        // The last `*` matches one byte more. An earlier `*` need not be tried again: the last one
        // can match all that the earlier one could.
        let Some((rest, [_, tail @ ..])) = star else {
            return false;
        };
        star = Some((rest, tail));
        (pattern, text) = (rest, tail);
    }
}

/// Returns the pattern after its first element, which is no `*`, if that element matches `byte`.
fn after_match(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (is_match, rest) = match pattern {
        [b'?', rest @ ..] => (true, rest),
        [b'[', rest @ ..] => class(rest, byte).unwrap_or((byte == b'[', rest)),
        // A last `\` could precede only the text's end.
        [] | [b'\\'] => return None,
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => (byte == *literal, rest),
    };
    is_match.then_some(rest)
}

/// Returns whether `byte` is in a class, and the pattern after the class. `pattern` begins after
/// the opening bracket. [`None`]: the class is not closed.
fn class(pattern: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let (inverted, mut rest) = match pattern {
        [b'!', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let mut found = false;
    // The first byte of a class may be a bracket.
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
