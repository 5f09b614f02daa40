// SPDX-License-Identifier: GPL-2.0

//! Takes the records of all programs from their rings, checks and merges them, and hands them to the channels.

use super::shared::{RingCounts, SharedRings, HEAD, LIMIT, LOST, MAY_WAKE};
use super::Limits;
use crate::arch::clock::tsc;
use crate::arch::word::SharedWord;
use crate::channel::Channel;
use crate::probe::given::ROOM;
use crate::program::merge::{choose, Bound, Choice, Source};
use crate::program::reader::{Checks, RingReader};
use crate::program::shape::ShapePart;
use crate::source::program::ProgramEvent;
use crate::sys::clock;
use crate::sys::cpu;
use crate::sys::errno::edquot;
use crate::sys::rcu::Retired;
use crate::sys::shared_pages::SharedPages;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Number of bytes that are copied at once.
const PIECE: usize = 16 << 10;

/// See the [module documentation](self).
#[pin_data]
pub(crate) struct Drain {
    /// Number of channels that take records from rings.
    listening: SharedWord,
    #[pin]
    state: Mutex<State>,
}

struct State {
    programs: KVVec<Arc<SharedRings>>,
    rings: KVVec<Ring>,
    channels: KVVec<ListeningChannel>,
    /// Counters of the programs that have ended.
    ended: [u64; RingCounts::COUNT],
    /// Room for contexts and fields of a record.
    room: KVec<u8>,
    /// Time of the last record that was passed on.
    passed: u64,
    is_ticking: bool,
}

/// A channel that takes records from rings.
struct ListeningChannel {
    channel: Arc<Channel>,
    /// Number of its probes.
    probes: usize,
}

/// A ring that is read.
struct Ring {
    program: Arc<SharedRings>,
    index: u32,
    pages: Arc<SharedPages>,
    reader: RingReader,
    copy: KVVec<u8>,
    /// The program's position when it was read in this run.
    head: Option<u64>,
    horizon: u64,
    /// Whether the program can write no more, and could not when this run began.
    is_last: bool,
    source: Source,
    events: Known,
    /// The number of lost records that the program has claimed and that were counted, and when that was.
    lost: u64,
    counted: u64,
    /// CPU of the last record.
    cpu: u32,
    /// Records that were not added to those of the program.
    records: u64,
    /// The reader's counters that were added to those of the program.
    garbage: u64,
    bad_heads: u64,
    late: u64,
}

/// The events of a program, as far as its records had them.
struct Known(KVVec<Option<Arc<ProgramEvent>>>);

impl Known {
    /// The checks of the program's records.
    fn of<'a>(&'a mut self, program: &'a SharedRings) -> RingChecks<'a> {
        RingChecks {
            known: self,
            program,
        }
    }

    fn get(&self, index: u32) -> Option<&Arc<ProgramEvent>> {
        self.0.get(index as usize)?.as_ref()
    }
}

/// The checks of a program's records.
struct RingChecks<'a> {
    known: &'a mut Known,
    program: &'a SharedRings,
}

impl RingChecks<'_> {
    /// Looks up an event that no record had before.
    #[cold]
    fn find(&mut self, index: u32) {
        let (index, events) = (index as usize, &mut self.known.0);
        let Some(place) = self.program.events.get(index) else {
            return;
        };
        while events.len() <= index {
            if events.push(None, GFP_KERNEL).is_err() {
                return;
            }
        }
        if let Some(known) = events.get_mut(index) {
            *known = place.get_arc();
        }
    }
}

impl Checks for RingChecks<'_> {
    #[inline(always)]
    fn shape(&mut self, event: u32) -> Option<&[ShapePart]> {
        if self.known.get(event).is_none() {
            self.find(event);
        }
        Some(self.known.get(event)?.shape())
    }

    #[inline(always)]
    fn is_cpu(&self, cpu: u32) -> bool {
        cpu < cpu::count()
    }
}

