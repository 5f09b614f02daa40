// SPDX-License-Identifier: GPL-2.0

//! From an event to the message that Perfetto draws.

use super::proto::{
    CpuState, Field, FieldValue, Generic, IrqHandlerEntry, IrqHandlerExit, Kind, SchedMigrateTask,
    SchedProcessExec, SchedProcessExit, SchedProcessFork, SchedProcessFree, SchedSwitch, Softirq,
    SysEnter, SysExit, TaskRename, Wake,
};
use crate::format::Now;
use crate::ftrace::{self, syscall, Syscall, PRIORITIES};
use crate::values::{fields, is_shown_context, AsText, Line};
use analysis::{integer, text};
use ctf::{Event, EventLayout, FieldLayout, Type, Value};

/// What becomes of an event.
#[derive(Debug)]
pub enum Mapping {
    /// A message of its own, from these fields.
    Own(Make, Vec<usize>),
    /// The end of a system call, with its number.
    Call(Make, Number, Vec<usize>),
    /// The message for any event, with ftrace's name of it.
    Generic(String),
}

/// Where the number of a system call is.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// It is this one.
    Known(i64),
    /// In this field.
    Field(usize),
}

/// Makes a message from the fields of an event; `id` is the number of a system call.
type Make = fn(&Source<'_, '_>) -> Kind;

/// Fields of an event by their places in a message.
pub struct Source<'a, 'b> {
    event: &'b Event<'a>,
    fields: &'b [usize],
    /// The number of a system call.
    id: Option<i64>,
}

impl Source<'_, '_> {
    fn long(&self, place: usize) -> Option<i64> {
        integer(self.event.value(*self.fields.get(place)?))
    }

    fn int(&self, place: usize) -> Option<i32> {
        self.long(place)?.try_into().ok()
    }

    fn uint(&self, place: usize) -> Option<u32> {
        // A state of -1 is 2^32 - 1 for the kernel's tools, too.
        self.long(place).map(|number| number as u32)
    }

    /// A priority, as the kernel counts them.
    fn prio(&self, place: usize) -> Option<i32> {
        (self.long(place)? + PRIORITIES).try_into().ok()
    }

    fn text(&self, place: usize) -> Option<String> {
        let text = text(self.event.value(*self.fields.get(place)?))?;
        Some(Line(text).to_string())
    }
}

/// The events that Perfetto has messages of their own for, with their fields in a trace.
const OWN: &[(&str, &[&str], Make)] = &[
    (
        "sched_switch",
        &[
            "prev_comm",
            "prev_tid",
            "prev_prio",
            "prev_state",
            "next_comm",
            "next_tid",
            "next_prio",
        ],
        |s| {
            Kind::SchedSwitch(SchedSwitch {
                prev_comm: s.text(0),
                prev_pid: s.int(1),
                prev_prio: s.prio(2),
                prev_state: s.long(3),
                next_comm: s.text(4),
                next_pid: s.int(5),
                next_prio: s.prio(6),
            })
        },
    ),
    ("sched_waking", WAKE, |s| Kind::SchedWaking(wake(s))),
    ("sched_wakeup", WAKE, |s| Kind::SchedWakeup(wake(s))),
    ("sched_wakeup_new", WAKE, |s| Kind::SchedWakeupNew(wake(s))),
    (
        "sched_migrate_task",
        &["comm", "tid", "prio", "orig_cpu", "dest_cpu"],
        |s| {
            Kind::SchedMigrateTask(SchedMigrateTask {
                comm: s.text(0),
                pid: s.int(1),
                prio: s.prio(2),
                orig_cpu: s.int(3),
                dest_cpu: s.int(4),
            })
        },
    ),
    ("sched_process_exec", &["filename", "tid", "old_tid"], |s| {
        Kind::SchedProcessExec(SchedProcessExec {
            filename: s.text(0),
            pid: s.int(1),
            old_pid: s.int(2),
        })
    }),
    ("sched_process_exit", &["comm", "tid", "prio"], |s| {
        Kind::SchedProcessExit(SchedProcessExit {
            comm: s.text(0),
            pid: s.int(1),
            tgid: None,
            prio: s.prio(2),
        })
    }),
    ("sched_process_free", &["comm", "tid", "prio"], |s| {
        Kind::SchedProcessFree(SchedProcessFree {
            comm: s.text(0),
            pid: s.int(1),
            prio: s.prio(2),
        })
    }),
    (
        "sched_process_fork",
        &["parent_comm", "parent_tid", "child_comm", "child_tid"],
        |s| {
            Kind::SchedProcessFork(SchedProcessFork {
                parent_comm: s.text(0),
                parent_pid: s.int(1),
                child_comm: s.text(2),
                child_pid: s.int(3),
            })
        },
    ),
    ("task_rename", &["tid", "oldcomm", "newcomm"], |s| {
        Kind::TaskRename(TaskRename {
            pid: s.int(0),
            oldcomm: s.text(1),
            newcomm: s.text(2),
        })
    }),
    ("irq_handler_entry", &["irq", "name"], |s| {
        Kind::IrqHandlerEntry(IrqHandlerEntry {
            irq: s.int(0),
            name: s.text(1),
        })
    }),
    ("irq_handler_exit", &["irq", "ret"], |s| {
        Kind::IrqHandlerExit(IrqHandlerExit {
            irq: s.int(0),
            ret: s.int(1),
        })
    }),
    ("irq_softirq_entry", &["vec"], |s| {
        Kind::SoftirqEntry(softirq(s))
    }),
    ("irq_softirq_exit", &["vec"], |s| {
        Kind::SoftirqExit(softirq(s))
    }),
    ("irq_softirq_raise", &["vec"], |s| {
        Kind::SoftirqRaise(softirq(s))
    }),
    ("cpu_idle", &["state", "cpu_id"], |s| {
        Kind::CpuIdle(cpu_state(s))
    }),
    ("cpu_frequency", &["state", "cpu_id"], |s| {
        Kind::CpuFrequency(cpu_state(s))
    }),
];

