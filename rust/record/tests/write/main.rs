// SPDX-License-Identifier: GPL-2.0

//! Bytes that the write side writes, and the contexts that it admits.

mod begun;
mod leaps;
mod nesting;
mod platform;
mod route;
mod search;
#[path = "../../../ring/tests/common/slots.rs"]
mod slots;
mod tails;

use platform::{
    at_level, interrupt_after_clock, preemption_is_disabled, set_stopped, set_time, Announced,
    OneCpu,
};
use rtrace_abi::header::Layout;
use rtrace_abi::packet::{PacketHeader, MAGIC};
use rtrace_record::buffer::{self, NotMade, Shape};
use rtrace_record::clock::{AnyClock, TraceClock};
use rtrace_record::format::{CompactMonotonic, CompactTsc, Format, LargeTsc};
use rtrace_record::gate::{self, FilledOnce, Level, Stopped};
use rtrace_record::header::{Compact, EventHeader, RecordLabel};
use rtrace_record::memory::{tail_alone, NulTerminated, RecordWriter, Tail};
use rtrace_record::packet::Identity;
use rtrace_ring as ring; // Where slots.rs looks for it.
use rtrace_ring::consume::Reader;
use rtrace_ring::lost::Lost;
use rtrace_ring::Mode;
use std::rc::Rc;

type Buffer = buffer::Buffer<OneCpu>;
type Gates = gate::Gates<OneCpu, Buffer>;

const UUID: [u8; 16] = *b"0123456789abcdef";
const CPU: u32 = 7;

#[derive(Clone)]
struct Trace {
    gates: Rc<Gates>,
    buffer: Rc<Buffer>,
    announced: Announced,
}

/// A packet that was read.
struct Packet {
    header: Vec<u8>,
    content: Vec<u8>,
}

impl Packet {
    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.header[at..at + 8].try_into().unwrap())
    }
    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.header[at..at + 4].try_into().unwrap())
    }
}

macro_rules! field {
    ($packet:expr, $get:ident, $field:ident) => {
        $packet.$get(std::mem::offset_of!(PacketHeader, $field))
    };
}
use field;

impl Trace {
    fn new(mode: Mode, clock: TraceClock<OneCpu>) -> Self {
        let shape = Shape {
            mode,
            subbuf_size: 256,
            subbuf_count: 2,
            origin: 0,
        };
        let identity = Identity {
            cpu: CPU,
            uuid: UUID,
            stream_id: 0,
        };
        let announced = Announced::default();
        let buffer = Buffer::new(shape, identity, clock, OneCpu, announced.clone()).unwrap();
        let buffer = Rc::new(buffer);
        let gates = Gates::new().unwrap();
        gates.cell(0).unwrap().set(buffer.clone());
        gates.open(0);
        Self {
            gates: Rc::new(gates),
            buffer,
            announced,
        }
    }

    /// Records like a probe. Returns whether the common case was enough.
    fn record<F: Format>(&self, label: &RecordLabel, payload: u32) -> bool {
        self.record_with::<F>(label, payload, || {})
    }

    /// Like [`record`](Self::record); `interrupt` runs between the header and the payload of the
    /// record.
    fn record_with<F: Format>(
        &self,
        label: &RecordLabel,
        payload: u32,
        interrupt: impl Fn(),
    ) -> bool {
        self.fire::<F, _>(label, || {
            (4, |to: RecordWriter<'_>| {
                assert!(preemption_is_disabled());
                interrupt();
                to.put(payload).put_tail(&());
            })
        })
    }

    /// Records like a probe. Returns whether the common case was enough.
    fn fire<'a, F: Format, W: FnOnce(RecordWriter<'a>)>(
        &'a self,
        label: &RecordLabel,
        payload: impl Fn() -> (u64, W),
    ) -> bool {
        let entered = match self.gates.enter() {
            Ok(entered) => match Buffer::record_open::<F, _>(entered, label, &payload) {
                Ok(()) => return true,
                Err(entered) => Some(entered),
            },
            Err(stopped) => match stopped.pass().or_else(Stopped::pass_fence) {
                Ok(entered) => Buffer::admit(entered, F::Header::SHORT),
                Err(refused) => {
                    assert!(!refused.is_closed(), "closed");
                    None
                }
            },
        };
        if let Some(entered) = entered {
            Buffer::record_any::<F, _>(entered, label, &payload);
        }
        false
    }

    /// Records an event that has only a tail.
    fn record_tail(&self, label: &RecordLabel, tail: &impl Tail) {
        let Ok(entered) = self.gates.enter().or_else(|stopped| stopped.pass()) else {
            panic!("stopped at the gate");
        };
        Buffer::record_any::<CompactTsc, _>(entered, label, || tail_alone(tail));
    }

    /// Returns the finished packets.
    fn packets(&self) -> Vec<Packet> {
        self.read(&mut self.buffer.ring().reader())
    }

    /// Returns the finished packets, to a reader that the caller keeps.
    fn read(&self, reader: &mut Reader) -> Vec<Packet> {
        let mut packets = Vec::new();
        while let Ok(taken) = self.buffer.ring().get(reader) {
            let memory = self.buffer.packet(reader, &taken).unwrap();
            let header = memory.bytes(0, PacketHeader::SIZE).to_vec();
            let mut packet = Packet {
                header,
                content: Vec::new(),
            };
            let used = field!(packet, u64, content_size) / 8;
            packet.content = memory
                .bytes(PacketHeader::SIZE, used as usize - PacketHeader::SIZE)
                .to_vec();
            packets.push(packet);
            self.buffer.ring().put(reader);
        }
        packets
    }
}

