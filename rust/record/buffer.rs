// SPDX-License-Identifier: GPL-2.0

//! The buffer of one CPU, as its writers use it: a ring, its memory, and the wake-up of its
//! readers.

use super::abi::packet::PacketHeader;
use super::clock::{ClockSource, TraceClock};
use super::format::Format;
use super::gate::{self, Exclusive, Guarded};
use super::header::{EventHeader, RecordLabel};
use super::memory::{self, Memory, PacketMemory, Pages, RecordWriter, Tail};
use super::packet::{self, Identity};
use super::platform::{Wakeup, WritePlatform};
use super::ring::commit::Complete;
use super::ring::consume::{Reader, TakenPacket};
use super::ring::exchange::{Bank, Taken, Vacated};
use super::ring::geometry::Geometry;
use super::ring::lost::Lost;
use super::ring::platform::Local;
use super::ring::reserve::{Pending, Reserved, Stamp};
use super::ring::slot::Slot;
use super::ring::switch::Closed;
use super::ring::{Mode, Ring};

/// A context inside the gate of a CPU's buffer, which can record.
pub type Entry<'a, P> = gate::Entry<'a, P, Buffer<P>>;

/// A context that the gate of a CPU's buffer has stopped. It may still pass, and then record.
pub type Stopped<'a, P> = gate::Stopped<'a, P, Buffer<P>>;

/// Size and kind of a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Policy for a full buffer.
    pub mode: Mode,
    /// Bytes in a sub-buffer, a power of two.
    pub subbuf_size: usize,
    /// Number of sub-buffers, a power of two.
    pub subbuf_count: usize,
    /// First position; rounded down to a lap.
    pub origin: u64,
}

/// Why a buffer cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMade {
    /// No buffer can have this [`Shape`].
    Shape,
    /// Out of memory.
    Memory,
}

/// One CPU's buffer, as its writers see it.
#[repr(C)]
pub struct Buffer<P: WritePlatform> {
    /// First field, so that instructions access the ring's first word without an offset.
    ring: Ring<P>,
    memory: Memory<P::Pages>,
    /// Time of the last record. If records nest, it may be the time of a slightly earlier record.
    last_time: P::Local,
    /// Latest time of a flush, or of a record that [`reserve_any`](Self::reserve_any) reserved. (It reserves every
    /// nested record.) When no record is being written, the time of the last record is the later one of this time
    /// and `last_time`.
    last_any: P::Local,
    clock: TraceClock<P>,
    identity: Identity,
    packets: P::Local,
    bytes: P::Local,
    wakeup: P::Wakeup,
}

impl<P: WritePlatform> Guarded for Buffer<P> {
    fn count_busy(&self) {
        self.ring.lost().count(Lost::Busy);
    }
}

impl<P: WritePlatform> Buffer<P> {
    /// Makes a buffer, with memory near its CPU. May sleep.
    pub fn new(
        shape: Shape,
        identity: Identity,
        clock: TraceClock<P>,
        mut platform: P,
        wakeup: P::Wakeup,
    ) -> Result<Self, NotMade> {
        let Shape {
            mode,
            subbuf_size,
            subbuf_count,
            origin,
        } = shape;
        let geometry =
            Geometry::new(subbuf_size as u64, subbuf_count as u64).ok_or(NotMade::Shape)?;
        let origin = origin & !geometry.buffer_size().wrapping_sub(1);
        let slots = platform
            .slots(subbuf_count, |index| Slot::new(&geometry, index, origin))
            .ok_or(NotMade::Memory)?;
        // One more sub-buffer, for the reader.
        let bytes = subbuf_size
            .checked_mul(subbuf_count + 1)
            .ok_or(NotMade::Shape)?;
        let pages = platform.pages(bytes, identity.cpu);
        let pages = pages.ok_or(NotMade::Memory)?;
        let ring = Ring::new(
            geometry,
            mode,
            PacketHeader::SIZE as u64,
            origin,
            memory::address(&pages),
            slots,
            platform,
        )
        .ok_or(NotMade::Shape)?;
        Ok(Self {
            ring,
            memory: Memory::new(pages),
            last_time: P::Local::new(0),
            last_any: P::Local::new(0),
            clock,
            identity,
            packets: P::Local::new(0),
            bytes: P::Local::new(0),
            wakeup,
        })
    }

