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
    /// A set of signals: bit N - 1 for signal N.
    SignalSet,
    /// The function that handles a signal.
    Handler,
    /// Permissions of a file.
    Mode,
    /// Type and permissions of a file.
    FileMode,
    /// The number of a device, in the kernel's form for programs.
    Device,
    /// The request of an ioctl.
    Request(&'static [Name]),
    /// Limit of a resource.
    Limit,
    /// Status of a child, as wait(2) tells it.
    Status,
    /// An address. Address 0 is NULL.
    Pointer,
    /// An address, as a result.
    Address,
    /// A number in hexadecimal.
    Hex,
    /// A number in hexadecimal, and then its meaning. The number 0 has the meaning only if the meaning names it.
    Annotated(&'static Self),
}

/// The first of the signals without a name of their own, as the kernel counts them.
const FIRST_REALTIME: u64 = 32;
/// Number of all signals.
const SIGNALS: u64 = 64;

/// The types of files.
const FILE_TYPES: &[Name] = &[
    ("S_IFIFO", 0o010000),
    ("S_IFCHR", 0o020000),
    ("S_IFDIR", 0o040000),
    ("S_IFBLK", 0o060000),
    ("S_IFREG", 0o100000),
    ("S_IFLNK", 0o120000),
    ("S_IFSOCK", 0o140000),
];
/// The bits of a file's mode beside type and permissions.
const MODE_BITS: &[Name] = &[
    ("S_ISUID", 0o4000),
    ("S_ISGID", 0o2000),
    ("S_ISVTX", 0o1000),
];
/// The directions of an ioctl's data.
const DIRECTIONS: &[Name] = &[("_IOC_NONE", 0), ("_IOC_READ", 2), ("_IOC_WRITE", 1)];

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
                if number & !0xff != 0 || sent == 0 {
                    flags(out, number & !0xff, names, None);
                    out.push_str(if sent == 0 { "" } else { "|" });
                }
                out.push_str(&name);
            }
            Self::Signal => signal(out, number),
            Self::SignalSet => signal_set(out, number),
            Self::Handler => match number {
                0 => out.push_str("SIG_DFL"),
                1 => out.push_str("SIG_IGN"),
                _ => push(out, format_args!("{number:#x}")),
            },
            Self::Mode => push(out, format_args!("0{number:02o}")),
            Self::FileMode => {
                match named(FILE_TYPES, number & 0o170000) {
                    Some(name) => push(out, format_args!("{name}|")),
                    None if number & 0o170000 == 0 => {}
                    None => push(out, format_args!("{:#o}|", number & 0o170000)),
                }
                if number & 0o7000 != 0 {
                    flags(out, number & 0o7000, MODE_BITS, None);
                    out.push('|');
                }
                push(out, format_args!("0{:02o}", number & 0o777));
            }
            Self::Device => {
                let major = ((number >> 8) & 0xfff) | ((number >> 32) & 0xffff_f000);
                let minor = (number & 0xff) | ((number >> 12) & 0xffff_ff00);
                let hex = |number: u64| match number {
                    0 => "0".to_owned(),
                    _ => format!("{number:#x}"),
                };
                push(out, format_args!("makedev({}, {})", hex(major), hex(minor)));
            }
            Self::Request(names) => match named(names, number) {
                Some(name) => out.push_str(name),
                None => {
                    let mut direction = String::new();
                    flags(&mut direction, (number >> 30) & 3, DIRECTIONS, None);
                    let (kind, number, size) =
                        ((number >> 8) & 0xff, number & 0xff, (number >> 16) & 0x3fff);
                    push(
                        out,
                        format_args!("_IOC({direction}, {kind:#x}, {number:#x}, {size:#x})"),
                    );
                }
            },
            Self::Limit => match number {
                u64::MAX => out.push_str("RLIM64_INFINITY"),
                _ if number > 1024 && number % 1024 == 0 => {
                    push(out, format_args!("{}*1024", number / 1024));
                }
                _ => push(out, format_args!("{number}")),
            },
            Self::Status => status(out, number),
            Self::Annotated(meaning) => {
                Self::Hex.write(out, number);
                let mut text = String::new();
                meaning.write(&mut text, number);
                if text != "0" {
                    push(out, format_args!(" (flags {text})"));
                }
            }
            Self::Pointer if number == 0 => out.push_str("NULL"),
            Self::Hex if number == 0 => out.push('0'),
            Self::Pointer | Self::Address | Self::Hex => push(out, format_args!("{number:#x}")),
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
        None if number == FIRST_REALTIME => out.push_str("SIGRTMIN"),
        None if (FIRST_REALTIME..=SIGNALS).contains(&number) => {
            push(out, format_args!("SIGRT_{}", number - FIRST_REALTIME));
        }
        None => push(out, format_args!("{}", number as i64)),
    }
}

