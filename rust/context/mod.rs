// SPDX-License-Identifier: GPL-2.0

//! Contexts: values of the moment in which an event fires that are not fields of the event.
//!
//! A channel records the selected ones with each of its events, and also counters and call stacks. Filters may
//! use any context. Names in traces are LTTng's, so that viewers know them.

mod called;
mod choice;
mod counters;
mod set;
pub(crate) mod stack;
mod thread;
pub(crate) mod user_stack;

pub(crate) use called::KernelCalls;
pub(crate) use choice::ContextChoice;
pub(crate) use counters::{CounterKind, MAX_COUNTERS};
pub(crate) use set::{ContextRefusal, ContextSet, ContextStart};
pub(crate) use thread::ThreadContexts;

use crate::abi::schema::{Field, FieldType};
use crate::arch::preempt::{self, NoPreempt};
use crate::record::memory::{Capture, RecordWriter};
use crate::sys::args::{FarWord, IdInNamespace, NamespaceWord, Task, TaskNumber, TaskWord};
use crate::sys::stack::StackStart;

/// The moment in which contexts are read.
#[derive(Clone, Copy)]
pub(crate) struct Moment<'a> {
    /// One of the live guards.
    pub(crate) guard: &'a NoPreempt,
    /// Number of live guards, which are part of the preemption count.
    guards: u32,
    /// The start of the kernel's stack; [`None`]: the stack starts at the function that takes it.
    stack: Option<StackStart<'a>>,
}

impl<'a> Moment<'a> {
    /// The current moment. `guards` is the number of live guards.
    #[inline(always)]
    pub(crate) fn new(guard: &'a NoPreempt, guards: u32) -> Self {
        let stack = None;
        Self {
            guard,
            guards,
            stack,
        }
    }

    /// This moment with another start of the kernel's stack.
    #[inline(always)]
    pub(crate) fn with_stack(self, stack: StackStart<'a>) -> Self {
        let stack = Some(stack);
        Self { stack, ..self }
    }

    /// The start of the kernel's stack; [`None`]: the stack starts at the function that takes it.
    #[inline(always)]
    pub(crate) fn stack(&self) -> Option<StackStart<'a>> {
        self.stack
    }

    /// This moment with one more guard: the guard of a buffer's gate.
    #[inline(always)]
    pub(crate) fn inside(self) -> Self {
        let guards = self.guards.wrapping_add(1);
        Self { guards, ..self }
    }
}

/// Defines the contexts. `NAME` is the name for users. `in_trace` is the name in a trace, if that differs.
macro_rules! contexts {
    ($(
        $(#[$doc:meta])* $context:ident $name:literal $(in_trace $field:literal)?:
            $shown:ident $size:literal = $load:expr;
    )*) => {
        /// A value of the moment. In an interrupt, it is that of the interrupted task.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Context {
            $($(#[$doc])* $context,)*
        }

        impl Context {
            /// All contexts, by number.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$context,)*];

            /// The name for users.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$context => $name,)*
                }
            }

            /// The name in a trace.
            const fn field_name(self) -> &'static str {
                match self {
                    $($(Self::$context => $field,)?)*
                    _ => self.name(),
                }
            }

            /// The context's type in a record.
            pub(crate) const fn ty(self) -> FieldType<'static> {
                match self {
                    $(Self::$context => FieldType::$shown($size),)*
                }
            }
        }

        /// The loads of the contexts, by number.
        static LOADS: [Load; Context::ALL.len()] = [$($load),*];
    };
}

