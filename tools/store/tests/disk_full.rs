// SPDX-License-Identifier: GPL-2.0

//! A disk that is full, by way of a limit on the size of files. The limit is the whole
//! process's, hence a test program of its own.

use consumer::{End, State};
use rustix::pipe::{pipe_with, PipeFlags};
use rustix::process::{setrlimit, Resource, Rlimit};
use std::fs;
use store::{Every, OutputOptions, Rotate};
use synthetic::fake::{open, open_as, packet, Channel};
use system::signals::Signals;
use system::Error;
use tempfile::TempDir;

fn limit(bytes: Option<u64>) {
    setrlimit(
        Resource::Fsize,
        Rlimit {
            current: bytes,
            maximum: None,
        },
    )
    .unwrap();
}

/// Four packets of CPU 0 and their size, and a channel that has them and is over.
fn filled() -> (Channel, Vec<Vec<u8>>, u64) {
    let channel = Channel::new(1);
    let packets: Vec<_> = (0..4).map(|sequence| packet(0, sequence, 30_000)).collect();
    channel.with(0, |mut buffer| {
        packets
            .iter()
            .for_each(|packet| buffer.push(packet.clone()))
    });
    channel.end();
    let bytes: Vec<_> = packets.into_iter().map(|packet| packet.1).collect();
    let size = bytes[0].len() as u64;
    (channel, bytes, size)
}

/// One after the other: the limit is for both.
#[test]
fn the_trace_stays_valid() {
    let _signals = Signals::catch().unwrap();
    in_a_directory();
    in_chunks();
}

fn in_a_directory() {
    let (dir, (channel, packets, size)) = (TempDir::new().unwrap(), filled());
    let (stop, _keep) = pipe_with(PipeFlags::CLOEXEC).unwrap();

    // Full within the third packet.
    limit(Some(2 * size + 10_000));
    let mut consumer = open(&channel, dir.path()).unwrap();
    let result = consumer.run(&stop);
    assert!(matches!(result, Err(Error::Write { .. })), "{result:?}");
    assert_eq!(consumer.written().packets, 2);
    drop(consumer);
    let path = dir.path().join("channel0_cpu0");
    assert!(fs::read(&path).unwrap() == packets[..2].concat());
    // What could not be written was not given back.
    channel.with(0, |buffer| assert_eq!(buffer.put, [0, 1]));

    // Room again: it goes on where it was.
    limit(None);
    let mut consumer = open(&channel, dir.path()).unwrap();
    assert!(consumer.sink().resumed());
    assert_eq!(consumer.run(&stop).unwrap(), End::Over);
    assert!(fs::read(&path).unwrap() == packets.concat());
}

fn in_chunks() {
    let (dir, (channel, packets, size)) = (TempDir::new().unwrap(), filled());
    let (stop, _keep) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    // Three packets in a chunk, but there is room for one and a half.
    let rotate = Rotate {
        every: Every::Size(3 * size),
        keep: None,
    };
    let options = OutputOptions {
        rotate: Some(rotate),
        ..OutputOptions::default()
    };
    limit(Some(size + 10_000));
    let mut consumer = open_as(&channel, dir.path(), options).unwrap();
    let result = consumer.run(&stop);
    assert!(matches!(result, Err(Error::Write { .. })), "{result:?}");
    consumer.into_sink().end(State::Failed, 0, "").unwrap();
    // What it has is a chunk, and the next consumer begins another one.
    let chunk = |number| dir.path().join(format!("chunk-{number:06}/channel0_cpu0"));
    assert!(fs::read(chunk(1)).unwrap() == packets[0]);
    limit(None);
    let mut consumer = open_as(&channel, dir.path(), options).unwrap();
    assert!(consumer.sink().resumed());
    assert_eq!(consumer.run(&stop).unwrap(), End::Over);
    consumer.into_sink().end(State::Over, 0, "").unwrap();
    assert!(fs::read(chunk(2)).unwrap() == packets[1..].concat());
}
