// SPDX-License-Identifier: GPL-2.0

//! Data that processes read from and write to files by system calls and by requests of io_uring. The trace does not show
//! reads and writes of mapped memory.

use crate::descriptors::{Descriptors, Does};
use crate::recent::Recent;
use crate::schedule::Schedule;
use crate::schedule_events::Switch;
use crate::tasks::Life;
use crate::uring::{Posted, RequestFile, Uring};
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

/// Files that were registered with a ring of io_uring.
const FIXED: &str = "[fixed file]";

/// A process and a file.
type UseKey = (Owner, Life, Name);

/// The file of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Name {
    File(Arc<str>),
    /// A descriptor whose file is not known.
    Descriptor(i32),
}

/// A read or a write.
struct Moved<'a> {
    owner: Owner,
    life: Life,
    tid: Option<i64>,
    comm: Option<&'a [u8]>,
    reads: bool,
    /// Number of bytes, or an error.
    ret: i64,
    /// Begin and duration in clock ticks.
    since: u64,
    ticks: u64,
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
    /// Number of failed reads and writes.
    pub errors: u64,
    /// Duration of all reads and writes.
    pub total_ns: u64,
    /// Duration of the longest one.
    pub max_ns: u64,
    /// Begin of the first one, in ticks of the trace's clock.
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
    /// missing in between. Also the number of those of io_uring without a known file.
    pub unknown: u64,
    /// Uses, in the order of [`FileSort`].
    pub uses: Vec<Use>,
}

impl Files {
    /// Creates the analysis. Returns `None` if the trace has no calls that read or write.
    pub fn new(catalogue: &Catalogue<'_>) -> Option<Self> {
        let descriptors = Descriptors::new(catalogue)?;
        let is_moving = descriptors.any(Does::moves_data) || Uring::new(catalogue).is_some();
        is_moving.then(|| Self {
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
        let moved = |reads| Moved {
            owner: entry.owner,
            life: entry.life,
            tid: Some(entry.tid),
            comm: entry.comm.as_deref(),
            reads,
            ret: call.ret,
            since: call.since,
            ticks: call.ticks,
        };
        match call.does {
            Does::Read => self.count_fd(&moved(true), argument(0)),
            Does::Write => self.count_fd(&moved(false), argument(0)),
            Does::Copy => {
                self.count_fd(&moved(true), argument(0));
                self.count_fd(&moved(false), argument(1));
            }
            _ => {}
        }
    }

    /// Returns the file of a descriptor at this time, if it is known.
    pub fn file(&self, owner: Owner, fd: i32, time: u64) -> Option<Arc<str>> {
        self.descriptors.file(owner, fd, time).cloned()
    }

    /// Processes the result of a request of io_uring, at this time.
    pub fn posted(&mut self, posted: &Posted, time: u64) {
        if let Some(request) = &posted.request {
            if let Some(reads) = request.reads() {
                let (name, near) = match &request.file {
                    RequestFile::None => (None, 0),
                    RequestFile::Fixed => (Some(Name::File(FIXED.into())), 0),
                    RequestFile::Descriptor(fd, file) => {
                        let name = file.clone().map_or(Name::Descriptor(*fd), Name::File);
                        (Some(name), *fd as usize)
                    }
                };
                let moved = Moved {
                    owner: request.owner,
                    life: request.life,
                    tid: request.tid,
                    comm: request.process_comm.as_deref(),
                    reads,
                    ret: posted.res,
                    since: request.since,
                    ticks: time.saturating_sub(request.since),
                };
                match name {
                    Some(name) => self.count(&moved, name, near),
                    None => self.unknown += 1,
                }
            }
        }
        self.descriptors.posted(posted);
    }

    fn count_fd(&mut self, moved: &Moved<'_>, fd: Option<i32>) {
        let Some(fd) = fd else {
            return;
        };
        let file = self.file(moved.owner, fd, moved.since);
        let name = file.map_or(Name::Descriptor(fd), Name::File);
        self.count(moved, name, fd as usize);
    }

    /// Counts a read or write. `near` makes different files of a process likely to have different places in the memory
    /// of recent ones.
    fn count(&mut self, moved: &Moved<'_>, name: Name, near: usize) {
        let owner = moved.owner;
        let number = (owner.id().unwrap_or(0) as usize).wrapping_mul(31);
        let number = number.wrapping_add(near);
        let (places, uses) = (&mut self.places, &mut self.uses);
        let place = self.recent.place(number, (owner, moved.life, name), |key| {
            *places.entry(key).or_insert_with(|| {
                uses.push(Use {
                    pid: owner.pid(),
                    tid: moved.tid.filter(|_| owner.pid().is_none()),
                    since: moved.since,
                    ..Use::default()
                });
                uses.len() as u32 - 1
            })
        });
        let found = &mut self.uses[place as usize];
        if let Some(comm) = moved.comm {
            if found
                .comm
                .as_ref()
                .is_none_or(|known| known.as_bytes() != comm)
            {
                found.comm = Some(printing::text(comm).into_owned());
            }
        }
        match u64::try_from(moved.ret) {
            Err(_) => found.errors += 1,
            Ok(bytes) if moved.reads => {
                found.reads += 1;
                found.read_bytes = found.read_bytes.saturating_add(bytes);
            }
            Ok(bytes) => {
                found.writes += 1;
                found.written_bytes = found.written_bytes.saturating_add(bytes);
            }
        }
        let took = self.clock.nanoseconds(moved.ticks);
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
