// SPDX-License-Identifier: GPL-2.0

//! What processes read from files and write to them, by system calls. What is mapped into memory and
//! read or written there is not seen.

use crate::calls::Call;
use crate::descriptors::{Descriptors, Does};
use crate::schedule::Schedule;
use crate::schedule_events::Switch;
use crate::tasks::Life;
use crate::whose::Owner;
use crate::{Catalogue, EventKey, Moment};
use ahash::{HashMap, HashMapExt};
use ctf::{Clock, Event};
use serde::Serialize;
use std::cmp::Reverse;
use std::sync::Arc;

/// The files of a trace.
pub struct Files {
    clock: Clock,
    descriptors: Descriptors,
    uses: HashMap<(Owner, Life, Name), Use>,
    unknown: u64,
}

/// What a process names a file by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Name {
    File(Arc<str>),
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
        let descriptors = Descriptors::new(catalogue)?;
        descriptors.any(Does::moves_data).then(|| Self {
            clock: catalogue.metadata().clock,
            descriptors,
            uses: HashMap::new(),
            unknown: 0,
        })
    }

    /// The events that they are made from. Each is known by its place in this list.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.descriptors.events()
    }

    /// One of these events.
    pub fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        let Some(call) = self.descriptors.event(which, event, now) else {
            return;
        };
        let Some(entry) = &call.entry else {
            self.unknown += u64::from(call.does.moves_data());
            return;
        };
        let argument = |place: usize| entry.arguments[place].map(|fd| fd as i32);
        match call.does {
            Does::Read => self.count(&call, argument(0), true),
            Does::Write => self.count(&call, argument(0), false),
            Does::Copy => {
                self.count(&call, argument(0), true);
                self.count(&call, argument(1), false);
            }
            _ => {}
        }
    }

    fn count(&mut self, call: &Call<Does>, fd: Option<i32>, reads: bool) {
        let (Some(entry), Some(fd)) = (&call.entry, fd) else {
            return;
        };
        let owner = entry.owner;
        let file = self.descriptors.file(owner, fd, call.since);
        let file = file.cloned();
        let name = file.map_or(Name::Descriptor(fd), Name::File);
        let found = self
            .uses
            .entry((owner, entry.life, name))
            .or_insert_with(|| Use {
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

    /// A CPU has switched.
    pub fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.descriptors.switch(switch, now);
    }

    /// Events may be missing on a CPU from here on.
    pub fn lost(&mut self, schedule: &Schedule) {
        self.descriptors.lost(schedule);
    }

    /// What was found.
    pub fn found(self) -> FilesFound {
        let uses = self.uses.into_iter();
        let mut uses: Vec<_> = uses
            .map(|((_, _, name), found)| match name {
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
