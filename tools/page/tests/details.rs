// SPDX-License-Identifier: GPL-2.0

//! A part of a trace, read alone, has the same slices and events as a pass over the whole trace.

use analysis::choice::Part;
use analysis::{pass, Catalogue};
use base64::prelude::{Engine, BASE64_STANDARD};
use flate2::read::ZlibDecoder;
use page::{Details, Stacks, Timeline};
use rtrace_abi::header::Layout;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use store::Trace;
use synthetic::{PacketBuilder, READ_EXIT, WAKING};

const IDLE: (i32, &str) = (0, "swapper");
const CPUS: u32 = 2;
const PACKETS: u64 = 60;
const ROUNDS: u64 = 40;

/// A lane's kind and owner.
type Lane = (String, u64);
/// Begin, end and number on the page.
type Slice = [u64; 3];
/// Time, event, thread and count.
type Mark = [u64; 4];

/// The stream of threads that wake up, run, read and are interrupted. If it is damaged, a packet has an event without a
/// description, so that the rest of the packet cannot be read.
fn stream(cpu: u32, is_damaged: bool) -> Vec<Vec<u8>> {
    let (mut now, mut out) = (u64::from(cpu), Vec::new());
    for number in 0..PACKETS {
        let mut packet = PacketBuilder::new(Layout::Compact, cpu, number, now);
        for round in 0..ROUNDS {
            let thread = (number * 7 + round * 3) % 5 * u64::from(CPUS) + u64::from(cpu);
            let task = (
                1000 + thread as i32,
                ["make", "cc1", "ld"][thread as usize % 3],
            );
            let mut next = |ticks: u64| {
                now += ticks + round % 3;
                now
            };
            if is_damaged && (number, round) == (PACKETS / 2, ROUNDS / 2) {
                packet = packet.event(30, next(1), &[]);
            }
            packet = packet.wake(WAKING, next(20), task);
            packet = packet.switch(next(30), IDLE, task);
            packet = packet.read(next(10), 0);
            packet = packet.irq(next(40), 24, "disk").irq_exit(next(5), 24);
            packet = packet.syscall_exit(READ_EXIT, next(60), if round % 9 == 0 { -11 } else { 5 });
            packet = packet.switch_from(next(20), task, 1 << (thread % 2), IDLE);
        }
        out.push(packet.close(now, 4096));
    }
    out
}

fn gather(dir: &Path, trace: &Trace, limit: usize) -> (Timeline, u64, u64) {
    let catalogue = Catalogue::new(&trace.metadata);
    let mut timeline = Timeline::bounded(&catalogue, Stacks::default(), limit);
    let answers = pass::read(
        dir,
        trace,
        &catalogue,
        vec![timeline.gather()],
        &Part::default(),
        |_| (),
    )
    .unwrap();
    let extent = answers.extent;
    let length = trace.metadata.clock.nanoseconds(extent.ticks());
    (timeline, extent.begin(), length)
}

/// Returns the lanes and marks of a part.
fn unpack(part: &str) -> (BTreeMap<Lane, Vec<Slice>>, BTreeMap<u64, Vec<Mark>>) {
    let part: Value = serde_json::from_str(part).unwrap();
    let column = |name: &str| {
        let packed = part["columns"][name].as_str().unwrap();
        let packed = BASE64_STANDARD.decode(packed).unwrap();
        let (mut bytes, mut numbers) = (Vec::new(), Vec::new());
        ZlibDecoder::new(&*packed).read_to_end(&mut bytes).unwrap();
        let (mut number, mut shift) = (0, 0);
        for byte in bytes {
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                numbers.push(number);
                (number, shift) = (0, 0);
            }
        }
        numbers.into_iter()
    };
    let list = |name: &str| part[name].as_array().unwrap().clone();
    let names = ["slice-pauses", "slice-lengths", "slice-values"];
    let mut columns = names.map(column);
    let mut lanes = BTreeMap::new();
    for lane in list("lanes") {
        let (mut now, mut slices) = (0, Vec::new());
        for _ in 0..lane["slices"].as_u64().unwrap() {
            let [pause, length, value] = columns.each_mut().map(|column| column.next().unwrap());
            slices.push([now + pause, now + pause + length, value]);
            now += pause + length;
        }
        let kind = lane["kind"].as_str().unwrap().to_owned();
        lanes.insert((kind, lane["of"].as_u64().unwrap()), slices);
    }
    let names = ["mark-pauses", "mark-events", "mark-threads", "mark-counts"];
    let mut columns = names.map(column);
    let mut all = BTreeMap::new();
    for cpu in list("marks") {
        let (mut now, mut marks) = (0, Vec::new());
        for _ in 0..cpu["marks"].as_u64().unwrap() {
            let [pause, event, thread, count] =
                columns.each_mut().map(|column| column.next().unwrap());
            now += pause;
            marks.push([now, event, thread, count]);
        }
        all.insert(cpu["cpu"].as_u64().unwrap(), marks);
    }
    (lanes, all)
}

#[test]
fn a_part_equals_the_whole_there() {
    parts_equal_the_whole(false);
}

#[test]
fn a_part_of_a_damaged_trace_equals_the_whole_there() {
    parts_equal_the_whole(true);
}

fn parts_equal_the_whole(is_damaged: bool) {
    let dir = tempfile::TempDir::new().unwrap();
    let streams: Vec<_> = (0..CPUS)
        .map(|cpu| (cpu, stream(cpu, is_damaged && cpu == 0)))
        .collect();
    synthetic::write(dir.path(), Layout::Compact, &streams).unwrap();
    let trace = Trace::open(dir.path()).unwrap();
    let (whole, begin, length) = gather(dir.path(), &trace, 1 << 20);
    assert!(!whole.is_merged());
    let (lanes, marks) = unpack(
        &Details::new(&trace, &whole, begin)
            .unwrap()
            .read(0, length)
            .unwrap()
            .unwrap(),
    );
    // The names and threads in parts do not depend on the merging in the overview.
    let (overview, ..) = gather(dir.path(), &trace, 1000);
    assert!(overview.is_merged());
    let details = Details::new(&trace, &overview, begin).unwrap();
    for (from, to) in [
        (0, 500_000),
        (length / 2, length / 2 + 300_000),
        (length - 200_000, length),
    ] {
        let (some_lanes, some_marks) = unpack(&details.read(from, to).unwrap().unwrap());
        let is_in = |slice: &&Slice| slice[0] >= from && slice[1] <= to;
        let kinds = ["tasks", "hard", "states", "calls"];
        for kind in kinds {
            assert!(
                some_lanes.keys().any(|(lane, _)| lane == kind),
                "{kind} at {from}"
            );
        }
        for (lane, slices) in &some_lanes {
            let expected: Vec<_> = lanes[lane].iter().filter(is_in).collect();
            let found: Vec<_> = slices.iter().filter(is_in).collect();
            assert!(found == expected, "{lane:?} from {from} to {to}");
        }
        for (cpu, found) in &some_marks {
            let is_in = |mark: &&Mark| mark[0] >= from && mark[0] <= to;
            let expected: Vec<_> = marks[cpu].iter().filter(is_in).collect();
            let found: Vec<_> = found.iter().filter(is_in).collect();
            assert!(!found.is_empty());
            assert!(found == expected, "events of CPU {cpu} from {from} to {to}");
        }
    }
}
