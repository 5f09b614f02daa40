// SPDX-License-Identifier: GPL-2.0

//! The kinds of numbers, and their text forms.

use nix::sys::signal::Signal;
use std::fmt::Write;

/// A number and its name.
pub type Name = (&'static str, u64);

/// The meaning of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// One of several values. A number without a name stays a number.
    Value(&'static [Name]),
    /// Bits, each with a name.
    Flags(&'static [Name]),
    /// One of several values in the bits of a mask, and bits beside it. The name of a value 0 is always shown.
    Mixed {
        /// The bits of the value.
        mask: u64,
        /// The values.
        values: &'static [Name],
        /// The bits beside it.
        flags: &'static [Name],
    },
    /// Bits, and a signal in the lowest eight bits.
    CloneFlags(&'static [Name]),
    /// A signal.
    Signal,
    /// Permissions of a file.
    Mode,
    /// An address, as a result.
    Address,
}

/// The first of the signals without a name of their own, as the kernel counts them.
const FIRST_REALTIME: u64 = 32;

impl Meaning {
    /// Writes a number of this meaning. Signed numbers are sign-extended.
    pub fn write(self, out: &mut String, number: u64) {
        match self {
            Self::Value(names) => match named(names, number) {
                Some(name) => out.push_str(name),
                None => push(out, format_args!("{}", number as i64)),
            },
            Self::Flags(names) => flags(out, number, names, None),
            Self::Mixed {
                mask,
                values,
                flags: names,
            } => match named(values, number & mask) {
                Some(value) => flags(out, number & !mask, names, Some(value)),
                None => flags(out, number, names, None),
            },
            Self::CloneFlags(names) => {
                let sent = number & 0xff;
                let mut name = String::new();
                if sent != 0 {
                    signal(&mut name, sent);
                }
                let name = (sent != 0).then_some(name.as_str());
                flags(out, number & !0xff, names, name);
            }
            Self::Signal => signal(out, number),
            Self::Mode if number == 0 => out.push('0'),
            Self::Mode => push(out, format_args!("0{number:o}")),
            Self::Address => push(out, format_args!("{number:#x}")),
        }
    }
}

/// Writes bits by name, after `first`; bits without a name in hexadecimal.
fn flags(out: &mut String, mut left: u64, names: &[Name], first: Option<&str>) {
    let mut is_first = true;
    let mut add = |out: &mut String, text: &str| {
        if !std::mem::take(&mut is_first) {
            out.push('|');
        }
        out.push_str(text);
    };
    if let Some(first) = first {
        add(out, first);
    } else if left == 0 {
        add(out, named(names, 0).unwrap_or("0"));
    }
    for (name, bits) in names {
        if *bits != 0 && left & bits == *bits {
            left &= !bits;
            add(out, name);
        }
    }
    if left != 0 {
        add(out, &format!("{left:#x}"));
    }
}

fn signal(out: &mut String, number: u64) {
    let known = i32::try_from(number).ok();
    match known.and_then(|number| Signal::try_from(number).ok()) {
        Some(signal) => out.push_str(signal.as_str()),
        None if (FIRST_REALTIME..=64).contains(&number) => {
            push(out, format_args!("SIGRT_{}", number - FIRST_REALTIME));
        }
        None => push(out, format_args!("{}", number as i64)),
    }
}

fn named(names: &[Name], number: u64) -> Option<&'static str> {
    let mut names = names.iter();
    names
        .find(|(_, value)| *value == number)
        .map(|(name, _)| *name)
}

/// Writing to a String does not fail.
fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    const BITS: &[Name] = &[("ONE", 1), ("BOTH", 6), ("TWO", 2), ("FOUR", 4)];

    fn text(meaning: Meaning, number: u64) -> String {
        let mut out = String::new();
        meaning.write(&mut out, number);
        out
    }

    #[test]
    fn bits_without_a_name_stay() {
        let flags = Meaning::Flags(BITS);
        for (number, expected) in [
            (0, "0"),
            (1, "ONE"),
            (6, "BOTH"),
            (5, "ONE|FOUR"),
            (0x103, "ONE|TWO|0x100"),
            (0x100, "0x100"),
        ] {
            assert_eq!(text(flags, number), expected);
        }
        assert_eq!(text(Meaning::Flags(&[("NONE", 0), ("A", 1)]), 0), "NONE");
    }

    #[test]
    fn a_value_beside_bits() {
        let mixed = Meaning::Mixed {
            mask: 0x30,
            values: &[("READ", 0), ("WRITE", 0x10)],
            flags: BITS,
        };
        for (number, expected) in [
            (0, "READ"),
            (0x11, "WRITE|ONE"),
            (0x20, "0x20"),
            (0x40, "READ|0x40"),
        ] {
            assert_eq!(text(mixed, number), expected);
        }
        let clone = Meaning::CloneFlags(&[("VM", 0x100)]);
        for (number, expected) in [
            (17, "SIGCHLD"),
            (0x111, "SIGCHLD|VM"),
            (0x100, "VM"),
            (0, "0"),
        ] {
            assert_eq!(text(clone, number), expected);
        }
    }

    #[test]
    fn single_values() {
        let value = Meaning::Value(&[("AT", -100_i64 as u64), ("NIL", 0)]);
        for (meaning, number, expected) in [
            (value, -100_i64 as u64, "AT"),
            (value, 0, "NIL"),
            (value, -1_i64 as u64, "-1"),
            (Meaning::Signal, 9, "SIGKILL"),
            (Meaning::Signal, 34, "SIGRT_2"),
            (Meaning::Signal, 0, "0"),
            (Meaning::Signal, 65, "65"),
            (Meaning::Mode, 0o644, "0644"),
            (Meaning::Mode, 0, "0"),
            (Meaning::Address, 0x7f00, "0x7f00"),
        ] {
            assert_eq!(text(meaning, number), expected);
        }
    }
}
