// SPDX-License-Identifier: GPL-2.0

//! Records in two parts, between which another module writes the payload.

use super::platform::{at_level, preemption_is_disabled, set_time};
use super::{compact, field, Buffer, Packet, Trace};
use rtrace_abi::header::Layout;
use rtrace_abi::packet::PacketHeader;
use rtrace_record::clock::{AnyClock, TraceClock};
use rtrace_record::format::{CompactTsc, Format, LargeTsc};
use rtrace_record::gate::Level;
use rtrace_record::header::{Compact, EventHeader, RecordLabel};
use rtrace_ring::lost::Lost;
use rtrace_ring::Mode;

impl Trace {
    /// Records like a probe of another module. Returns whether the event was recorded.
    fn lay_down<F: Format>(
        &self,
        label: &RecordLabel,
        payload: u32,
        interrupt: impl FnOnce(),
    ) -> bool {
        let entered = match self.gates.enter() {
            Ok(entered) => match Buffer::begin_open::<F>(entered, label, F::Header::SHORT + 4) {
                Ok((begun, to)) => {
                    assert!(preemption_is_disabled());
                    interrupt();
                    to.put(payload).put_tail(&());
                    begun.end();
                    return true;
                }
                Err(entered) => Some(entered),
            },
            Err(stopped) => Buffer::admit(stopped.pass().ok().expect("open"), F::Header::SHORT + 4),
        };
        let begun = entered.and_then(|entered| Buffer::begin_any::<F>(entered, label, 4));
        let Some((begun, to)) = begun else {
            return false;
        };
        assert!(preemption_is_disabled());
        interrupt();
        to.put(payload).put_tail(&());
        begun.end();
        true
    }

    fn lost(&self, reason: Lost) -> u64 {
        self.buffer.ring().lost().get(reason)
    }
}

fn bytes(packets: &[Packet]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let both = |packet: &Packet| (packet.header.clone(), packet.content.clone());
    packets.iter().map(both).collect()
}

/// Records the same events at once in one trace, and in two parts in the other.
fn same<F: Format>(layout: Layout) {
    let (once, parts) = (
        Trace::new(Mode::Overwrite, TraceClock::tsc()),
        Trace::new(Mode::Overwrite, TraceClock::tsc()),
    );
    let mut time = 1;
    for number in 0..200u32 {
        // Ids and time gaps that fit the short header, and others that do not.
        let label =
            RecordLabel::in_layout(if number % 7 == 0 { 70_000 } else { number % 31 }, layout);
        time += if number % 11 == 0 { 1 << 33 } else { 3 };
        set_time(time);
        once.record::<F>(&label, number);
        assert!(parts.lay_down::<F>(&label, number, || {}));
        assert!(!preemption_is_disabled());
    }
    once.buffer.flush();
    parts.buffer.flush();
    let packets = parts.packets();
    assert!(!packets.is_empty());
    assert_eq!(bytes(&once.packets()), bytes(&packets));
    assert_eq!(once.buffer.delivered(), parts.buffer.delivered());
    assert_eq!(once.announced.0.get(), parts.announced.0.get());
}

#[test]
fn a_record_in_two_parts_is_the_same() {
    same::<CompactTsc>(Layout::Compact);
    same::<LargeTsc>(Layout::Large);
    same::<(Compact, AnyClock)>(Layout::Compact);
}

#[test]
fn an_interrupt_between_the_parts_records_behind() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let label = RecordLabel::in_layout(1, Layout::Compact);
    set_time(10);
    // The first record opens the packet; the second finds it open.
    for number in [0, 10] {
        assert!(trace.lay_down::<CompactTsc>(&label, number, || {
            at_level(Level::Interrupt, || {
                assert!(trace.lay_down::<CompactTsc>(&label, number + 1, || {
                    at_level(Level::Nmi(0), || {
                        assert!(trace.lay_down::<CompactTsc>(&label, number + 2, || {}));
                    });
                }));
            });
        }));
    }
    trace.buffer.flush();
    let records = [0, 1, 2, 10, 11, 12].map(|number| compact(1, 10, number));
    assert_eq!(trace.packets()[0].content, records.concat());
    assert_eq!(trace.lost(Lost::Nested), 0);
}

#[test]
fn an_event_that_laying_down_fires_is_refused() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let label = RecordLabel::in_layout(1, Layout::Compact);
    set_time(10);
    for number in [0, 10] {
        assert!(trace.lay_down::<CompactTsc>(&label, number, || {
            assert!(!trace.lay_down::<CompactTsc>(&label, number + 1, || {}));
            assert!(preemption_is_disabled());
        }));
        assert!(!preemption_is_disabled());
    }
    assert_eq!(trace.lost(Lost::Nested), 2);
    // No context counts as inside any more.
    assert!(trace.lay_down::<CompactTsc>(&label, 20, || {}));
    trace.buffer.flush();
    let records = [0, 10, 20].map(|number| compact(1, 10, number));
    assert_eq!(trace.packets()[0].content, records.concat());
}

#[test]
fn where_there_is_no_room_nothing_is_laid_down() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let label = RecordLabel::in_layout(1, Layout::Compact);
    set_time(5);
    let mut number = 0;
    while trace.lay_down::<CompactTsc>(&label, number, || {}) {
        number += 1;
    }
    assert_eq!(trace.lost(Lost::Full), 1);
    // The gate is watched now: it stops the context before anything else is checked.
    assert!(trace.gates.enter().is_err());
    assert!(!trace.lay_down::<CompactTsc>(&label, number, || unreachable!()));
    assert_eq!(trace.lost(Lost::Full), 2);
    assert!(!preemption_is_disabled());
    let packets = trace.packets();
    assert!(trace.lay_down::<CompactTsc>(&label, number, || {}));
    trace.buffer.flush();
    let last = trace.packets();
    assert_eq!(field!(last[0], u64, events_discarded), 2);
    let all = packets
        .iter()
        .chain(&last)
        .flat_map(|packet| &packet.content);
    let all: Vec<u8> = all.copied().collect();
    let records: Vec<u8> = (0..=number)
        .flat_map(|number| compact(1, 5, number))
        .collect();
    assert_eq!(all, records);
}

#[test]
fn what_never_fits_is_counted_as_too_large() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let label = RecordLabel::in_layout(1, Layout::Compact);
    let entered = trace.gates.enter().ok().expect("open");
    assert!(Buffer::begin_any::<CompactTsc>(entered, &label, 256).is_none());
    assert_eq!(trace.lost(Lost::TooLarge), 1);
    assert!(!preemption_is_disabled());
}
