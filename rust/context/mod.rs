// SPDX-License-Identifier: GPL-2.0

//! Contexts: what is known of the moment in which an event fires, and is not a field of it.
//!
//! A channel records those that were chosen beside each of its events, and filters may ask for
//! any. Names in traces are LTTng's, so that viewers know what they are.

mod set;

pub(crate) use set::ContextSet;

use crate::abi::schema::{Field, FieldType};
use crate::arch::preempt::NoPreempt;
use crate::sys::args::{Task, TaskNumber};

/// Something that is known of the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Context {
    Pid,
    Tid,
    Ppid,
    Vpid,
    Vtid,
    Comm,
    Prio,
    Nice,
    Uid,
    Gid,
    PidNs,
    Cpu,
}

/// How a context is got that lies in the task as it lies in a record.
#[derive(Clone, Copy)]
enum Load {
    Number(TaskNumber),
    Comm,
}

/// What it is at a moment.
#[derive(Clone, Copy)]
pub(crate) enum Value {
    Signed(i32),
    Unsigned(u32),
    Text([u8; 16]),
}

impl Context {
    /// All of them, by number.
    pub(crate) const ALL: [Self; 12] = [
        Self::Pid,
        Self::Tid,
        Self::Ppid,
        Self::Vpid,
        Self::Vtid,
        Self::Comm,
        Self::Prio,
        Self::Nice,
        Self::Uid,
        Self::Gid,
        Self::PidNs,
        Self::Cpu,
    ];

    /// What users call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Comm => "comm",
            Self::Cpu => "cpu",
            _ => self.field_name(),
        }
    }

    /// What it is called in a trace.
    const fn field_name(self) -> &'static str {
        match self {
            Self::Pid => "pid",
            Self::Tid => "tid",
            Self::Ppid => "ppid",
            Self::Vpid => "vpid",
            Self::Vtid => "vtid",
            Self::Comm => "procname",
            Self::Prio => "prio",
            Self::Nice => "nice",
            Self::Uid => "uid",
            Self::Gid => "gid",
            Self::PidNs => "pid_ns",
            Self::Cpu => "cpu_id",
        }
    }

    /// The one with one of these names.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|context| context.name() == name || context.field_name() == name)
    }

    /// How it lies in a record.
    pub(crate) const fn ty(self) -> FieldType<'static> {
        match self {
            Self::Comm => FieldType::text(16),
            Self::Uid | Self::Gid | Self::PidNs | Self::Cpu => FieldType::unsigned(32),
            _ => FieldType::signed(32),
        }
    }

    /// Where it is read as it is: the task's number, or its name.
    fn load(self) -> Option<Load> {
        Some(match self {
            Self::Pid => Load::Number(TaskNumber::PID),
            Self::Tid => Load::Number(TaskNumber::TID),
            Self::Prio => Load::Number(TaskNumber::PRIO),
            Self::Nice => Load::Number(TaskNumber::NICE),
            Self::Cpu => Load::Number(TaskNumber::CPU),
            Self::Comm => Load::Comm,
            _ => return None,
        })
    }

    /// It, as a field.
    pub(crate) const fn field(self) -> Field<'static> {
        Field {
            name: self.field_name(),
            ty: self.ty(),
        }
    }

    /// What it is now. In an interrupt, of the task that it interrupted. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn now(self, guard: &NoPreempt) -> Value {
        let task = Task::current();
        match self {
            Self::Pid => Value::Signed(task.pid()),
            Self::Tid => Value::Signed(task.tid()),
            Self::Ppid => Value::Signed(task.parent_pid(guard)),
            Self::Vpid => Value::Signed(task.pid_in_namespace(guard)),
            Self::Vtid => Value::Signed(task.tid_in_namespace(guard)),
            Self::Comm => Value::Text(task.comm()),
            Self::Prio => Value::Signed(task.prio()),
            Self::Nice => Value::Signed(task.nice()),
            Self::Uid => Value::Unsigned(task.uid(guard)),
            Self::Gid => Value::Unsigned(task.gid(guard)),
            Self::PidNs => Value::Unsigned(task.pid_namespace()),
            Self::Cpu => Value::Unsigned(task.cpu() as u32),
        }
    }
}
