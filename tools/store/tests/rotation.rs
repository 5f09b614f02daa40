// SPDX-License-Identifier: GPL-2.0

//! A trace in chunks, from a fake source.

use consumer::{Consumer, End, State};
use ctf::{StreamReader, METADATA};
use rtrace_abi::header::Layout;
use rustix::pipe::{pipe_with, PipeFlags};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use store::{Chunks, Every, OutputOptions, Recording, Rotate, Trace};
use synthetic::fake::{open, open_as, packet, Channel};
use synthetic::UUID;
use system::Error;
use tempfile::TempDir;
use uuid::Uuid;

fn every(every: Every, keep: Option<u64>) -> OutputOptions {
    OutputOptions {
        rotate: Some(Rotate { every, keep }),
        ..OutputOptions::default()
    }
}

/// Two packets of this size in a chunk.
const SIZE: usize = 8192;
fn by_size() -> OutputOptions {
    every(Every::Size(2 * SIZE as u64), None)
}

/// Fills the channel: this number of packets for CPU 0, and every second number for CPU 1.
fn fill(channel: &Channel, packets: std::ops::Range<u64>) {
    for sequence in packets {
        channel.with(0, |mut buffer| buffer.push(packet(0, sequence, SIZE)));
        if sequence % 2 == 0 {
            let packet = packet(1, sequence / 2, SIZE);
            channel.with(1, |mut buffer| buffer.push(packet));
        }
    }
}

/// Moves packets until the trace is over.
fn run(consumer: &mut Consumer<Channel>) -> system::Result<End> {
    let (stop, _keep) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    consumer.run(&stop)
}

/// Reads a channel that is over to its end, and closes it.
fn whole(channel: &Channel, dir: &Path, options: OutputOptions) {
    *channel.metadata.lock().unwrap() = Some(synthetic::metadata(UUID, Layout::Compact));
    let mut consumer = open_as(channel, dir, options).unwrap();
    assert_eq!(run(&mut consumer).unwrap(), End::Over);
    consumer.into_sink().end(State::Over, 0, "").unwrap();
}

/// The numbers of a trace's packets, by file name.
fn numbers(dir: &Path) -> Vec<(String, Vec<u64>)> {
    let trace = Trace::open(dir).unwrap();
    let mut numbers: Vec<(String, Vec<u64>)> = Vec::new();
    for path in &trace.streams {
        let mut reader = StreamReader::open(path, &trace.metadata).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        if numbers.last().is_none_or(|(last, _)| last != name) {
            numbers.push((name.to_owned(), Vec::new()));
        }
        let stream = &mut numbers.last_mut().unwrap().1;
        while let Some(packet) = reader.next_packet().unwrap() {
            stream.push(packet.at.header.packet_seq_num);
            assert!(packet.events().all(|event| event.is_ok()));
        }
        assert_eq!(reader.partial(), 0);
    }
    numbers
}

/// The number of packets of a trace.
fn count(dir: &Path) -> usize {
    numbers(dir).iter().map(|(_, numbers)| numbers.len()).sum()
}

/// All packets of CPU 0 up to `end`, and the packets of CPU 1 that [`fill`] made.
fn all(end: u64) -> Vec<(String, Vec<u64>)> {
    let stream = |cpu: u32, numbers| (format!("channel0_cpu{cpu}"), numbers);
    vec![
        stream(0, (0..end).collect()),
        stream(1, (0..end.div_ceil(2)).collect()),
    ]
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn chunk(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("chunk-{number:06}"))
}

fn recording(dir: &Path) -> Recording {
    let recording = Recording::read(dir, Uuid::from_bytes(UUID)).unwrap();
    recording.unwrap()
}

