// SPDX-License-Identifier: GPL-2.0

//! The memory that the program of an open file shares with the module: words, headers of rings, and rings.

use super::{DrainWork, Rings};
use crate::abi::ioctl::RingLayout;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::context::ThreadContexts;
use crate::program::record::{LONGEST_RECORD, MAX_THREAD};
use crate::source::program::{ProgramEvent, MAX_INDEX};
use crate::sys::args::Task;
use crate::sys::clock;
use crate::sys::cpu;
use crate::sys::mapping::{Mapped, Mapping};
use crate::sys::memory_owner::MemoryOwner;
use crate::sys::privilege;
use crate::sys::rcu::{RcuArc, Retired};
use crate::sys::shared_pages::SharedPages;
use crate::sys::work::Ask;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The events of an open file by index. A place is filled once.
pub(crate) type EventTable = KVVec<RcuArc<ProgramEvent>>;

/// Size of a header in bytes, and the offsets of its words. `rtrace/event.h` has the same numbers.
pub(crate) const HEADER_SIZE: usize = 128;
/// Written by the program.
pub(crate) const HEAD: usize = 0;
pub(crate) const LOST: usize = 8;
/// Written by the module.
pub(crate) const LIMIT: usize = 64;
pub(crate) const MAY_WAKE: usize = 72;

/// Offsets in the file for mmap(2).
const WORDS_AT: usize = 0;
const HEADERS_AT: usize = 1 << 24;
const DATA_AT: usize = 1 << 28;

/// Maximum number of threads that an open file knows.
const MAX_THREADS: usize = 1 << 16;

const _: () = assert!(MAX_THREADS <= MAX_THREAD as usize);

/// Number of errors after which nothing is taken from a program's rings any more.
const MAX_ERRORS: u64 = 100;

/// States of the headers' mapping.
const UNMAPPED: u64 = 0;
const IS_MAPPED: u64 = 1;
const GONE: u64 = 2;

/// See the [module documentation](self).
#[pin_data]
pub(crate) struct SharedRings {
    /// The process, which alone maps and extends this.
    owner: MemoryOwner,
    pub(crate) user: u32,
    /// Contexts of a thread without a number: only the process is known.
    process: ThreadContexts,
    pub(crate) events: Arc<EventTable>,
    words: SharedPages,
    headers: SharedPages,
    ring_size: usize,
    /// The rings by index.
    rings: KVVec<RcuArc<SharedPages>>,
    /// For each ring, the position up to which the program may write after it has woken the module.
    pub(super) full: KVVec<SharedWord>,
    #[pin]
    threads: Mutex<KVVec<ThreadContexts>>,
    /// State of the headers' mapping.
    mapped: SharedWord,
    /// Number of errors, up to [`MAX_ERRORS`].
    errors: SharedWord,
    work: Arc<DrainWork>,
    pub(crate) counts: RingCounts,
}

/// Counters of a program's rings.
pub(crate) struct RingCounts {
    /// Records that were taken.
    pub(crate) records: SharedWord,
    /// Records that the program had no room for, as it says.
    pub(crate) lost: SharedWord,
    /// Bytes that were no records.
    pub(crate) garbage: SharedWord,
    /// Positions that were none.
    pub(crate) bad_heads: SharedWord,
    /// Records whose time was changed.
    pub(crate) late: SharedWord,
}

impl RingCounts {
    /// Number of counters.
    pub(crate) const COUNT: usize = 5;

    /// The counters in the order of their columns in `program_stats`.
    pub(crate) fn all(&self) -> [u64; Self::COUNT] {
        let Self {
            records,
            lost,
            garbage,
            bad_heads,
            late,
        } = self;
        [records, lost, garbage, bad_heads, late].map(SharedWord::load)
    }
}

