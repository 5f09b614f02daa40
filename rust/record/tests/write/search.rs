// SPDX-License-Identifier: GPL-2.0

//! Records that are interrupted by records, a flush, a reader and a deputy, at every access to a word.
//!
//! A thread records. One event happens before one of its accesses. A second event happens before a
//! later access of the thread or of the first event. The search tries all places. Then it reads the
//! whole trace and checks the guarantees for a reader of traces, which hold in every order.
//!
//! The search of the ring (rust/ring/tests/ring/nested.rs) goes deeper and checks the value of each
//! word. This search checks the additions of the write side: gate, clock, headers, counters,
//! announcements.

use super::platform::{
    at_level, comes, nothing_comes, preemption_is_disabled, set_lag, set_stopped, set_tick,
    set_time,
};
use super::{field, Packet, Trace, CPU, UUID};
use rtrace_abi::header::Layout;
use rtrace_abi::packet::{PacketHeader, MAGIC};
use rtrace_record::clock::TraceClock;
use rtrace_record::format::{CompactMonotonic, CompactTsc};
use rtrace_record::gate::Level::{self, Interrupt, Nmi, Softirq, Thread};
use rtrace_record::header::RecordLabel;
use rtrace_record::memory::{tail_alone, Space, Tail};
use rtrace_ring::consume::Reader;
use rtrace_ring::lost::Lost;
use rtrace_ring::Mode;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// An event.
#[derive(Clone, Copy, Debug)]
enum Coming {
    /// A record of this many bytes.
    Record(Level, usize),
    /// A context closes the open packet.
    Flush(Level),
    /// A reader, on another CPU, reads all packets.
    Read,
    /// Another CPU closes the open packet if no context is inside.
    Deputy,
}

/// The parameters of a search.
#[derive(Clone, Copy, Debug)]
struct Setup {
    mode: Mode,
    /// Uses the clock that may go back, instead of the time stamp counter.
    monotonic: bool,
    before: Before,
    /// Stops the trace before its records, so that each packet ends at its last record.
    is_stopped: bool,
}

/// State of the buffer when the thread records.
#[derive(Clone, Copy, Debug)]
enum Before {
    /// No packet is open.
    Empty,
    /// The open packet has room for a small record only.
    AlmostFullPacket,
    /// The last packet of the buffer has room for a small record only.
    AlmostFullBuffer,
}

/// A record's payload: its number, then bytes derived from it.
struct Body {
    number: u32,
    len: usize,
}

impl Body {
    /// Size of the event header.
    const HEADER: usize = 4;

    fn bytes(&self) -> Vec<u8> {
        let fill = self.number.wrapping_mul(0x0101_0101).to_le_bytes();
        [self.number, self.len as u32]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .chain(fill.into_iter().cycle())
            .take(self.len)
            .collect()
    }

    /// Reads the body at the beginning of `bytes`, which must be complete.
    fn read(bytes: &[u8]) -> Self {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let body = Self {
            number: word(0),
            len: word(4) as usize,
        };
        assert_eq!(bytes[..body.len], body.bytes(), "a record is torn");
        body
    }
}

impl Tail for Body {
    fn len(&self) -> usize {
        self.len
    }
    fn write(&self, mut space: Space<'_>) {
        space.put_bytes(&self.bytes());
    }
}

// Sizes of records, with their headers: one that still fits, one that does not, and one that fills
// a packet.
const SMALL: usize = 12;
const MEDIUM: usize = 64;
const LARGE: usize = 172;

struct Run {
    monotonic: bool,
    is_stopped: bool,
    trace: Trace,
    reader: RefCell<Reader>,
    packets: RefCell<Vec<Packet>>,
    fired: Cell<u32>,
}

