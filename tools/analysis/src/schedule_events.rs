// SPDX-License-Identifier: GPL-2.0

//! Events of the scheduler, and events of the initial state that describe threads, with the indexes of
//! their fields.

use super::{integer, key, text, Catalogue, EventKey};
use ctf::{Event, EventLayout};

/// Activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The thread runs.
    Running,
    /// The thread is runnable and waits for a CPU: it was woken, or it left its CPU runnable.
    Runnable {
        /// Whether the thread was woken; otherwise it left its CPU runnable.
        woken: bool,
    },
    /// The thread waits for something else, in the state in which it left its CPU.
    Blocked(Left),
}

/// Kind of an event, with the indexes of its fields.
#[derive(Clone, Copy, Debug)]
pub enum ScheduleKind {
    /// A CPU switches from one task to another.
    Switch(SwitchFields),
    /// A task is woken.
    Wake(TaskFields),
    /// A task begins.
    Fork(ForkFields),
    /// A task executes another program.
    Exec(ExecFields),
    /// A task gets another name.
    Rename(RenameFields),
    /// A task ends.
    Exit(TaskFields),
    /// A thread exists.
    State(StateFields),
}

/// The event that describes a thread from before the trace.
pub const THREAD_STATE: &str = "lttng_statedump_process_state";

/// Finds the events of a trace that the schedule is read from.
pub fn find(catalogue: &Catalogue<'_>) -> Vec<(EventKey, ScheduleKind)> {
    let of = |name: &str, kind: fn(&EventLayout) -> Option<ScheduleKind>| {
        let layout = catalogue.event(name)?;
        Some((key(layout), kind(layout)?))
    };
    let wake = |layout: &EventLayout| TaskFields::of(layout).map(ScheduleKind::Wake);
    let rename = |layout: &EventLayout| RenameFields::of(layout).map(ScheduleKind::Rename);
    [
        of("sched_switch", |layout| {
            SwitchFields::of(layout).map(ScheduleKind::Switch)
        }),
        of("sched_waking", wake),
        of("sched_wakeup", wake),
        of("sched_wakeup_new", wake),
        of("sched_process_fork", |layout| {
            ForkFields::of(layout).map(ScheduleKind::Fork)
        }),
        of("sched_process_exec", |layout| {
            ExecFields::of(layout).map(ScheduleKind::Exec)
        }),
        of("sched_process_exit", |layout| {
            TaskFields::of(layout).map(ScheduleKind::Exit)
        }),
        of("task_rename", rename),
        // Name of the event as perf records it.
        of("task:task_rename", rename),
        of(THREAD_STATE, |layout| {
            StateFields::of(layout).map(ScheduleKind::State)
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A switch of a CPU from one task to another.
#[derive(Clone, Copy, Debug)]
pub struct Switch<'a> {
    /// The thread that ran; 0 is the idle task.
    pub prev_tid: i64,
    /// Name of that thread.
    pub prev_comm: &'a [u8],
    /// The thread that was known to run, if it is another one: the switch from that thread was not
    /// recorded.
    pub instead_of: Option<i64>,
    /// State in which the thread left the CPU.
    pub left: Left,
    /// The thread that runs now; 0 is the idle task.
    pub next_tid: i64,
    /// Name of that thread.
    pub next_comm: &'a [u8],
}

/// The state in which a thread left its CPU, as tracers show it: one bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left(pub i64);

impl Left {
    /// `EXIT_DEAD` and `EXIT_ZOMBIE`.
    const ENDED: i64 = 0x10 | 0x20;
    /// `TASK_REPORT_MAX`.
    const PREEMPTED: i64 = 0x100;

    /// Number of states.
    pub const WAYS: usize = Self::NAMES.len();

    /// Name of each state, and its letter in the kernel's tools. The first entry has no bit set, the next
    /// ones are for one bit each, and the last is for all other values.
    pub const NAMES: [(&'static str, &'static str); 11] = [
        ("runnable", "R"),
        ("interruptible", "S"),
        ("uninterruptible", "D"),
        ("stopped", "T"),
        ("traced", "t"),
        ("dead", "X"),
        ("zombie", "Z"),
        ("parked", "P"),
        ("idle", "I"),
        ("preempted", "R+"),
        ("other", "?"),
    ];

    /// Returns the index of the state in `NAMES`.
    pub fn way(self) -> usize {
        match self.0 {
            0 => 0,
            1..=Self::PREEMPTED if self.0.count_ones() == 1 => self.0.trailing_zeros() as usize + 1,
            _ => Self::WAYS - 1,
        }
    }

    /// Returns whether the thread has ended.
    pub fn is_end(self) -> bool {
        self.0 & Self::ENDED != 0
    }

    /// Returns the state of the thread after the switch, if it has not ended.
    pub fn state(self) -> Activity {
        match self.0 {
            0 | Self::PREEMPTED => Activity::Runnable { woken: false },
            _ => Activity::Blocked(self),
        }
    }
}

/// Field indexes of `sched_switch`.
#[derive(Clone, Copy, Debug)]
pub struct SwitchFields {
    prev_tid: usize,
    prev_comm: usize,
    prev_state: usize,
    next_tid: usize,
    next_comm: usize,
}

impl SwitchFields {
    /// Finds the fields in an event with this layout.
    pub fn of(layout: &EventLayout) -> Option<Self> {
        Some(Self {
            prev_tid: layout.field("prev_tid")?,
            prev_comm: layout.field("prev_comm")?,
            prev_state: layout.field("prev_state")?,
            next_tid: layout.field("next_tid")?,
            next_comm: layout.field("next_comm")?,
        })
    }

    /// Reads the values of an event.
    pub fn read<'a>(&self, event: &Event<'a>) -> Option<Switch<'a>> {
        Some(Switch {
            prev_tid: integer(event.value(self.prev_tid))?,
            prev_comm: text(event.value(self.prev_comm))?,
            instead_of: None,
            left: Left(integer(event.value(self.prev_state))?),
            next_tid: integer(event.value(self.next_tid))?,
            next_comm: text(event.value(self.next_comm))?,
        })
    }
}

/// A task.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// Thread id.
    pub tid: i64,
    /// Name of the task.
    pub comm: &'a [u8],
}

