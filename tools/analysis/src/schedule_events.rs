// SPDX-License-Identifier: GPL-2.0

//! The events of the scheduler, and those of the state that tell of threads; and what is where in them.

use super::schedule::State;
use super::{integer, key, text, Catalogue, EventKey};
use ctf::{Event, EventLayout};

/// What an event tells, and in which fields.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A CPU goes from one task to another.
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
    /// A thread is there.
    State(StateFields),
}

/// The event that tells of a thread what there was before the trace.
pub const THREAD_STATE: &str = "lttng_statedump_process_state";

/// The events of a trace that tell who runs.
pub fn find(catalogue: &Catalogue<'_>) -> Vec<(EventKey, Kind)> {
    let of = |name: &str, kind: fn(&EventLayout) -> Option<Kind>| {
        let layout = catalogue.event(name)?;
        Some((key(layout), kind(layout)?))
    };
    let wake = |layout: &EventLayout| TaskFields::of(layout).map(Kind::Wake);
    let rename = |layout: &EventLayout| RenameFields::of(layout).map(Kind::Rename);
    [
        of("sched_switch", |layout| {
            SwitchFields::of(layout).map(Kind::Switch)
        }),
        of("sched_waking", wake),
        of("sched_wakeup", wake),
        of("sched_wakeup_new", wake),
        of("sched_process_fork", |layout| {
            ForkFields::of(layout).map(Kind::Fork)
        }),
        of("sched_process_exec", |layout| {
            ExecFields::of(layout).map(Kind::Exec)
        }),
        of("sched_process_exit", |layout| {
            TaskFields::of(layout).map(Kind::Exit)
        }),
        of("task_rename", rename),
        // As perf hands it over.
        of("task:task_rename", rename),
        of(THREAD_STATE, |layout| {
            StateFields::of(layout).map(Kind::State)
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A CPU goes from one task to another.
#[derive(Clone, Copy, Debug)]
pub struct Switch<'a> {
    /// The thread that ran; 0 is the idle task.
    pub prev_tid: i64,
    /// Its name.
    pub prev_comm: &'a [u8],
    /// The thread that seemed to run, if it was another: the switch from it was not recorded.
    pub instead_of: Option<i64>,
    /// How it left the CPU.
    pub left: Left,
    /// The thread that runs now; 0 is the idle task.
    pub next_tid: i64,
    /// Its name.
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

    /// How many there are.
    pub const WAYS: usize = Self::NAMES.len();

    /// The name of each, and its letter in the kernel's tools: that of no bit, those of each bit, and
    /// what is for all else.
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

    /// Its place among these.
    pub fn way(self) -> usize {
        match self.0 {
            0 => 0,
            1..=Self::PREEMPTED if self.0.count_ones() == 1 => self.0.trailing_zeros() as usize + 1,
            _ => Self::WAYS - 1,
        }
    }

    /// Whether it was for ever.
    pub fn is_end(self) -> bool {
        self.0 & Self::ENDED != 0
    }

    /// What the thread does from then on, if it has not ended.
    pub fn state(self) -> State {
        match self.0 {
            0 | Self::PREEMPTED => State::Runnable { woken: false },
            _ => State::Blocked(self),
        }
    }
}

/// The fields of `sched_switch`.
#[derive(Clone, Copy, Debug)]
pub struct SwitchFields {
    prev_tid: usize,
    prev_comm: usize,
    prev_state: usize,
    next_tid: usize,
    next_comm: usize,
}

impl SwitchFields {
    fn of(layout: &EventLayout) -> Option<Self> {
        Some(Self {
            prev_tid: layout.field("prev_tid")?,
            prev_comm: layout.field("prev_comm")?,
            prev_state: layout.field("prev_state")?,
            next_tid: layout.field("next_tid")?,
            next_comm: layout.field("next_comm")?,
        })
    }

    /// Their values.
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
    /// Its thread id.
    pub tid: i64,
    /// Its name.
    pub comm: &'a [u8],
}

/// The fields of an event about one task.
#[derive(Clone, Copy, Debug)]
pub struct TaskFields {
    tid: usize,
    comm: usize,
}

impl TaskFields {
    /// Of an event with this layout.
    pub fn of(layout: &EventLayout) -> Option<Self> {
        Some(Self {
            tid: layout.field("tid")?,
            comm: layout.field("comm")?,
        })
    }

    /// Their values.
    pub fn read<'a>(&self, event: &Event<'a>) -> Option<Task<'a>> {
        Some(Task {
            tid: integer(event.value(self.tid))?,
            comm: text(event.value(self.comm))?,
        })
    }
}

/// A task begins.
#[derive(Clone, Copy, Debug)]
pub struct Fork<'a> {
    /// The thread that made it, and its process.
    pub parent: (i64, i64),
    /// The new thread, and its process.
    pub child: (i64, i64),
    /// Its name.
    pub child_comm: &'a [u8],
}

