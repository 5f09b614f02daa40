// SPDX-License-Identifier: GPL-2.0

//! Structures that an argument of a system call points to, as text in strace's form. The record has their fields after
//! the call's numbers (`rust/source/syscall/describe.rs`). Traces of older modules lack them.

use super::arguments::{number, push, write_list_of_texts, write_text};
use ctf::{EventLayout, Value};
use decode::{Architecture, Meaning};

/// A structure, and the fields that contain it.
#[derive(Debug)]
pub struct Structure {
    kind: Kind,
    fields: Vec<(usize, Option<Meaning>)>,
}

/// The kinds of structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A set of signals.
    Signals,
    /// Reaction to a signal: handler, flags, restorer, blocked signals.
    Action,
    /// Limits of a resource.
    Limits,
    /// Two descriptors.
    Pair,
    /// Status of a child.
    Status,
    /// Attributes of a file: mode, device, size.
    Stat,
    /// Attributes of a file: which are known, flags, mode, size.
    Statx,
    /// Arguments of clone3(2).
    Clone,
    /// Flags, mode and resolution of openat2(2).
    Open,
    /// Arguments of a program.
    Arguments,
    /// The number of environment variables.
    Environment,
    /// A text that the call writes.
    Text,
}

/// The fields of `struct clone_args`.
const CLONE_ARGS: [&str; 8] = [
    "flags",
    "pidfd",
    "child_tid",
    "parent_tid",
    "exit_signal",
    "stack",
    "stack_size",
    "tls",
];

/// The outcome of a call, at its exit.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// The call has not ended.
    Begun,
    /// The call ended with this result.
    Returned(i64),
}

impl Structure {
    /// The structure for an argument of this kind in the module's table, if the record has it.
    pub fn of(
        architecture: Architecture,
        call: &str,
        (argument, kind): (&str, &str),
        layout: &EventLayout,
    ) -> Option<Self> {
        let kind = match kind {
            "sigset" | "filled_sigset" => Kind::Signals,
            "sigaction" | "filled_sigaction" => Kind::Action,
            "rlimit" | "filled_rlimit" => Kind::Limits,
            "filled_pair" => Kind::Pair,
            "status" => Kind::Status,
            "stat" => Kind::Stat,
            "statx" => Kind::Statx,
            "clone_args" => Kind::Clone,
            "open_how" => Kind::Open,
            "argv" => Kind::Arguments,
            "envp" => Kind::Environment,
            "filled_text" => Kind::Text,
            _ => return None,
        };
        let names: &[&str] = match kind {
            Kind::Signals => &["_set"],
            Kind::Action => &["_handler", "_flags", "_restorer", "_mask"],
            Kind::Limits => &["_cur", "_max"],
            Kind::Pair => &["_0", "_1"],
            Kind::Clone => &CLONE_ARGS,
            Kind::Open => &["_flags", "_mode", "_resolve"],
            Kind::Text => &["_text"],
            Kind::Status => &["status"],
            Kind::Stat => &["st_mode", "st_rdev", "st_size"],
            Kind::Statx => &["stx_mask", "stx_attributes", "stx_mode", "stx_size"],
            Kind::Arguments => &["args"],
            Kind::Environment => &["env_count"],
        };
        let fields = names.iter().map(|name| {
            let name = match (kind, name.starts_with('_')) {
                (Kind::Clone, _) => format!("{argument}_{name}"),
                (_, true) => format!("{argument}{name}"),
                (_, false) => (*name).to_owned(),
            };
            let meaning = decode::argument(architecture, call, &name);
            Some((layout.field(&name)?, meaning))
        });
        Some(Self {
            kind,
            fields: fields.collect::<Option<_>>()?,
        })
    }

    /// The fields that contain the structure.
    pub fn fields(&self) -> Vec<usize> {
        self.fields.iter().map(|(field, _)| *field).collect()
    }