/// Returns the bytes of a record with a short compact header.
fn compact(id: u32, time: u64, payload: u32) -> Vec<u8> {
    let header = ((time as u32) << 5) | id;
    [header.to_le_bytes(), payload.to_le_bytes()].concat()
}

/// Returns the bytes of a record with the extended form of the compact header.
fn compact_extended(id: u32, time: u64, payload: u32) -> Vec<u8> {
    let mut bytes = vec![31];
    bytes.extend(id.to_le_bytes());
    bytes.extend(time.to_le_bytes());
    bytes.extend(payload.to_le_bytes());
    bytes
}

#[test]
fn a_packet_is_laid_out_as_the_abi_says() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let label = RecordLabel::in_layout(3, Layout::Compact);
    set_time(100);
    assert!(!trace.record::<CompactTsc>(&label, 0xaaaa_aaaa));
    set_time(150);
    assert!(trace.record::<CompactTsc>(&label, 0xbbbb_bbbb));
    assert!(trace.packets().is_empty());
    assert_eq!(trace.announced.0.get(), 0);
    set_time(200);
    trace.buffer.flush();
    assert_eq!(trace.announced.0.get(), 1);
    assert_eq!(trace.buffer.delivered(), (1, 256));
    let [packet] = &trace.packets()[..] else {
        panic!("not one packet");
    };
    assert_eq!(field!(packet, u32, magic), MAGIC);
    assert_eq!(packet.header[4..20], UUID);
    assert_eq!(field!(packet, u32, stream_id), 0);
    assert_eq!(field!(packet, u64, stream_instance_id), u64::from(CPU));
    assert_eq!(field!(packet, u64, timestamp_begin), 100);
    assert_eq!(field!(packet, u64, timestamp_end), 200);
    assert_eq!(
        field!(packet, u64, content_size),
        8 * (PacketHeader::SIZE as u64 + 16)
    );
    assert_eq!(field!(packet, u64, packet_size), 8 * 256);
    assert_eq!(field!(packet, u64, packet_seq_num), 0);
    assert_eq!(field!(packet, u64, events_discarded), 0);
    assert_eq!(field!(packet, u32, cpu_id), CPU);
    let records = [compact(3, 100, 0xaaaa_aaaa), compact(3, 150, 0xbbbb_bbbb)];
    assert_eq!(packet.content, records.concat());
}

#[test]
fn a_packet_ends_at_the_stop_and_not_before_its_last_record() {
    for (stopped, end) in [(u64::MAX, 300), (200, 200), (120, 150)] {
        let trace = Trace::new(Mode::Discard, TraceClock::tsc());
        let label = RecordLabel::in_layout(1, Layout::Compact);
        for time in [100, 150] {
            set_time(time);
            trace.record::<CompactTsc>(&label, 0);
        }
        set_time(300);
        set_stopped(stopped);
        trace.buffer.flush();
        set_stopped(u64::MAX);
        let [packet] = &trace.packets()[..] else {
            panic!("not one packet");
        };
        assert_eq!(field!(packet, u64, timestamp_end), end);
    }
}

#[test]
fn the_words_of_a_held_packet_can_be_read() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let label = RecordLabel::in_layout(1, Layout::Compact);
    set_time(100);
    trace.record::<CompactTsc>(&label, 0);
    set_time(200);
    trace.buffer.flush();
    let mut reader = trace.buffer.ring().reader();
    let packet = trace.buffer.ring().get(&mut reader).expect("a packet");
    let memory = trace.buffer.packet(&reader, &packet).unwrap();
    let at = std::mem::offset_of!(PacketHeader, timestamp_end);
    assert_eq!(memory.word(at), 200);
}

