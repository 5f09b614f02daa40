// SPDX-License-Identifier: GPL-2.0

//! Nested writers, and a reader at any moment: all executions with a few interruptions.
//!
//! Between any two accesses of a writer there may be an interrupt that fires records or closes the
//! packet, or a step of the reader on its CPU. Between any two accesses of the reader there may be
//! steps of the writer.

use super::model::explore::{explore, Scenario, Step};
use super::model::{long, origins, Config};
use super::ring::Mode;
use super::say::say;
use std::time::Instant;
use Step::{Drain, Fill, Get, Put, Record, Snapshot, Switch, Unget, Wrap};

const SCENARIOS: [Scenario; 6] = [
    // From the beginning: open, fill, open again, close.
    Scenario {
        name: "begin",
        before: &[],
        steps: &[Record(2), Fill, Record(3), Switch],
    },
    // A packet is open: a record that does not fit closes it, and fills one of its own.
    Scenario {
        name: "open",
        before: &[Record(3)],
        steps: &[Record(2), Fill, Fill],
    },
    // The buffer is full.
    Scenario {
        name: "full",
        before: &[Wrap],
        steps: &[Record(2), Record(3), Get, Record(4)],
    },
    // The buffer is full, and its first packet held.
    Scenario {
        name: "full and held",
        before: &[Wrap, Get],
        steps: &[Record(2), Put, Fill, Switch],
    },
    // The reader, while the writer records.
    Scenario {
        name: "reader",
        before: &[Fill, Fill, Record(1)],
        steps: &[Get, Put, Get, Unget, Drain],
    },
    // As above, where the writer soon overtakes the reader.
    Scenario {
        name: "reader, soon lapped",
        before: &[Wrap, Drain, Fill, Get],
        steps: &[Unget, Get, Put, Record(1)],
    },
];

/// Snapshots of a flight recorder.
const SNAPSHOTS: [Scenario; 6] = [
    // The snapshot takes the packet being written, too.
    Scenario {
        name: "snapshot",
        before: &[Wrap, Record(3)],
        steps: &[Snapshot, Snapshot, Get, Put, Drain],
    },
    // The snapshot's reader is closed.
    Scenario {
        name: "snapshot put back",
        before: &[Wrap, Record(3)],
        steps: &[Snapshot, Snapshot, Unget, Drain],
    },
    // The snapshot's reader is closed after it has read a packet.
    Scenario {
        name: "snapshot half read",
        before: &[Wrap, Record(3)],
        steps: &[Snapshot, Put, Unget, Drain],
    },
    // Two snapshots, one after the other: the memory is the first bank again.
    Scenario {
        name: "snapshots",
        before: &[Wrap, Record(3), Snapshot, Drain, Wrap],
        steps: &[Snapshot, Drain, Record(1)],
    },
    // A snapshot interrupts a writer that has reserved in a slot without a packet.
    Scenario {
        name: "drained",
        before: &[Wrap, Drain],
        steps: &[Fill, Snapshot, Drain],
    },
    // A snapshot interrupts the writer.
    Scenario {
        name: "writer and snapshot",
        before: &[Wrap, Record(3)],
        steps: &[Record(2), Fill, Fill, Snapshot, Drain],
    },
];

/// Runs one scenario, with words so small that they wrap.
#[cfg(fault)]
pub fn one(name: &str, mode: Mode, depth: u32) {
    let mut all = SCENARIOS.iter().chain(&SNAPSHOTS);
    let scenario = all.find(|scenario| scenario.name == name);
    for origin in origins(8, 16).into_iter().take(2) {
        let config = Config {
            size: 8,
            count: 2,
            header: 2,
            mode,
            snapshots: scenario.is_some_and(Scenario::has_snapshot),
            origin,
        };
        explore::<8>(config, scenario.expect("a scenario of that name"), depth);
    }
}

/// Runs all scenarios, in both modes, from position 0 and from just below the wrap.
fn search<const BITS: u32>(size: u64, count: u64, depth: u32) {
    for mode in [Mode::Discard, Mode::Overwrite] {
        for origin in origins(BITS, size * count).into_iter().take(2) {
            from::<BITS>(&SCENARIOS, size, count, mode, origin, depth);
        }
    }
}

fn from<const BITS: u32>(
    scenarios: &[Scenario],
    size: u64,
    count: u64,
    mode: Mode,
    origin: u64,
    depth: u32,
) {
    let begin = Instant::now();
    let config = Config {
        size,
        count,
        header: 2,
        mode,
        snapshots: scenarios.iter().any(Scenario::has_snapshot),
        origin,
    };
    let executions: u64 = scenarios
        .iter()
        .map(|scenario| explore::<BITS>(config, scenario, depth))
        .sum();
    say(&format!(
        "nested: {mode:?}, {BITS} bits from {origin:#x}, {count} sub-buffers, {depth} interruptions: \
         {executions} executions, {:.1} s",
        begin.elapsed().as_secs_f32()
    ));
}

#[test]
pub fn two_sub_buffers_8_bits() {
    search::<8>(8, 2, 2);
}

#[test]
pub fn two_sub_buffers_16_bits() {
    search::<16>(8, 2, if long() { 2 } else { 1 });
}

#[test]
pub fn two_sub_buffers_32_bits() {
    search::<32>(8, 2, if long() { 2 } else { 1 });
}

#[test]
pub fn two_sub_buffers_64_bits() {
    search::<64>(8, 2, 2);
}

#[test]
pub fn four_sub_buffers_8_bits() {
    search::<8>(8, 4, if long() { 2 } else { 1 });
}

#[test]
pub fn four_sub_buffers_16_bits() {
    search::<16>(8, 4, if long() { 2 } else { 1 });
}

#[test]
pub fn four_sub_buffers_64_bits() {
    search::<64>(8, 4, 2);
}

/// Runs scenarios with three interruptions, from just below the wrap. Takes a quarter of an hour.
fn deep(scenarios: &[Scenario], mode: Mode) {
    let wrap = origins(16, 16)[1];
    from::<16>(scenarios, 8, 2, mode, wrap, if long() { 3 } else { 1 });
}

#[test]
pub fn deep_discard() {
    deep(&SCENARIOS, Mode::Discard);
}

/// The scenarios that begin with a full buffer, or have a reader. Without either, the two modes
/// differ only after an interruption has filled the buffer.
#[test]
pub fn deep_overwrite() {
    deep(&SCENARIOS[2..], Mode::Overwrite);
}

/// Runs the snapshots, in the one mode that has them, from position 0 and from just below the wrap.
fn snapshots<const BITS: u32>(count: u64, depth: u32) {
    for origin in origins(BITS, 8 * count).into_iter().take(2) {
        from::<BITS>(&SNAPSHOTS, 8, count, Mode::Overwrite, origin, depth);
    }
}

#[test]
pub fn snapshots_of_two_sub_buffers() {
    snapshots::<8>(2, 2);
    snapshots::<64>(2, if long() { 2 } else { 1 });
}

#[test]
pub fn snapshots_of_four_sub_buffers() {
    snapshots::<8>(4, if long() { 2 } else { 1 });
}