    /// The memory of a packet that the ring gave to the reader.
    pub fn packet(&self, reader: &Reader, packet: &TakenPacket) -> Option<PacketMemory<P::Pages>> {
        self.sub_buffer(reader, packet.memory)
    }

    fn sub_buffer(&self, reader: &Reader, memory: u64) -> Option<PacketMemory<P::Pages>> {
        let (bank, at) = self.ring.place(memory);
        Some(PacketMemory::new(self.memory.pages(reader, bank)?, at))
    }

    /// The bank that the writer uses, with its pages.
    pub fn pages(&self, reader: &Reader) -> Option<(Bank, P::Pages)> {
        let bank = reader.bank();
        Some((bank, self.memory.pages(reader, bank)?))
    }

    /// The ring.
    pub fn ring(&self) -> &Ring<P> {
        &self.ring
    }

    /// Number of finished packets, and the size in bytes that readers move out: each packet rounded up to pages.
    pub fn delivered(&self) -> (u64, u64) {
        (self.packets.load(), self.bytes.load())
    }

    /// Records an event in the common case: `entered` is the outermost entry, and the record fits
    /// into the open packet. `payload` returns the number of bytes after the header, and a function
    /// that writes them. Any context, NMI included.
    ///
    /// `Err` means that nothing was done. The caller then calls [`record_any`](Self::record_any),
    /// which handles every case. That must be the caller's last call, so that the compiler keeps no value
    /// across it.
    #[inline(always)]
    pub fn record_open<'a, F: Format, W: FnOnce(RecordWriter<'a>)>(
        entered: Entry<'a, P>,
        label: &RecordLabel,
        payload: impl FnOnce() -> (u64, W),
    ) -> Result<(), Entry<'a, P>> {
        Self::record_open_guarded::<F, _>(
            entered,
            label,
            #[inline(always)]
            || {
                let (len, write) = payload();
                (
                    len,
                    #[inline(always)]
                    |to: RecordWriter<'a>, _: &P::NoPreempt| write(to),
                )
            },
            || None,
        )
    }

    /// As [`record_open`](Self::record_open); the function that writes gets the guard of the entry.
    /// `again` may return the number of payload bytes once more, after the write. Then the compiler need not keep
    /// the number in a register during the write.
    #[inline(always)]
    pub fn record_open_guarded<'a, F: Format, W: FnOnce(RecordWriter<'a>, &P::NoPreempt)>(
        entered: Entry<'a, P>,
        label: &RecordLabel,
        payload: impl FnOnce() -> (u64, W),
        again: impl FnOnce() -> Option<u64>,
    ) -> Result<(), Entry<'a, P>> {
        let reserved = Self::reserve_open::<F, _>(
            &entered,
            label,
            #[inline(always)]
            || {
                let (payload, write) = payload();
                (F::Header::SHORT.wrapping_add(payload), write)
            },
        );
        let Some((mut record, to, write)) = reserved else {
            return Err(entered);
        };
        write(to, entered.guard());
        if let Some(payload) = again() {
            record.len = F::Header::SHORT.wrapping_add(payload);
        }
        if let Some(complete) = entered.target().ring.commit(record) {
            Self::deliver_and_leave(complete, entered);
        }
        Ok(())
    }

    /// Reserves a record in the open packet, and writes its header. `size` returns the number of
    /// bytes with the header, and a value for the caller.
    #[inline(always)]
    fn reserve_open<'a, F: Format, W>(
        entered: &Entry<'a, P>,
        label: &RecordLabel,
        size: impl FnOnce() -> (u64, W),
    ) -> Option<(Reserved<'a, P>, RecordWriter<'a>, W)> {
        let read = F::Clock::read(&entered.target().clock);
        // `target` is called again, so that only `entered` is kept in a register while the clock is read.
        let buffer = entered.target();
        let time = F::Clock::settle(&buffer.clock, read);
        let (len, write) = size();
        let record = buffer.ring.reserve_open(len, || {
            // A context that nested after the clock was read has stored a later time. Then the
            // unsigned difference is huge, and the caller takes the slow path, `record_any`.
            let since_last = time.wrapping_sub(buffer.last_time.load());
            label.is_short(since_last).then_some(time)
        })?;
        buffer.last_time.store(record.time);
        let to = buffer.memory.record(record.memory);
        let to = F::Header::write_short(to, label.id, record.time);
        Some((record, to, write))
    }

    /// Records an event in every case. The record may interrupt another one or be interrupted, may
    /// open, close or fill a packet, and may need the extended header. If there is no room, the record
    /// is refused and counted. The rest of the contract is that of [`record_open`](Self::record_open).
    #[inline(always)]
    pub fn record_any<'a, F: Format, W: FnOnce(RecordWriter<'a>)>(
        entered: Entry<'a, P>,
        label: &RecordLabel,
        payload: impl FnOnce() -> (u64, W),
    ) {
        let reserved = Self::reserve_exclusive::<F, _>(entered, label, payload);
        let Some((inside, record, to, write)) = reserved else {
            return;
        };
        write(to);
        let buffer = inside.target();
        if let Some(complete) = buffer.ring.commit(record) {
            buffer.deliver(complete);
        }
    }

    /// Records a payload with a time that the caller gives, in a buffer whose clock shows
    /// [given](TraceClock::given) times. If the time is before that of the last record, the record gets that time. If
    /// there is no room, the record is refused and counted.
    ///
    /// No gate excludes other writers. The caller excludes them: it is the buffer's one writer, and its preemption is
    /// disabled.
    pub fn record_given<H: EventHeader>(
        &self,
        label: &RecordLabel,
        time: u64,
        payload: &impl Tail,
    ) {
        self.clock.give(time);
        let len = payload.len() as u64;
        if self.ring.refuse_if_full(H::SHORT.wrapping_add(len)) {
            return;
        }
        let Some(record) = self.reserve_any(label, H::SHORT, H::EXTENDED, len) else {
            return;
        };
        self.last_time.store(record.time);
        let to = self.memory.record(record.memory);
        let to = if record.len.wrapping_sub(len) == H::SHORT {
            H::write_short(to, label.id, record.time)
        } else {
            H::write_extended(to, label.id, record.time)
        };
        to.put_tail(payload);
        if let Some(complete) = self.ring.commit(record) {
            self.deliver(complete);
        }
    }

    /// As [`reserve_open`](Self::reserve_open), in every case. `payload` returns the number of bytes
    /// after the header. [`None`]: the record was refused and counted.
    #[inline(always)]
    #[expect(clippy::type_complexity)] // Only for the two callers.
    fn reserve_exclusive<'a, F: Format, W>(
        entered: Entry<'a, P>,
        label: &RecordLabel,
        payload: impl FnOnce() -> (u64, W),
    ) -> Option<(Exclusive<'a, P, Self>, Reserved<'a, P>, RecordWriter<'a>, W)> {
        let buffer = entered.target();
        let inside = match entered.exclusive() {
            Ok(inside) => inside,
            Err(_entered) => {
                buffer.ring.lost().count(Lost::Nested);
                return None;
            }
        };
        let (payload, write) = payload();
        // A record that does not fit with the short header does not fit with the extended one.
        if buffer
            .ring
            .refuse_if_full(F::Header::SHORT.wrapping_add(payload))
        {
            inside.watch(true);
            return None;
        }
        let Some(record) =
            buffer.reserve_any(label, F::Header::SHORT, F::Header::EXTENDED, payload)
        else {
            // The buffer probably stays full for a while: see `admit`.
            inside.watch(true);
            return None;
        };
        buffer.last_time.store(record.time);
        let to = buffer.memory.record(record.memory);
        let to = if record.len.wrapping_sub(payload) == F::Header::SHORT {
            F::Header::write_short(to, label.id, record.time)
        } else {
            F::Header::write_extended(to, label.id, record.time)
        };
        Some((inside, record, to, write))
    }

    /// Like [`record_open`](Self::record_open), in two parts: this part reserves a record of `len`
    /// bytes and writes its header. The caller then writes the payload and ends the record.
    #[inline(always)]
    pub fn begin_open<'a, F: Format>(
        entered: Entry<'a, P>,
        label: &RecordLabel,
        len: u64,
    ) -> Result<(BegunOpen<'a, P>, RecordWriter<'a>), Entry<'a, P>> {
        let Some((record, to, ())) = Self::reserve_open::<F, _>(&entered, label, || (len, ()))
        else {
            return Err(entered);
        };
        let pending = record.pending();
        Ok((BegunOpen { entered, pending }, to))
    }

    /// Like [`record_any`](Self::record_any), in two parts. [`None`]: the record was refused and
    /// counted.
    pub fn begin_any<'a, F: Format>(
        entered: Entry<'a, P>,
        label: &RecordLabel,
        payload: u64,
    ) -> Option<(Begun<'a, P>, RecordWriter<'a>)> {
        let reserved = Self::reserve_exclusive::<F, _>(entered, label, || (payload, ()));
        let (inside, record, to, ()) = reserved?;
        let pending = record.pending();
        Some((Begun { inside, pending }, to))
    }

    /// Admits a context that the gate stopped because it was watched after an earlier refusal. If
    /// the buffer is still full, refuses and counts the record, of at least `least` bytes, at little
    /// cost, and returns [`None`]. Admits a possible recursion, which
    /// [`record_any`](Self::record_any) refuses.
    #[inline(always)]
    pub fn admit(entered: Entry<'_, P>, least: u64) -> Option<Entry<'_, P>> {
        if entered.is_nested() {
            return Some(entered);
        }
        let buffer = entered.target();
        if buffer.ring.refuse_if_full(least) {
            return None;
        }
        // If the clock has missed ticks, the gate stays watched, because only `record_any` adds the ticks.
        entered.watch(buffer.missed() != 0);
        Some(entered)
    }

    /// Reserves in every case. Closes and opens packets as the reservation requires.
    #[inline(never)]
    fn reserve_any(
        &self,
        label: &RecordLabel,
        short: u64,
        extended: u64,
        payload: u64,
    ) -> Option<Reserved<'_, P>> {
        let stamp = || {
            let last = self.last_time.load();
            let time = self.clock_time().max(last);
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
        // The ring counts a refusal.
        let switched = self.ring.reserve(stamp).ok()?;
        self.raise_last_any(switched.record.time);
        if let Some(closed) = switched.closed {
            self.close(closed);
        }
        if let Some(opened) = switched.opened {
            packet::open::<P>(&self.memory, &opened, self.identity);
            if self.ring.commit_header(opened) {
                self.packet_ready();
            }
        }
        if let Some(filled) = switched.filled {
            self.close(filled);
        }
        Some(switched.record)
    }

    /// Delivers a packet, then leaves the gate. Takes `entered`, so that the caller need not keep it.
    // `complete` is the first parameter, which saves a register move in `BegunOpen::end`.
    #[cold]
    #[inline(never)]
    fn deliver_and_leave(complete: Complete<'_, P>, entered: Entry<'_, P>) {
        entered.target().deliver(complete);
    }

    #[cold]
    #[inline(never)]
    fn deliver(&self, complete: Complete<'_, P>) {
        self.ring.deliver(complete);
        self.packet_ready();
    }

    fn close(&self, closed: Closed<'_, P>) {
        packet::close::<P>(&self.memory, &closed);
        self.bytes.add(packet::size::<P>(closed.content));
        if self.ring.commit_padding(closed) {
            self.packet_ready();
        }
    }

    /// Counts a finished packet, and wakes its readers.
    fn packet_ready(&self) {
        self.packets.increment();
        self.wakeup.packet_ready(|| self.ring.unread());
    }

    /// Raises `last_any` to `time`. A nested context may raise it higher at any time.
    fn raise_last_any(&self, time: u64) {
        loop {
            let last = self.last_any.load();
            if last >= time || self.last_any.compare_exchange(last, time) {
                return;
            }
        }
    }

    /// Returns the end of a packet that is closed before it is full: the time, but at most that of the trace's
    /// stop, and at least that of the last record.
    fn end(&self) -> u64 {
        let last = self.last_time.load().max(self.last_any.load());
        let stopped = self.ring.platform().stopped();
        self.clock_time().min(stopped).max(last)
    }

    /// Returns the trace's time: a reading of its clock, plus the ticks that the clock has missed.
    fn clock_time(&self) -> u64 {
        loop {
            let missed = self.missed();
            let time = self.clock.now().wrapping_add(missed);
            // Reads both again if the number of missed ticks changed while the clock was read. The number never
            // decreases, so equal values mean that it did not change.
            if self.missed() == missed {
                return time;
            }
        }
    }

    fn missed(&self) -> u64 {
        self.ring.platform().missed()
    }

    /// Closes the packet being written. Preemption is disabled; any context, NMI included. Runs on
    /// the buffer's CPU. In three cases it may run on another CPU: the caller keeps the buffer's CPU
    /// offline, it is the [`Deputy`](super::gate::Deputy) of the gate, or no record can be written any more.
    pub fn flush(&self) {
        if let Some(closed) = self.ring.switch(|| self.end()) {
            // No later record may have an earlier time, not even one of an interrupted context (see `TraceClock`).
            self.last_time.store(closed.time);
            self.raise_last_any(closed.time);
            self.close(closed);
        }
    }

    /// Adds pages to the bank that the writer does not use, which must have none. There must be as many
    /// pages as the used bank has. They must be all zero, or come from [`free`](Self::free) of this
    /// buffer. Returns the bank that got the pages, or [`None`] if it has pages or the number differs.
    /// Afterwards [`exchange`](Self::exchange) moves the writer to the new pages.
    pub fn add_bank(&self, reader: &mut Reader, pages: P::Pages) -> Option<Bank> {
        let (bank, used) = self.pages(reader)?;
        let other = bank.other();
        if pages.size() != used.size() || self.memory.pages(reader, other).is_some() {
            return None;
        }
        let base = memory::address(&pages);
        self.memory.add(reader, other, pages);
        self.ring.add_bank(reader, base);
        Some(other)
    }

    /// Closes the packet being written if it is in the old bank, and takes all packets of that bank
    /// ([`Ring::exchange`] has the contract). A vacated bank can be [freed](Self::free).
    pub fn exchange(&self, reader: &mut Reader, taken: impl FnMut(Taken)) -> Option<Vacated> {
        if self.ring.writes_old_bank(reader) {
            self.flush();
        }
        self.ring.exchange(reader, taken)
    }

    /// Puts back a packet that an exchange took. Copies it to the sub-buffer that the reader has in
    /// the new bank. Returns whether the packet can be read again, like [`Ring::restore`].
    pub fn restore(&self, reader: &mut Reader, taken: Taken) -> bool {
        let room = self.ring.room(reader);
        let to = room.and_then(|room| self.sub_buffer(reader, room));
        let from = self.packet(reader, &taken.packet());
        if let (Some(from), Some(to)) = (from, to) {
            from.copy_to(&to, self.ring.geometry().size() as usize);
        }
        self.ring.restore(reader, taken)
    }

    /// Removes and returns the pages of a bank. A packet of the bank that is still held owns a clone
    /// of them.
    pub fn free(&self, reader: &mut Reader, vacated: Vacated) -> Option<P::Pages> {
        self.memory.free(reader, vacated)
    }

    /// Reports losses that no packet has reported, in an empty packet, if there is room for one.
    /// Only after the last record was written; one caller at a time.
    pub fn report_losses(&self) {
        if let Some((opened, closed)) = self.ring.report_losses(|| self.end()) {
            packet::open::<P>(&self.memory, &opened, self.identity);
            let header = self.ring.commit_header(opened);
            self.close(closed);
            debug_assert!(!header);
        }
    }
}

/// A record that the outermost entry is writing, in the open packet. The caller must
/// [end](Self::end) it.
// Has only the fields that `end` needs, because each field takes a word on the caller's stack.
#[must_use]
pub struct BegunOpen<'a, P: WritePlatform> {
    entered: Entry<'a, P>,
    pending: Pending<'a, P>,
}

impl<P: WritePlatform> BegunOpen<'_, P> {
    /// Commits the record, which is completely written.
    #[inline(always)]
    pub fn end(self) {
        let Self { entered, pending } = self;
        if let Some(complete) = entered.target().ring.commit_pending(pending) {
            Buffer::deliver_and_leave(complete, entered);
        }
    }
}

/// A record of any entry that is being written.
#[must_use]
pub struct Begun<'a, P: WritePlatform> {
    inside: Exclusive<'a, P, Buffer<P>>,
    pending: Pending<'a, P>,
}

impl<P: WritePlatform> Begun<'_, P> {
    /// Commits the record, which is completely written.
    pub fn end(self) {
        let buffer = self.inside.target();
        if let Some(complete) = buffer.ring.commit_pending(self.pending) {
            buffer.deliver(complete);
        }
    }
}