impl Drain {
    /// Makes it without programs. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        let room = KVec::from_elem(0, ROOM, GFP_KERNEL)?;
        let state = State {
            programs: KVVec::new(),
            rings: KVVec::new(),
            channels: KVVec::new(),
            ended: [0; RingCounts::COUNT],
            room,
            passed: 0,
            is_ticking: false,
        };
        Arc::pin_init(
            pin_init!(Self {
                listening: SharedWord::new(0),
                state <- new_mutex!(state),
            }),
            GFP_KERNEL,
        )
    }

    pub(super) fn add(&self, program: &Arc<SharedRings>) -> Result {
        Ok(self
            .state
            .lock()
            .programs
            .push(program.clone(), GFP_KERNEL)?)
    }

    pub(super) fn remove(&self, program: &Arc<SharedRings>) {
        let mut state = self.state.lock();
        state
            .rings
            .retain(|ring| !Arc::ptr_eq(&ring.program, program));
        state.programs.retain(|known| !Arc::ptr_eq(known, program));
        add(&mut state.ended, program);
    }

    pub(super) fn add_ring(
        &self,
        program: &Arc<SharedRings>,
        index: u32,
        pages: Arc<SharedPages>,
        limits: &Limits,
    ) -> Result {
        let reader = RingReader::new(pages.len()).ok_or(EINVAL)?;
        let copy = KVVec::from_elem(0, PIECE, GFP_KERNEL_ACCOUNT)?;
        let mut state = self.state.lock();
        let (mut of_program, mut of_user, mut of_all) = (0, pages.len(), pages.len());
        for ring in &state.rings {
            of_program += u32::from(Arc::ptr_eq(&ring.program, program));
            of_all += ring.pages.len();
            if ring.program.user == program.user {
                of_user += ring.pages.len();
            }
        }
        if of_program >= limits.rings {
            return Err(ENOSPC);
        }
        if of_user > limits.of_user || of_all > limits.of_all {
            return Err(edquot());
        }
        state.rings.reserve(1, GFP_KERNEL)?;
        program.place_ring(index, &pages)?;
        let mut ring = Ring {
            program: program.clone(),
            index,
            pages,
            reader,
            copy,
            head: None,
            horizon: 0,
            is_last: false,
            source: Source::UsedUp(Bound(0)),
            events: Known(KVVec::new()),
            lost: 0,
            counted: tsc(),
            cpu: 0,
            records: 0,
            garbage: 0,
            bad_heads: 0,
            late: 0,
        };
        ring.allow();
        Ok(state.rings.push(ring, GFP_KERNEL)?)
    }

    /// Notes a probe of a channel.
    pub(super) fn listen(&self, channel: &Arc<Channel>) -> Result {
        let mut state = self.state.lock();
        let mut known = state.channels.iter_mut();
        if let Some(known) = known.find(|known| Arc::ptr_eq(&known.channel, channel)) {
            known.probes += 1;
            return Ok(());
        }
        let new = ListeningChannel {
            channel: channel.clone(),
            probes: 1,
        };
        state.channels.push(new, GFP_KERNEL)?;
        self.listening.store(state.channels.len() as u64);
        Ok(())
    }

    /// Forgets a probe of a channel.
    pub(super) fn unlisten(&self, channel: &Arc<Channel>) {
        let mut state = self.state.lock();
        for known in state.channels.iter_mut() {
            if Arc::ptr_eq(&known.channel, channel) {
                known.probes -= 1;
            }
        }
        state.channels.retain(|known| known.probes != 0);
        self.listening.store(state.channels.len() as u64);
    }

    /// Whether there is nothing to take.
    pub(super) fn is_idle(&self) -> bool {
        self.listening.load() == 0
    }

    pub(super) fn tick_if_needed(&self, set: impl FnOnce(bool)) {
        let mut state = self.state.lock();
        let is_needed = !self.is_idle();
        if is_needed != state.is_ticking {
            state.is_ticking = is_needed;
            set(is_needed);
        }
    }

    pub(super) fn for_each(
        &self,
        mut show: impl FnMut(&SharedRings, usize) -> Result,
    ) -> Result<[u64; RingCounts::COUNT]> {
        let state = self.state.lock();
        let mut total = state.ended;
        for program in &state.programs {
            let rings = state.rings.iter();
            let rings = rings.filter(|ring| Arc::ptr_eq(&ring.program, program));
            show(program, rings.count())?;
            add(&mut total, program);
        }
        Ok(total)
    }

    /// Takes the records that all programs have committed, and passes on those up to a margin before now. May sleep.
    pub(super) fn run(&self) {
        // Dropped after the lock is released, because the drop waits.
        let mut retired = Retired::new();
        self.state.lock().run(&mut retired);
    }
}