/// Field indexes of an event about one task.
#[derive(Clone, Copy, Debug)]
pub struct TaskFields {
    tid: usize,
    comm: usize,
}

impl TaskFields {
    /// Finds the fields in an event with this layout.
    pub fn of(layout: &EventLayout) -> Option<Self> {
        Some(Self {
            tid: layout.field("tid")?,
            comm: layout.field("comm")?,
        })
    }

    /// Reads the values of an event.
    pub fn read<'a>(&self, event: &Event<'a>) -> Option<Task<'a>> {
        Some(Task {
            tid: integer(event.value(self.tid))?,
            comm: text(event.value(self.comm))?,
        })
    }
}

/// The begin of a task.
#[derive(Clone, Copy, Debug)]
pub struct Fork<'a> {
    /// The thread that created the task, and its process. ftrace does not record the process.
    pub parent: (i64, Option<i64>),
    /// The new thread, and its process.
    pub child: (i64, Option<i64>),
    /// Name of the new thread.
    pub child_comm: &'a [u8],
}

/// Field indexes of `sched_process_fork`.
#[derive(Clone, Copy, Debug)]
pub struct ForkFields {
    parent: (usize, Option<usize>),
    child: (usize, Option<usize>),
    child_comm: usize,
}

impl ForkFields {
    /// Finds the fields in an event with this layout. Returns `None` if a field is missing.
    pub fn of(layout: &EventLayout) -> Option<Self> {
        Some(Self {
            parent: (layout.field("parent_tid")?, layout.field("parent_pid")),
            child: (layout.field("child_tid")?, layout.field("child_pid")),
            child_comm: layout.field("child_comm")?,
        })
    }

    /// Reads the values of an event.
    pub fn read<'a>(&self, event: &Event<'a>) -> Option<Fork<'a>> {
        let task = |(tid, pid): (usize, Option<usize>)| {
            let process = pid.and_then(|pid| integer(event.value(pid)));
            Some((integer(event.value(tid))?, process))
        };
        Some(Fork {
            parent: task(self.parent)?,
            child: task(self.child)?,
            child_comm: text(event.value(self.child_comm))?,
        })
    }
}

