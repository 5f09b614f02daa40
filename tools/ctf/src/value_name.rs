// SPDX-License-Identifier: GPL-2.0

//! Names of values of enumerations, including sums of flags.

use crate::field::Value;
use crate::layouts::{Label, Type};
use rtrace_abi::schema::{Integer, Shown};
use std::borrow::Cow;
use std::fmt::Write;

impl Type {
    /// The name of a value: its own, or the names of the flags whose sum it is, separated by `|`, as in ftrace. Bits
    /// without a flag follow in hexadecimal. [`None`]: no part of it has a name.
    pub fn value_name(&self, value: Value<'_>) -> Option<Cow<'_, str>> {
        let Self::Enumeration(integer, labels) = self else {
            return None;
        };
        let bits = match value {
            Value::Unsigned(value) => value,
            Value::Signed(value) => value as u64,
            Value::Float(_) | Value::Text(_) | Value::Integers(_) => return None,
        };
        let is_of = |label: &&Label| match integer.shown {
            Shown::Signed => (label.first as i64..=label.last as i64).contains(&(bits as i64)),
            _ => (label.first..=label.last).contains(&bits),
        };
        if let Some(label) = labels.iter().find(is_of) {
            return Some(Cow::Borrowed(&label.name));
        }
        let mask = mask(integer);
        are_flags(labels, mask)
            .then(|| sum(labels, bits, mask))?
            .map(Cow::Owned)
    }
}

/// Whether the names are those of bits, not of numbers. A trace does not tell. Names of bits mostly have a single
/// bit; if 1, 2 and 3 have names, they are numbers.
fn are_flags(labels: &[Label], mask: u64) -> bool {
    let has = |value| labels.iter().any(|label| label.first == value);
    let is_bit =
        |label: &&Label| label.first == label.last && (label.first & mask).is_power_of_two();
    let bits = labels.iter().filter(is_bit).count();
    bits * 2 > labels.len() && !(1..=3).all(has)
}

/// The names of the flags in `bits`. The kernel lists sums before their parts.
fn sum(labels: &[Label], bits: u64, mask: u64) -> Option<String> {
    let mut left = bits & mask;
    let mut text = String::new();
    for Label { name, first, last } in labels {
        let flag = first & mask;
        if flag != 0 && first == last && left & flag == flag {
            left &= !flag;
            if !text.is_empty() {
                text.push('|');
            }
            text.push_str(name);
        }
    }
    if text.is_empty() {
        return None;
    }
    if left != 0 {
        // Writing to a String does not fail.
        let _ = write!(text, "|{left:#x}");
    }
    Some(text)
}

/// The bits of the integer. The values of a signed integer are sign-extended, and compared in that form.
fn mask(integer: &Integer) -> u64 {
    u64::MAX >> (64 - u32::from(integer.bits).clamp(1, 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enumeration(integer: Integer, names: &[(&str, u64)]) -> Type {
        let label = |(name, value): &(&str, u64)| Label {
            name: (*name).to_owned(),
            first: *value,
            last: *value,
        };
        Type::Enumeration(integer, names.iter().map(label).collect())
    }

    #[test]
    fn a_value_has_its_own_name() {
        let states = enumeration(
            Integer::signed(32),
            &[("unknown", u64::MAX), ("idle", 0), ("busy", 1)],
        );
        for (value, name) in [(-1, Some("unknown")), (0, Some("idle")), (7, None)] {
            assert_eq!(states.value_name(Value::Signed(value)).as_deref(), name);
        }
        assert_eq!(states.value_name(Value::Text(b"idle")), None);
        let plain = Type::Integer(Integer::unsigned(32));
        assert_eq!(plain.value_name(Value::Unsigned(0)), None);
    }

    #[test]
    fn a_sum_of_flags_has_their_names() {
        let flags = enumeration(
            Integer::unsigned(32),
            &[("RDWR", 6), ("READ", 2), ("WRITE", 4), ("SYNC", 16)],
        );
        for (value, name) in [
            (6, Some("RDWR")),
            (22, Some("RDWR|SYNC")),
            (18, Some("READ|SYNC")),
            (0x142, Some("READ|0x140")),
            (0x100, None),
            (0, None),
        ] {
            let found = flags.value_name(Value::Unsigned(value));
            assert_eq!(found.as_deref(), name, "{value:#x}");
        }
    }

    #[test]
    fn the_highest_flag_of_a_signed_integer_is_one_bit() {
        let high = i64::from(i32::MIN);
        // As a 32-bit integer, and as a longer one.
        for label in [high as u64, 1 << 31] {
            let flags = enumeration(Integer::signed(32), &[("LOW", 1), ("HIGH", label)]);
            for (value, name) in [(0, "HIGH"), (1, "LOW|HIGH"), (2, "HIGH|0x2")] {
                let found = flags.value_name(Value::Signed(high + value));
                assert_eq!(found.as_deref(), Some(name));
            }
        }
    }

    #[test]
    fn numbers_are_not_summed() {
        let reasons = enumeration(
            Integer::unsigned(8),
            &[
                ("none", 0),
                ("read", 1),
                ("write", 2),
                ("both", 3),
                ("more", 4),
            ],
        );
        assert_eq!(reasons.value_name(Value::Unsigned(5)), None);
    }
}