contexts! {
    /// Process.
    Pid "pid": signed 32 = Load::Short(ShortLoad::Number(TaskNumber::PID));
    /// Thread.
    Tid "tid": signed 32 = Load::Short(ShortLoad::Number(TaskNumber::TID));
    /// Priority as LTTng shows it.
    Prio "prio": signed 32 = Load::Short(ShortLoad::Number(TaskNumber::PRIO));
    /// Nice value.
    Nice "nice": signed 32 = Load::Short(ShortLoad::Number(TaskNumber::NICE));
    /// CPU.
    Cpu "cpu" in_trace "cpu_id": unsigned 32 = Load::Short(ShortLoad::Number(TaskNumber::CPU));
    /// Parent process.
    Ppid "ppid": signed 32 = Load::Short(ShortLoad::Far(FarWord::PARENT_PID));
    /// User and group: real, effective and saved.
    Uid "uid": unsigned 32 = Load::Short(ShortLoad::Far(FarWord::UID));
    Euid "euid": unsigned 32 = Load::Short(ShortLoad::Far(FarWord::EUID));
    Suid "suid": unsigned 32 = Load::Short(ShortLoad::Far(FarWord::SUID));
    Gid "gid": unsigned 32 = Load::Short(ShortLoad::Far(FarWord::GID));
    Egid "egid": unsigned 32 = Load::Short(ShortLoad::Far(FarWord::EGID));
    Sgid "sgid": unsigned 32 = Load::Short(ShortLoad::Far(FarWord::SGID));
    /// Namespaces, by the numbers of their inodes.
    CgroupNs "cgroup_ns": unsigned 32 = Load::Longer(LongerLoad::Namespace(NamespaceWord::CGROUP));
    IpcNs "ipc_ns": unsigned 32 = Load::Longer(LongerLoad::Namespace(NamespaceWord::IPC));
    MntNs "mnt_ns": unsigned 32 = Load::Longer(LongerLoad::Namespace(NamespaceWord::MNT));
    NetNs "net_ns": unsigned 32 = Load::Longer(LongerLoad::Namespace(NamespaceWord::NET));
    TimeNs "time_ns": unsigned 32 = Load::Longer(LongerLoad::Namespace(NamespaceWord::TIME));
    UserNs "user_ns": unsigned 32 = Load::Longer(LongerLoad::Namespace(NamespaceWord::USER));
    UtsNs "uts_ns": unsigned 32 = Load::Longer(LongerLoad::Namespace(NamespaceWord::UTS));
    /// Process, in the task's own namespace.
    Vpid "vpid": signed 32 = Load::Longer(LongerLoad::PidInNamespace);
    /// Thread, in the task's own namespace.
    Vtid "vtid": signed 32 = Load::Longer(LongerLoad::TidInNamespace);
    /// User and group, in the task's own namespace.
    Vuid "vuid": unsigned 32 = Load::Longer(LongerLoad::IdInNamespace(IdInNamespace::UID));
    Veuid "veuid": unsigned 32 = Load::Longer(LongerLoad::IdInNamespace(IdInNamespace::EUID));
    Vsuid "vsuid": unsigned 32 = Load::Longer(LongerLoad::IdInNamespace(IdInNamespace::SUID));
    Vgid "vgid": unsigned 32 = Load::Longer(LongerLoad::IdInNamespace(IdInNamespace::GID));
    Vegid "vegid": unsigned 32 = Load::Longer(LongerLoad::IdInNamespace(IdInNamespace::EGID));
    Vsgid "vsgid": unsigned 32 = Load::Longer(LongerLoad::IdInNamespace(IdInNamespace::SGID));
    /// Process id namespace, by the number of its inode.
    PidNs "pid_ns": unsigned 32 = Load::Longer(LongerLoad::PidNamespace);
    /// Cgroup (v2), by the number of its directory's inode.
    CgroupId "cgroup_id": unsigned 64 = Load::Longer(LongerLoad::CgroupId);
    /// Whether the scheduler is due: bit 0, at the next preemption point; bit 1, lazily.
    NeedReschedule "need_reschedule": unsigned 8 = Load::Longer(LongerLoad::NeedReschedule);
    /// Whether preemption was enabled.
    Preemptible "preemptible": unsigned 8 = Load::Longer(LongerLoad::Preemptible);
    /// Whether interrupts are enabled.
    Interruptible "interruptible": signed 8 = Load::Longer(LongerLoad::Interruptible);
    /// The thread's name.
    Comm "comm" in_trace "procname": text 16 = Load::Comm;
}

