// SPDX-License-Identifier: GPL-2.0

//! Data that processes read from and write to files by system calls. The trace does not show reads and
//! writes of mapped memory.

use crate::calls::Call;
use crate::descriptors::{Descriptors, Does};
use crate::recent::Recent;
use crate::schedule::Schedule;
use crate::schedule_events::Switch;
use crate::tasks::Life;
use crate::whose::Owner;
use crate::{Catalogue, EventKey, Moment};
use ahash::{HashMap, HashMapExt};
use ctf::{Clock, Event};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::sync::Arc;
use system::printing;

/// Analysis of the files of a trace.
pub struct Files {
    clock: Clock,
    descriptors: Descriptors,
    uses: Vec<Use>,
    /// Indexes of these.
    places: HashMap<UseKey, u32>,
    recent: Recent<UseKey>,
    unknown: u64,
}

/// A process and a file.
type UseKey = (Owner, Life, Name);

/// The file of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Name {
    File(Arc<str>),
    /// A descriptor whose file is not known.
    Descriptor(i32),
}

/// Use of a file by a process. There may be very many uses, so this type is small.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct Use {
    /// Process id.
    pub pid: Option<i64>,
    /// Thread id, if the process is not known.
    pub tid: Option<i64>,
    /// Last name of the process.
    pub comm: Option<String>,
    /// Name by which the file was opened; `None` if it is not known.
    pub file: Option<String>,
    /// Descriptor, if the name is not known.
    pub fd: Option<i32>,
    /// Number of successful reads.
    pub reads: u64,
    /// Number of bytes read.
    pub read_bytes: u64,
    /// Number of successful writes.
    pub writes: u64,
    /// Number of bytes written.
    pub written_bytes: u64,
    /// Number of failed calls.
    pub errors: u64,
    /// Duration of all these calls.
    pub total_ns: u64,
    /// Duration of the longest call.
    pub max_ns: u64,
    /// Begin of the first call, in ticks of the trace's clock.
    #[serde(skip)]
    pub since: u64,
}

/// The order of the uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileSort {
    /// The longest total time of calls first.
    #[default]
    Time,
    /// The most reads first.
    Reads,
    /// The most writes first.
    Writes,
    /// The most bytes that were read and written first.
    Bytes,
}

impl Use {
    /// Returns the bytes that were read and written.
    fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.written_bytes)
    }

    /// Returns the numbers to sort by, the largest first.
    fn rank(&self, sort: FileSort) -> [u64; 3] {
        let first = match sort {
            FileSort::Time => self.total_ns,
            FileSort::Reads => self.reads,
            FileSort::Writes => self.writes,
            FileSort::Bytes => self.bytes(),
        };
        [first, self.total_ns, self.bytes()]
    }
}

/// Results for files.
#[derive(Debug, JsonSchema, Serialize)]
pub struct FilesFound {
    /// Number of reads and writes whose entry is not known. The calls began before the trace, or events are
    /// missing in between.
    pub unknown: u64,
    /// Uses, in the order of [`FileSort`].
    pub uses: Vec<Use>,
}

impl Files {
    /// Creates the analysis. Returns `None` if the trace has no calls that read or write.
    pub fn new(catalogue: &Catalogue<'_>) -> Option<Self> {
        let descriptors = Descriptors::new(catalogue)?;
        descriptors.any(Does::moves_data).then(|| Self {
            clock: catalogue.metadata().clock,
            descriptors,
            uses: Vec::new(),
            places: HashMap::new(),
            recent: Recent::default(),
            unknown: 0,
        })
    }

    /// Returns the events that the files are read from. `event` identifies each by its index in this list.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.descriptors.events()
    }

    /// Processes an event.
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
        let number = (owner.id().unwrap_or(0) as usize).wrapping_mul(31);
        let number = number.wrapping_add(fd as usize);
        let (places, uses) = (&mut self.places, &mut self.uses);
        let place = self.recent.place(number, (owner, entry.life, name), |key| {
            *places.entry(key).or_insert_with(|| {
                uses.push(Use {
                    pid: owner.pid(),
                    tid: owner.pid().is_none().then_some(entry.tid),
                    since: call.since,
                    ..Use::default()
                });
                uses.len() as u32 - 1
            })
        });
        let found = &mut self.uses[place as usize];
        if let Some(comm) = &entry.comm {
            if found
                .comm
                .as_ref()
                .is_none_or(|known| known.as_bytes() != comm)
            {
                found.comm = Some(printing::text(comm).into_owned());
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

    /// Handles a switch of a CPU.
    pub fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.descriptors.switch(switch, now);
    }

    /// Handles a loss: events of a CPU may be missing from now on.
    pub fn lost(&mut self, schedule: &Schedule) {
        self.descriptors.lost(schedule);
    }

    /// Returns the results.
    pub fn found(self, sort: FileSort) -> FilesFound {
        let mut uses = self.uses;
        for ((_, _, name), place) in self.places {
            let found = &mut uses[place as usize];
            match name {
                Name::File(file) => found.file = Some(file.to_string()),
                Name::Descriptor(fd) => found.fd = Some(fd),
            }
        }
        uses.sort_by(|a, b| {
            let most = |a: &Use| Reverse(a.rank(sort));
            let name = |a: &Use| (a.pid, a.tid, a.file.clone(), a.fd);
            most(a).cmp(&most(b)).then_with(|| name(a).cmp(&name(b)))
        });
        FilesFound {
            unknown: self.unknown,
            uses,
        }
    }
}
