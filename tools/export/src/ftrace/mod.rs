// SPDX-License-Identifier: GPL-2.0

//! ftrace's names and print formats of events.

mod formats;
mod template;

pub use template::PRIORITIES;

use super::values::{AsText, Contexts, Pairs};
use analysis::integer;
use ctf::{Event, EventLayout};
use std::borrow::Cow;
use std::fmt::{self, Write};
use system::printing;
use template::Template;

/// Entry or exit of a system call, with the name of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syscall<'a> {
    /// The entry.
    Entry(&'a str),
    /// The exit.
    Exit(&'a str),
}

/// Returns the system call whose entry or exit has this event name.
pub fn syscall(name: &str) -> Option<Syscall<'_>> {
    let entry = name.strip_prefix("syscall_entry_").map(Syscall::Entry);
    entry.or_else(|| name.strip_prefix("syscall_exit_").map(Syscall::Exit))
}

/// Returns ftrace's name of an event.
pub fn name(name: &str) -> Cow<'_, str> {
    match syscall(name) {
        Some(Syscall::Entry(call)) => return format!("sys_enter_{call}").into(),
        Some(Syscall::Exit(call)) => return format!("sys_exit_{call}").into(),
        None => {}
    }
    decode::event_in_kernel(name).into()
}

/// Returns a name from a trace, without characters that control a terminal.
fn harmless(name: &str) -> String {
    printing::Line(name.as_bytes()).to_string()
}

/// Print format of an event, after the task, the CPU and the time.
#[derive(Debug)]
pub enum Line {
    /// ftrace's own print format.
    Formatted(String, Template),
    /// Entry of a system call.
    Entry(String),
    /// Exit of a system call, with the place of the field that has the result.
    Exit(String, usize),
    /// All fields, because the format is not known.
    Pairs(String),
}

impl Line {
    /// Format of an event. An event of a system call is formatted as a call.
    pub fn of(layout: &EventLayout) -> Self {
        match (syscall(&layout.name), layout.field("ret")) {
            (Some(Syscall::Entry(call)), _) => Self::Entry(harmless(call)),
            (Some(Syscall::Exit(call)), Some(ret)) => Self::Exit(harmless(call), ret),
            _ => Self::named(layout),
        }
    }

    /// Format of an event that always begins with the name of the event.
    pub fn named(layout: &EventLayout) -> Self {
        let name = harmless(&name(&layout.name));
        match formats::of(&layout.name).and_then(|format| Template::new(format, layout)) {
            Some(template) => Self::Formatted(name, template),
            None => Self::Pairs(name),
        }
    }

    /// Appends the formatted event to `out`.
    pub fn write(&self, event: &Event<'_>, out: &mut String) -> fmt::Result {
        match self {
            Self::Formatted(name, template) => {
                write!(out, "{name}: ")?;
                template.write(event, out)?;
            }
            Self::Entry(call) => {
                write!(out, "sys_{call}(")?;
                for (place, (field, value)) in event.fields().enumerate() {
                    let gap = if place > 0 { ", " } else { "" };
                    write!(out, "{gap}{}: {}", field.name, AsText(&field.ty, value))?;
                }
                out.push(')');
            }
            Self::Exit(call, ret) => {
                let ret = integer(event.value(*ret)).unwrap_or(0);
                write!(out, "sys_{call} -> {ret:#x}")?;
            }
            Self::Pairs(name) => return write!(out, "{name}: {}", Pairs(event)),
        }
        write!(out, "{}", Contexts(event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (own, ftrace) in [
            ("sched_switch", "sched_switch"),
            ("irq_softirq_raise", "softirq_raise"),
            ("syscall_entry_openat", "sys_enter_openat"),
            ("compat_syscall_exit_unknown", "compat_syscall_exit_unknown"),
        ] {
            assert_eq!(name(own), ftrace);
        }
    }
}