#[test]
fn each_chunk_is_a_trace_and_together_they_have_every_packet_once() {
    let (channel, dir) = (Channel::new(3), TempDir::new().unwrap());
    fill(&channel, 0..9);
    channel.end();
    whole(&channel, dir.path(), by_size());
    // 9 packets and 5.
    let expected: Vec<_> = (1..=7).map(|number| format!("chunk-{number:06}")).collect();
    assert_eq!(names(dir.path()), expected);
    let mut packets = 0;
    for number in 1..=7 {
        let chunk = chunk(dir.path(), number);
        let files = [
            ".recording",
            "channel0_cpu0",
            "channel0_cpu1",
            "channel0_cpu2",
            METADATA,
        ];
        assert_eq!(names(&chunk), files);
        assert!(Trace::open(&chunk).unwrap().bytes <= 2 * SIZE as u64);
        packets += count(&chunk);
        let recording = recording(&chunk);
        let is_last = number == 7;
        assert_eq!(recording.state == State::Over, is_last);
        assert_eq!(recording.state == State::Stopped, !is_last);
        assert_eq!(recording.part.unwrap().chunk, number);
    }
    assert_eq!(packets, 9 + 5);
    let mut expected = all(9);
    expected.push(("channel0_cpu2".to_owned(), vec![]));
    assert_eq!(numbers(dir.path()), expected);
}

#[test]
fn a_packet_that_is_larger_has_a_chunk_for_itself() {
    let (channel, dir) = (Channel::new(1), TempDir::new().unwrap());
    for (sequence, bytes) in (0..).zip([4096, 40960, 40960, 4096, 4096]) {
        channel.with(0, |mut buffer| buffer.push(packet(0, sequence, bytes)));
    }
    channel.end();
    whole(&channel, dir.path(), every(Every::Size(8192), None));
    let counts = (1..=4).map(|number| numbers(&chunk(dir.path(), number))[0].1.len());
    assert_eq!(counts.collect::<Vec<_>>(), [1, 1, 1, 2]);
}

#[test]
fn chunks_end_in_time_whether_or_not_something_happens() {
    let (channel, dir) = (Channel::new(2), TempDir::new().unwrap());
    let options = every(Every::Time(Duration::from_millis(1)), None);
    let mut consumer = open_as(&channel, dir.path(), options).unwrap();
    let finished = || Chunks::list(dir.path()).unwrap().whole.len();
    let wait = |least| {
        while finished() < least {
            thread::sleep(Duration::from_millis(1));
        }
    };
    thread::scope(|scope| {
        let end = scope.spawn(|| run(&mut consumer));
        wait(2);
        // The contents of a buffer belong to the chunk, even if the packet is not full.
        channel.with(0, |mut buffer| buffer.open = Some(packet(0, 0, 4096)));
        wait(finished() + 2);
        channel.with(0, |buffer| assert_eq!(buffer.put, [0]));
        // A CPU comes online.
        channel.add(2);
        channel.with(2, |mut buffer| buffer.push(packet(2, 0, 4096)));
        while channel.with(2, |buffer| buffer.put.is_empty()) {
            thread::sleep(Duration::from_millis(10));
        }
        wait(finished() + 2);
        channel.end();
        assert_eq!(end.join().unwrap().unwrap(), End::Over);
    });
    consumer.into_sink().end(State::Over, 0, "").unwrap();
    // The stream is in each chunk from its first one on, and in no chunk before.
    let chunks = finished() as u64;
    let has = |number| chunk(dir.path(), number).join("channel0_cpu2").exists();
    assert!(!has(1) && has(chunks));
    let first = (1..=chunks).find(|&number| has(number)).unwrap();
    assert!((first..=chunks).all(has));
    assert_eq!(count(&chunk(dir.path(), 1)), 0);
    assert_eq!(count(dir.path()), 2);
}

