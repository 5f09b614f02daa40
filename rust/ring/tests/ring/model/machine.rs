// SPDX-License-Identifier: GPL-2.0

//! A ring with memory, writers and a reader, that checks everything it sees.

use super::super::ring::consume::{Reader, TakenPacket, Unavailable};
use super::super::ring::exchange::{Bank, Taken};
use super::super::ring::geometry::Geometry;
use super::super::ring::lost::Lost;
use super::super::ring::reserve::{Opened, Reserved, Stamp, Switched};
use super::super::ring::slot::Slot;
use super::super::ring::switch::Closed;
use super::super::ring::{Mode, Ring};
use super::super::slots::IndexedSlots;
use super::log::{Fate, Log};
use super::memory::{Byte, Closing, Memory, Opening};
use super::platform::{begin_at, first_exchange, wcnt, Narrow};
use super::point::{at_once, point};
use super::Config;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Contents of a packet, as the reader sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    pub opening: Opening,
    pub closing: Closing,
    pub ids: Vec<u32>,
}

/// The ring with words of `BITS` bits, its memory, one reader, and the state that the checks need.
pub struct Machine<const BITS: u32> {
    pub config: Config,
    pub ring: Ring<Narrow<BITS>>,
    pub log: Log,
    memory: Memory,
    reader: RefCell<Reader>,
    /// Whether a reader's operation is in progress; no other one may begin meanwhile.
    reading: Cell<bool>,
    /// Offset of the reader's spare sub-buffer, which it exchanged for the held packet or will
    /// exchange.
    spare: Cell<u64>,
    /// Packets of a snapshot with their contents at that time, from the oldest to the newest. The
    /// reader holds the first.
    taken: RefCell<VecDeque<(Taken, Rc<Contents>)>>,
    /// Whether slots have memory of both banks.
    is_mixed: Cell<bool>,
    /// The packet that the reader holds, with its contents when it was got.
    held: RefCell<Option<(TakenPacket, Rc<Contents>)>>,
    /// The last packet that was put.
    last: RefCell<Option<Rc<Contents>>>,
    /// Number of nested writers' contexts that are in an operation.
    writing: Cell<u32>,
    /// Number of packets that the ring reported as finished.
    delivered: Cell<u64>,
    /// The time of the last record, or of one shortly before it where records nest.
    last_time: Cell<u64>,
}

impl<const BITS: u32> Machine<BITS> {
    const WORD: u64 = u64::MAX >> (64 - BITS);

    pub fn new(config: Config) -> Self {
        at_once(|| {
            let geometry = Geometry::new(config.size, config.count).expect("valid sizes");
            let slots: Vec<_> = (0..config.count)
                .map(|index| Slot::new(&geometry, index, config.origin))
                .collect();
            let ring = Ring::new(
                geometry,
                config.mode,
                config.header,
                config.origin,
                0,
                IndexedSlots::new(slots),
                Narrow::<BITS>,
            )
            .expect("a valid ring");
            begin_at(config.origin);
            Self {
                config,
                reader: RefCell::new(ring.reader()),
                ring,
                log: Log::default(),
                memory: Memory::new(&config),
                reading: Cell::new(false),
                spare: Cell::new(config.count * config.size),
                taken: RefCell::default(),
                is_mixed: Cell::new(false),
                held: RefCell::new(None),
                last: RefCell::new(None),
                writing: Cell::new(0),
                delivered: Cell::new(0),
                last_time: Cell::new(0),
            }
        })
    }

    /// Size of the record that fills a sub-buffer alone.
    pub fn whole(&self) -> u64 {
        self.config.size - self.config.header
    }

    /// Size of the record that fills the open packet, or else a packet alone.
    pub fn room(&self) -> u64 {
        match self.ring.geometry().offset(wcnt()) {
            0 => self.whole(),
            used => self.config.size - used,
        }
    }

    fn now(&self) -> u64 {
        point();
        let time = self.log.now();
        point();
        time
    }

    // The writer.

    /// Fires a record of `len` bytes, like a probe.
    pub fn record(&self, len: u64) -> Result<(), Lost> {
        self.writer(|| self.fire(len))
    }