/// Adds a program's counters.
fn add(sum: &mut [u64; RingCounts::COUNT], program: &SharedRings) {
    for (sum, count) in sum.iter_mut().zip(program.counts.all()) {
        *sum = sum.wrapping_add(count);
    }
}

/// Ticks of the clock that a record may be committed after its time was read.
fn margin() -> u64 {
    clock::tsc_frequency().unwrap_or(0) / 1000
}

impl State {
    fn run(&mut self, retired: &mut Retired<SharedPages>) {
        let margin = margin();
        let until = Bound(tsc().saturating_sub(margin));
        for ring in &mut self.rings {
            ring.head = None;
            ring.is_last = ring.program.is_gone();
            ring.advance(margin);
        }
        let bound = loop {
            let sources = self.rings.iter().map(|ring| ring.source);
            match choose(sources, until) {
                Choice::Pass(index) => self.pass(index, margin),
                Choice::Wait(bound) => break bound,
            }
        };
        for ring in &mut self.rings {
            ring.count();
        }
        for known in &self.channels {
            known.channel.give_waiting(bound.0);
        }
        self.rings.retain(|ring| {
            let is_read = ring.reader.is_used_up() || ring.program.is_refused();
            // While the memory is mapped it counts for the limits.
            let stays = !ring.is_last || !is_read || ring.pages.is_mapped();
            if !stays {
                ring.program.free_ring(ring.index, retired);
            }
            stays
        });
    }

    /// Passes the next record of a ring on.
    fn pass(&mut self, index: usize, margin: u64) {
        let Self {
            rings,
            room,
            passed,
            ..
        } = self;
        let (Some(ring), Some(room)) = (rings.get_mut(index), room.first_chunk_mut()) else {
            return;
        };
        ring.pass(passed, room);
        ring.advance(margin);
    }
}

/// Calls `each` with the events of a program.
fn for_each_event(program: &SharedRings, mut each: impl FnMut(&ProgramEvent)) {
    for place in program.events.iter() {
        match place.get_arc() {
            Some(event) => each(&event),
            // Places are filled in their order.
            None => return,
        }
    }
}

impl Ring {
    /// Finds the next record. Reads the program's position at most once in a run, so that a program which goes on writing
    /// does not keep the thread here.
    fn advance(&mut self, margin: u64) {
        if self.program.is_refused() {
            self.source = Source::UsedUp(Bound(u64::MAX));
            return;
        }
        loop {
            if let Some(time) = self.peek() {
                self.source = Source::Next(time);
                return;
            }
            let (head, horizon) = match self.head {
                Some(head) if self.reader.is_cut() => (head, self.horizon),
                Some(_) => break,
                None => {
                    let horizon = tsc();
                    let Some(head) = self.program.header(self.index, HEAD) else {
                        break;
                    };
                    // Acquire: what the program stored before it is visible.
                    let head = head.load_acquire();
                    self.head = Some(head);
                    self.horizon = match self.is_last {
                        true => horizon,
                        false => horizon.saturating_sub(margin),
                    };
                    (head, self.horizon)
                }
            };
            if let Some(piece) = self.reader.take(head, horizon, PIECE) {
                let Some(copy) = self.copy.get_mut(..piece.len) else {
                    break;
                };
                self.pages.copy(piece.from, copy);
                self.reader.copied(copy, piece, head, tsc());
            }
            self.allow();
        }
        self.source = Source::UsedUp(self.reader.bound());
    }