/// The way to read a context. The kinds that most sets have come first, and are few: a probe tests for one
/// after the other.
#[derive(Clone, Copy)]
enum Load {
    Short(ShortLoad),
    /// The task's name.
    Comm,
    Longer(LongerLoad),
}

/// The way to read a number by a few instructions.
#[derive(Clone, Copy)]
enum ShortLoad {
    /// A number of the running task.
    Number(TaskNumber),
    /// A number in an object that the task points to.
    Far(FarWord),
}

/// The way to read a context by a longer path.
#[derive(Clone, Copy)]
#[repr(u8)]
enum LongerLoad {
    /// The inode number of a namespace of the task.
    Namespace(NamespaceWord),
    TidInNamespace,
    PidInNamespace,
    PidNamespace,
    CgroupId,
    IdInNamespace(IdInNamespace),
    NeedReschedule,
    Preemptible,
    Interruptible,
}

impl Load {
    /// Reads the context, and writes it to a record. Any context, NMI included.
    #[inline(always)]
    fn write<'a>(&self, to: RecordWriter<'a>, now: &Moment<'_>) -> RecordWriter<'a> {
        match self {
            Self::Short(short) => short.write(to, now.guard),
            Self::Comm => to.put(Task::current().comm()),
            Self::Longer(longer) => longer.write(to, now),
        }
    }
}

impl ShortLoad {
    #[inline(always)]
    fn write<'a>(&self, to: RecordWriter<'a>, guard: &NoPreempt) -> RecordWriter<'a> {
        let task = Task::current();
        match self {
            Self::Number(number) => to.put(task.number(*number)),
            Self::Far(word) => to.put(task.far_word(word, guard)),
        }
    }
}

impl LongerLoad {
    #[inline(always)]
    fn write<'a>(&self, to: RecordWriter<'a>, now: &Moment<'_>) -> RecordWriter<'a> {
        let (task, guard) = (Task::current(), now.guard);
        match self {
            Self::Namespace(word) => to.put(task.namespace(word, guard)),
            Self::TidInNamespace => to.put(task.tid_in_namespace(guard)),
            Self::PidInNamespace => to.put(task.pid_in_namespace(guard)),
            Self::PidNamespace => to.put(task.pid_namespace(guard)),
            Self::CgroupId => to.put(task.cgroup_id(guard)),
            Self::IdInNamespace(id) => to.put(task.id_in_namespace(*id, guard)),
            Self::NeedReschedule => to.put(task.need_reschedule()),
            Self::Preemptible => to.put(u8::from(preempt::is_preemptible(now.guards))),
            Self::Interruptible => to.put(i8::from(preempt::is_interruptible())),
        }
    }
}

impl Context {
    /// The context with this name.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|context| context.name() == name || context.field_name() == name)
    }

    /// The way to read the context.
    #[inline(always)]
    fn load(self) -> Option<&'static Load> {
        LOADS.get(self as usize)
    }

    /// The field of the task that contains the context in the form of the record.
    pub(crate) fn field_of_task(self) -> Option<TaskWord> {
        match self.load()? {
            Load::Short(ShortLoad::Number(number)) => number.word(),
            _ => None,
        }
    }

    /// The current value as a number, with as many bits as its type has. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn number(self, now: &Moment<'_>) -> Option<u64> {
        let mut room = Capture::<{ size_of::<u64>() }>::new();
        let len = self.ty().size()? as u64;
        self.load()?.write(room.begin(len)?, now);
        room.end().number(0)
    }

    /// The current value as a text; [`None`] if it is a number. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn text(self) -> Option<[u8; 16]> {
        matches!(self, Self::Comm).then(|| Task::current().comm())
    }

    /// The context's field.
    pub(crate) const fn field(self) -> Field<'static> {
        Field::new(self.field_name(), self.ty())
    }
}
