// SPDX-License-Identifier: GPL-2.0

//! What processes read from files and write to them, by system calls. What is mapped into memory and
//! read or written there is not seen.

use super::descriptors::Descriptors;
use super::file_calls::{Does, CALLS};
use crate::analysis::calls::{Call, Calls};
use crate::analysis::schedule::Schedule;
use crate::analysis::schedule_events::{ForkFields, Switch};
use crate::analysis::whose::Owner;
use crate::analysis::{bits, integer, key, text, Catalogue, EventKey, Moment};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::rc::Rc;
use trace::ctf::{Clock, Event, EventLayout};

/// The files of a trace.
pub struct Files {
    clock: Clock,
    calls: Calls<Does>,
    /// What comes behind the events of the calls.
    others: Vec<(EventKey, Other)>,
    descriptors: Descriptors,
    uses: HashMap<(Owner, Name), Use>,
    unknown: u64,
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

/// What a process names a file by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Name {
    File(Rc<str>),
    /// A descriptor of which it is not known what it stands for.
    Descriptor(i32),
}

/// What a process did with a file. There may be very many of these: they are small.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Use {
    /// The process.
    pub pid: Option<i64>,
    /// The thread, if its process is not known.
    pub tid: Option<i64>,
    /// The last name of the process.
    pub comm: Option<String>,
    /// The file, by the name by which it was opened; none if that is not known.
    pub file: Option<String>,
    /// Its descriptor, if its name is not known.
    pub fd: Option<i32>,
    /// Calls that read from it and did not fail.
    pub reads: u64,
    /// What they read.
    pub read_bytes: u64,
    /// Calls that wrote to it and did not fail.
    pub writes: u64,
    /// What they wrote.
    pub written_bytes: u64,
    /// Calls that failed.
    pub errors: u64,
    /// How long all these took.
    pub total_ns: u64,
    /// How long the longest took.
    pub max_ns: u64,
}

/// What was found of files.
#[derive(Debug, Serialize)]
pub struct FilesFound {
    /// Calls of which it is not known what they read or wrote: they began before the trace did, or
    /// events are missing in between.
    pub unknown: u64,
    /// Those that took most of the time first.
    pub uses: Vec<Use>,
}

