// SPDX-License-Identifier: GPL-2.0

//! A trace that is viewed while it is recorded.

use consumer::viewer::{View, Viewer};
use consumer::{Consumer, End, Sink, State};
use ctf::{Feed, Item, Metadata};
use proptest::prelude::*;
use rtrace_abi::header::Layout;
use rtrace_abi::ioctl::Packet;
use rustix::pipe::{pipe_with, PipeFlags};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use synthetic::fake::{Channel, Full};
use synthetic::{PacketBuilder, UUID};
use system::{Error, Result};

fn packet(cpu: u32, number: u64, begin: u64) -> PacketBuilder {
    PacketBuilder::new(Layout::Compact, cpu, number, begin)
}

/// A packet in the kernel's format.
fn full(builder: PacketBuilder, end: u64) -> Full {
    let records = builder.records;
    let bytes = builder.close(end, 4096);
    let mut sequence = [0; 8];
    sequence.copy_from_slice(&bytes[64..72]);
    let size = bytes.len() as u64;
    let packet = Packet {
        sequence: u64::from_le_bytes(sequence),
        size,
        content: size,
        records,
    };
    (packet, bytes)
}

fn text(item: &Item<'_>) -> String {
    match item {
        Item::Packet(packet) => format!("packet {}", { packet.at.header.packet_seq_num }),
        Item::Whole { timestamp } => format!("whole {timestamp}"),
        Item::Event(event) => format!("event {}", event.timestamp),
        Item::Damaged { damage, .. } => format!("{damage}"),
        Item::End { partial, .. } => format!("end {partial}"),
    }
}

/// A feed with this many streams.
fn feed(cpus: u32) -> Feed {
    let mut feed = Feed::default();
    feed.describe(&synthetic::metadata(UUID, Layout::Compact))
        .unwrap();
    for cpu in 0..cpus {
        assert_eq!(
            feed.open(&synthetic::fake::name("channel0", cpu)).unwrap(),
            cpu as usize
        );
    }
    feed
}

/// Reads the items that a feed has up to this time.
fn read(feed: &mut Feed, until: u64) -> Vec<(usize, String)> {
    let mut items = Vec::new();
    while let Some((stream, item)) = feed.next_item(until).unwrap() {
        items.push((stream, text(&item)));
    }
    items
}

#[test]
fn nothing_comes_before_its_time() {
    let mut feed = feed(2);
    feed.push(
        0,
        packet(0, 0, 5).softirq(10, 0).softirq(30, 0).close(40, 8),
    )
    .unwrap();
    assert_eq!(feed.newest(), 40);
    let items = |items: &[(usize, &str)]| -> Vec<_> {
        let items = items.iter();
        items
            .map(|(stream, text)| (*stream, (*text).to_owned()))
            .collect()
    };
    assert_eq!(
        read(&mut feed, 20),
        items(&[(0, "packet 0"), (0, "event 10")])
    );
    feed.push(1, packet(1, 0, 5).softirq(25, 0).close(35, 8))
        .unwrap();
    // Two packets are missing between 40 and 60, and three events up to 80.
    feed.push(
        0,
        packet(0, 3, 60).softirq(70, 0).discarded(3).close(80, 4096),
    )
    .unwrap();
    let expected = [
        (1, "packet 0"),
        (1, "event 25"),
        (0, "event 30"),
        (0, "packet 3"),
        (0, "event 70"),
    ];
    assert_eq!(read(&mut feed, 79), items(&expected));
    assert_eq!(read(&mut feed, u64::MAX), items(&[(0, "whole 80")]));
    // A late packet is passed on at once.
    feed.push(1, packet(1, 1, 36).softirq(37, 0).close(38, 8))
        .unwrap();
    assert_eq!(
        read(&mut feed, 80),
        items(&[(1, "packet 1"), (1, "event 37")])
    );
    assert_eq!((feed.bytes(), feed.newest()), (0, 80));
}

