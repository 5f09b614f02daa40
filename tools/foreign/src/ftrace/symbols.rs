// SPDX-License-Identifier: GPL-2.0

//! Names of values, from the `print fmt` of an event: `__print_symbolic(REC->vec, { 0, "HI" }, { 1, "TIMER" })`.
//!
//! Only a value that is one field gets names. Flags, whose bits have names, do not.

use std::collections::BTreeMap;

/// The names of values, by field.
pub type Symbols = BTreeMap<String, Vec<(u64, String)>>;

/// The maximum number of names that a field may have.
const NAMES: usize = 4096;

/// Finds the names in a `print fmt`.
pub fn symbols(print: &str) -> Symbols {
    let mut all = Symbols::new();
    for call in print.split("__print_symbolic(").skip(1) {
        if let Some((field, names)) = call_of(call) {
            // Two calls with different names for one field are not names of its values.
            match all.get(&field) {
                Some(known) if *known != names => all.insert(field, Vec::new()),
                _ => all.insert(field, names),
            };
        }
    }
    all.retain(|_, names| !names.is_empty());
    all
}

/// Parses the arguments of a call.
fn call_of(text: &str) -> Option<(String, Vec<(u64, String)>)> {
    let (field, mut rest) = text.split_once(',')?;
    let field = field.trim().strip_prefix("REC->")?;
    if !field.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return None;
    }
    let mut names = Vec::new();
    loop {
        rest = rest.trim_start().strip_prefix('{')?;
        let (value, after) = rest.split_once(',')?;
        let after = after.trim_start().strip_prefix('"')?;
        let (name, after) = after.split_once('"')?;
        names.push((number(value.trim())?, name.to_owned()));
        rest = after.trim_start().strip_prefix('}')?.trim_start();
        match rest.strip_prefix(',') {
            Some(next) if names.len() < NAMES => rest = next,
            Some(_) => return None,
            None => break,
        }
    }
    Some((field.to_owned(), names))
}

/// Parses a number in C.
fn number(text: &str) -> Option<u64> {
    let text = text.trim_matches(['(', ')']);
    let (text, is_negative) = match text.strip_prefix('-') {
        Some(text) => (text, true),
        None => (text, false),
    };
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if is_negative {
        value.wrapping_neg()
    } else {
        value
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_field_are_found() {
        let print = r#""%s %s", __print_symbolic(REC->mode, { 0x10, "A" }, { -1, "B" }), __print_symbolic(REC->x & 3, { 0, "C" })"#;
        let all = symbols(print);
        assert_eq!(all.len(), 1);
        assert_eq!(
            all["mode"],
            [(16, "A".to_owned()), (u64::MAX, "B".to_owned())]
        );
        for broken in [
            "__print_symbolic(REC->a, { X, \"b\" })",
            "__print_symbolic(",
            "__print_symbolic(REC->a,",
        ] {
            assert!(symbols(broken).is_empty(), "{broken}");
        }
    }
}
