// SPDX-License-Identifier: GPL-2.0

//! Requests of io_uring: operations that a program puts into a ring in memory, so that they need no system call each.
//!
//! A request begins when the kernel takes it out of the ring, and ends when its result is in the ring of results. Two
//! different threads may do that, and both may be threads of the kernel. The kernel's addresses of ring and request
//! identify a request until it ends; then the kernel uses them again. A reader that may not see addresses has requests and
//! results that do not belong together.

use crate::tasks::Life;
use crate::whose::Owner;
use crate::{bits, integer, key, text, Catalogue, EventKey, Moment};
use ahash::{HashMap, HashMapExt, HashSet, HashSetExt};
use ctf::{Event, EventLayout};
use std::sync::Arc;
use system::printing;

/// `IOSQE_FIXED_FILE`: the request names a file by its number among those that were registered with the ring.
const FIXED_FILE: u64 = 1;
/// `IORING_CQE_F_NOTIF`: the kernel does not need the buffer of an earlier request any more.
const NOTIFICATION: u64 = 1 << 3;

/// Operations whose result is a descriptor, unless they put the file among the registered files of the ring.
const OPENS: [&str; 5] = ["OPENAT", "OPENAT2", "ACCEPT", "SOCKET", "FIXED_FD_INSTALL"];
/// Operations that read from the file of the request.
const READS: [&str; 8] = [
    "READ",
    "READV",
    "READ_FIXED",
    "READV_FIXED",
    "READ_MULTISHOT",
    "RECV",
    "RECVMSG",
    "RECV_ZC",
];
/// Operations that write to it.
const WRITES: [&str; 8] = [
    "WRITE",
    "WRITEV",
    "WRITE_FIXED",
    "WRITEV_FIXED",
    "SEND",
    "SENDMSG",
    "SEND_ZC",
    "SENDMSG_ZC",
];

/// The requests of a trace.
#[derive(Debug)]
pub struct Uring {
    events: Vec<(EventKey, Kind)>,
    /// Requests without a result so far, by the addresses of ring and request.
    open: HashMap<(u64, u64), Request>,
    operations: HashSet<Arc<str>>,
}

/// Kind of an event, with the indexes of its fields.
#[derive(Clone, Copy, Debug)]
struct Kind {
    ctx: usize,
    req: Option<usize>,
    user_data: usize,
    edge: Edge,
}

/// Step in the life of a request, with the indexes of more fields.
#[derive(Clone, Copy, Debug)]
enum Edge {
    /// The kernel takes the request. It may refuse it at once.
    Begin { operation: usize, flags: usize },
    /// The kernel looks for the file of this descriptor.
    File { fd: usize },
    /// A worker thread of the kernel gets the request.
    Worker,
    /// The result is in the ring of results.
    Result { res: usize, cflags: usize },
    /// The ring of results has no room.
    Overflow,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The kernel's name of the operation, such as `READ`.
    pub operation: Arc<str>,
    /// Process or thread that submitted the request.
    pub owner: Owner,
    /// Life of the owner's id.
    pub life: Life,
    /// The thread that took the request out of the ring: that of the program, or one of the kernel (`SQPOLL`).
    pub tid: Option<i64>,
    /// Name of that thread.
    pub comm: Option<Vec<u8>>,
    /// Name of its process.
    pub process_comm: Option<Vec<u8>>,
    /// Number of the CPU.
    pub cpu: u32,
    /// The number that the program gave to the request.
    pub user_data: u64,
    /// Flags of the request, `IOSQE_*`.
    pub flags: u64,
    /// File of the request.
    pub file: RequestFile,
    /// Whether a worker thread of the kernel got the request.
    pub is_by_worker: bool,
    /// Time of the begin, in clock ticks.
    pub since: u64,
}

/// File of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestFile {
    /// The request has no file, or ended before the kernel looked for it.
    None,
    /// A file that was registered with the ring. The events do not have its number.
    Fixed,
    /// A descriptor, with its file, if it is known.
    Descriptor(i32, Option<Arc<str>>),
}

/// A result.
#[derive(Debug)]
pub struct Posted {
    /// The request, if its begin is known.
    pub request: Option<Request>,
    /// The number that the program gave to the request.
    pub user_data: u64,
    /// The result: an error if it is negative.
    pub res: i64,
    /// Flags of the result, `IORING_CQE_F_*`.
    pub flags: u64,
    /// Whether the result is not the only one, and not the last one, of its request; or another ring sent it.
    pub is_further: bool,
}

/// Meaning of an event.
#[derive(Debug, Default)]
pub struct Seen {
    /// A request that ended, whose result is not in the trace. Programs can ask for no result (`CQE_SKIP_SUCCESS`).
    pub cut: Option<Request>,
    /// A result.
    pub posted: Option<Posted>,
    /// Whether a result did not fit into its ring. The result has no [`Posted`] then.
    pub is_overflow: bool,
}

impl Request {
    /// Whether the request reads (true) from its file or writes (false) to it.
    pub fn reads(&self) -> Option<bool> {
        let operation = &*self.operation;
        match () {
            () if READS.contains(&operation) => Some(true),
            () if WRITES.contains(&operation) => Some(false),
            () => None,
        }
    }

    /// Whether the request closes a descriptor. The events do not say which one.
    pub fn closes(&self) -> bool {
        &*self.operation == "CLOSE"
    }

    /// Whether the result of the request may be a new descriptor.
    pub fn opens(&self) -> bool {
        OPENS.contains(&&*self.operation)
    }
}