#[test]
fn what_cannot_be_is_refused() {
    let good = packet(0, 0, 0).softirq(1, 0).close(2, 8);
    let refused =
        |feed: &mut Feed, bytes: &[u8]| feed.push(0, bytes.to_vec()).unwrap_err().to_string();
    let mut feed = feed(1);
    for (bytes, words) in [
        (&good[..20], "cut off after 20 bytes"),
        (&good[..85], "cut off after 85 bytes"),
        (&[0; 100][..], "no packet begins here"),
    ] {
        let error = refused(&mut feed, bytes);
        assert!(
            error.contains(words) && error.contains("channel0_cpu0"),
            "{error}"
        );
    }
    let size = good.len();
    feed.push(0, good.clone()).unwrap();
    let error = refused(&mut feed, &good);
    assert!(error.contains("timestamp_begin is 0"), "{error}");
    assert!(error.contains(&format!("at byte {size}")), "{error}");
    let mut early = Feed::default();
    early.open(&synthetic::fake::name("channel0", 0)).unwrap();
    let error = early.push(0, good).unwrap_err().to_string();
    assert!(error.contains("before the description"), "{error}");
}

#[test]
fn a_damaged_event_is_an_item_and_the_rest_follows() {
    let mut feed = feed(2);
    let bad = packet(0, 0, 0).softirq(9, 0).event(30, 10, &[]);
    feed.push(0, bad.close(20, 8)).unwrap();
    feed.push(1, packet(1, 0, 0).softirq(15, 0).close(20, 8))
        .unwrap();
    feed.push(0, packet(0, 1, 30).softirq(31, 0).close(40, 8))
        .unwrap();
    let items = read(&mut feed, u64::MAX);
    let texts: Vec<_> = items.iter().map(|(_, text)| text.as_str()).collect();
    let (damages, others): (Vec<_>, Vec<_>) =
        texts.into_iter().partition(|text| text.contains("damaged"));
    let expected = [
        "packet 0", "packet 0", "event 9", "event 15", "whole 20", "packet 1", "event 31",
    ];
    assert_eq!(others, expected);
    let [damage] = damages.as_slice() else {
        panic!("{damages:?}");
    };
    assert!(damage.contains("channel0_cpu0: at byte "), "{damage}");
    assert!(damage.contains("an event of unknown id 30"), "{damage}");
    assert_eq!(feed.bytes(), 0);
}

/// A later description has more events, which the packets after it may contain.
#[test]
fn a_description_grows() {
    let mut feed = feed(1);
    feed.push(0, packet(0, 0, 0).softirq(9, 0).close(20, 8))
        .unwrap();
    assert_eq!(read(&mut feed, 5).len(), 1);
    let first = synthetic::metadata(UUID, Layout::Compact);
    let next = "event { name = \"new\"; id = 30; stream_id = 0; fields := struct {}; };";
    feed.describe(&(first + next)).unwrap();
    feed.push(0, packet(0, 1, 30).event(30, 31, &[]).close(40, 8))
        .unwrap();
    let items = read(&mut feed, u64::MAX);
    let texts: Vec<_> = items.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["event 9", "packet 1", "event 31"]);
}

/// In each of several rounds of 100 ticks, each CPU has a packet with events at these times, or is silent.
fn rounds() -> impl Strategy<Value = Vec<Vec<Option<Vec<u64>>>>> {
    let events = prop::collection::vec(0_u64..100, 0..6);
    let packet = prop::option::of(events);
    prop::collection::vec(prop::collection::vec(packet, 3), 1..8)
}

proptest! {
    /// With a flush at the end of each round, the view has the items that had arrived before the last flush.
    #[test]
    fn events_are_sorted(rounds in rounds()) {
        let mut feed = feed(3);
        let mut numbers = [0; 3];
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        for (begin, round) in (0_u64..).step_by(100).zip(&rounds) {
            let complete = feed.newest();
            for (cpu, events) in round.iter().enumerate() {
                let Some(mut events) = events.clone() else { continue };
                events.sort_unstable();
                let mut builder = packet(cpu as u32, numbers[cpu], begin);
                for time in events {
                    builder = builder.softirq(begin + time, 0);
                    expected.push(begin + time);
                }
                numbers[cpu] += 1;
                feed.push(cpu, builder.close(begin + 99, 8)).unwrap();
            }
            found.extend(read(&mut feed, complete));
        }
        found.extend(read(&mut feed, u64::MAX));
        let events = found.iter().filter_map(|(_, text)| text.strip_prefix("event "));
        let events: Vec<u64> = events.map(|time| time.parse().unwrap()).collect();
        expected.sort_unstable();
        prop_assert_eq!(events, expected);
        prop_assert_eq!(feed.bytes(), 0);
    }
}