/// Makes a tail for a record of `len` bytes with a compact header.
fn filler(len: usize) -> impl Tail {
    const TEXT: [u8; 256] = [b'x'; 256];
    NulTerminated(&TEXT[..len - 4 - 1])
}

#[test]
fn a_record_that_fills_its_packet_announces_it() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let label = RecordLabel::in_layout(1, Layout::Compact);
    set_time(1);
    trace.record_tail(&label, &filler(256 - PacketHeader::SIZE));
    assert_eq!(trace.announced.0.get(), 1);
    assert_eq!(trace.buffer.delivered(), (1, 256));
    assert_eq!(trace.packets().len(), 1);
}

#[test]
fn a_record_that_is_committed_last_announces_the_packet() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let label = RecordLabel::in_layout(1, Layout::Compact);
    set_time(1);
    trace.record::<CompactTsc>(&label, 0);
    let common = trace.record_with::<CompactTsc>(&label, 1, || {
        at_level(Level::Interrupt, || {
            trace.record_tail(&label, &filler(256 - PacketHeader::SIZE - 16));
        });
        assert_eq!(trace.announced.0.get(), 0);
    });
    assert!(common);
    assert_eq!(trace.announced.0.get(), 1);
    assert_eq!(trace.packets().len(), 1);
}

#[test]
fn what_the_short_header_cannot_say_has_the_extended_one() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let last_short = RecordLabel::in_layout(30, Layout::Compact);
    let first_long = RecordLabel::in_layout(31, Layout::Compact);
    set_time(1000);
    trace.record::<CompactTsc>(&last_short, 1);
    assert!(!trace.record::<CompactTsc>(&first_long, 2));
    // The longest gap that 27 bits can hold, and one more.
    let near = 1000 + (1 << 27) - 1;
    set_time(near);
    assert!(trace.record::<CompactTsc>(&last_short, 3));
    let far = near + (1 << 27);
    set_time(far);
    assert!(!trace.record::<CompactTsc>(&last_short, 4));
    trace.buffer.flush();
    let records = [
        compact(30, 1000, 1),
        compact_extended(31, 1000, 2),
        compact(30, near, 3),
        compact_extended(30, far, 4),
    ];
    assert_eq!(trace.packets()[0].content, records.concat());
}

#[test]
fn large_headers() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let label = RecordLabel::in_layout(65534, Layout::Large);
    let long = RecordLabel::in_layout(65535, Layout::Large);
    set_time(0x1_2345_6789);
    trace.record::<LargeTsc>(&label, 1);
    trace.record::<LargeTsc>(&label, 2);
    trace.record::<LargeTsc>(&long, 3);
    trace.buffer.flush();
    let mut expected = Vec::new();
    // The first record is far from time 0.
    for (extended, id, payload) in [(true, 65534u32, 1u32), (false, 65534, 2), (true, 65535, 3)] {
        if extended {
            expected.extend(0xffffu16.to_le_bytes());
            expected.extend(id.to_le_bytes());
            expected.extend(0x1_2345_6789u64.to_le_bytes());
        } else {
            expected.extend((id as u16).to_le_bytes());
            expected.extend(0x2345_6789u32.to_le_bytes());
        }
        expected.extend(payload.to_le_bytes());
    }
    assert_eq!(trace.packets()[0].content, expected);
}

#[test]
fn texts_end_with_nul_whatever_their_length() {
    for len in 0..40 {
        let trace = Trace::new(Mode::Discard, TraceClock::tsc());
        let label = RecordLabel::in_layout(1, Layout::Compact);
        let text: Vec<u8> = (b'a'..).take(len).map(|byte| byte % 128).collect();
        set_time(1);
        trace.record_tail(&label, &NulTerminated(&text));
        trace.buffer.flush();
        let content = trace.packets()[0].content.clone();
        assert_eq!(content[4..], [&text[..], &[0]].concat());
    }
}

#[test]
fn an_interrupt_inside_a_record_records_behind_it() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let label = RecordLabel::in_layout(1, Layout::Compact);
    set_time(10);
    trace.record::<CompactTsc>(&label, 0);
    trace.record_with::<CompactTsc>(&label, 1, || {
        set_time(20);
        at_level(Level::Interrupt, || {
            trace.record::<CompactTsc>(&label, 2);
        });
    });
    set_time(30);
    trace.buffer.flush();
    let records = [compact(1, 10, 0), compact(1, 10, 1), compact(1, 20, 2)];
    assert_eq!(trace.packets()[0].content, records.concat());
}