impl Run {
    fn new(setup: Setup) -> Rc<Self> {
        let Setup {
            mode,
            monotonic,
            before,
            is_stopped,
        } = setup;
        set_time(1000);
        set_tick(1);
        set_lag(100);
        let clock = match monotonic {
            false => TraceClock::tsc(),
            true => TraceClock::monotonic(),
        };
        let trace = Trace::new(mode, clock);
        let reader = RefCell::new(trace.buffer.ring().reader());
        let run = Rc::new(Self {
            monotonic,
            is_stopped,
            trace,
            reader,
            packets: RefCell::default(),
            fired: Cell::new(0),
        });
        let full: &[usize] = match before {
            Before::Empty => &[],
            Before::AlmostFullPacket => &[MEDIUM, MEDIUM, 32],
            Before::AlmostFullBuffer => &[LARGE, MEDIUM, MEDIUM, 32],
        };
        full.iter().for_each(|&size| run.fire(size));
        run
    }

    /// Fires a record of `size` bytes, in the running context.
    fn fire(&self, size: usize) {
        let body = Body {
            number: self.fired.replace(self.fired.get() + 1),
            len: size - Body::HEADER,
        };
        let label = RecordLabel::in_layout(1, Layout::Compact);
        let payload = || tail_alone(&body);
        match self.monotonic {
            false => self.trace.fire::<CompactTsc, _>(&label, payload),
            true => self.trace.fire::<CompactMonotonic, _>(&label, payload),
        };
    }

    fn read(&self) {
        // The reader runs on another CPU, so its read is one step here.
        let packets = self.trace.read(&mut self.reader.borrow_mut());
        self.packets.borrow_mut().extend(packets);
    }

    fn act(&self) {
        let deputy = self.trace.gates.deputy(0).expect("a gate");
        // As for `read`. Contexts of the CPU come between its accesses.
        deputy.act(|| self.trace.buffer.flush());
    }

    /// Makes `coming` happen after `after` accesses.
    fn comes(self: &Rc<Self>, coming: Coming, after: u64) {
        let run = self.clone();
        match coming {
            Coming::Record(level, size) => comes(Some(level), after, move || run.fire(size)),
            Coming::Flush(level) => comes(Some(level), after, move || run.trace.buffer.flush()),
            Coming::Read => comes(None, after, move || run.read()),
            Coming::Deputy => comes(None, after, move || run.act()),
        }
    }

    /// Ends the trace, and checks all that a reader can see of it.
    fn check(self: &Rc<Self>) {
        assert!(!preemption_is_disabled());
        let buffer = &self.trace.buffer;
        if self.is_stopped {
            set_stopped(0);
        } else {
            // Each level that may interrupt can still record.
            for level in [Softirq, Interrupt, Nmi(0)] {
                self.comes(Coming::Record(level, SMALL), 3);
            }
            self.fire(SMALL);
            assert_eq!(nothing_comes(), 0);
        }
        buffer.flush();
        self.read();
        buffer.report_losses();
        self.read();
        set_stopped(u64::MAX);
        let (ring, lost) = (buffer.ring(), buffer.ring().lost());
        let packets = self.packets.borrow();
        let fired = u64::from(self.fired.get());
        assert_eq!(ring.recorded() + lost.discarded(), fired);
        assert_eq!(lost.get(Lost::Nested), 0, "an interruption was refused");
        let mut numbers = Vec::new();
        let (mut time, mut sequence, mut discarded, mut bytes) = (0, 0, 0, 0);
        for packet in packets.iter() {
            assert_eq!(field!(packet, u32, magic), MAGIC);
            assert_eq!(packet.header[4..20], UUID);
            assert_eq!(field!(packet, u32, cpu_id), CPU);
            let number = field!(packet, u64, packet_seq_num);
            assert!(number >= sequence, "packets out of order");
            sequence = number + 1;
            let told = field!(packet, u64, events_discarded);
            assert!(told >= discarded, "losses are taken back");
            discarded = told;
            bytes += field!(packet, u64, packet_size) / 8;
            let begin = field!(packet, u64, timestamp_begin);
            assert!(begin >= time, "times go back between packets");
            time = begin;
            let mut content = &packet.content[..];
            while !content.is_empty() {
                let (header, rest) = content.split_at(Body::HEADER);
                let header = u32::from_le_bytes(header.try_into().expect("4 bytes"));
                assert_eq!(header & 31, 1, "no event");
                let at = u64::from(header >> 5);
                assert!(at >= time, "times go back in a packet");
                time = at;
                let body = Body::read(rest);
                numbers.push(body.number);
                content = &rest[body.len..];
            }
            let end = field!(packet, u64, timestamp_end);
            assert!(end >= time, "a record is later than the end of its packet");
            time = end;
        }
        assert_eq!(discarded, lost.discarded(), "unreported losses");
        assert_eq!(numbers.len() as u64 + ring.overwritten(), ring.recorded());
        numbers.sort_unstable();
        let read = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), read, "a record twice");
        let (delivered, delivered_bytes) = buffer.delivered();
        assert_eq!(delivered, self.trace.announced.0.get());
        assert_eq!(delivered, sequence, "the number of finished packets");
        // All packets have the same size.
        assert_eq!(delivered_bytes, delivered * 256);
        assert_eq!(bytes, packets.len() as u64 * 256);
    }
}

