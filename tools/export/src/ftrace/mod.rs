// SPDX-License-Identifier: GPL-2.0

//! What ftrace calls an event, and how it prints it.

mod formats;
mod template;

pub use template::PRIORITIES;

use super::values::{self, AsText, Contexts, Pairs};
use analysis::integer;
use ctf::{Event, EventLayout};
use std::borrow::Cow;
use std::fmt::{self, Write};
use template::Template;

/// An end of a system call, with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syscall<'a> {
    /// It begins.
    Entry(&'a str),
    /// It ends.
    Exit(&'a str),
}

/// The end of which system call an event of this name is.
pub fn syscall(name: &str) -> Option<Syscall<'_>> {
    let entry = name.strip_prefix("syscall_entry_").map(Syscall::Entry);
    entry.or_else(|| name.strip_prefix("syscall_exit_").map(Syscall::Exit))
}

/// What ftrace calls an event.
pub fn name(name: &str) -> Cow<'_, str> {
    match syscall(name) {
        Some(Syscall::Entry(call)) => return format!("sys_enter_{call}").into(),
        Some(Syscall::Exit(call)) => return format!("sys_exit_{call}").into(),
        None => {}
    }
    if name == "timer_hrtimer_init" {
        return "hrtimer_setup".into();
    }
    let shorter = [
        ("irq_", "softirq_"),
        ("timer_", "hrtimer_"),
        ("timer_", "itimer_"),
    ]
    .into_iter()
    .find_map(|(prefix, rest)| {
        name.strip_prefix(prefix)
            .filter(|name| name.starts_with(rest))
    });
    shorter.unwrap_or(name).into()
}

/// A name that a trace gives, without characters that a terminal obeys.
fn harmless(name: &str) -> String {
    values::Line(name.as_bytes()).to_string()
}

/// How an event is printed behind the task, the CPU and the time.
#[derive(Debug)]
pub enum Line {
    /// As ftrace's own print format says.
    Formatted(String, Template),
    /// The begin of a system call.
    Entry(String),
    /// The end of one: the field of the result.
    Exit(String, usize),
    /// With all its fields, because the format is not known.
    Pairs(String),
}

impl Line {
    /// Of an event; that of a system call looks like one.
    pub fn of(layout: &EventLayout) -> Self {
        match (syscall(&layout.name), layout.field("ret")) {
            (Some(Syscall::Entry(call)), _) => Self::Entry(harmless(call)),
            (Some(Syscall::Exit(call)), Some(ret)) => Self::Exit(harmless(call), ret),
            _ => Self::named(layout),
        }
    }

    /// Of an event, whose name comes first in any case.
    pub fn named(layout: &EventLayout) -> Self {
        let name = harmless(&name(&layout.name));
        match formats::of(&layout.name).and_then(|format| Template::new(format, layout)) {
            Some(template) => Self::Formatted(name, template),
            None => Self::Pairs(name),
        }
    }

    /// Adds it to `out`.
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
            ("irq_handler_entry", "irq_handler_entry"),
            ("timer_start", "timer_start"),
            ("timer_hrtimer_start", "hrtimer_start"),
            ("timer_hrtimer_init", "hrtimer_setup"),
            ("timer_itimer_state", "itimer_state"),
            ("syscall_entry_openat", "sys_enter_openat"),
            ("compat_syscall_exit_unknown", "compat_syscall_exit_unknown"),
        ] {
            assert_eq!(name(own), ftrace);
        }
    }
}
