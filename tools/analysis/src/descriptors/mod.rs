// SPDX-License-Identifier: GPL-2.0

//! Which files the descriptors of processes stand for, from the events of a trace: calls that make, copy
//! and close them, processes that are made and end, and what was open when the trace began.

mod calls;
mod tables;

use super::calls::{Call, Calls};
use super::schedule::Schedule;
use super::schedule_events::{ForkFields, Switch};
use super::whose::Owner;
use super::{bits, integer, key, text, Catalogue, EventKey, Moment};
use calls::CALLS;
use ctf::{Event, EventLayout};
use std::sync::Arc;
use tables::Tables;

pub use calls::{makes_descriptor, Does};

/// The result of a close of what is not open.
const EBADF: i64 = -9;

/// The descriptors of all processes.
pub struct Descriptors {
    calls: Calls<Does>,
    /// What comes behind the events of the calls.
    others: Vec<(EventKey, Other)>,
    tables: Tables,
    /// Whether what a process has is forgotten when it executes another program: it is not known what it closed then.
    forgets: bool,
}

/// Another event, and what is where in it.
#[derive(Clone, Copy)]
enum Other {
    Fork(ForkFields),
    Exit {
        tid: usize,
        /// Whether it was the last thread of its process, where the kernel says so.
        last: Option<usize>,
    },
    /// From here on the state is told; once more, if that was asked for.
    State,
    /// A thread that there was before the trace.
    Thread {
        process: usize,
        /// What stands for its table of files.
        table: usize,
    },
    /// A file that was open before the trace.
    Opened {
        table: usize,
        fd: usize,
        flags: usize,
        name: usize,
    },
}

impl Descriptors {
    /// Of a trace that has calls which use descriptors.
    pub fn new(catalogue: &Catalogue<'_>) -> Option<Self> {
        let other = |name, kind: fn(&EventLayout) -> Option<Other>| {
            let layout = catalogue.event(name)?;
            Some((key(layout), kind(layout)?))
        };
        let fork = other("sched_process_fork", |layout| {
            ForkFields::of(layout).map(Other::Fork)
        });
        let exit = other("sched_process_exit", |layout| {
            Some(Other::Exit {
                tid: layout.field("tid")?,
                last: layout.field("group_dead"),
            })
        });
        let state = other("lttng_statedump_start", |_| Some(Other::State));
        let thread = other("lttng_statedump_process_state", |layout| {
            Some(Other::Thread {
                process: layout.field("pid")?,
                table: layout.field("file_table_address")?,
            })
        });
        let opened = other("lttng_statedump_file_descriptor", |layout| {
            Some(Other::Opened {
                table: layout.field("file_table_address")?,
                fd: layout.field("fd")?,
                flags: layout.field("flags")?,
                name: layout.field("filename")?,
            })
        });
        Some(Self {
            calls: Calls::new(catalogue, CALLS)?,
            others: [fork, exit, state, thread, opened]
                .into_iter()
                .flatten()
                .collect(),
            tables: Tables::default(),
            forgets: false,
        })
    }

    /// Of a trace that has all calls by which a descriptor ceases to stand for its file. In others it may stand
    /// for another one than that for which it was made.
    pub fn sure(catalogue: &Catalogue<'_>) -> Option<Self> {
        let has = |call: &&str| {
            let mut edges = ["entry", "exit"].iter();
            edges.all(|edge| catalogue.event(&format!("syscall_{edge}_{call}")).is_some())
        };
        if !calls::FREE.iter().all(has) {
            return None;
        }
        Some(Self {
            forgets: !calls::MARK.iter().all(has),
            ..Self::new(catalogue)?
        })
    }

    /// Whether the trace has a call for which this holds.
    pub fn any(&self, has: impl Fn(Does) -> bool) -> bool {
        self.calls.any(has)
    }

    /// The events that they are made from. Each is known by its place in this list.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        let others = self.others.iter().map(|(key, _)| *key);
        self.calls.events().chain(others)
    }

    /// One of these events; if a call returns with it, which.
    pub fn event(
        &mut self,
        which: usize,
        event: &Event<'_>,
        now: &Moment<'_>,
    ) -> Option<Call<Does>> {
        if let Some(other) = which.checked_sub(self.calls.events().count()) {
            self.other(self.others[other].1, event, now);
            return None;
        }
        let call = self.calls.event(which, event, now)?;
        // What is closed where events are missing would be taken for open.
        let Some(entry) = call.entry.as_ref().filter(|_| now.schedule.all_whole()) else {
            return Some(call);
        };
        // Whatever else a close says, the descriptor is free then.
        let is_closed = call.does == Does::Close && call.ret != EBADF;
        if call.ret >= 0 || is_closed {
            self.tables.call(call.does, entry, call.ret, now.time);
            if call.does == Does::Execute && self.forgets {
                self.tables.exit(entry.owner);
            }
        }
        Some(call)
    }

    /// The file of a descriptor at this time, the name by which it was opened.
    pub fn file(&self, owner: Owner, fd: i32, time: u64) -> Option<&Arc<str>> {
        self.tables.file(owner, fd, time)
    }

    /// Whether nothing is known of a descriptor, nor will be from a later time on.
    pub fn is_unknown(&self, owner: Owner, fd: i32) -> bool {
        self.tables.is_unknown(owner, fd)
    }

    /// From this time on a process has that file, if nothing else is heard of the descriptor until then.
    pub fn found(&mut self, owner: Owner, fd: i32, from: u64, file: Arc<str>, closes: bool) {
        self.tables.found(owner, fd, from, file, closes);
    }

    fn other(&mut self, other: Other, event: &Event<'_>, now: &Moment<'_>) -> Option<()> {
        match other {
            Other::Fork(fields) => {
                let fork = fields.read(event)?;
                let [parent, child] = [fork.parent.1, fork.child.1].map(Owner::Process);
                self.tables.belongs(fork.parent.0, parent);
                if parent != child && now.schedule.all_whole() {
                    self.tables.fork(parent, child, now.time);
                }
            }
            Other::Exit { tid, last } => {
                let tid = integer(event.value(tid))?;
                let pid = now.schedule.process(tid).unwrap_or(tid);
                let last = last.and_then(|last| integer(event.value(last)));
                if last.map_or(tid == pid, |last| last != 0) {
                    self.tables.exit(Owner::Process(pid));
                }
                self.tables.exit(Owner::Thread(tid));
            }
            Other::State => self.tables.forget_tables(),
            // What is closed where events are missing would be taken for open.
            Other::Thread { .. } | Other::Opened { .. } if !now.schedule.all_whole() => {}
            Other::Thread { process, table } => {
                let process = Owner::Process(integer(event.value(process))?);
                // 0 is that of a thread which ends.
                let table = bits(event.value(table)).filter(|table| *table != 0)?;
                self.tables.has(process, table);
            }
            Other::Opened {
                table,
                fd,
                flags,
                name,
            } => {
                let fd = integer(event.value(fd))?.try_into().ok()?;
                let (table, flags) = (bits(event.value(table))?, bits(event.value(flags))?);
                let name = text(event.value(name))?;
                self.tables.opened(table, fd, name, flags);
            }
        }
        Some(())
    }

    /// A CPU has switched.
    pub fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.calls.switch(switch, now);
    }

    /// Events may be missing on a CPU from here on: nothing is known any more.
    pub fn lost(&mut self, schedule: &Schedule) {
        self.calls.lost(schedule);
        self.tables.forget();
    }
}