    /// Writes the structure at `address`, which is not 0, for a call with this outcome. Without a structure there, writes
    /// the address.
    pub fn write<'a>(
        &self,
        out: &mut String,
        address: u64,
        outcome: Outcome,
        value: impl Fn(usize) -> Option<Value<'a>>,
    ) {
        let integer = |place: usize| {
            let field = self.fields.get(place);
            let value = field.and_then(|(field, _)| value(*field));
            value.map_or(0, number)
        };
        let text = || match value(self.fields.first()?.0) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        };
        // As the table of the argument says, or else as `otherwise`.
        let named = |out: &mut String, place: usize, otherwise: Meaning| {
            let known = self.fields.get(place).and_then(|(_, meaning)| *meaning);
            known.unwrap_or(otherwise).write(out, integer(place));
        };
        const NUMBER: Meaning = Meaning::Value(&[]);
        let is_absent = match (self.kind, outcome) {
            (_, Outcome::Returned(result)) if result < 0 => true,
            // No child has changed.
            (Kind::Status, Outcome::Returned(0)) => true,
            (Kind::Arguments, _) => text().is_none_or(<[u8]>::is_empty),
            _ => false,
        };
        if is_absent {
            return Meaning::Pointer.write(out, address);
        }
        match self.kind {
            Kind::Signals => Meaning::SignalSet.write(out, integer(0)),
            Kind::Action => {
                out.push_str("{sa_handler=");
                Meaning::Handler.write(out, integer(0));
                out.push_str(", sa_mask=");
                Meaning::SignalSet.write(out, integer(3));
                out.push_str(", sa_flags=");
                named(out, 1, Meaning::Hex);
                if integer(1) & decode::SA_RESTORER != 0 {
                    out.push_str(", sa_restorer=");
                    Meaning::Pointer.write(out, integer(2));
                }
                out.push('}');
            }
            Kind::Limits => {
                out.push_str("{rlim_cur=");
                Meaning::Limit.write(out, integer(0));
                out.push_str(", rlim_max=");
                Meaning::Limit.write(out, integer(1));
                out.push('}');
            }
            Kind::Pair => push(
                out,
                format_args!("[{}, {}]", integer(0) as i32, integer(1) as i32),
            ),
            Kind::Status => {
                out.push('[');
                Meaning::Status.write(out, integer(0));
                out.push(']');
            }
            Kind::Stat => {
                out.push_str("{st_mode=");
                named(out, 0, Meaning::FileMode);
                // A device has no size.
                if matches!(integer(0) & 0o170000, 0o020000 | 0o060000) {
                    out.push_str(", st_rdev=");
                    named(out, 1, Meaning::Device);
                } else {
                    out.push_str(", st_size=");
                    named(out, 2, NUMBER);
                }
                out.push_str(", ...}");
            }
            Kind::Statx => {
                let names = ["stx_mask", "stx_attributes", "stx_mode", "stx_size"];
                for (place, name) in names.into_iter().enumerate() {
                    push(out, format_args!("{}{name}=", first_or(place, "{", ", ")));
                    named(out, place, NUMBER);
                }
                out.push_str(", ...}");
            }
            Kind::Clone => {
                for (place, name) in CLONE_ARGS.into_iter().enumerate() {
                    if !decode::is_given("clone3", name, integer(0)) {
                        continue;
                    }
                    push(out, format_args!("{}{name}=", first_or(place, "{", ", ")));
                    let otherwise = match name {
                        "stack_size" => Meaning::Hex,
                        _ => Meaning::Pointer,
                    };
                    named(out, place, otherwise);
                }
                out.push('}');
            }
            Kind::Open => {
                out.push_str("{flags=");
                named(out, 0, Meaning::Hex);
                if decode::is_given("openat", "mode", integer(0)) {
                    out.push_str(", mode=");
                    Meaning::Mode.write(out, integer(1));
                }
                out.push_str(", resolve=");
                named(out, 2, Meaning::Hex);
                out.push('}');
            }
            Kind::Arguments => write_list_of_texts(out, text().unwrap_or_default()),
            Kind::Environment => {
                let count = integer(0);
                let word = if count == 1 { "var" } else { "vars" };
                push(out, format_args!("{address:#x} /* {count} {word} */"));
            }
            Kind::Text => write_text(out, text().unwrap_or_default()),
        }
    }
}

/// Returns `first` for the first place, `other` for the others.
fn first_or(place: usize, first: &'static str, other: &'static str) -> &'static str {
    if place == 0 {
        first
    } else {
        other
    }
}