#[test]
fn an_interrupt_after_the_clock_was_read_puts_the_record_behind_its_own() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let label = RecordLabel::in_layout(1, Layout::Compact);
    set_time(10);
    trace.record::<CompactTsc>(&label, 0);
    let nested = trace.clone();
    interrupt_after_clock(move || {
        set_time(20);
        at_level(Level::Interrupt, || {
            nested.record::<CompactTsc>(&label, 1);
        });
    });
    assert!(!trace.record::<CompactTsc>(&label, 2));
    trace.buffer.flush();
    let records = [compact(1, 10, 0), compact(1, 20, 1), compact(1, 20, 2)];
    assert_eq!(trace.packets()[0].content, records.concat());
}

#[test]
fn times_do_not_step_back_where_the_monotonic_clock_does() {
    let trace = Trace::new(Mode::Discard, TraceClock::monotonic());
    let label = RecordLabel::in_layout(1, Layout::Compact);
    for (time, payload) in [(100, 0), (150, 1), (140, 2), (160, 3)] {
        set_time(time);
        assert_eq!(
            trace.record::<CompactMonotonic>(&label, payload),
            payload != 0
        );
    }
    trace.buffer.flush();
    let records = [(100, 0), (150, 1), (150, 2), (160, 3)];
    let records = records.map(|(time, payload)| compact(1, time, payload));
    assert_eq!(trace.packets()[0].content, records.concat());
}

#[test]
fn a_probe_that_does_not_know_the_clock_reads_that_of_the_trace() {
    let label = RecordLabel::in_layout(1, Layout::Compact);
    // The common case handles a step back only of the monotonic clock.
    for (clock, step_back) in [(TraceClock::tsc(), false), (TraceClock::monotonic(), true)] {
        let trace = Trace::new(Mode::Discard, clock);
        for (payload, (time, common)) in
            (0..).zip([(100, false), (150, true), (140, step_back), (160, true)])
        {
            set_time(time);
            assert_eq!(trace.record::<(Compact, AnyClock)>(&label, payload), common);
        }
        trace.buffer.flush();
        let records = [(100, 0), (150, 1), (150, 2), (160, 3)];
        let records = records.map(|(time, payload)| compact(1, time, payload));
        assert_eq!(trace.packets()[0].content, records.concat());
    }
}

#[test]
fn what_does_not_fit_is_counted_and_reported_and_the_gate_is_watched() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let label = RecordLabel::in_layout(1, Layout::Compact);
    set_time(5);
    let mut fired = 0u64;
    let stopped = loop {
        match trace.gates.enter() {
            Ok(entered) => {
                Buffer::record_any::<CompactTsc, _>(entered, &label, || {
                    (4, |to: RecordWriter<'_>| to.put(0u32).put_tail(&()))
                });
                fired += 1;
            }
            Err(stopped) => break stopped,
        }
    };
    let lost = || trace.buffer.ring().lost().get(Lost::Full);
    assert_eq!(lost(), 1);
    assert_eq!(trace.buffer.ring().recorded(), fired - 1);
    // The context may pass, but the buffer is full.
    let entered = stopped.pass().ok().expect("only watched");
    assert!(Buffer::admit(entered, 8).is_none());
    assert_eq!(lost(), 2);
    assert!(!preemption_is_disabled());
    // After a packet was read there is room, and contexts are not stopped any more.
    let read = trace.packets().len() as u64;
    assert_eq!(read, trace.announced.0.get());
    let stopped = trace.gates.enter().err().expect("still watched");
    let entered = stopped.pass().ok().expect("only watched");
    drop(Buffer::admit(entered, 8).expect("there is room"));
    trace.record::<CompactTsc>(&label, 0);
    trace.buffer.flush();
    let packets = trace.packets();
    assert_eq!(field!(packets.last().unwrap(), u64, events_discarded), 2);
}

#[test]
fn losses_that_no_packet_told_come_in_an_empty_one() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let label = RecordLabel::in_layout(1, Layout::Compact);
    set_time(5);
    trace.record::<CompactTsc>(&label, 0);
    trace.buffer.flush();
    trace.buffer.report_losses();
    assert_eq!(trace.packets().len(), 1);
    trace.buffer.ring().lost().count(Lost::Nested);
    trace.buffer.report_losses();
    let [packet] = &trace.packets()[..] else {
        panic!("not one packet");
    };
    assert_eq!(field!(packet, u64, events_discarded), 1);
    assert!(packet.content.is_empty());
}

