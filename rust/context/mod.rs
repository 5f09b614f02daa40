// SPDX-License-Identifier: GPL-2.0

//! Contexts: what is known of the moment in which an event fires, and is not a field of it.
//!
//! A channel records those that were chosen beside each of its events, counters and call stacks;
//! filters may ask for any context. Names in traces are LTTng's, so that viewers know what they are.

mod called;
mod choice;
mod counters;
mod set;
pub(crate) mod stack;

pub(crate) use called::KernelCalls;
pub(crate) use choice::ContextChoice;
pub(crate) use counters::{CounterKind, MAX_COUNTERS};
pub(crate) use set::{ContextRefusal, ContextSet};

use crate::abi::schema::{Field, FieldType};
use crate::arch::preempt::{self, NoPreempt};
use crate::record::memory::Space;
use crate::sys::args::{FarWord, IdInNamespace, Task, TaskNumber};

/// The moment in which contexts are read.
pub(crate) struct Moment<'a> {
    guard: &'a NoPreempt,
    guards: u32,
}

impl<'a> Moment<'a> {
    /// This one. So many guards live, which is in the preemption count.
    #[inline(always)]
    pub(crate) fn new(guard: &'a NoPreempt, guards: u32) -> Self {
        Self { guard, guards }
    }
}

/// Defines the contexts: `NAME` is what users call one, `in_trace` what it is called in a trace,
/// where that is another name.
macro_rules! contexts {
    (
        own {
            $($(#[$own_doc:meta])* $own:ident $own_name:literal $(in_trace $own_field:literal)?:
                $own_shown:ident = $own_number:ident;)*
        }
        far {
            $($(#[$far_doc:meta])* $far:ident $far_name:literal: $far_shown:ident = $far_word:ident;)*
        }
        |$now:ident| others {
            $($(#[$doc:meta])* $other:ident $name:literal: $shown:ident $ty:ty = $read:expr;)*
        }
    ) => {
        /// Something that is known of the moment. In an interrupt, of the task that it interrupted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Context {
            $($(#[$own_doc])* $own,)*
            $($(#[$far_doc])* $far,)*
            $($(#[$doc])* $other,)*
            /// The thread's name.
            Comm,
        }

        /// The first contexts are numbers that the task itself has.
        static OWN: &[TaskNumber] = &[$(TaskNumber::$own_number),*];
        /// The next are those that it leads to.
        static FAR: &[FarWord] = &[$(FarWord::$far_word),*];

        impl Context {
            /// All of them, by number.
            pub(crate) const ALL: &'static [Self] =
                &[$(Self::$own,)* $(Self::$far,)* $(Self::$other,)* Self::Comm];

            /// What users call it.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$own => $own_name,)*
                    $(Self::$far => $far_name,)*
                    $(Self::$other => $name,)*
                    Self::Comm => "comm",
                }
            }

            /// What it is called in a trace.
            const fn field_name(self) -> &'static str {
                match self {
                    $($(Self::$own => $own_field,)?)*
                    Self::Comm => "procname",
                    _ => self.name(),
                }
            }

            /// How it lies in a record.
            pub(crate) const fn ty(self) -> FieldType<'static> {
                match self {
                    $(Self::$own => FieldType::$own_shown(32),)*
                    $(Self::$far => FieldType::$far_shown(32),)*
                    $(Self::$other => FieldType::$shown(<$ty>::BITS as u8),)*
                    Self::Comm => FieldType::text(16),
                }
            }

            /// The number that it is now, in as many bits as its type has; [`None`]: it is a text.
            /// Any context, NMI included.
            #[inline(always)]
            #[allow(clippy::cast_lossless)] // Of whatever type.
            pub(crate) fn number(self, $now: &Moment<'_>) -> Option<u64> {
                match self.place() {
                    Place::Own(number) => Some(Task::current().number(*number) as u64),
                    Place::Far(word) => Some(Task::current().far_word(word, $now.guard).into()),
                    Place::Other => match self {
                        $(Self::$other => Some($read as u64),)*
                        _ => None,
                    },
                }
            }

            /// Lays down what it is now. Any context, NMI included.
            #[inline(always)]
            fn write(self, space: &mut Space<'_>, $now: &Moment<'_>) {
                match self.place() {
                    Place::Own(number) => space.put(Task::current().number(*number)),
                    Place::Far(word) => space.put(Task::current().far_word(word, $now.guard)),
                    Place::Other => match self {
                        $(Self::$other => space.put::<$ty>($read),)*
                        _ => space.put(Task::current().comm()),
                    },
                }
            }
        }
    };
}

contexts! {
    own {
        /// Process.
        Pid "pid": signed = PID;
        /// Thread.
        Tid "tid": signed = TID;
        /// Priority as LTTng shows it.
        Prio "prio": signed = PRIO;
        /// Nice value.
        Nice "nice": signed = NICE;
        /// CPU.
        Cpu "cpu" in_trace "cpu_id": unsigned = CPU;
    }
    far {
        /// Parent process.
        Ppid "ppid": signed = PARENT_PID;
        /// User and group: real, effective and saved.
        Uid "uid": unsigned = UID;
        Euid "euid": unsigned = EUID;
        Suid "suid": unsigned = SUID;
        Gid "gid": unsigned = GID;
        Egid "egid": unsigned = EGID;
        Sgid "sgid": unsigned = SGID;
        /// Namespaces, by the numbers of their inodes.
        CgroupNs "cgroup_ns": unsigned = CGROUP_NS;
        IpcNs "ipc_ns": unsigned = IPC_NS;
        MntNs "mnt_ns": unsigned = MNT_NS;
        NetNs "net_ns": unsigned = NET_NS;
        TimeNs "time_ns": unsigned = TIME_NS;
        UserNs "user_ns": unsigned = USER_NS;
        UtsNs "uts_ns": unsigned = UTS_NS;
    }
    |now| others {
        /// Process, in the task's own namespace.
        Vpid "vpid": signed i32 = Task::current().pid_in_namespace(now.guard);
        /// Thread, in the task's own namespace.
        Vtid "vtid": signed i32 = Task::current().tid_in_namespace(now.guard);
        /// User and group, in the task's own namespace.
        Vuid "vuid": unsigned u32 = own_id(IdInNamespace::UID, now);
        Veuid "veuid": unsigned u32 = own_id(IdInNamespace::EUID, now);
        Vsuid "vsuid": unsigned u32 = own_id(IdInNamespace::SUID, now);
        Vgid "vgid": unsigned u32 = own_id(IdInNamespace::GID, now);
        Vegid "vegid": unsigned u32 = own_id(IdInNamespace::EGID, now);
        Vsgid "vsgid": unsigned u32 = own_id(IdInNamespace::SGID, now);
        /// Process id namespace, by the number of its inode.
        PidNs "pid_ns": unsigned u32 = Task::current().pid_namespace(now.guard);
        /// Cgroup (v2), by the number of its directory's inode.
        CgroupId "cgroup_id": unsigned u64 = Task::current().cgroup_id(now.guard);
        /// Whether the scheduler is due: bit 0, at the next preemption point; bit 1, lazily.
        NeedReschedule "need_reschedule": unsigned u8 = Task::current().need_reschedule();
        /// Whether preemption was enabled.
        Preemptible "preemptible": unsigned u8 = u8::from(preempt::is_preemptible(now.guards));
        /// Whether interrupts are enabled.
        Interruptible "interruptible": signed i8 = i8::from(preempt::is_interruptible());
    }
}

#[inline(always)]
fn own_id(id: IdInNamespace, now: &Moment<'_>) -> u32 {
    Task::current().id_in_namespace(id, now.guard)
}

/// Where a context is found.
#[derive(Clone, Copy)]
enum Place {
    /// It is a number that the task itself has.
    Own(&'static TaskNumber),
    /// It is a number that the task leads to.
    Far(&'static FarWord),
    /// By code of its own.
    Other,
}

/// How a context is got that lies in the task as it lies in a record.
#[derive(Clone, Copy)]
enum Load {
    Number(TaskNumber),
    Comm,
}

impl Context {
    /// The one with one of these names.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|context| context.name() == name || context.field_name() == name)
    }

    /// Where it is found.
    #[inline(always)]
    fn place(self) -> Place {
        let id = self as usize;
        if let Some(number) = OWN.get(id) {
            return Place::Own(number);
        }
        match FAR.get(id.wrapping_sub(OWN.len())) {
            Some(word) => Place::Far(word),
            None => Place::Other,
        }
    }

    /// Where it is read as it is: the task's number, or its name.
    fn load(self) -> Option<Load> {
        match self.place() {
            Place::Own(number) => Some(Load::Number(*number)),
            Place::Other if self == Self::Comm => Some(Load::Comm),
            _ => None,
        }
    }

    /// The text that it is now; [`None`]: it is a number. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn text(self) -> Option<[u8; 16]> {
        matches!(self, Self::Comm).then(|| Task::current().comm())
    }

    /// It, as a field.
    pub(crate) const fn field(self) -> Field<'static> {
        Field::new(self.field_name(), self.ty())
    }
}