/// Writes a set by the names of its signals. If more than two thirds of all signals are in it, writes the others after a
/// `~`.
fn signal_set(out: &mut String, set: u64) {
    let is_most = u64::from(set.count_ones()) > SIGNALS * 2 / 3;
    let shown = if is_most { !set } else { set };
    out.push_str(if is_most { "~[" } else { "[" });
    let signals = (1..=SIGNALS).filter(|number| (shown >> (number - 1)) & 1 != 0);
    for (place, number) in signals.enumerate() {
        let mut name = String::new();
        signal(&mut name, number);
        out.push_str(if place > 0 { " " } else { "" });
        out.push_str(name.trim_start_matches("SIG"));
    }
    out.push(']');
}

/// Writes the status of a child by the macros of wait(2).
fn status(out: &mut String, number: u64) {
    let number = number as u32;
    let (low, next) = (number & 0x7f, u64::from((number >> 8) & 0xff));
    match (low, number & 0xff) {
        _ if number == 0xffff => out.push_str("{WIFCONTINUED(s)}"),
        (0, _) => push(
            out,
            format_args!("{{WIFEXITED(s) && WEXITSTATUS(s) == {next}}}"),
        ),
        (_, 0x7f) => {
            out.push_str("{WIFSTOPPED(s) && WSTOPSIG(s) == ");
            signal(out, next);
            out.push('}');
        }
        _ => {
            out.push_str("{WIFSIGNALED(s) && WTERMSIG(s) == ");
            signal(out, low.into());
            out.push_str(if number & 0x80 != 0 {
                " && WCOREDUMP(s)}"
            } else {
                "}"
            });
        }
    }
}

/// Writes how a thread ended, by its status as wait(2) tells it: `exited with 3`, `killed by SIGSEGV (core dumped)`.
pub fn write_end(out: &mut String, status: u64) {
    match status & 0x7f {
        0 => push(out, format_args!("exited with {}", (status >> 8) & 0xff)),
        sent => {
            out.push_str("killed by ");
            signal(out, sent);
            out.push_str(if status & 0x80 != 0 {
                " (core dumped)"
            } else {
                ""
            });
        }
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
            (0x111, "VM|SIGCHLD"),
            (0x100, "VM"),
            (0, "0"),
        ] {
            assert_eq!(text(clone, number), expected);
        }
    }

    #[test]
    fn sets_of_signals() {
        for (set, expected) in [
            (0, "[]"),
            (
                (1 << 1) | (1 << 16) | (1 << 31) | (1 << 33),
                "[INT CHLD RTMIN RT_2]",
            ),
            (u64::MAX, "~[]"),
            (!(1 << 8), "~[KILL]"),
        ] {
            assert_eq!(text(Meaning::SignalSet, set), expected);
        }
        // More than two thirds of 64.
        assert!(text(Meaning::SignalSet, (1 << 42) - 1).starts_with("[HUP"));
        assert!(text(Meaning::SignalSet, (1 << 43) - 1).starts_with("~[RT_12"));
    }

    #[test]
    fn ends() {
        for (status, expected) in [
            (0x300, "exited with 3"),
            (0x9, "killed by SIGKILL"),
            (0x8b, "killed by SIGSEGV (core dumped)"),
        ] {
            let mut out = String::new();
            write_end(&mut out, status);
            assert_eq!(out, expected);
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
            (Meaning::Signal, 32, "SIGRTMIN"),
            (Meaning::Mode, 0, "000"),
            (Meaning::Mode, 0o7, "007"),
            (Meaning::Address, 0x7f00, "0x7f00"),
            (Meaning::Pointer, 0, "NULL"),
            (Meaning::Hex, 0, "0"),
            (
                Meaning::Annotated(&Meaning::Flags(BITS)),
                5,
                "0x5 (flags ONE|FOUR)",
            ),
            (Meaning::Annotated(&Meaning::Flags(BITS)), 0, "0"),
            (Meaning::Handler, 1, "SIG_IGN"),
            (Meaning::FileMode, 0o104755, "S_IFREG|S_ISUID|0755"),
            (Meaning::FileMode, 0o041777, "S_IFDIR|S_ISVTX|0777"),
            (Meaning::FileMode, 0o644, "0644"),
            (Meaning::Device, 0x500, "makedev(0x5, 0)"),
            (Meaning::Device, 0x0010_0803, "makedev(0x8, 0x103)"),
            (Meaning::Limit, 1024, "1024"),
            (Meaning::Limit, 8192 * 1024, "8192*1024"),
            (Meaning::Limit, u64::MAX, "RLIM64_INFINITY"),
            (Meaning::Request(&[("ONE", 1)]), 1, "ONE"),
            (
                Meaning::Request(&[]),
                0x1234_5678,
                "_IOC(_IOC_NONE, 0x56, 0x78, 0x1234)",
            ),
            (
                Meaning::Request(&[]),
                0xc004_5678,
                "_IOC(_IOC_READ|_IOC_WRITE, 0x56, 0x78, 0x4)",
            ),
            (
                Meaning::Status,
                0x300,
                "{WIFEXITED(s) && WEXITSTATUS(s) == 3}",
            ),
            (
                Meaning::Status,
                0x8b,
                "{WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV && WCOREDUMP(s)}",
            ),
            (
                Meaning::Status,
                0x137f,
                "{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}",
            ),
            (Meaning::Status, 0xffff, "{WIFCONTINUED(s)}"),
        ] {
            assert_eq!(text(meaning, number), expected);
        }
    }
}
