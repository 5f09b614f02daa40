// SPDX-License-Identifier: GPL-2.0

//! Maps events to Perfetto's messages.

use super::proto::{message, string, tag, varint};
use crate::format::Now;
use crate::ftrace::{self, syscall, Syscall, PRIORITIES};
use crate::values::{fields, is_shown_context, AsText};
use analysis::{integer, text};
use ctf::{Event, EventLayout, FieldLayout, Type, Value};
use decode::Architecture;
use std::io::Write;
use system::printing::Line;

/// Message of a type of event.
#[derive(Debug)]
pub enum Mapping {
    /// The message with this number and these fields.
    Own(u32, Vec<Place>),
    /// Entry of a system call, with its number.
    Entry(Number),
    /// Exit of a system call, with its number and the field of its result.
    Exit(Number, usize),
    /// The generic message, with ftrace's name of the event.
    Generic(String),
}

/// A field of a message: the event's field, the number in the message, and the form.
#[derive(Debug)]
pub struct Place(usize, u32, Form);

/// The form of a field in a message.
#[derive(Clone, Copy, Debug)]
enum Form {
    Text,
    Int,
    Uint,
    Long,
    /// A priority, as the kernel counts them.
    Priority,
}

/// Source of the number of a system call.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// The number itself.
    Known(i64),
    /// The field that holds the number.
    Field(usize),
}

use Form::{Int, Long, Priority, Text, Uint};

