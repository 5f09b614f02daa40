// SPDX-License-Identifier: GPL-2.0

//! The events: what is recorded, declared.
//!
//! One file per subsystem. A declaration names the tracepoint, its arguments and the fields
//! with how each is read; the `event!` macro in [`declare`] makes the probe, the layout and the
//! description from it. System calls have a [table](syscall) of their own, and two probes.
//!
//! To the rest of the module all of them look alike: an [`Event`], found by its id.

#[macro_use]
mod declare;
mod field;
mod format;
mod handlers;
mod irq;
mod module;
mod nmi;
pub(crate) mod provided;
mod sched;
mod signal;
pub(crate) mod syscall;
mod timer;

pub(crate) use declare::Declaration;
pub(crate) use format::format;

use crate::abi::schema::Field;
use provided::Provided;

/// All declared events, in the order of their ids, the most frequent first.
pub(crate) static DECLARED: &[&Declaration] = &[
    &sched::SCHED_SWITCH,
    &sched::SCHED_WAKING,
    &sched::SCHED_WAKEUP,
    &irq::IRQ_SOFTIRQ_ENTRY,
    &irq::IRQ_SOFTIRQ_EXIT,
    &irq::IRQ_SOFTIRQ_RAISE,
    &irq::IRQ_HANDLER_ENTRY,
    &irq::IRQ_HANDLER_EXIT,
    &sched::SCHED_MIGRATE_TASK,
    &sched::SCHED_STAT_RUNTIME,
    &timer::TIMER_HRTIMER_START,
    &timer::TIMER_HRTIMER_CANCEL,
    &timer::TIMER_HRTIMER_EXPIRE_ENTRY,
    &timer::TIMER_HRTIMER_EXPIRE_EXIT,
    &timer::TIMER_START,
    &timer::TIMER_CANCEL,
    &timer::TIMER_EXPIRE_ENTRY,
    &timer::TIMER_EXPIRE_EXIT,
    &timer::TIMER_INIT,
    &timer::TIMER_HRTIMER_INIT,
    &signal::SIGNAL_GENERATE,
    &signal::SIGNAL_DELIVER,
    &sched::SCHED_PROCESS_FORK,
    &sched::SCHED_WAKEUP_NEW,
    &sched::SCHED_PROCESS_EXEC,
    &sched::SCHED_PROCESS_EXIT,
    &sched::SCHED_PROCESS_FREE,
    &sched::SCHED_PROCESS_WAIT,
    &module::MODULE_LOAD,
    &module::MODULE_FREE,
    &module::MODULE_REQUEST,
    &sched::SCHED_STAT_WAIT,
    &sched::SCHED_STAT_SLEEP,
    &sched::SCHED_STAT_IOWAIT,
    &sched::SCHED_STAT_BLOCKED,
    &sched::SCHED_PI_SETPRIO,
    &timer::TIMER_ITIMER_STATE,
    &timer::TIMER_ITIMER_EXPIRE,
    &module::MODULE_GET,
    &module::MODULE_PUT,
    &nmi::NMI_HANDLER,
];

/// Ids below this one are declared events, then come the entries of all system calls.
const FIRST_ENTRY: u32 = DECLARED.len() as u32;
/// Then the exits.
const FIRST_EXIT: u32 = FIRST_ENTRY + syscall::SLOTS;
/// Then what other modules provide.
const FIRST_PROVIDED: u32 = FIRST_EXIT + syscall::SLOTS;