impl SharedRings {
    /// Makes the memory of the current process, without rings. May sleep.
    pub(crate) fn new(rings: &Rings, events: &Arc<EventTable>) -> Result<Arc<Self>> {
        let owner = MemoryOwner::current().ok_or(EINVAL)?;
        let count = cpu::count() as usize;
        let (mut places, mut full) = (KVVec::new(), KVVec::new());
        let (ring_size, work) = (rings.limits.ring_size, rings.work().clone());
        for _ in 0..count {
            places.push(RcuArc::new(), GFP_KERNEL)?;
            full.push(SharedWord::new(0), GFP_KERNEL)?;
        }
        let (words, headers) = (
            SharedPages::new(MAX_INDEX * size_of::<u32>())?,
            SharedPages::new(count * HEADER_SIZE)?,
        );
        let current = this_thread();
        let process = ThreadContexts {
            tid: current.pid,
            vtid: current.vpid,
            ..current
        };
        Arc::pin_init(
            pin_init!(Self {
                owner,
                user: privilege::current_user(),
                process,
                events: events.clone(),
                words,
                headers,
                ring_size,
                rings: places,
                full,
                threads <- new_mutex!(KVVec::new()),
                mapped: SharedWord::new(UNMAPPED),
                errors: SharedWord::new(0),
                work,
                counts: RingCounts {
                    records: SharedWord::new(0),
                    lost: SharedWord::new(0),
                    garbage: SharedWord::new(0),
                    bad_heads: SharedWord::new(0),
                    late: SharedWord::new(0),
                },
            }),
            GFP_KERNEL,
        )
    }

    /// Where the parts are, for mmap(2).
    pub(crate) fn layout(&self) -> RingLayout {
        let has_clock = clock::tsc_frequency().is_some();
        RingLayout {
            words: WORDS_AT as u64,
            words_size: self.words.len() as u64,
            headers: HEADERS_AT as u64,
            headers_size: self.headers.len() as u64,
            data: DATA_AT as u64,
            ring_size: self.ring_size as u64,
            // Without a clock that programs can read there is no ring.
            count: if has_clock {
                self.rings.len() as u32
            } else {
                0
            },
            version: 1,
        }
    }

    /// `EPERM`: the current process is not that of the memory.
    pub(crate) fn is_mine(&self) -> Result {
        match self.owner.is_current() {
            true => Ok(()),
            false => Err(EPERM),
        }
    }

    /// The process, as contexts have it.
    pub(crate) fn process(&self) -> &ThreadContexts {
        &self.process
    }

    /// Fills a new mapping. Errors: `EPERM`: see [`is_mine`](Self::is_mine); `EBUSY`: the headers are mapped already, or
    /// were; `ENODEV`: the program has no ring there; and those of [`Mapping`]. May sleep.
    pub(crate) fn map(self: &Arc<Self>, mapping: &Mapping<'_>) -> Result {
        self.is_mine()?;
        match mapping.offset().ok_or(EINVAL)? {
            WORDS_AT => mapping.fill_inherited(self.words.pages()),
            HEADERS_AT => {
                if !self.mapped.compare_exchange(UNMAPPED, IS_MAPPED) {
                    return Err(EBUSY);
                }
                let filled = mapping.fill_writable(self.headers.pages(), 1);
                filled.inspect_err(|_| self.mapped.store(UNMAPPED))?;
                mapping.notify(self.clone());
                Ok(())
            }
            at => {
                let at = at.checked_sub(DATA_AT).ok_or(EINVAL)?;
                let apart = 2 * self.ring_size;
                if at % apart != 0 {
                    return Err(EINVAL);
                }
                let place = self.rings.get(at / apart).ok_or(EINVAL)?;
                let ring = place.get_arc().ok_or(ENODEV)?;
                mapping.fill_writable(ring.pages(), 2)?;
                ring.count_mapping();
                mapping.notify(ring);
                Ok(())
            }
        }
    }

    /// Whether the process can write no more: its headers' mapping has ended.
    pub(crate) fn is_gone(&self) -> bool {
        self.mapped.load_acquire() == GONE
    }

    /// The current thread's number for records. `ENOSPC`: there are too many. May sleep.
    pub(crate) fn number_thread(&self) -> Result<u32> {
        self.is_mine()?;
        let mut threads = self.threads.lock();
        if threads.len() >= MAX_THREADS {
            return Err(ENOSPC);
        }
        // Charged to the memory cgroup of the program.
        threads.push(this_thread(), GFP_KERNEL_ACCOUNT)?;
        Ok(threads.len() as u32)
    }