const COMINGS: [Coming; 9] = [
    Coming::Record(Interrupt, SMALL),
    Coming::Record(Softirq, MEDIUM),
    Coming::Record(Interrupt, LARGE),
    Coming::Record(Nmi(0), SMALL),
    Coming::Record(Nmi(0), LARGE),
    Coming::Flush(Interrupt),
    Coming::Flush(Nmi(0)),
    Coming::Read,
    Coming::Deputy,
];

/// Searches all places for these events, in this order. Returns the number of executions.
fn search(setup: Setup, size: usize, coming: &[Coming]) -> u64 {
    let mut runs = 0;
    let mut after = vec![0; coming.len()];
    loop {
        let run = Run::new(setup);
        for (&coming, &after) in coming.iter().zip(&after) {
            run.comes(coming, after);
        }
        at_level(Thread, || run.fire(size));
        let left = nothing_comes();
        run.check();
        runs += 1;
        // The last event that happened moves to a later access; those after it begin anew.
        let came = coming.len() - left;
        if came == 0 {
            return runs;
        }
        after[came..].fill(0);
        after[came - 1] += 1;
    }
}

/// Searches all single events and all pairs of events.
fn search_all(mode: Mode, monotonic: bool, is_stopped: bool) {
    let mut runs = 0;
    for before in [
        Before::Empty,
        Before::AlmostFullPacket,
        Before::AlmostFullBuffer,
    ] {
        let setup = Setup {
            mode,
            monotonic,
            before,
            is_stopped,
        };
        for size in [SMALL, MEDIUM] {
            for first in COMINGS {
                runs += search(setup, size, &[first]);
                for second in COMINGS {
                    // There is only one reader, and one deputy.
                    let is_twice = matches!(
                        (first, second),
                        (Coming::Read, Coming::Read) | (Coming::Deputy, Coming::Deputy)
                    );
                    if !is_twice {
                        runs += search(setup, size, &[first, second]);
                    }
                }
            }
        }
    }
    // For the next test in this thread.
    set_tick(0);
    set_lag(0);
    println!("{runs} executions");
}

#[test]
fn discard() {
    search_all(Mode::Discard, false, false);
}

#[test]
fn discard_by_a_clock_that_steps_back() {
    search_all(Mode::Discard, true, false);
}

#[test]
fn overwrite() {
    search_all(Mode::Overwrite, false, false);
}

#[test]
fn overwrite_by_a_clock_that_steps_back() {
    search_all(Mode::Overwrite, true, false);
}

#[test]
fn stopped() {
    search_all(Mode::Discard, false, true);
}

#[test]
fn stopped_by_a_clock_that_steps_back() {
    search_all(Mode::Overwrite, true, true);
}