/// A field of a message: its name in a trace, its number, and its form.
type Known = (&'static str, u32, Form);

const WAKE: &[Known] = &[
    ("comm", 1, Text),
    ("tid", 2, Int),
    ("prio", 3, Priority),
    ("target_cpu", 5, Int),
];
const SOFTIRQ: &[Known] = &[("vec", 1, Uint)];
const CPU_STATE: &[Known] = &[("state", 1, Uint), ("cpu_id", 2, Uint)];

/// Events with their own messages in Perfetto, each with its number in `FtraceEvent`.
const OWN: &[(&str, u32, &[Known])] = &[
    (
        "sched_switch",
        4,
        &[
            ("prev_comm", 1, Text),
            ("prev_tid", 2, Int),
            ("prev_prio", 3, Priority),
            ("prev_state", 4, Long),
            ("next_comm", 5, Text),
            ("next_tid", 6, Int),
            ("next_prio", 7, Priority),
        ],
    ),
    ("sched_waking", 20, WAKE),
    ("sched_wakeup", 17, WAKE),
    ("sched_wakeup_new", 114, WAKE),
    (
        "sched_migrate_task",
        491,
        &[
            ("comm", 1, Text),
            ("tid", 2, Int),
            ("prio", 3, Priority),
            ("orig_cpu", 4, Int),
            ("dest_cpu", 5, Int),
        ],
    ),
    (
        "sched_process_exec",
        237,
        &[("filename", 1, Text), ("tid", 2, Int), ("old_tid", 3, Int)],
    ),
    (
        "sched_process_exit",
        238,
        &[("comm", 1, Text), ("tid", 2, Int), ("prio", 4, Priority)],
    ),
    (
        "sched_process_free",
        240,
        &[("comm", 1, Text), ("tid", 2, Int), ("prio", 3, Priority)],
    ),
    (
        "sched_process_fork",
        239,
        &[
            ("parent_comm", 1, Text),
            ("parent_tid", 2, Int),
            ("child_comm", 3, Text),
            ("child_tid", 4, Int),
        ],
    ),
    (
        "task_rename",
        236,
        &[("tid", 1, Int), ("oldcomm", 2, Text), ("newcomm", 3, Text)],
    ),
    (
        "irq_handler_entry",
        36,
        &[("irq", 1, Int), ("name", 2, Text)],
    ),
    ("irq_handler_exit", 37, &[("irq", 1, Int), ("ret", 2, Int)]),
    ("irq_softirq_entry", 24, SOFTIRQ),
    ("irq_softirq_exit", 25, SOFTIRQ),
    ("irq_softirq_raise", 26, SOFTIRQ),
    ("cpu_idle", 13, CPU_STATE),
    ("cpu_frequency", 11, CPU_STATE),
];

impl Mapping {
    /// Returns the mapping of an event in a trace of this architecture.
    pub fn of(layout: &EventLayout, architecture: Architecture) -> Self {
        Self::own(layout)
            .or_else(|| Self::call(layout, architecture))
            .unwrap_or_else(|| Self::generic(layout))
    }

    /// Returns the mapping of an event without a message of its own.
    pub fn generic(layout: &EventLayout) -> Self {
        Self::Generic(ftrace::name(&layout.name).into_owned())
    }

    fn own(layout: &EventLayout) -> Option<Self> {
        let (_, tag, known) = OWN.iter().find(|(name, ..)| *name == layout.name)?;
        let places = known
            .iter()
            .map(|(name, tag, form)| Some(Place(layout.field(name)?, *tag, *form)));
        Some(Self::Own(*tag, places.collect::<Option<_>>()?))
    }

    fn call(layout: &EventLayout, architecture: Architecture) -> Option<Self> {
        let (name, ret) = match syscall(&layout.name)? {
            Syscall::Entry(name) => (name, None),
            Syscall::Exit(name) => (name, Some(layout.field("ret")?)),
        };
        let number = match decode::number(architecture, name) {
            Some(number) => Number::Known(number.into()),
            None => Number::Field(layout.field("id")?),
        };
        Some(match ret {
            None => Self::Entry(number),
            Some(ret) => Self::Exit(number, ret),
        })
    }

    /// Appends the message of an event. Perfetto draws system calls by thread. A call with an unknown thread
    /// becomes a generic message.
    pub fn put(&self, out: &mut Vec<u8>, event: &Event<'_>, now: &Now<'_>) {
        match self {
            Self::Own(tag, places) => message(out, *tag, |out| {
                for Place(field, tag, form) in places {
                    put(out, *tag, *form, event.value(*field));
                }
            }),
            Self::Entry(number) if now.task.is_some() => {
                message(out, tag::SYS_ENTER, |out| number.put(out, event));
            }
            Self::Exit(number, ret) if now.task.is_some() => message(out, tag::SYS_EXIT, |out| {
                number.put(out, event);
                put(out, 2, Long, event.value(*ret));
            }),
            Self::Entry(_) | Self::Exit(..) => {
                generic(out, &ftrace::name(&event.layout.name), event);
            }
            Self::Generic(name) => generic(out, name, event),
        }
    }
}

impl Number {
    fn put(self, out: &mut Vec<u8>, event: &Event<'_>) {
        let number = match self {
            Self::Known(number) => Some(number),
            Self::Field(field) => integer(event.value(field)),
        };
        if let Some(number) = number {
            varint(out, 1, number as u64);
        }
    }
}

/// Appends a field, if the event has its value.
fn put(out: &mut Vec<u8>, tag: u32, form: Form, value: Option<Value<'_>>) {
    if let Text = form {
        if let Some(text) = text(value) {
            line(out, tag, text);
        }
        return;
    }
    let Some(number) = integer(value) else { return };
    let number = match form {
        Text | Long => number,
        Int => match i32::try_from(number) {
            Ok(number) => number.into(),
            Err(_) => return,
        },
        // The kernel's tools also show a state of -1 as 2^32 - 1.
        Uint => (number as u32).into(),
        Priority => match i32::try_from(number.saturating_add(PRIORITIES)) {
            Ok(number) => number.into(),
            Err(_) => return,
        },
    };
    varint(out, tag, number as u64);
}

/// Appends a text of foreign origin, on one line.
pub fn line(out: &mut Vec<u8>, tag: u32, text: &[u8]) {
    let is_plain = |byte: &u8| (b' '..=b'~').contains(byte) && *byte != b'\\';
    if text.iter().all(is_plain) {
        string(out, tag, text);
    } else {
        string(out, tag, Line(text).to_string().as_bytes());
    }
}

fn generic(out: &mut Vec<u8>, name: &str, event: &Event<'_>) {
    message(out, tag::GENERIC, |out| {
        string(out, tag::EVENT_NAME, name.as_bytes());
        let contexts = event
            .contexts()
            .filter(|(field, _)| is_shown_context(field));
        for (layout, value) in fields(event).chain(contexts) {
            message(out, tag::FIELD, |out| field(out, layout, value));
        }
    });
}

fn field(out: &mut Vec<u8>, layout: &FieldLayout, value: Value<'_>) {
    string(out, tag::FIELD_NAME, layout.name.as_bytes());
    match (value, &layout.ty) {
        (Value::Signed(number), Type::Integer(_)) => varint(out, tag::FIELD_INT, number as u64),
        (Value::Unsigned(number), Type::Integer(_)) => varint(out, tag::FIELD_UINT, number),
        _ => message(out, tag::FIELD_STR, |out| {
            // Writing to memory cannot fail.
            let _ = write!(out, "{}", AsText(&layout.ty, value));
        }),
    }
}