impl Uring {
    /// Creates the requests for a trace. Returns `None` if the trace lacks the begin or the result of requests.
    pub fn new(catalogue: &Catalogue<'_>) -> Option<Self> {
        let kind = |name, edge: fn(&EventLayout) -> Option<Edge>| {
            let layout = catalogue.event(name)?;
            let kind = Kind {
                ctx: layout.field("ctx")?,
                req: layout.field("req"),
                user_data: layout.field("user_data")?,
                edge: edge(layout)?,
            };
            Some((key(layout), kind))
        };
        let begin = |layout: &EventLayout| {
            Some(Edge::Begin {
                operation: layout.field("op_str")?,
                flags: layout.field("flags")?,
            })
        };
        let submit = kind("io_uring_submit_req", begin)?;
        let result = kind("io_uring_complete", |layout| {
            Some(Edge::Result {
                res: layout.field("res")?,
                cflags: layout.field("cflags")?,
            })
        })?;
        let refused = kind("io_uring_req_failed", begin);
        let file = kind("io_uring_file_get", |layout| {
            let fd = layout.field("fd")?;
            Some(Edge::File { fd })
        });
        let worker = kind("io_uring_queue_async_work", |_| Some(Edge::Worker));
        let overflow = kind("io_uring_cqe_overflow", |_| Some(Edge::Overflow));
        let others = [refused, file, worker, overflow];
        Some(Self {
            events: [submit, result]
                .into_iter()
                .chain(others.into_iter().flatten())
                .collect(),
            open: HashMap::new(),
            operations: HashSet::new(),
        })
    }

    /// Returns the events that the requests are read from. `event` identifies each by its index in this list.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.events.iter().map(|(key, _)| *key)
    }

    /// Returns the index of an event in this list.
    pub fn place(&self, event: EventKey) -> Option<usize> {
        self.events.iter().position(|(key, _)| *key == event)
    }

    /// Processes an event. `file_of` returns the file of a process's descriptor.
    pub fn event(
        &mut self,
        which: usize,
        event: &Event<'_>,
        now: &Moment<'_>,
        file_of: impl FnOnce(Owner, i32) -> Option<Arc<str>>,
    ) -> Seen {
        self.read(which, event, now, file_of).unwrap_or_default()
    }

    fn read(
        &mut self,
        which: usize,
        event: &Event<'_>,
        now: &Moment<'_>,
        file_of: impl FnOnce(Owner, i32) -> Option<Arc<str>>,
    ) -> Option<Seen> {
        let kind = self.events[which].1;
        let ctx = bits(event.value(kind.ctx))?;
        // A result without a request has the address 0, as all have for a reader that may not see addresses.
        let req = kind.req.and_then(|req| bits(event.value(req)));
        let req = req.filter(|req| *req != 0);
        let place = req.map(|req| (ctx, req));
        let user_data = bits(event.value(kind.user_data))?;
        let mut seen = Seen::default();
        match kind.edge {
            Edge::Begin { operation, flags } => {
                let operation = self.operation(text(event.value(operation))?);
                let owner = now.owner();
                let flags = bits(event.value(flags))?;
                let request = Request {
                    operation,
                    owner,
                    life: now.schedule.life_of(owner),
                    tid: now.tid(),
                    comm: now.comm().map(<[u8]>::to_vec),
                    process_comm: now.process_comm(owner).map(<[u8]>::to_vec),
                    cpu: now.schedule.number(now.cpu),
                    user_data,
                    flags,
                    file: match flags & FIXED_FILE {
                        0 => RequestFile::None,
                        _ => RequestFile::Fixed,
                    },
                    is_by_worker: false,
                    since: now.time,
                };
                // A result belongs to a request only while no event is missing on any CPU.
                match place.filter(|_| now.schedule.all_whole()) {
                    Some(place) => seen.cut = self.open.insert(place, request),
                    None => seen.cut = Some(request),
                }
            }
            Edge::File { fd } => {
                let request = self.open.get_mut(&place?)?;
                let fd = i32::try_from(integer(event.value(fd))?).ok()?;
                // A splice also looks for the file to read from, as the second one.
                if request.file == RequestFile::None {
                    request.file = RequestFile::Descriptor(fd, file_of(request.owner, fd));
                }
            }
            Edge::Worker => self.open.get_mut(&place?)?.is_by_worker = true,
            Edge::Result { res, cflags } => {
                let flags = bits(event.value(cflags))?;
                let begun = place.and_then(|place| self.open.remove(&place));
                let is_notification = flags & NOTIFICATION != 0;
                let is_own = |request: &Request| {
                    request.user_data == user_data && !is_notification && now.schedule.all_whole()
                };
                let (request, cut) = match begun {
                    Some(request) if is_own(&request) => (Some(request), None),
                    other => (None, other),
                };
                seen.cut = cut;
                seen.posted = Some(Posted {
                    is_further: is_notification || (req.is_none() && ctx != 0),
                    request,
                    user_data,
                    res: integer(event.value(res))?,
                    flags,
                });
            }
            Edge::Overflow => seen.is_overflow = true,
        }
        Some(seen)
    }

    /// Returns the name of an operation. There is one copy of each.
    fn operation(&mut self, name: &[u8]) -> Arc<str> {
        let name = printing::text(name);
        if let Some(known) = self.operations.get(&*name) {
            return known.clone();
        }
        let name: Arc<str> = name.into();
        self.operations.insert(name.clone());
        name
    }

    /// Forgets the requests without a result so far, at the end of the trace or when events may be missing from now on.
    /// Returns them, the oldest first.
    pub fn rest(&mut self) -> Vec<Request> {
        let mut rest: Vec<_> = self.open.drain().collect();
        rest.sort_by_key(|(place, request)| (request.since, *place));
        rest.into_iter().map(|(_, request)| request).collect()
    }
}