/// The fields of `sched_process_fork`.
#[derive(Clone, Copy, Debug)]
pub struct ForkFields {
    parent: [usize; 2],
    child: [usize; 2],
    child_comm: usize,
}

impl ForkFields {
    /// In an event; none if it lacks one.
    pub fn of(layout: &EventLayout) -> Option<Self> {
        Some(Self {
            parent: [layout.field("parent_tid")?, layout.field("parent_pid")?],
            child: [layout.field("child_tid")?, layout.field("child_pid")?],
            child_comm: layout.field("child_comm")?,
        })
    }

    /// Their values.
    pub fn read<'a>(&self, event: &Event<'a>) -> Option<Fork<'a>> {
        let task =
            |[tid, pid]: [usize; 2]| Some((integer(event.value(tid))?, integer(event.value(pid))?));
        Some(Fork {
            parent: task(self.parent)?,
            child: task(self.child)?,
            child_comm: text(event.value(self.child_comm))?,
        })
    }
}

/// A task executes another program.
#[derive(Clone, Copy, Debug)]
pub struct Exec<'a> {
    /// The thread, by the id that it has from then on: that of its process.
    pub tid: i64,
    /// The id that it had before.
    pub old_tid: i64,
    /// The program's file, as the kernel calls a task after it.
    pub comm: &'a [u8],
}

/// The fields of `sched_process_exec`.
#[derive(Clone, Copy, Debug)]
pub struct ExecFields {
    tid: usize,
    old_tid: Option<usize>,
    filename: usize,
}

/// Bytes of a task's name: `TASK_COMM_LEN`, without the NUL.
const NAME: usize = 15;

impl ExecFields {
    fn of(layout: &EventLayout) -> Option<Self> {
        Some(Self {
            tid: layout.field("tid")?,
            old_tid: layout.field("old_tid"),
            filename: layout.field("filename")?,
        })
    }

    /// Their values.
    pub fn read<'a>(&self, event: &Event<'a>) -> Option<Exec<'a>> {
        let filename = text(event.value(self.filename))?;
        let name = filename.rsplit(|byte| *byte == b'/').next()?;
        let tid = integer(event.value(self.tid))?;
        let old_tid = self.old_tid.and_then(|old| integer(event.value(old)));
        Some(Exec {
            tid,
            old_tid: old_tid.unwrap_or(tid),
            comm: &name[..name.len().min(NAME)],
        })
    }
}

/// A task gets another name.
#[derive(Clone, Copy, Debug)]
pub struct Rename<'a> {
    /// Its thread id.
    pub tid: i64,
    /// The name that it had.
    pub old: &'a [u8],
    /// The name that it gets.
    pub new: &'a [u8],
}

/// The fields of `task_rename`.
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

    /// Their values.
    pub fn read<'a>(&self, event: &Event<'a>) -> Option<Rename<'a>> {
        let new = text(event.value(self.new))?;
        Some(Rename {
            tid: integer(event.value(self.tid))?,
            old: text(event.value(self.old))?,
            new: &new[..new.len().min(NAME)],
        })
    }
}

/// What is known of a thread, whatever it does.
#[derive(Clone, Copy, Debug)]
pub struct ThreadState<'a> {
    /// It.
    pub tid: i64,
    /// Its process.
    pub process: i64,
    /// The process that is its process's parent; 0: it has none.
    pub parent: i64,
    /// Its name.
    pub comm: &'a [u8],
}

/// The fields of [`THREAD_STATE`] that are looked at.
#[derive(Clone, Copy, Debug)]
pub struct StateFields {
    tid: usize,
    process: usize,
    parent: usize,
    comm: usize,
}

impl StateFields {
    /// Of an event with this layout.
    pub fn of(layout: &EventLayout) -> Option<Self> {
        Some(Self {
            tid: layout.field("tid")?,
            process: layout.field("pid")?,
            parent: layout.field("ppid")?,
            comm: layout.field("name")?,
        })
    }

    /// Their values.
    pub fn read<'a>(&self, event: &Event<'a>) -> Option<ThreadState<'a>> {
        Some(ThreadState {
            tid: integer(event.value(self.tid))?,
            process: integer(event.value(self.process))?,
            parent: integer(event.value(self.parent))?,
            comm: text(event.value(self.comm))?,
        })
    }
}
