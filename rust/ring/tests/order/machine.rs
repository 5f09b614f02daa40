// SPDX-License-Identifier: GPL-2.0

//! A ring with a writer, a reader, and memory whose races are detected. Each suite defines the
//! ring's words and the memory.

use super::cell::UnsafeCell;
use super::log::Log;
use super::outside::{is_on, Outside};
use super::platform::{Cpus, Policy};
use super::ring::consume::{Reader, TakenPacket};
use super::ring::exchange::{Bank, Taken};
use super::ring::geometry::Geometry;
use super::ring::lost::Lost;
use super::ring::reserve::{Opened, Stamp};
use super::ring::slot::Slot;
use super::ring::switch::Closed;
use super::ring::{Mode, Ring};
use super::slots::IndexedSlots;
use std::collections::VecDeque;

const SIZE: u64 = 4;
const COUNT: u64 = 2;
/// Bytes of the writers' sub-buffers.
pub const BUFFER: u64 = SIZE * COUNT;
/// Bytes of all sub-buffers of the reader and the writer.
const BANK: u64 = BUFFER + SIZE;
/// Size of a packet header: one byte for the packet's number, one for the size of its content.
const HEADER: u64 = 2;

/// Parameters of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub mode: Mode,
    pub policy: Policy,
    /// Initial value of the positions.
    pub origin: u64,
}

/// A step of the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// A record of this many bytes.
    Record(u64),
    /// A record that fills a packet alone.
    Fill,
    /// Closes the open packet, like the timer.
    Switch,
}

/// A step of the reader.
// Not every suite uses each step.
#[allow(dead_code)]
#[derive(Clone, Copy, Debug)]
pub enum Read {
    /// Takes a packet, if there is one.
    Get,
    /// Puts or ungets the held packet, if there is one.
    Put,
    Unget,
    /// Requests a flush. The writer's CPU runs it, as an interrupt, unless the fault
    /// `SwitchElsewhere` is on.
    Flush,
    /// Takes all packets at once, on the writer's CPU. Later steps put one of them, or unget all.
    Snapshot,
}

/// A byte of the buffer. The ring must ensure that no two CPUs access it at once.
struct Byte(UnsafeCell<u64>);

// SAFETY: only the ring separates the threads, and the tests check that it does:
// - loom, and Miri with threads of std, report two concurrent accesses to a byte;
// - shuttle runs one thread at a time.
unsafe impl Sync for Byte {}

/// The ring, the memory of its payload, and the log of fired records.
pub struct Machine {
    pub ring: Ring<Cpus>,
    config: Config,
    memory: Vec<Byte>,
    log: Log,
}

/// The reader, and the packets that it has seen.
pub struct Consumer {
    pub reader: Reader,
    /// The held packet, and the times of its records.
    held: Option<(TakenPacket, Vec<u64>)>,
    /// The unread packets of a snapshot with the times of their records, from the oldest to the
    /// newest.
    taken: VecDeque<(Taken, Vec<u64>)>,
    /// Number of the last packet that was put, and the time of its last record.
    last: Option<(u64, Option<u64>)>,
    /// Number of records in packets that were put.
    pub seen: u64,
    /// Number of packets that were got.
    pub got: usize,
}

impl Machine {
    pub fn new(config: Config) -> Self {
        let geometry = Geometry::new(SIZE, COUNT).expect("valid sizes");
        let slots: Vec<_> = (0..COUNT)
            .map(|index| Slot::new(&geometry, index, config.origin))
            .collect();
        Self {
            ring: Ring::new(
                geometry,
                config.mode,
                HEADER,
                config.origin,
                0,
                IndexedSlots::new(slots),
                Cpus::new(config.policy),
            )
            .expect("a valid ring"),
            config,
            // Two banks.
            memory: (0..2 * BANK).map(|_| Byte(UnsafeCell::new(0))).collect(),
            log: Log::default(),
        }
    }

    fn write_byte(&self, at: u64, value: u64) {
        self.memory[at as usize].0.with_mut(|byte| {
            // SAFETY: no other thread accesses the byte, see `Byte`; loom has checked that.
            unsafe { *byte = value }
        });
    }

    fn read_byte(&self, at: u64) -> u64 {
        self.memory[at as usize].0.with(|byte| {
            // SAFETY: as in `write_byte`.
            unsafe { *byte }
        })
    }