    /// The time of the next record of the copy.
    fn peek(&mut self) -> Option<u64> {
        let mut checks = self.events.of(&self.program);
        let valid = self.reader.peek(&self.copy, &mut checks)?;
        Some(valid.time)
    }

    /// Passes the next record on.
    fn pass(&mut self, passed: &mut u64, room: &mut [u8; ROOM]) {
        let Self {
            program,
            reader,
            copy,
            events,
            cpu,
            records,
            ..
        } = self;
        let mut checks = events.of(program);
        let Some(valid) = reader.peek(copy, &mut checks) else {
            return;
        };
        reader.advance(&valid);
        *records = records.wrapping_add(1);
        *cpu = valid.cpu;
        if valid.time < *passed {
            program.counts.late.add(1);
        }
        *passed = valid.time.max(*passed);
        if let Some(event) = events.get(valid.event) {
            let thread = program.thread(valid.thread, valid.cpu);
            event.rings().give(*passed, &thread, valid.fields, room);
        }
    }

    /// Lets the program write up to the half of the ring, and then wake the thread.
    fn allow(&mut self) {
        let (program, index) = (&self.program, self.index);
        if let Some(full) = program.full.get(index as usize) {
            full.store(self.reader.limit());
        }
        if let (Some(limit), Some(may_wake)) = (
            program.header(index, LIMIT),
            program.header(index, MAY_WAKE),
        ) {
            // Release: the bytes were read before. A program that sees the limit, but not the other word, loses a
            // record at worst, and counts it.
            limit.store_release(self.reader.half());
            may_wake.store(1);
        }
    }

    /// Adds up the counters.
    fn count(&mut self) {
        let counts = &self.program.counts;
        counts.records.add(core::mem::take(&mut self.records));
        // Bytes that are no records are an error once for each run.
        let errors = u64::from(self.reader.garbage() != self.garbage)
            + self.reader.bad_heads().wrapping_sub(self.bad_heads);
        let is_refused_now = self.program.count_errors(errors);
        for (sum, seen, now) in [
            (&counts.garbage, &mut self.garbage, self.reader.garbage()),
            (
                &counts.bad_heads,
                &mut self.bad_heads,
                self.reader.bad_heads(),
            ),
            (&counts.late, &mut self.late, self.reader.late()),
        ] {
            sum.add(now.wrapping_sub(*seen));
            *seen = now;
        }
        let Some(claimed) = self.program.header(self.index, LOST).map(SharedWord::load) else {
            return;
        };
        let now = tsc();
        // A program loses no record in less than a tick.
        let lost = claimed
            .wrapping_sub(self.lost)
            .min(now.saturating_sub(self.counted));
        (self.lost, self.counted) = (claimed, now);
        if lost != 0 {
            counts.lost.add(lost);
            self.count_lost(lost);
        }
        if is_refused_now {
            for_each_event(&self.program, |event| event.rings().refuse(&self.program));
        }
    }

    /// Counts lost records in each channel that takes records of the program.
    fn count_lost(&self, lost: u64) {
        let mut channels = KVec::<Arc<Channel>>::new();
        for_each_event(&self.program, |event| {
            event.rings().for_each_channel(|channel| {
                if !channels.iter().any(|known| Arc::ptr_eq(known, channel)) {
                    // Without memory, only the sum of the program has them.
                    let _ = channels.push(channel.clone(), GFP_KERNEL);
                }
            });
        });
        for channel in &channels {
            channel.count_given_lost(self.cpu, lost);
        }
    }
}