    fn writer<T>(&self, work: impl FnOnce() -> T) -> T {
        self.writing.set(self.writing.get() + 1);
        let result = work();
        self.writing.set(self.writing.get() - 1);
        result
    }

    fn fire(&self, len: u64) -> Result<(), Lost> {
        let id = self.log.fire(len);
        let stamp = || Stamp {
            time: self.now(),
            len,
        };
        // As in a probe: read the clock first, and give up if a later time was recorded meanwhile.
        let early = self.now();
        let open = self.ring.reserve_open(len, || {
            point();
            (early > self.last_time.get()).then_some(early)
        });
        let record = match open {
            Some(record) => record,
            None if self.ring.refuse_if_full(len) => {
                self.log.set(id, 0, Fate::Lost);
                return Err(Lost::Full);
            }
            None => match self.ring.reserve(stamp) {
                Ok(switched) => self.switched(switched),
                Err(reason) => {
                    self.log.set(id, 0, Fate::Lost);
                    assert!(
                        reason != Lost::Wrapped || self.writing.get() > 1,
                        "lost as wrapped, but no context was interrupted"
                    );
                    return Err(reason);
                }
            },
        };
        point();
        self.last_time.set(record.time);
        self.write(id, &record);
        let complete = self.ring.commit(record);
        let finished = complete
            .map(|complete| self.ring.deliver(complete))
            .is_some();
        self.count_delivery(finished);
        Ok(())
    }