    // The writer.

    /// Runs a step of the writer's CPU, in any context.
    pub fn write(&self, step: Write) {
        match step {
            Write::Record(len) => self.record(len),
            Write::Fill => self.record(SIZE - HEADER),
            Write::Switch => self.switch(),
        }
    }

    fn record(&self, len: u64) {
        let id = self.log.fire(len);
        let stamp = || Stamp {
            time: self.log.now(),
            len,
        };
        let record = match self.ring.reserve_open(len, || Some(stamp().time)) {
            Some(record) => record,
            None if self.ring.refuse_if_full(len) => {
                self.log.lose();
                return;
            }
            None => match self.ring.reserve(stamp) {
                Ok(switched) => {
                    if let Some(closed) = switched.closed {
                        self.finish(closed);
                    }
                    if let Some(opened) = switched.opened {
                        self.open(opened);
                    }
                    if let Some(filled) = switched.filled {
                        self.write_byte(filled.memory + 1, filled.content);
                    }
                    switched.record
                }
                Err(reason) => {
                    assert!(
                        matches!(reason, Lost::Full | Lost::Wrapped),
                        "lost for another reason"
                    );
                    self.log.lose();
                    return;
                }
            },
        };
        for at in 0..len {
            self.write_byte(record.memory + at, id);
        }
        self.log.wrote(id, len, record.time);
        if let Some(complete) = self.ring.commit(record) {
            self.ring.deliver(complete);
        }
    }

    fn open(&self, opened: Opened<'_, Cpus>) {
        self.write_byte(opened.memory, opened.sequence);
        let _finished = self.ring.commit_header(opened);
    }

    fn finish(&self, closed: Closed<'_, Cpus>) {
        self.write_byte(closed.memory + 1, closed.content);
        let _finished = self.ring.commit_padding(closed);
    }

    fn switch(&self) {
        if let Some(closed) = self.ring.switch(|| self.log.now()) {
            self.finish(closed);
        }
    }

    // The reader.

    /// Makes a reader that has seen no packet; there is one at a time.
    pub fn consumer(&self) -> Consumer {
        Consumer {
            reader: self.ring.reader(),
            held: None,
            taken: VecDeque::new(),
            last: None,
            seen: 0,
            got: 0,
        }
    }

    /// Runs a step of the reader, and checks what it sees.
    pub fn read(&self, consumer: &mut Consumer, step: Read) {
        match step {
            Read::Get => {
                self.get(consumer);
            }
            Read::Put => self.put(consumer),
            Read::Unget => {
                self.check_held(consumer);
                let taken = std::mem::take(&mut consumer.taken);
                for (taken, _) in taken {
                    self.restore(&mut consumer.reader, taken);
                }
                consumer.held = None;
                self.ring.unget(&mut consumer.reader);
            }
            Read::Snapshot => panic!("a suite with interrupts takes it apart"),
            Read::Flush => {
                if is_on(Outside::SwitchElsewhere) {
                    self.switch();
                }
            }
        }
    }

    fn get(&self, consumer: &mut Consumer) -> bool {
        self.ring.platform().first_try();
        let Ok(packet) = self.ring.get(&mut consumer.reader) else {
            return false;
        };
        let times = self.check(consumer, &packet);
        consumer.held = Some((packet, times));
        consumer.got += 1;
        true
    }

    /// Checks the next packet. Returns the times of its records.
    fn check(&self, consumer: &Consumer, packet: &TakenPacket) -> Vec<u64> {
        let (sequence, times) = self.contents(packet);
        assert_eq!(
            sequence,
            self.ring
                .geometry()
                .sequence(self.config.origin, packet.position),
            "the packet's number"
        );
        assert_eq!(times.len() as u64, packet.records, "the packet's records");
        if let Some((number, time)) = consumer.last {
            assert!(number < sequence, "packets are not in order");
            assert!(
                time < times.first().copied() || times.is_empty(),
                "times go back between packets"
            );
            assert!(
                self.config.mode == Mode::Overwrite || number + 1 == sequence,
                "a packet is missing"
            );
        }
        assert!(times.is_sorted(), "times go back in a packet");
        times
    }

    // Only a suite with interrupts takes snapshots.

