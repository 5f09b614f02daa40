// SPDX-License-Identifier: GPL-2.0

//! A full disk, simulated by a limit on the size of files. The limit applies to the whole process, so this test is a
//! program of its own.

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

/// Makes four packets of CPU 0, and a channel that has them and is over. Returns the size of a packet, too.
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

/// One test at a time, because the limit applies to both.
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
    // The packet that could not be written was not returned.
    channel.with(0, |buffer| assert_eq!(buffer.put, [0, 1]));

    // There is room again, so the trace continues where it stopped.
    limit(None);
    let mut consumer = open(&channel, dir.path()).unwrap();
    assert!(consumer.sink().resumed());
    assert_eq!(consumer.run(&stop).unwrap(), End::Over);
    assert!(fs::read(&path).unwrap() == packets.concat());
}

fn in_chunks() {
    let (dir, (channel, packets, size)) = (TempDir::new().unwrap(), filled());
    let (stop, _keep) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    // A chunk has three packets, but there is room for one and a half.
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
    // The written part is a chunk, and the next consumer begins another one.
    let chunk = |number| dir.path().join(format!("chunk-{number:06}/channel0_cpu0"));
    assert!(fs::read(chunk(1)).unwrap() == packets[0]);
    limit(None);
    let mut consumer = open_as(&channel, dir.path(), options).unwrap();
    assert!(consumer.sink().resumed());
    assert_eq!(consumer.run(&stop).unwrap(), End::Over);
    consumer.into_sink().end(State::Over, 0, "").unwrap();
    assert!(fs::read(chunk(2)).unwrap() == packets[1..].concat());
}