const WAKE: &[&str] = &["comm", "tid", "prio", "target_cpu"];

fn wake(source: &Source<'_, '_>) -> Wake {
    Wake {
        comm: source.text(0),
        pid: source.int(1),
        prio: source.prio(2),
        target_cpu: source.int(3),
    }
}

fn softirq(source: &Source<'_, '_>) -> Softirq {
    Softirq {
        vec: source.uint(0),
    }
}

fn cpu_state(source: &Source<'_, '_>) -> CpuState {
    CpuState {
        state: source.uint(0),
        cpu_id: source.uint(1),
    }
}

impl Mapping {
    /// Of an event.
    pub fn of(layout: &EventLayout) -> Self {
        Self::own(layout)
            .or_else(|| Self::call(layout))
            .unwrap_or_else(|| Self::generic(layout))
    }

    /// As an event of which Perfetto knows nothing.
    pub fn generic(layout: &EventLayout) -> Self {
        Self::Generic(ftrace::name(&layout.name).into_owned())
    }

    fn own(layout: &EventLayout) -> Option<Self> {
        let (_, names, make) = OWN.iter().find(|(name, ..)| *name == layout.name)?;
        let fields = names.iter().map(|name| layout.field(name));
        Some(Self::Own(*make, fields.collect::<Option<_>>()?))
    }

    fn call(layout: &EventLayout) -> Option<Self> {
        let (name, make, fields): (_, Make, _) = match syscall(&layout.name)? {
            Syscall::Entry(name) => (name, |s| Kind::SysEnter(SysEnter { id: s.id }), Vec::new()),
            Syscall::Exit(name) => (
                name,
                |s| {
                    Kind::SysExit(SysExit {
                        id: s.id,
                        ret: s.long(0),
                    })
                },
                vec![layout.field("ret")?],
            ),
        };
        let number = match decode::number(name) {
            Some(number) => Number::Known(number.into()),
            None => Number::Field(layout.field("id")?),
        };
        Some(Self::Call(make, number, fields))
    }

    /// The message of an event. Perfetto draws system calls by thread: where that is not known, it is
    /// the message for any event.
    pub fn make(&self, event: &Event<'_>, now: &Now<'_>) -> Kind {
        let source = |fields, id| Source { event, fields, id };
        match self {
            Self::Own(make, fields) => make(&source(fields, None)),
            Self::Call(make, number, fields) if now.task.is_some() => {
                let id = match number {
                    Number::Known(number) => Some(*number),
                    Number::Field(field) => integer(event.value(*field)),
                };
                make(&source(fields, id))
            }
            Self::Call(..) => generic(&ftrace::name(&event.layout.name), event),
            Self::Generic(name) => generic(name, event),
        }
    }
}

fn generic(name: &str, event: &Event<'_>) -> Kind {
    let contexts = event
        .contexts()
        .filter(|(field, _)| is_shown_context(field));
    let all = fields(event).chain(contexts);
    Kind::Generic(Generic {
        event_name: Some(name.to_owned()),
        field: all.map(|(layout, value)| field(layout, value)).collect(),
    })
}

fn field(layout: &FieldLayout, value: Value<'_>) -> Field {
    let value = match (value, &layout.ty) {
        (Value::Signed(number), Type::Integer(_)) => FieldValue::Int(number),
        (Value::Unsigned(number), Type::Integer(_)) => FieldValue::Uint(number),
        _ => FieldValue::Str(AsText(&layout.ty, value).to_string()),
    };
    Field {
        name: Some(layout.name.clone()),
        value: Some(value),
    }
}