    /// Adds memory for a snapshot.
    #[allow(dead_code)]
    pub fn begin_snapshot(&self, consumer: &mut Consumer) {
        let base = match consumer.reader.bank() {
            Bank::First => BANK,
            Bank::Second => 0,
        };
        self.ring.add_bank(&mut consumer.reader, base);
    }

    /// Takes the packets that can be taken, on the writer's CPU. Returns whether the exchange is
    /// complete.
    #[allow(dead_code)]
    pub fn exchange(&self, reader: &mut Reader, taken: &mut Vec<Taken>) -> bool {
        if self.ring.writes_old_bank(reader) {
            self.switch();
        }
        let vacated = self.ring.exchange(reader, |packet| taken.push(packet));
        vacated.is_some()
    }

    /// Gives the taken packets to the reader, which checks them.
    #[allow(dead_code)]
    pub fn end_snapshot(&self, consumer: &mut Consumer, mut taken: Vec<Taken>) {
        taken.sort_by_key(|taken| self.ring.sequence(&taken.packet()));
        let (late, taken) = taken.into_iter().partition::<Vec<_>, _>(Taken::is_late);
        for late in late {
            self.restore(&mut consumer.reader, late);
        }
        consumer.got += taken.len();
        for taken in taken {
            let times = self.check(consumer, &taken.packet());
            consumer.taken.push_back((taken, times));
        }
    }

    fn restore(&self, reader: &mut Reader, taken: Taken) {
        if let Some(room) = self.ring.room(reader) {
            for at in 0..SIZE {
                self.write_byte(room + at, self.read_byte(taken.packet().memory + at));
            }
        }
        self.ring.restore(reader, taken);
    }

    /// Returns the number of a packet, and the times of its records.
    fn contents(&self, packet: &TakenPacket) -> (u64, Vec<u64>) {
        let content = self.read_byte(packet.memory + 1);
        let mut times = Vec::new();
        let mut offset = HEADER;
        while offset < content {
            let id = self.read_byte(packet.memory + offset);
            let (len, time) = self.log.get(id);
            times.push(time.expect("an incomplete record is visible"));
            for at in offset..offset + len {
                assert_eq!(self.read_byte(packet.memory + at), id, "a record is torn");
            }
            offset += len;
        }
        assert_eq!(offset, content, "records end where the packet does");
        (self.read_byte(packet.memory), times)
    }

    /// Checks that no context has written the packets that the reader holds.
    fn check_held(&self, consumer: &Consumer) {
        if let Some((packet, times)) = &consumer.held {
            assert_eq!(self.contents(packet).1, *times, "a held packet changed");
        }
        for (taken, times) in &consumer.taken {
            let packet = taken.packet();
            assert_eq!(self.contents(&packet).1, *times, "a held packet changed");
        }
    }

    fn put(&self, consumer: &mut Consumer) {
        self.check_held(consumer);
        let packet = if let Some((taken, times)) = consumer.taken.pop_front() {
            self.ring.release(&taken);
            Some((taken.packet(), times))
        } else if let Some((packet, times)) = consumer.held.take() {
            assert_eq!(self.ring.put(&mut consumer.reader), Some(packet));
            Some((packet, times))
        } else {
            None
        };
        if let Some((packet, times)) = packet {
            consumer.seen += times.len() as u64;
            let number = self
                .ring
                .geometry()
                .sequence(self.config.origin, packet.position);
            consumer.last = Some((number, times.last().copied()));
        }
    }

    // The end.

    fn drain(&self, consumer: &mut Consumer) {
        while !consumer.taken.is_empty() {
            self.put(consumer);
        }
        self.put(consumer);
        while self.get(consumer) {
            self.put(consumer);
        }
    }

    /// Checks the end of a run: every record is accounted for, and the ring still works.
    pub fn check_end(&self, consumer: &mut Consumer) {
        self.drain(consumer);
        self.switch();
        self.drain(consumer);
        let (fired, lost) = (self.log.fired(), self.log.lost());
        assert_eq!(self.ring.lost().discarded(), lost, "losses");
        assert_eq!(self.ring.recorded(), fired - lost, "records");
        assert_eq!(
            consumer.seen + self.ring.overwritten(),
            fired - lost,
            "each record is read or overwritten"
        );
        let seen = consumer.seen;
        for step in [Write::Record(1), Write::Switch] {
            self.write(step);
        }
        self.drain(consumer);
        assert_eq!(consumer.seen, seen + 1, "the ring works again");
    }
}