    /// The thread with this number, on `cpu`.
    pub(super) fn thread(&self, number: u32, cpu: u32) -> ThreadContexts {
        let threads = self.threads.lock();
        let index = (number as usize).checked_sub(1);
        let known = index.and_then(|index| threads.get(index));
        ThreadContexts {
            cpu,
            ..*known.unwrap_or(&self.process)
        }
    }

    /// Lets the program write the rest of a ring, and has its records taken soon, if it has written the first half. May be
    /// called at any time.
    pub(crate) fn wake(&self, index: u32) -> Result {
        let full = self.full.get(index as usize).ok_or(EINVAL)?.load();
        let half = full.wrapping_sub(self.ring_size as u64 / 2);
        let (Some(head), Some(limit), Some(may_wake)) = (
            self.header(index, HEAD),
            self.header(index, LIMIT),
            self.header(index, MAY_WAKE),
        ) else {
            return Ok(());
        };
        // The next record, at least, does not fit before the half. So a program does not keep the thread busy by calls
        // alone.
        let left = half.wrapping_sub(head.load()) as i64;
        if full != 0 && left < LONGEST_RECORD as i64 {
            may_wake.store(0);
            if limit.compare_exchange(half, full) {
                self.work.ask();
            }
        }
        Ok(())
    }

    /// Counts errors in what the program has written. Returns whether these made it [refused](Self::is_refused).
    pub(super) fn count_errors(&self, count: u64) -> bool {
        let before = self.errors.load();
        let now = before.saturating_add(count).min(MAX_ERRORS);
        self.errors.store(now);
        before < now && now == MAX_ERRORS
    }

    /// Whether nothing is taken from the program's rings any more, because it made too many errors.
    pub(super) fn is_refused(&self) -> bool {
        self.errors.load() == MAX_ERRORS
    }

    /// The word of an event: [`Word`](super::event::Word). 0 if the program is refused.
    pub(super) fn announce(&self, index: usize, word: u32) {
        let word = if self.is_refused() { 0 } else { word };
        self.words.store_u32(index * size_of::<u32>(), word);
    }

    /// A word of a ring's header.
    pub(super) fn header(&self, index: u32, offset: usize) -> Option<&SharedWord> {
        self.headers.word(index as usize * HEADER_SIZE + offset)
    }

    /// The memory of a new ring. Errors: those of [`Rings::add_ring`].
    pub(super) fn new_ring(&self, index: u32) -> Result<Arc<SharedPages>> {
        self.is_mine()?;
        let place = self.rings.get(index as usize).ok_or(EINVAL)?;
        if place.get_arc().is_some() {
            return Err(EEXIST);
        }
        Ok(Arc::new(SharedPages::new(self.ring_size)?, GFP_KERNEL)?)
    }

    /// Stores the memory of a ring in its place. `EEXIST`: there is one.
    pub(super) fn place_ring(&self, index: u32, ring: &Arc<SharedPages>) -> Result {
        let place = self.rings.get(index as usize).ok_or(EINVAL)?;
        if place.get_arc().is_some() {
            return Err(EEXIST);
        }
        place.replace(Some(ring.clone()));
        Ok(())
    }
}

/// Of the thread that takes records.
impl SharedRings {
    /// Frees the memory of a ring that is not read any more.
    pub(super) fn free_ring(&self, index: u32, retired: &mut Retired<SharedPages>) {
        if let Some(place) = self.rings.get(index as usize) {
            place.replace_later(None, retired);
        }
    }
}

impl Mapped for SharedRings {
    fn unmapped(&self) {
        self.mapped.store_release(GONE);
        self.work.ask();
    }
}

/// The contexts of the current thread.
fn this_thread() -> ThreadContexts {
    let guard = NoPreempt::new();
    let task = Task::current();
    ThreadContexts {
        tid: task.tid(),
        pid: task.tgid(),
        vtid: task.tid_in_namespace(&guard),
        vpid: task.pid_in_namespace(&guard),
        comm: task.comm(),
        cpu: 0,
    }
}