#[test]
fn a_killed_consumer_is_continued_where_it_was() {
    let (channel, dir) = (Channel::new(2), TempDir::new().unwrap());
    fill(&channel, 0..3);
    // The packet with number 2 of CPU 0 cannot be read.
    channel.with(0, |mut buffer| buffer.fail_after = Some(2));
    let mut consumer = open_as(&channel, dir.path(), by_size()).unwrap();
    assert!(!consumer.sink().resumed());
    assert!(run(&mut consumer).is_err());
    // The recording has no end.
    drop(consumer);
    let before = names(dir.path());
    let unfinished = dir.path().join(before.first().unwrap());
    assert!(before[0].starts_with(".chunk-") && before[0].ends_with(".new"));
    assert_eq!(recording(&unfinished).state, State::Writing);
    // The chunk can be read as it is.
    assert_eq!(numbers(dir.path())[0].1, [0, 1]);

    // The writer was killed within a packet, and before it returned the packet before.
    let mut stream = fs::OpenOptions::new();
    let mut stream = stream.append(true).open(unfinished.join("channel0_cpu0"));
    std::io::Write::write_all(stream.as_mut().unwrap(), b"a part").unwrap();
    channel.with(0, |mut buffer| {
        buffer.fail_after = None;
        buffer.ready.push_front(packet(0, 1, SIZE));
    });
    // It was killed while the previous chunk was being renamed and an old one removed.
    assert_eq!(Chunks::list(dir.path()).unwrap().whole, [1]);
    fs::rename(chunk(dir.path(), 1), dir.path().join(".chunk-000001.new")).unwrap();
    let old = dir.path().join(".chunk-000000.old");
    fs::create_dir(&old).unwrap();
    fs::write(old.join("channel0_cpu0"), "").unwrap();

    fill(&channel, 3..6);
    channel.end();
    *channel.metadata.lock().unwrap() = Some(synthetic::metadata(UUID, Layout::Compact));
    let mut consumer = open_as(&channel, dir.path(), by_size()).unwrap();
    assert!(consumer.sink().resumed());
    run(&mut consumer).unwrap();
    consumer.into_sink().end(State::Over, 0, "").unwrap();
    assert_eq!(numbers(dir.path()), all(6));
    let Chunks { whole, unfinished } = Chunks::list(dir.path()).unwrap();
    assert_eq!(whole, Vec::from_iter(1..=whole.len() as u64));
    assert!(unfinished.is_empty());
    // The chunk that is being removed is not read.
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), whole.len());

    // All chunks are complete, but the last packet was not returned.
    channel.add(0);
    channel.add(1);
    channel.with(1, |mut buffer| buffer.push(packet(1, 2, SIZE)));
    fill(&channel, 6..7);
    channel.end();
    self::whole(&channel, dir.path(), by_size());
    assert_eq!(numbers(dir.path()), all(7));
}