/// How an event comes about.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A tracepoint of its own, with a probe of its own.
    Declared(&'static Declaration),
    /// The entry of this system call: one bit of the probe of all entries.
    SyscallEntry(&'static syscall::Call),
    /// The exit of this system call: one bit of the probe of all exits.
    SyscallExit(&'static syscall::Call),
    /// Emitted by another module.
    Provided(&'static Provided),
}

/// An event that can be recorded.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    id: u32,
    kind: Kind,
}

/// All ids are below this one. Not every id below is an event.
pub(crate) const fn count() -> u32 {
    FIRST_PROVIDED + provided::PLACES
}

/// The event with this id.
pub(crate) fn get(id: u32) -> Option<Event> {
    let kind = if let Some(&declared) = DECLARED.get(id as usize) {
        Kind::Declared(declared)
    } else if id < FIRST_EXIT {
        Kind::SyscallEntry(syscall::call(id - FIRST_ENTRY)?)
    } else if id < FIRST_PROVIDED {
        Kind::SyscallExit(syscall::call(id - FIRST_EXIT)?)
    } else {
        Kind::Provided(provided::get(id - FIRST_PROVIDED)?)
    };
    Some(Event { id, kind })
}

/// All events, by id.
pub(crate) fn all() -> impl Iterator<Item = Event> {
    (0..count()).filter_map(get)
}

impl Event {
    fn provided(place: u32, provided: &'static Provided) -> Self {
        Self {
            id: FIRST_PROVIDED + place,
            kind: Kind::Provided(provided),
        }
    }

    /// Its id: its place among all events. It stays the same as long as the module is loaded;
    /// traces have numbers of their own.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// How it comes about.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Subsystem: the directory below `events/`.
    pub(crate) fn subsystem(&self) -> &'static str {
        match self.kind {
            Kind::Declared(declared) => declared.subsystem,
            Kind::SyscallEntry(_) | Kind::SyscallExit(_) => "syscalls",
            Kind::Provided(provided) => provided.subsystem(),
        }
    }

    /// Name, as viewers of traces know it.
    pub(crate) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Declared(declared) => declared.name,
            Kind::SyscallEntry(call) => call.entry_name,
            Kind::SyscallExit(call) => call.exit_name,
            Kind::Provided(provided) => provided.name(),
        }
    }

    /// The names by which patterns pick it, each a subsystem and an event: its own, and then
    /// those that ftrace and perf have for it, where they are others.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let (kernel_name, of_all) = match self.kind {
            Kind::Declared(declared) if declared.tracepoint != declared.name => {
                (Some((declared.subsystem, declared.tracepoint)), None)
            }
            Kind::SyscallEntry(call) => (
                call.kernel_entry_name.map(|name| ("syscalls", name)),
                Some(("raw_syscalls", "sys_enter")),
            ),
            Kind::SyscallExit(call) => (
                call.kernel_exit_name.map(|name| ("syscalls", name)),
                Some(("raw_syscalls", "sys_exit")),
            ),
            Kind::Declared(_) | Kind::Provided(_) => (None, None),
        };
        core::iter::once((self.subsystem(), self.name()))
            .chain(kernel_name)
            .chain(of_all)
    }

    /// The kernel's tracepoint, if it has one.
    pub(crate) fn tracepoint(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Declared(declared) => Some(declared.tracepoint),
            Kind::SyscallEntry(_) => Some("sys_enter"),
            Kind::SyscallExit(_) => Some("sys_exit"),
            Kind::Provided(_) => None,
        }
    }

    /// Whether it is recorded when nothing else was asked for.
    pub(crate) fn is_default(&self) -> bool {
        match self.kind {
            Kind::Declared(declared) => declared.default,
            Kind::SyscallEntry(_) | Kind::SyscallExit(_) => true,
            Kind::Provided(_) => false,
        }
    }

    /// Its fields, in the order of the record.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field<'static>> {
        let event = *self;
        (0..).map_while(move |place| event.field(place))
    }

    fn field(&self, place: usize) -> Option<Field<'static>> {
        match self.kind {
            Kind::Declared(declared) => declared.fields.get(place).copied(),
            Kind::SyscallEntry(call) => call.entry().nth(place),
            Kind::SyscallExit(call) => call.exit().nth(place),
            Kind::Provided(provided) => provided.fields().nth(place),
        }
    }
}
