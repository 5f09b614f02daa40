// SPDX-License-Identifier: GPL-2.0

//! Files that the descriptors of processes refer to. They are found from the events of a trace:
//!
//! - calls that create, copy and close descriptors;
//! - processes that begin and end;
//! - the initial state, which lists the files that are open when the trace begins.

mod calls;
mod tables;

use super::calls::{Call, Calls};
use super::schedule::Schedule;
use super::schedule_events::{ForkFields, Switch};
use super::uring::Posted;
use super::whose::Owner;
use super::{bits, integer, key, text, Catalogue, EventKey, Moment};
use calls::CALLS;
use ctf::{Event, EventLayout};
use decode::number;
use std::sync::Arc;
use tables::Tables;

pub use calls::{makes_descriptor, Does};

/// Result of a close of a descriptor that is not open.
const EBADF: i64 = -9;

/// The descriptors of all processes.
pub struct Descriptors {
    calls: Calls<Does>,
    /// Events whose numbers follow the numbers of the calls' events.
    others: Vec<(EventKey, Other)>,
    tables: Tables,
    /// Whether an exec makes the descriptors of a process unknown, because the trace lacks the calls that
    /// set close-on-exec.
    forgets: bool,
}

/// An event that is no call, with the indexes of its fields.
#[derive(Clone, Copy)]
enum Other {
    Fork(ForkFields),
    Exit {
        tid: usize,
        /// Whether this was the last thread of its process, if the kernel records it.
        last: Option<usize>,
    },
    /// The dump of the state begins. The dump can be repeated on request.
    State,
    /// A thread that existed before the trace.
    Thread {
        process: usize,
        /// Address that identifies its table of files.
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
    /// Creates the descriptors for a trace. Returns `None` if the trace has no call that uses descriptors.
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

    /// Creates the descriptors for a trace with all calls of its processor that detach a descriptor from its file.
    /// In other traces a descriptor may refer to another file than the one recorded for it.
    pub fn sure(catalogue: &Catalogue<'_>) -> Option<Self> {
        let has = |call: &&str| {
            let mut edges = ["entry", "exit"].iter();
            number(catalogue.architecture(), call).is_none()
                || edges.all(|edge| catalogue.event(&format!("syscall_{edge}_{call}")).is_some())
        };
        if !calls::FREE.iter().all(has) {
            return None;
        }
        Some(Self {
            forgets: !calls::MARK.iter().all(has),
            ..Self::new(catalogue)?
        })
    }

    /// Returns whether the trace has a call for which `has` returns true.
    pub fn any(&self, has: impl Fn(Does) -> bool) -> bool {
        self.calls.any(has)
    }

    /// Returns the events that the descriptors are read from. `event` identifies each by its index in this
    /// list.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        let others = self.others.iter().map(|(key, _)| *key);
        self.calls.events().chain(others)
    }

    /// Processes an event. Returns the call that the event completes.
    pub fn event(
        &mut self,
        which: usize,
        event: &Event<'_>,
        now: &Moment<'_>,
    ) -> Option<Call<Does>> {
        if let Some(other) = which.checked_sub(self.calls.count()) {
            self.other(self.others[other].1, event, now);
            return None;
        }
        let call = self.calls.event(which, event, now)?;
        // A descriptor that is closed where events are missing would seem open.
        let Some(entry) = call.entry.as_ref().filter(|_| now.schedule.all_whole()) else {
            return Some(call);
        };
        // A close frees the descriptor even if it returns another error.
        let is_closed = call.does == Does::Close && call.ret != EBADF;
        if call.ret >= 0 || is_closed {
            self.tables.call(call.does, entry, call.ret, now.time);
            if call.does == Does::Execute && self.forgets {
                self.tables.exit(entry.owner);
            }
        }
        Some(call)
    }

    /// Processes the result of a request of io_uring.
    pub fn posted(&mut self, posted: &Posted) {
        let Some(request) = posted.request.as_ref().filter(|_| posted.res >= 0) else {
            return;
        };
        if request.closes() {
            // Which descriptor was closed is not known.
            self.tables.exit(request.owner);
        } else if request.opens() {
            // The name of the new file is not known, and the result may be the number of a registered file.
            self.tables.unknown(request.owner, posted.res as i32);
        }
    }

    /// Returns the file of a descriptor at this time, by the name with which it was opened.
    pub fn file(&self, owner: Owner, fd: i32, time: u64) -> Option<&Arc<str>> {
        self.tables.file(owner, fd, time)
    }

    /// Returns whether no file of a descriptor is known, neither for now nor for a later time.
    pub fn is_unknown(&self, owner: Owner, fd: i32) -> bool {
        self.tables.is_unknown(owner, fd)
    }

    /// Sets the file that a process has from this time on, if the descriptor has no known file yet.
    pub fn found(&mut self, owner: Owner, fd: i32, from: u64, file: Arc<str>, closes: bool) {
        self.tables.found(owner, fd, from, file, closes);
    }

    fn other(&mut self, other: Other, event: &Event<'_>, now: &Moment<'_>) -> Option<()> {
        match other {
            Other::Fork(fields) => {
                let fork = fields.read(event)?;
                let (Some(parent), Some(child)) = (fork.parent.1, fork.child.1) else {
                    // The child may be a thread or a process: whether it shares the table is not known.
                    self.tables.exit(Owner::Thread(fork.child.0));
                    return None;
                };
                let [parent, child] = [parent, child].map(Owner::Process);
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
            // A descriptor that is closed where events are missing would seem open.
            Other::Thread { .. } | Other::Opened { .. } if !now.schedule.all_whole() => {}
            Other::Thread { process, table } => {
                let process = Owner::Process(integer(event.value(process))?);
                // 0 is the table of a thread that ends.
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

    /// Handles a switch of a CPU.
    pub fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.calls.switch(switch, now);
    }

    /// Handles a loss: events of a CPU may be missing, so all descriptors become unknown.
    pub fn lost(&mut self, schedule: &Schedule) {
        self.calls.lost(schedule);
        self.tables.forget();
    }
}