proptest! {
    /// For any bytes the result is items or an error.
    #[test]
    fn any_packet_is_answered(
        changes in prop::collection::vec((0_usize..400, any::<u8>()), 1..4),
        length in 0_usize..400,
    ) {
        let mut feed = feed(2);
        let good = packet(0, 0, 5).every_type(10).softirq(30, 0).close(40, 8);
        let mut bad = good.clone();
        for (at, byte) in changes {
            let at = at % bad.len();
            bad[at] = byte;
        }
        bad.truncate(length.max(80));
        for bytes in [bad, good] {
            let _ = feed.push(0, bytes);
        }
        feed.push(1, packet(1, 0, 0).softirq(15, 0).close(20, 8)).unwrap();
        while let Ok(Some((_, item))) = feed.next_item(u64::MAX) {
            if let Item::Event(event) = item {
                let values = (0..event.layout.fields.len()).map(|field| event.value(field));
                prop_assert!(values.into_iter().all(|value| value.is_some()));
            }
        }
        prop_assert!(feed.next_item(u64::MAX).unwrap().is_none());
    }
}

/// The test's view of the items.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn add(&self, line: String) -> Result<()> {
        self.0.lock().unwrap().push(line);
        Ok(())
    }

    /// The events that the view got.
    fn events(&self) -> Vec<String> {
        let mut lines = self.lines();
        lines.retain(|line| line.starts_with("event"));
        lines
    }
}

impl View for Seen {
    fn describe(&mut self, metadata: &Metadata) -> Result<()> {
        self.add(format!("describe {}", metadata.streams.len()))
    }

    fn item(&mut self, _stream: usize, item: &Item<'_>) -> Result<()> {
        self.add(text(item))
    }

    fn pause(&mut self, _time: u64) -> Result<()> {
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.add("end".to_owned())
    }
}

/// An event is passed on soon, even if another CPU is silent, and after the older events of a third CPU.
#[test]
fn events_are_seen_while_the_trace_goes_on() {
    let channel = Channel::new(3);
    let seen = Seen::default();
    let view = seen.clone();
    let open = |_: &Channel| Ok(Box::new(Viewer::new(view)?) as Box<dyn Sink>);
    let mut consumer = Consumer::open(channel.clone(), open).unwrap();
    let (stop, _kept) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let running = thread::spawn(move || {
        let end = consumer.run(&stop);
        (end, consumer)
    });
    channel.with(0, |mut buffer| {
        buffer.open = Some(full(packet(0, 0, 0).softirq(5, 0), 20));
    });
    channel.with(1, |mut buffer| {
        buffer.push(full(packet(1, 0, 0).softirq(3, 0).softirq(10, 0), 15));
    });
    let begin = Instant::now();
    while seen.events().len() < 3 {
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "{:?}",
            seen.lines()
        );
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(seen.events(), ["event 3", "event 5", "event 10"]);
    assert_eq!(seen.lines()[0], "describe 1");
    // The rest is passed on when the trace ends.
    channel.with(2, |mut buffer| {
        buffer.push(full(packet(2, 0, 30).softirq(31, 0), 40));
    });
    channel.end();
    let (end, consumer) = running.join().unwrap();
    assert_eq!(end.unwrap(), End::Over);
    assert_eq!(seen.events().last().unwrap(), "event 31");
    assert_eq!(consumer.written().records, 4);
    consumer.into_sink().end(State::Over, 0, "").unwrap();
    assert_eq!(seen.lines().last().unwrap(), "end");
}

/// A view whose output is closed.
struct Closed;

impl View for Closed {
    fn describe(&mut self, _: &Metadata) -> Result<()> {
        Ok(())
    }

    fn item(&mut self, _: usize, _: &Item<'_>) -> Result<()> {
        Err(Error::System {
            what: "closed".to_owned(),
            cause: rustix::io::Errno::PIPE.into(),
        })
    }

    fn pause(&mut self, _: u64) -> Result<()> {
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_view_that_fails_ends_it() {
    let channel = Channel::new(1);
    channel.with(0, |mut buffer| {
        buffer.push(full(packet(0, 0, 0).softirq(5, 0), 20));
    });
    let open = |_: &Channel| Ok(Box::new(Viewer::new(Closed)?) as Box<dyn Sink>);
    let mut consumer = Consumer::open(channel, open).unwrap();
    let (stop, _kept) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let error = consumer.run(&stop).unwrap_err();
    assert_eq!(
        error.os_error(),
        Some(rustix::io::Errno::PIPE.raw_os_error())
    );
}