/// The execution of another program by a task.
#[derive(Clone, Copy, Debug)]
pub struct Exec<'a> {
    /// Thread id after the exec, which is the id of the process.
    pub tid: i64,
    /// Thread id before the exec.
    pub old_tid: i64,
    /// Name of the program's file, from which the kernel takes the task's name. `None` if the program was executed by
    /// its descriptor: the event does not have the name.
    pub comm: Option<&'a [u8]>,
}

/// Field indexes of `sched_process_exec`.
#[derive(Clone, Copy, Debug)]
pub struct ExecFields {
    tid: usize,
    old_tid: Option<usize>,
    filename: usize,
}

/// Maximum length of a task's name in bytes: `TASK_COMM_LEN` without the NUL.
const NAME: usize = 15;

impl ExecFields {
    /// Finds the fields in an event with this layout.
    pub fn of(layout: &EventLayout) -> Option<Self> {
        Some(Self {
            tid: layout.field("tid")?,
            old_tid: layout.field("old_tid"),
            filename: layout.field("filename")?,
        })
    }

    /// Reads the values of an event.
    pub fn read<'a>(&self, event: &Event<'a>) -> Option<Exec<'a>> {
        let filename = text(event.value(self.filename))?;
        let name = filename.rsplit(|byte| *byte == b'/').next()?;
        let descriptor = filename.strip_prefix(b"/dev/fd/");
        let is_descriptor = descriptor.is_some_and(|number| number.iter().all(u8::is_ascii_digit));
        let tid = integer(event.value(self.tid))?;
        let old_tid = self.old_tid.and_then(|old| integer(event.value(old)));
        Some(Exec {
            tid,
            old_tid: old_tid.unwrap_or(tid),
            comm: (!is_descriptor).then_some(&name[..name.len().min(NAME)]),
        })
    }
}

/// The change of a task's name.
#[derive(Clone, Copy, Debug)]
pub struct Rename<'a> {
    /// Thread id.
    pub tid: i64,
    /// Old name.
    pub old: &'a [u8],
    /// New name.
    pub new: &'a [u8],
}

/// Field indexes of `task_rename`.
#[derive(Clone, Copy, Debug)]
pub struct RenameFields {
    tid: usize,
    old: usize,
    new: usize,
}

impl RenameFields {
    fn of(layout: &EventLayout) -> Option<Self> {
        Some(Self {
            tid: layout.field("tid").or_else(|| layout.field("pid"))?,
            old: layout.field("oldcomm")?,
            new: layout.field("newcomm")?,
        })
    }

    /// Reads the values of an event.
    pub fn read<'a>(&self, event: &Event<'a>) -> Option<Rename<'a>> {
        let new = text(event.value(self.new))?;
        Some(Rename {
            tid: integer(event.value(self.tid))?,
            old: text(event.value(self.old))?,
            new: &new[..new.len().min(NAME)],
        })
    }
}

/// Description of a thread, independent of its activity.
#[derive(Clone, Copy, Debug)]
pub struct ThreadState<'a> {
    /// Thread id.
    pub tid: i64,
    /// Process id.
    pub process: i64,
    /// Parent of the process; 0 if it has no parent.
    pub parent: i64,
    /// Name of the thread.
    pub comm: &'a [u8],
}

/// Field indexes of [`THREAD_STATE`], as far as they are used.
#[derive(Clone, Copy, Debug)]
pub struct StateFields {
    tid: usize,
    process: usize,
    parent: usize,
    comm: usize,
}

impl StateFields {
    /// Finds the fields in an event with this layout.
    pub fn of(layout: &EventLayout) -> Option<Self> {
        Some(Self {
            tid: layout.field("tid")?,
            process: layout.field("pid")?,
            parent: layout.field("ppid")?,
            comm: layout.field("name")?,
        })
    }

    /// Reads the values of an event.
    pub fn read<'a>(&self, event: &Event<'a>) -> Option<ThreadState<'a>> {
        Some(ThreadState {
            tid: integer(event.value(self.tid))?,
            process: integer(event.value(self.process))?,
            parent: integer(event.value(self.parent))?,
            comm: text(event.value(self.comm))?,
        })
    }
}