/// Moves the channel's packets, and dies before it writes how the recording ended.
fn killed(channel: &Channel, dir: &Path) {
    let (stop, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    drop(writer);
    *channel.metadata.lock().unwrap() = Some(synthetic::metadata(UUID, Layout::Compact));
    let mut consumer = open_as(channel, dir, by_size()).unwrap();
    assert_eq!(consumer.run(&stop).unwrap(), End::Stopped);
}

#[test]
fn a_packet_that_was_not_given_back_is_known_after_the_next_chunk_begins() {
    let (channel, dir) = (Channel::new(2), TempDir::new().unwrap());
    fill(&channel, 0..1);
    killed(&channel, dir.path());
    assert_eq!(names(dir.path()), [".chunk-000001.new"]);
    // Packet 1 of CPU 0 finds that chunk full.
    fill(&channel, 1..2);
    channel.with(1, |mut buffer| buffer.push(packet(1, 0, SIZE)));
    channel.end();
    whole(&channel, dir.path(), by_size());
    assert_eq!(numbers(dir.path()), all(2));
}

#[test]
fn a_packet_that_was_not_given_back_is_known_though_later_chunks_have_none_of_its_stream() {
    let (channel, dir) = (Channel::new(2), TempDir::new().unwrap());
    fill(&channel, 0..1);
    killed(&channel, dir.path());
    for sequence in 1..6 {
        channel.with(0, |mut buffer| buffer.push(packet(0, sequence, SIZE)));
    }
    killed(&channel, dir.path());
    assert_eq!(Chunks::list(dir.path()).unwrap().whole, [1, 2, 3]);
    for sequence in 0..3 {
        channel.with(1, |mut buffer| buffer.push(packet(1, sequence, SIZE)));
    }
    channel.end();
    whole(&channel, dir.path(), by_size());
    assert_eq!(numbers(dir.path()), all(6));
}

#[test]
fn the_newest_are_kept_and_nothing_is_removed_but_chunks() {
    let (channel, dir) = (Channel::new(2), TempDir::new().unwrap());
    // The third packet waits.
    fill(&channel, 0..8);
    channel.with(0, |mut buffer| buffer.fail_after = Some(6));
    let keep = |keep| every(Every::Size(SIZE as u64), Some(keep));
    let mut consumer = open_as(&channel, dir.path(), keep(100)).unwrap();
    assert!(run(&mut consumer).is_err());
    consumer.into_sink().end(State::Failed, 0, "").unwrap();
    // A foreign file in a chunk, a chunk of another trace, and a directory with the name of a chunk.
    let path = |name| dir.path().join(name);
    fs::write(path("chunk-000002/note"), "mine").unwrap();
    let before = Chunks::list(dir.path()).unwrap().whole.len();
    fs::write(path("chunk-1"), "mine").unwrap();
    symlink("chunk-000003", path("chunk-000000")).unwrap();
    fs::write(path("note"), "mine").unwrap();

    channel.with(0, |mut buffer| buffer.fail_after = None);
    channel.end();
    *channel.metadata.lock().unwrap() = Some(synthetic::metadata(UUID, Layout::Compact));
    let mut consumer = open_as(&channel, dir.path(), keep(2)).unwrap();
    let other = path("chunk-000001/metadata");
    fs::write(&other, synthetic::metadata([7; 16], Layout::Compact)).unwrap();
    run(&mut consumer).unwrap();
    consumer.into_sink().end(State::Over, 0, "").unwrap();
    let last = Chunks::list(dir.path()).unwrap().whole.pop().unwrap();
    assert!(last > before as u64);
    let expected = [
        "chunk-000000".to_owned(),
        "chunk-000001".to_owned(),
        "chunk-000002".to_owned(),
        "chunk-1".to_owned(),
        format!("chunk-{:06}", last - 1),
        format!("chunk-{last:06}"),
        "note".to_owned(),
    ];
    let mut sorted = expected.to_vec();
    sorted.sort();
    assert_eq!(names(dir.path()), sorted);
    assert!(path("chunk-000002/note").exists() && other.exists());
}

#[test]
fn losses_are_those_of_the_chunk() {
    let (channel, dir) = (Channel::new(1), TempDir::new().unwrap());
    let counters = |lost: u64| {
        let text = format!("channel channel0\ncpu full\n0 {lost}\ntotal {lost}\n");
        *channel.counters.lock().unwrap() = text.clone();
        text
    };
    let options = every(Every::Size(4096), None);
    let lost = |number| {
        recording(&chunk(dir.path(), number))
            .totals(0)
            .unwrap()
            .lost
    };
    let push = |sequence| {
        channel.with(0, |mut buffer| buffer.push(packet(0, sequence, 4096)));
    };
    // The second one begins when 3 are lost, and its writer is killed.
    let mut consumer = open_as(&channel, dir.path(), options).unwrap();
    counters(3);
    (0..3).for_each(push);
    channel.with(0, |mut buffer| buffer.fail_after = Some(2));
    assert!(run(&mut consumer).is_err());
    drop(consumer);
    channel.with(0, |mut buffer| buffer.fail_after = None);
    *channel.metadata.lock().unwrap() = Some(synthetic::metadata(UUID, Layout::Compact));
    let mut consumer = open_as(&channel, dir.path(), options).unwrap();
    counters(10);
    channel.end();
    run(&mut consumer).unwrap();
    let end = counters(15);
    consumer.into_sink().end(State::Stopped, 0, &end).unwrap();
    assert_eq!(Chunks::list(dir.path()).unwrap().whole, [1, 2, 3]);
    assert_eq!((1..=3).map(lost).sum::<u64>(), 15);
    let all = Trace::open(dir.path()).unwrap().recording.unwrap();
    assert_eq!(all.totals(0).unwrap().lost, 15);
    // A chunk that a later run begins continues where the last one ended.
    channel.add(0);
    push(3);
    channel.end();
    counters(17);
    whole(&channel, dir.path(), options);
    let begun = recording(&chunk(dir.path(), 4)).part.unwrap();
    assert_eq!(begun.lost_before(|_| true), 15);
}

#[test]
fn directories_that_hold_something_else_are_refused() {
    let (mut channel, dir) = (Channel::new(1), TempDir::new().unwrap());
    let source = channel.clone();
    let refused = |dir: &Path, options: OutputOptions, why: &str| {
        let before = names(dir);
        let opened = open_as(&source, dir, options);
        for error in [options.held(dir).err(), opened.err()] {
            let Some(error @ Error::OutputTaken { .. }) = error else {
                panic!("{why}: {error:?}");
            };
            assert!(error.to_string().contains(why), "{error}");
        }
        assert_eq!(names(dir), before);
    };
    let text = synthetic::metadata(UUID, Layout::Compact);
    fs::write(dir.path().join("letter"), "dear").unwrap();
    refused(dir.path(), by_size(), "is not empty");
    fs::write(dir.path().join(METADATA), &text).unwrap();
    refused(dir.path(), by_size(), "not in chunks");

    let dir = TempDir::new().unwrap();
    channel.end();
    let first = chunk(dir.path(), 1);
    fs::create_dir(&first).unwrap();
    refused(dir.path(), by_size(), "is not a trace");
    fs::write(first.join(METADATA), &text).unwrap();
    refused(dir.path(), OutputOptions::default(), "is not empty");
    assert_eq!(
        by_size().held(dir.path()).unwrap(),
        Some(Uuid::from_bytes(UUID))
    );
    let second = chunk(dir.path(), 2);
    fs::create_dir(&second).unwrap();
    let other = synthetic::metadata([7; 16], Layout::Compact);
    fs::write(second.join(METADATA), other).unwrap();
    refused(dir.path(), by_size(), "another trace than the other chunks");
    fs::remove_dir_all(&second).unwrap();

    // The writer of the same trace cannot use it either.
    whole(&channel, dir.path(), by_size());
    let error = open(&channel, &chunk(dir.path(), 2)).err().unwrap();
    assert!(
        error.to_string().contains("is a chunk of this trace"),
        "{error}"
    );

    channel.uuid = [7; 16];
    let error = open_as(&channel, dir.path(), by_size()).err().unwrap();
    assert!(error.to_string().contains("holds another trace"), "{error}");
}

#[test]
fn a_chunk_that_cannot_be_begun_leaves_nothing() {
    let (channel, dir) = (Channel::new(1), TempDir::new().unwrap());
    for sequence in 0..4 {
        channel.with(0, |mut buffer| buffer.push(packet(0, sequence, SIZE)));
    }
    channel.end();
    let mut consumer = open_as(&channel, dir.path(), by_size()).unwrap();
    // Its stream's file cannot be made.
    let second = dir.path().join(".chunk-000002.new");
    fs::create_dir(&second).unwrap();
    fs::create_dir(second.join("channel0_cpu0")).unwrap();
    assert!(run(&mut consumer).is_err());
    consumer.into_sink().end(State::Failed, 0, "").unwrap();
    assert_eq!(names(&second), ["channel0_cpu0"]);
    fs::remove_dir_all(&second).unwrap();
    whole(&channel, dir.path(), by_size());
    assert_eq!(Chunks::list(dir.path()).unwrap().whole, [1, 2]);
    assert_eq!(numbers(dir.path())[0].1, [0, 1, 2, 3]);
}

#[test]
fn a_trace_that_nobody_wants_leaves_nothing() {
    for made in [true, false] {
        let (channel, above) = (Channel::new(2), TempDir::new().unwrap());
        let dir = above.path().join("dir");
        if !made {
            fs::create_dir(&dir).unwrap();
        }
        fill(&channel, 0..9);
        channel.end();
        let mut consumer = open_as(&channel, &dir, by_size()).unwrap();
        run(&mut consumer).unwrap();
        assert!(Chunks::list(&dir).unwrap().whole.len() > 1);
        consumer.into_sink().discard().unwrap();
        assert_eq!(dir.exists(), !made);
        assert!(made || names(&dir).is_empty());
    }
}
