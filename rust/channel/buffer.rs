// SPDX-License-Identifier: GPL-2.0

//! One CPU's part of a channel: a ring, its memory, and who is woken.

use super::format::Format;
use super::header::{EventHeader, Label};
use super::memory::{Memory, RecordWriter};
use super::packet;
use super::platform::Kernel;
use super::reader::Cursor;
use super::time::{ClockSource, TraceClock};
use super::Setup;
use crate::abi::packet::PacketHeader;
use crate::arch::word::{LocalWord, SharedWord};
use crate::ring::commit::Complete;
use crate::ring::geometry::Geometry;
use crate::ring::reserve::{Reserved, Stamp};
use crate::ring::slot::Slot;
use crate::ring::switch::Closed;
use crate::ring::Ring;
use crate::sys::chosen::Chosen;
use crate::sys::cpu::{self, NoHotplug};
use crate::sys::gate::{Entry, Stopped};
use crate::sys::irq_work::IrqWork;
use crate::sys::system::Uuid;
use crate::sys::wait::WaitQueue;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// How many records may be in the making on a CPU at a time: one each for thread, softirq,
/// interrupt and NMI. More means that a probe fires itself.
pub(super) const MAX_NESTING: u64 = 4;

/// Being on a CPU whose buffer takes a record.
pub(crate) type Entered<'a> = Entry<'a, Buffer>;

/// Being on a CPU whose buffer may take a record.
pub(crate) type Waiting<'a> = Stopped<'a, Buffer>;

/// One CPU's buffer.
#[pin_data]
#[repr(C)]
pub(crate) struct Buffer {
    /// First, where its first word is cheapest to get at.
    ring: Ring<Kernel>,
    pub(super) memory: Memory,
    /// The time of the last record, or of one shortly before it where records nest.
    last_time: LocalWord,
    clock: TraceClock,
    cpu: u32,
    uuid: Uuid,
    /// Whether a reader is woken at each packet, not by the clock.
    wakes: bool,
    packets: LocalWord,
    bytes: LocalWord,
    /// Not 0 once the trace is over and everything is in packets.
    finished: SharedWord,
    /// Not 0 while a reader has the stream open.
    pub(super) opened: SharedWord,
    pub(super) waiters: Arc<WaitQueue>,
    #[pin]
    wake: IrqWork<Arc<WaitQueue>>,
    #[pin]
    pub(super) reader: Mutex<Cursor>,
}