#[test]
fn a_gate_lets_in_while_it_is_open() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let inside = trace.gates.enter().ok().expect("it is open");
    assert!(preemption_is_disabled());
    trace.gates.close(0);
    let stopped = trace.gates.enter().err().expect("closed");
    assert!(stopped.has_target());
    assert!(stopped.pass().is_err());
    drop(inside);
    assert!(!preemption_is_disabled());
    let stopped = trace.gates.enter().err().expect("closed");
    assert!(stopped.pass().is_err());
    trace.gates.open(0);
    drop(trace.gates.enter().ok().expect("open again"));
}

#[test]
fn a_deputy_acts_only_while_no_context_is_inside() {
    let trace = Trace::new(Mode::Overwrite, TraceClock::tsc());
    let label = RecordLabel::in_layout(1, Layout::Compact);
    let busy = || trace.buffer.ring().lost().get(Lost::Busy);
    let fire = |payload| trace.record::<CompactTsc>(&label, payload);
    assert!(!fire(1) && fire(2));
    let deputy = trace.gates.deputy(0).expect("a gate");
    trace.record_with::<CompactTsc>(&label, 3, || {
        assert!(!deputy.act(|| panic!("a context is inside")));
    });
    assert!(deputy.act(|| trace.buffer.flush()));
    assert_eq!((trace.announced.0.get(), busy()), (1, 0));
    // The fenced gate admits, but not in the common case.
    assert!(!fire(4) && !fire(5));
    assert!(deputy.act(|| {
        let stopped = trace.gates.enter().err().expect("the gate is held");
        assert!(!stopped.is_closed() && stopped.pass_fence().is_err());
        trace.buffer.flush();
    }));
    assert_eq!((trace.announced.0.get(), busy()), (2, 1));
    drop(deputy);
    assert!(!fire(6) && fire(7));
    trace.buffer.flush();
    let packets = trace.packets();
    assert_eq!(field!(packets.last().unwrap(), u64, events_discarded), 1);
}

#[test]
fn a_gate_that_closes_under_its_deputy_stays_closed() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let refused = || {
        let stopped = trace.gates.enter().err().expect("closed");
        stopped.pass().or_else(Stopped::pass_fence).is_err()
    };
    for closed_while_held in [true, false] {
        trace.gates.open(0);
        let deputy = trace.gates.deputy(0).expect("a gate");
        if closed_while_held {
            assert!(deputy.act(|| trace.gates.close(0)));
        } else {
            trace.gates.close(0);
        }
        assert!(refused());
        assert!(deputy.act(|| assert!(refused())));
        drop(deputy);
        assert!(refused());
    }
    // One of a closed gate, too.
    let deputy = trace.gates.deputy(0).expect("a gate");
    assert!(deputy.act(|| assert!(refused())));
    drop(deputy);
    assert!(refused());
    assert_eq!(trace.buffer.ring().lost().discarded(), 0);
}

#[test]
fn what_is_behind_a_gate_is_found_open_or_closed() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    for _ in 0..2 {
        let found = trace
            .gates
            .cell(0)
            .and_then(FilledOnce::get)
            .expect("a buffer");
        assert!(std::ptr::eq(found, &*trace.buffer));
        trace.gates.close(0);
    }
}

#[test]
fn a_gate_with_nothing_behind_it_does_not_open() {
    let gates = Gates::new().unwrap();
    gates.open(0);
    assert!(gates.cell(0).is_some_and(|cell| !cell.is_filled()) && gates.cell(1).is_none());
    let stopped = gates.enter().err().expect("nothing is there");
    assert!(!stopped.has_target());
    assert!(stopped.pass().is_err());
}

#[test]
fn a_buffer_of_no_shape_is_refused() {
    for (subbuf_size, subbuf_count) in [(100, 2), (256, 3), (64, 2)] {
        let shape = Shape {
            mode: Mode::Discard,
            subbuf_size,
            subbuf_count,
            origin: 0,
        };
        let identity = Identity {
            cpu: CPU,
            uuid: UUID,
            stream_id: 0,
        };
        let made = Buffer::new(
            shape,
            identity,
            TraceClock::tsc(),
            OneCpu,
            Announced::default(),
        );
        assert_eq!(made.err(), Some(NotMade::Shape));
    }
}
