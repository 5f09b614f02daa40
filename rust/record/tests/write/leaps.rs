// SPDX-License-Identifier: GPL-2.0

//! Clocks that leap: the time stamp counter starts over, or the monotonic clock stands still.

use super::platform::{at_level, comes, nothing_comes, set_missed, set_time};
use super::{field, Packet, Trace};
use rtrace_abi::header::Layout;
use rtrace_abi::packet::PacketHeader;
use rtrace_record::clock::TraceClock;
use rtrace_record::format::{CompactMonotonic, CompactTsc, Format};
use rtrace_record::gate::Level;
use rtrace_record::header::RecordLabel;
use rtrace_ring::Mode;

/// Returns the times of the packets' records, as a reader of the trace sees them, between the two
/// times of each packet. The records have compact headers and 4 bytes of payload.
fn times(packets: &[Packet]) -> Vec<u64> {
    const SHORT: u64 = 1 << 27;
    let (mut times, mut last) = (Vec::new(), 0);
    for packet in packets {
        let begin = field!(packet, u64, timestamp_begin);
        assert!(begin >= last, "a packet begins before the last one's end");
        last = begin;
        let mut rest = &packet.content[..];
        while let Some(head) = rest.get(..4) {
            let head = u32::from_le_bytes(head.try_into().unwrap());
            let size = if head % 32 == 31 {
                last = u64::from_le_bytes(rest[5..13].try_into().unwrap());
                17
            } else {
                last += (u64::from(head >> 5)).wrapping_sub(last) % SHORT;
                8
            };
            times.push(last);
            rest = &rest[size..];
        }
        let end = field!(packet, u64, timestamp_end);
        assert!(end >= last, "a packet ends before its last record");
        last = end;
    }
    assert!(times.is_sorted(), "{times:?}");
    times
}

/// Sets the clock to `time`, with `missed` missed ticks.
fn leap(trace: &Trace, time: u64, missed: u64) {
    set_time(time);
    set_missed(missed);
    trace.gates.watch(0);
}

/// Records each 10 ticks, before and after the clock leaps from `before` to `after`, where `slept`
/// ticks have passed.
fn go_on<F: Format>(clock: TraceClock<super::OneCpu>, before: u64, after: u64, slept: u64) {
    set_missed(0);
    let trace = Trace::new(Mode::Discard, clock);
    let label = RecordLabel::in_layout(3, Layout::Compact);
    let mut expected = Vec::new();
    for time in [before - 20, before - 10, before] {
        set_time(time);
        trace.record::<F>(&label, 0);
        expected.push(time);
    }
    leap(&trace, after, (before + slept).wrapping_sub(after));
    for passed in [0, 10, 20, 30] {
        set_time(after + passed);
        assert!(
            !trace.record::<F>(&label, 0),
            "the common case adds nothing to a reading"
        );
        expected.push(before + slept + passed);
    }
    // Again, in a packet of its own.
    trace.buffer.flush();
    let missed = (before + 2 * slept).wrapping_sub(after);
    leap(&trace, after + 40, missed);
    trace.record::<F>(&label, 0);
    expected.push(before + 2 * slept + 40);
    trace.buffer.flush();
    assert_eq!(times(&trace.packets()), expected);
}

#[test]
fn a_counter_that_starts_over_goes_on_where_it_would_be() {
    // Also where the new readings are close to the last record before the leap.
    for before in [1_000, 1 << 20, 1 << 40] {
        for after in [0, 1, before - 20, before, before + 10, before + 50_000] {
            go_on::<CompactTsc>(TraceClock::tsc(), before, after, 100_000);
            go_on::<CompactTsc>(TraceClock::tsc(), before, after, 1 << 30);
        }
    }
}

#[test]
fn a_clock_that_stood_still_goes_on_after_the_sleep() {
    for slept in [1, 1_000, 1 << 27, 1 << 40] {
        go_on::<CompactMonotonic>(TraceClock::monotonic(), 5_000, 5_000, slept);
    }
}

#[test]
fn a_leap_at_any_moment_lets_no_time_go_back() {
    const BEFORE: u64 = 1 << 30;
    for after in 0..120 {
        set_missed(0);
        let trace = Trace::new(Mode::Discard, TraceClock::tsc());
        let label = RecordLabel::in_layout(3, Layout::Compact);
        set_time(BEFORE);
        trace.record::<CompactTsc>(&label, 0);
        let leaping = trace.clone();
        comes(None, after, move || leap(&leaping, 50, BEFORE + 1_000));
        for _ in 0..3 {
            let nested = trace.clone();
            trace.record_with::<CompactTsc>(&label, 1, || {
                at_level(Level::Interrupt, || {
                    nested.record::<CompactTsc>(&label, 2);
                });
            });
        }
        if nothing_comes() != 0 {
            assert!(after > 20, "three records with so few accesses");
            break;
        }
        set_time(100);
        trace.record::<CompactTsc>(&label, 3);
        trace.buffer.flush();
        let times = times(&trace.packets());
        assert_eq!(times.len(), 8);
        assert_eq!(
            times.last(),
            Some(&(BEFORE + 1_100)),
            "after {after} accesses"
        );
    }
    set_missed(0);
}