impl Buffer {
    /// Makes the buffer of `cpu`, which need not be online; its memory is near to it. May sleep.
    pub(super) fn new(setup: &Setup, cpu: u32) -> impl PinInit<Self, Error> + '_ {
        let config = setup.config;
        pin_init::pin_init_scope(move || {
            let size = config.subbuf_size as u64;
            let count = config.subbuf_count as u64;
            let geometry = Geometry::new(size, count).ok_or(EINVAL)?;
            let origin = config.origin & !geometry.buffer_size().wrapping_sub(1);
            let mut slots = KVVec::with_capacity(config.subbuf_count, GFP_KERNEL)?;
            for index in 0..count {
                slots.push(Slot::new(&geometry, index, origin), GFP_KERNEL)?;
            }
            // The reader has one sub-buffer more.
            let memory = Memory::new(config.subbuf_size * (config.subbuf_count + 1), cpu)?;
            let ring = Ring::new(
                geometry,
                config.mode,
                PacketHeader::SIZE as u64,
                origin,
                memory.address(),
                Chosen::new(slots).ok_or(EINVAL)?,
                Kernel {
                    cpu,
                    barriers: config.barriers,
                },
            )
            .ok_or(EINVAL)?;
            let waiters = Arc::pin_init(WaitQueue::new(), GFP_KERNEL)?;
            let cursor = Cursor::new(ring.reader());
            Ok(try_pin_init!(Self {
                ring,
                memory,
                last_time: LocalWord::new(0),
                clock: TraceClock::new(setup.clock),
                cpu,
                uuid: setup.uuid,
                wakes: config.read_period_us == 0,
                packets: LocalWord::new(0),
                bytes: LocalWord::new(0),
                finished: SharedWord::new(0),
                opened: SharedWord::new(0),
                wake <- IrqWork::new(waiters.clone(), |waiters| waiters.wake_all()),
                waiters,
                reader <- new_mutex!(cursor),
            }? Error))
        })
    }

    /// The ring.
    pub(crate) fn ring(&self) -> &Ring<Kernel> {
        &self.ring
    }

    /// Whether the trace is over and all of it is in packets. To be asked before the ring is.
    pub(super) fn is_finished(&self) -> bool {
        self.finished.load_acquire() != 0
    }

    /// Finished packets, and the bytes of them that are moved out.
    pub(super) fn delivered(&self) -> (u64, u64) {
        (self.packets.load(), self.bytes.load())
    }

    /// Records an event in the common case: the record goes into the open packet. `payload` says
    /// how many bytes follow the header, and what lays them down. Any context, NMI included.
    ///
    /// `Err` says that nothing was done: [`record_any`](Self::record_any) has all the cases. It is
    /// for the caller to call it, last, so that nothing need be kept across calls.
    #[inline(always)]
    pub(crate) fn record_open<'a, F: Format, W: FnOnce(RecordWriter<'a>)>(
        entered: Entered<'a>,
        label: &Label,
        payload: impl FnOnce() -> (u64, W),
    ) -> Result<(), Entered<'a>> {
        let read = F::Clock::read(&entered.target().clock);
        // Once more, so that nothing but `entered` is kept while a clock is called.
        let buffer = entered.target();
        let time = F::Clock::settle(&buffer.clock, read);
        let (payload, write) = payload();
        let len = F::Header::SHORT.wrapping_add(payload);
        let reserved = buffer.ring.reserve_open(len, || {
            // Who nested since the clock was read has left a later time: the difference is
            // negative, which looks like ages.
            let since_last = time.wrapping_sub(buffer.last_time.load());
            label.is_short(since_last).then_some(time)
        });
        let Some(record) = reserved else {
            return Err(entered);
        };
        buffer.last_time.store(record.time);
        let to = buffer.memory.record(record.memory);
        write(F::Header::write_short(to, label.id, record.time));
        if let Some(complete) = buffer.ring.commit(record) {
            Self::deliver(entered, complete);
        }
        Ok(())
    }

    /// Records an event in every case: the record may open a packet, close one, fill one, need
    /// the extended header, be interrupted, or be refused. Otherwise as
    /// [`record_open`](Self::record_open).
    #[inline(always)]
    pub(crate) fn record_any<'a, F: Format, W: FnOnce(RecordWriter<'a>)>(
        entered: Entered<'a>,
        label: &Label,
        payload: impl FnOnce() -> (u64, W),
    ) {
        let (payload, write) = payload();
        let buffer = entered.target();
        // What does not fit with the short header does not fit with the other.
        if buffer
            .ring
            .refuse_if_full(F::Header::SHORT.wrapping_add(payload))
        {
            return entered.watch(true);
        }
        let Some(record) =
            buffer.reserve_any(label, F::Header::SHORT, F::Header::EXTENDED, payload)
        else {
            // Probably it stays full for a while: see `admit`.
            return entered.watch(true);
        };
        buffer.last_time.store(record.time);
        let to = buffer.memory.record(record.memory);
        write(if record.len.wrapping_sub(payload) == F::Header::SHORT {
            F::Header::write_short(to, label.id, record.time)
        } else {
            F::Header::write_extended(to, label.id, record.time)
        });
        if let Some(complete) = buffer.ring.commit(record) {
            Self::deliver(entered, complete);
        }
    }

    /// Lets in who was stopped because a record was refused before, but refuses at once, and
    /// counts, what is not smaller than `least` bytes while the buffer is full: the cheap way to
    /// lose a record.
    #[inline(always)]
    pub(super) fn admit(entered: Entered<'_>, least: u64) -> Option<Entered<'_>> {
        if entered.target().ring.refuse_if_full(least) {
            return None;
        }
        entered.watch(false);
        Some(entered)
    }

    /// Reserves in every case, and does to the packets before and around the record what the
    /// reservation asks for.
    #[inline(never)]
    fn reserve_any(
        &self,
        label: &Label,
        short: u64,
        extended: u64,
        payload: u64,
    ) -> Option<Reserved<'_, Kernel>> {
        let stamp = || {
            let last = self.last_time.load();
            let time = self.clock.now().max(last);
            let header = if label.is_short(time.wrapping_sub(last)) {
                short
            } else {
                extended
            };
            Stamp {
                time,
                len: header.wrapping_add(payload),
            }
        };
        // A refusal is counted by the ring.
        let switched = self.ring.reserve(stamp).ok()?;
        if let Some(closed) = switched.closed {
            self.close(closed);
        }
        if let Some(opened) = switched.opened {
            packet::open(&self.memory, &opened, self.uuid, self.cpu);
            if self.ring.commit_header(opened) {
                self.packet_ready();
            }
        }
        if let Some(filled) = switched.filled {
            self.close(filled);
        }
        Some(switched.record)
    }

    #[cold]
    #[inline(never)]
    fn deliver(entered: Entered<'_>, complete: Complete<'_, Kernel>) {
        let buffer = entered.target();
        buffer.ring.deliver(complete);
        buffer.packet_ready();
    }

    fn close(&self, closed: Closed<'_, Kernel>) {
        packet::close(&self.memory, &closed);
        self.bytes.add(packet::size(closed.content));
        if self.ring.commit_padding(closed) {
            self.packet_ready();
        }
    }

    /// A reader opens the stream: from now on it is woken at each packet. Returns false if the
    /// stream is open already. May sleep.
    pub(super) fn open(&self) -> bool {
        if !self.opened.compare_exchange(0, 1) {
            return false;
        }
        // R4: sets `opened` before it looks for packets; pairs with W4. A CPU that is offline
        // (ENXIO) stays so meanwhile: it stored all its packets before it went, and sees `opened`
        // when it comes back.
        let _cpus = NoHotplug::new();
        let _ = cpu::full_barrier_on(self.cpu);
        true
    }

    /// A packet is finished: counts it and has the reader woken.
    fn packet_ready(&self) {
        self.packets.increment();
        // W4: `commit_seq` was stored before `opened` is loaded. Nothing here makes the CPU keep
        // that order (store buffering): the reader that sets `opened` does, by an interrupt (R4).
        // The queue's lock may be held by what this interrupts: an interrupt of its own does it.
        if self.wakes && self.opened.load() != 0 {
            self.wake.queue();
        }
    }

    fn now(&self) -> u64 {
        self.clock.now().max(self.last_time.load())
    }

    /// Closes the packet being written. On the buffer's CPU, or in its place while it is offline;
    /// preemption disabled; any context, NMI included.
    pub(super) fn flush(&self) {
        if let Some(closed) = self.ring.switch(|| self.now()) {
            // For the records of contexts below: see `TraceClock`.
            self.last_time.store(closed.time);
            self.close(closed);
        }
    }

    /// The trace is over: nobody writes any more. Lets readers see the end.
    pub(super) fn finish(&self) {
        let reader = self.reader.lock();
        self.report_losses();
        drop(reader);
        // After everything else; pairs with `is_finished`.
        self.finished.store_release(1);
        self.waiters.wake_all();
    }

    /// Tells losses that no packet has told, in an empty packet, if there is room for one.
    /// Nobody writes any more; the reader's lock is held, so that only one does this.
    pub(super) fn report_losses(&self) {
        if let Some((opened, closed)) = self.ring.report_losses(|| self.now()) {
            packet::open(&self.memory, &opened, self.uuid, self.cpu);
            let header = self.ring.commit_header(opened);
            self.close(closed);
            debug_assert!(!header);
        }
    }

    /// Each switch period, in an interrupt on the buffer's CPU.
    pub(super) fn switch_tick(&self) {
        // A flight recorder that nobody reads keeps its packets full.
        if self.opened.load() != 0 {
            self.flush();
        }
    }

    /// Each read period, in an interrupt on the buffer's CPU (Algorithm 8).
    pub(super) fn read_tick(&self) {
        if self.opened.load() != 0 && self.ring.is_readable() {
            self.wake.queue();
        }
    }
}