    fn switched<'a>(&self, switched: Switched<'a, Narrow<BITS>>) -> Reserved<'a, Narrow<BITS>> {
        if let Some(closed) = switched.closed {
            self.finish(closed);
        }
        if let Some(opened) = switched.opened {
            self.open(opened);
        }
        if let Some(filled) = switched.filled {
            assert_eq!(filled.content, self.config.size);
            self.write_closing(&filled);
        }
        switched.record
    }

    fn open(&self, opened: Opened<'_, Narrow<BITS>>) {
        point();
        self.memory.write_opening(
            opened.memory,
            Opening {
                sequence: opened.sequence,
                time: opened.time,
            },
        );
        let finished = self.ring.commit_header(opened);
        self.count_delivery(finished);
    }

    fn write_closing(&self, closed: &Closed<'_, Narrow<BITS>>) {
        point();
        self.memory.write_closing(
            closed.memory,
            Closing {
                content: closed.content,
                time: closed.time,
                discarded: closed.discarded,
            },
        );
    }

    fn finish(&self, closed: Closed<'_, Narrow<BITS>>) {
        self.write_closing(&closed);
        let finished = self.ring.commit_padding(closed);
        self.count_delivery(finished);
    }

    fn write(&self, id: u32, record: &Reserved<'_, Narrow<BITS>>) {
        let len = self.log.get(id).len;
        assert_eq!(record.len, len);
        assert!(record.memory % self.config.size + len <= self.config.size);
        for index in 0..len {
            // In two halves, so that a torn record is visible.
            if index == 0 || index == len / 2 {
                point();
            }
            let index = index as u32;
            self.memory
                .write(record.memory + u64::from(index), Byte { id, index });
        }
        self.log.set(id, record.time, Fate::Written);
    }

    fn count_delivery(&self, finished: bool) {
        self.delivered
            .set(self.delivered.get() + u64::from(finished));
        // At most all the writers' sub-buffers are begun and not delivered.
        let Config { size, origin, .. } = self.config;
        let begun = wcnt().wrapping_sub(origin).wrapping_add(size - 1) / size;
        let ahead = begun.wrapping_sub(self.delivered.get()) & (Self::WORD / size);
        assert!(ahead <= self.config.count, "a packet is delivered twice");
    }

    /// Closes the open packet, like the timer. Returns whether there was one.
    pub fn switch(&self) -> bool {
        self.writer(|| {
            let closed = self.ring.switch(|| self.now());
            let any = closed.is_some();
            if let Some(closed) = closed {
                point();
                self.last_time.set(closed.time);
                self.finish(closed);
            }
            any
        })
    }

    /// Reports the losses, like the end of a session. Returns whether this made a packet.
    pub fn report_losses(&self) -> bool {
        let packet = self.ring.report_losses(|| self.now());
        let any = packet.is_some();
        if let Some((opened, closed)) = packet {
            self.open(opened);
            self.finish(closed);
        }
        any
    }

    // The reader.

    /// Returns whether a reader's operation can begin here.
    pub fn may_read(&self) -> bool {
        !self.reading.get()
    }

    /// Returns whether the reader has a packet.
    pub fn holds(&self) -> bool {
        self.held.borrow().is_some() || !self.taken.borrow().is_empty()
    }

    /// Returns whether a snapshot found slots being written. It must be finished before any other
    /// read.
    pub fn has_unfinished(&self) -> bool {
        self.is_mixed.get()
    }

    /// Returns the result of poll.
    pub fn is_readable(&self) -> bool {
        at_once(|| self.ring.is_readable())
    }

    /// Checks that poll and get agree, in whatever state other contexts are. A poll that says
    /// "readable" where get says "empty" makes a busy loop.
    pub fn check_poll(&self) {
        at_once(|| {
            if !self.holds() {
                let readable = self.ring.is_readable();
                match self.get() {
                    Ok(_) => {
                        assert!(readable, "get gives a packet, poll says that there is none");
                        assert!(self.unget(), "no context ran in between");
                    }
                    Err(Unavailable::Empty) => {
                        assert!(!readable, "poll says that there is a packet, get does not");
                    }
                    Err(Unavailable::Busy) => {}
                }
            }
        });
    }

    /// Gets a packet and checks everything in it.
    pub fn get(&self) -> Result<Rc<Contents>, Unavailable> {
        if let Some((packet, contents)) = &*self.held.borrow() {
            let again = self.ring.get(&mut self.reader.borrow_mut());
            assert_eq!(again, Ok(*packet), "a held packet is given again");
            return Ok(contents.clone());
        }
        if let Some((taken, contents)) = self.taken.borrow().front() {
            self.check(&taken.packet(), contents);
            return Ok(contents.clone());
        }
        assert!(!self.reading.replace(true));
        let packet = self.ring.get(&mut self.reader.borrow_mut());
        self.reading.set(false);
        let packet = packet?;
        self.memory.own(packet.memory);
        self.memory.disown(self.spare.get());
        let contents = Rc::new(self.contents(&packet));
        self.check(&packet, &contents);
        self.held.replace(Some((packet, contents.clone())));
        Ok(contents)
    }

    /// Puts the held packet.
    pub fn put(&self) {
        let taken = self.taken.borrow_mut().pop_front();
        if let Some((taken, contents)) = taken {
            let packet = taken.packet();
            assert_eq!(self.contents(&packet), *contents, "a held packet changed");
            assert!(!self.reading.replace(true));
            self.ring.release(&taken);
            self.reading.set(false);
            self.has_read(contents);
            return;
        }
        let (packet, contents) = self.held.take().expect("a held packet");
        assert_eq!(self.contents(&packet), *contents, "a held packet changed");
        assert!(!self.reading.replace(true));
        let put = self.ring.put(&mut self.reader.borrow_mut());
        self.reading.set(false);
        assert_eq!(put, Some(packet));
        self.spare.set(packet.memory);
        self.has_read(contents);
    }

    fn has_read(&self, contents: Rc<Contents>) {
        for &id in &contents.ids {
            self.log.read(id);
        }
        self.last.replace(Some(contents));
    }

    /// Closes the open packet and exchanges the memory of all slots, as an interrupt on the
    /// writer's CPU. Continues an earlier exchange if that is unfinished. Returns whether all slots
    /// have new memory.
    pub fn snapshot(&self) -> bool {
        assert!(!self.reading.replace(true));
        let mut reader = self.reader.borrow_mut();
        if !self.is_mixed.replace(true) {
            self.add_bank(&mut reader);
        }
        if self.ring.writes_old_bank(&reader) {
            self.switch();
        }
        let vacated = self.ring.exchange(&mut reader, |taken| {
            let packet = taken.packet();
            self.memory.own(packet.memory);
            let contents = Rc::new(self.contents(&packet));
            self.keep(taken, contents);
        });
        let Some(vacated) = vacated else {
            self.reading.set(false);
            return false;
        };
        self.is_mixed.set(false);
        // A later write there is an error.
        let first = self.first(vacated.bank());
        for index in first..=first + self.config.count {
            self.memory.own(index * self.config.size);
        }
        let room = self
            .ring
            .room(&reader)
            .expect("a sub-buffer of the new bank");
        self.memory.own(room);
        self.spare.set(room);
        drop(reader);
        let (late, all) = self
            .taken
            .take()
            .into_iter()
            .partition(|(taken, _)| taken.is_late());
        self.taken.replace(all);
        self.put_back(late);
        self.reading.set(false);
        true
    }

    fn add_bank(&self, reader: &mut Reader) {
        let base = match self.ring.place(self.spare.get()) {
            (Bank::First, _) => (self.config.count + 1) * self.config.size,
            (Bank::Second, _) => 0,
        };
        at_once(|| self.ring.add_bank(reader, base));
        for index in 0..self.config.count {
            self.memory.disown(base + index * self.config.size);
        }
        self.memory.own(base + self.config.count * self.config.size);
        self.spare.set(base + self.config.count * self.config.size);
    }

    fn first(&self, bank: Bank) -> u64 {
        match bank {
            Bank::First => 0,
            Bank::Second => self.config.count + 1,
        }
    }

    /// Inserts a packet in its order among those taken.
    fn keep(&self, taken: Taken, contents: Rc<Contents>) {
        let end = self.ring.geometry().sequence(self.config.origin, wcnt());
        let age = |contents: &Contents| {
            end.wrapping_sub(contents.opening.sequence) & (Self::WORD / self.config.size)
        };
        let mut all = self.taken.borrow_mut();
        let place = all.partition_point(|(_, other)| age(other) > age(&contents));
        all.insert(place, (taken, contents));
    }

    /// Puts back the unread packets of a snapshot, from the oldest to the newest. Returns how many
    /// packets can be read again.
    pub fn restore(&self) -> usize {
        assert!(!self.reading.replace(true));
        let restored = self.put_back(self.taken.take());
        self.reading.set(false);
        restored
    }

    fn put_back(&self, packets: VecDeque<(Taken, Rc<Contents>)>) -> usize {
        let mut restored = 0;
        for (taken, contents) in packets {
            let packet = taken.packet();
            assert_eq!(self.contents(&packet), *contents, "a held packet changed");
            let mut reader = self.reader.borrow_mut();
            let room = self.ring.room(&reader);
            if let Some(room) = room {
                self.memory.copy(packet.memory, room);
            }
            if self.ring.restore(&mut reader, taken) {
                self.memory.disown(room.expect("there is room"));
                let room = self.ring.room(&reader).expect("there is room again");
                self.memory.own(room);
                self.spare.set(room);
                restored += 1;
            }
        }
        restored
    }

    /// Puts the held packet back unread. Returns whether it can be read again.
    pub fn unget(&self) -> bool {
        if !self.taken.borrow().is_empty() {
            return self.restore() > 0;
        }
        let (packet, contents) = self.held.take().expect("a held packet");
        assert_eq!(self.contents(&packet), *contents, "a held packet changed");
        assert!(!self.reading.replace(true));
        let back = first_exchange(|| self.ring.unget(&mut self.reader.borrow_mut()));
        self.reading.set(false);
        if back {
            self.memory.own(self.spare.get());
            self.memory.disown(packet.memory);
        } else {
            self.spare.set(packet.memory);
        }
        back
    }

    /// Returns the contents of the memory of `packet`. Takes no time.
    fn contents(&self, packet: &TakenPacket) -> Contents {
        let closing = self.memory.closing(packet.memory);
        let mut ids = Vec::with_capacity(self.config.size as usize);
        let mut offset = self.config.header;
        while offset < closing.content {
            let id = self.memory.byte(packet.memory + offset).id;
            let record = self.log.get(id);
            assert_eq!(
                record.fate,
                Fate::Written,
                "incomplete record {id} is visible"
            );
            for index in 0..record.len {
                let byte = self.memory.byte(packet.memory + offset + index);
                let index = index as u32;
                assert_eq!(byte, Byte { id, index }, "record {id} is torn");
            }
            offset += record.len;
            ids.push(id);
        }
        assert_eq!(offset, closing.content, "records end where the packet does");
        Contents {
            opening: self.memory.opening(packet.memory),
            closing,
            ids,
        }
    }

    /// Checks the invariants of a packet that was got.
    fn check(&self, packet: &TakenPacket, contents: &Contents) {
        let Contents {
            opening,
            closing,
            ids,
        } = contents;
        let geometry = self.ring.geometry();
        assert_eq!(geometry.offset(packet.position), 0);
        assert_eq!(
            opening.sequence,
            geometry.sequence(self.config.origin, packet.position),
            "the packet is the one at that position"
        );
        assert_eq!(
            ids.len() as u64 & Self::WORD,
            packet.records,
            "a packet has the records that were committed in it"
        );
        // A header that was not completely written in this lap has an older time in it.
        let mut time = opening.time;
        for &id in ids {
            let next = self.log.get(id).time;
            assert!(time <= next, "times go back in a packet");
            time = next + 1;
        }
        assert!(
            opening.time.max(time - 1) <= closing.time,
            "times go back at a packet's end"
        );
        let discarded = at_once(|| self.ring.lost().discarded());
        assert!(
            closing.discarded <= discarded,
            "more losses than there were"
        );

        let ahead = match &*self.last.borrow() {
            Some(last) => {
                assert!(
                    last.closing.time <= opening.time,
                    "times go back between packets"
                );
                assert!(
                    last.closing.discarded <= closing.discarded,
                    "the losses are not cumulative"
                );
                opening.sequence.wrapping_sub(last.opening.sequence)
            }
            None => opening.sequence.wrapping_add(1),
        } & (Self::WORD / self.config.size);
        match self.config.mode {
            Mode::Discard => assert_eq!(ahead, 1, "a packet is missing, or came twice"),
            Mode::Overwrite => assert!(
                ahead != 0 && ahead <= Self::WORD / self.config.size / 2 + 1,
                "packets are not in order"
            ),
        }
    }

    // The end.

    /// Reads all packets.
    pub fn drain(&self) -> Vec<Rc<Contents>> {
        let mut packets = Vec::new();
        loop {
            let readable = self.holds() || self.is_readable();
            match self.get() {
                Ok(contents) => packets.push(contents),
                Err(why) => {
                    assert_eq!(why, Unavailable::Empty, "get is busy, but no writer runs");
                    assert!(!readable, "poll says that there is a packet, get does not");
                    return packets;
                }
            }
            assert!(readable, "get gives a packet, poll says that there is none");
            self.put();
        }
    }

    /// Checks the end of an execution: every record is accounted for, and the ring still works.
    pub fn check_end(&self) {
        at_once(|| {
            if self.is_mixed.get() {
                assert!(self.snapshot(), "no writer runs, but a slot has old memory");
            }
            self.drain();
            self.switch();
            self.drain();
            if self.report_losses() {
                assert_eq!(self.drain().len(), 1, "the losses make a packet");
            }
            assert!(!self.report_losses(), "the losses were reported");
            assert!(!self.switch(), "nothing is open");

            let lost = self.log.count(Fate::Lost);
            let fired = self.log.fired();
            assert_eq!(self.log.count(Fate::Pending), 0);
            assert_eq!(self.ring.lost().discarded(), lost, "losses");
            assert_eq!(self.ring.recorded(), (fired - lost) & Self::WORD, "records");
            assert_eq!(
                self.ring.overwritten(),
                self.log.count(Fate::Written),
                "every unread record is counted as overwritten"
            );
            let last = self.last.borrow().clone();
            let told = last.as_ref().map_or(0, |last| last.closing.discarded);
            assert_eq!(told, lost, "losses that the packets report");
            let made = last.map_or(0, |last| last.opening.sequence.wrapping_add(1));
            assert_eq!(
                self.delivered.get() & (Self::WORD / self.config.size),
                made & (Self::WORD / self.config.size),
                "each packet is delivered once"
            );

            for _ in 0..=self.config.count {
                assert_eq!(self.record(1), Ok(()), "the ring works again");
                assert!(self.switch());
                let packets = self.drain();
                assert_eq!(packets.len(), 1);
                assert_eq!(packets[0].ids.len(), 1);
            }
        });
    }
}