impl Files {
    /// Of a trace that has calls which read or write.
    pub fn new(catalogue: &Catalogue<'_>) -> Option<Self> {
        let calls = Calls::new(catalogue, CALLS).filter(|calls| calls.any(Does::moves_data))?;
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
            clock: catalogue.metadata().clock,
            calls,
            others: [fork, exit, state, thread, opened]
                .into_iter()
                .flatten()
                .collect(),
            descriptors: Descriptors::default(),
            uses: HashMap::new(),
            unknown: 0,
        })
    }

    /// The events that they are made from. Each is known by its place in this list.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        let others = self.others.iter().map(|(key, _)| *key);
        self.calls.events().chain(others)
    }

    /// One of these events.
    pub fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        match which.checked_sub(self.calls.events().count()) {
            None => {
                if let Some(call) = self.calls.event(which, event, now) {
                    self.call(&call, now);
                }
            }
            Some(other) => {
                self.other(self.others[other].1, event, now);
            }
        }
    }

    fn call(&mut self, call: &Call<Does>, now: &Moment<'_>) {
        let Some(entry) = &call.entry else {
            self.unknown += u64::from(call.does.moves_data());
            return;
        };
        let argument = |place: usize| entry.arguments[place].map(|fd| fd as i32);
        match call.does {
            Does::Read => self.count(call, argument(0), true),
            Does::Write => self.count(call, argument(0), false),
            Does::Copy => {
                self.count(call, argument(0), true);
                self.count(call, argument(1), false);
            }
            // What is closed where events are missing would be taken for open.
            _ if call.ret >= 0 && now.schedule.all_whole() => {
                self.descriptors.call(call.does, entry, call.ret);
            }
            _ => {}
        }
    }

    fn count(&mut self, call: &Call<Does>, fd: Option<i32>, reads: bool) {
        let (Some(entry), Some(fd)) = (&call.entry, fd) else {
            return;
        };
        let owner = entry.owner;
        let file = self.descriptors.file(owner, fd).cloned();
        let name = file.map_or(Name::Descriptor(fd), Name::File);
        let found = self.uses.entry((owner, name)).or_insert_with(|| Use {
            pid: owner.pid(),
            tid: owner.pid().is_none().then_some(entry.tid),
            ..Use::default()
        });
        if let Some(comm) = &entry.comm {
            if found
                .comm
                .as_ref()
                .is_none_or(|known| known.as_bytes() != comm)
            {
                found.comm = Some(String::from_utf8_lossy(comm).into_owned());
            }
        }
        match u64::try_from(call.ret) {
            Err(_) => found.errors += 1,
            Ok(bytes) if reads => {
                found.reads += 1;
                found.read_bytes = found.read_bytes.saturating_add(bytes);
            }
            Ok(bytes) => {
                found.writes += 1;
                found.written_bytes = found.written_bytes.saturating_add(bytes);
            }
        }
        let took = self.clock.nanoseconds(call.ticks);
        found.total_ns = found.total_ns.saturating_add(took);
        found.max_ns = found.max_ns.max(took);
    }

    fn other(&mut self, other: Other, event: &Event<'_>, now: &Moment<'_>) -> Option<()> {
        match other {
            Other::Fork(fields) => {
                let fork = fields.read(event)?;
                let [parent, child] = [fork.parent.1, fork.child.1].map(Owner::Process);
                self.descriptors.belongs(fork.parent.0, parent);
                if parent != child && now.schedule.all_whole() {
                    self.descriptors.fork(parent, child);
                }
            }
            Other::Exit { tid, last } => {
                let tid = integer(event.value(tid))?;
                let pid = now.schedule.process(tid).unwrap_or(tid);
                let last = last.and_then(|last| integer(event.value(last)));
                if last.map_or(tid == pid, |last| last != 0) {
                    self.descriptors.exit(Owner::Process(pid));
                }
                self.descriptors.exit(Owner::Thread(tid));
            }
            Other::State => self.descriptors.forget_tables(),
            // What is closed where events are missing would be taken for open.
            Other::Thread { .. } | Other::Opened { .. } if !now.schedule.all_whole() => {}
            Other::Thread { process, table } => {
                let process = Owner::Process(integer(event.value(process))?);
                // 0 is that of a thread which ends.
                let table = bits(event.value(table)).filter(|table| *table != 0)?;
                self.descriptors.has(process, table);
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
                self.descriptors.opened(table, fd, name, flags);
            }
        }
        Some(())
    }

    /// A CPU has switched.
    pub fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.calls.switch(switch, now);
    }

    /// Events may be missing on a CPU from here on.
    pub fn lost(&mut self, schedule: &Schedule) {
        self.calls.lost(schedule);
        self.descriptors.forget();
    }

    /// What was found.
    pub fn found(self) -> FilesFound {
        let uses = self.uses.into_iter();
        let mut uses: Vec<_> = uses
            .map(|((_, name), found)| match name {
                Name::File(file) => Use {
                    file: Some(file.to_string()),
                    ..found
                },
                Name::Descriptor(fd) => Use {
                    fd: Some(fd),
                    ..found
                },
            })
            .collect();
        uses.sort_by(|a, b| {
            let most =
                |a: &Use| Reverse((a.total_ns, a.read_bytes.saturating_add(a.written_bytes)));
            let name = |a: &Use| (a.pid, a.tid, a.file.clone(), a.fd);
            most(a).cmp(&most(b)).then_with(|| name(a).cmp(&name(b)))
        });
        FilesFound {
            unknown: self.unknown,
            uses,
        }
    }
}
