// SPDX-License-Identifier: GPL-2.0

//! A disk that is full, by way of a limit on the size of files. The limit is the whole
//! process's, hence a test program of its own.

mod fake;

use fake::{open, packet, Channel};
use rustix::pipe::{pipe_with, PipeFlags};
use rustix::process::{setrlimit, Resource, Rlimit};
use std::fs;
use tempfile::TempDir;
use trace::consumer::End;
use trace::signals::Signals;
use trace::Error;

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

#[test]
fn the_trace_stays_valid() {
    let _signals = Signals::catch().unwrap();
    let (channel, dir) = (Channel::new(1), TempDir::new().unwrap());
    let packets: Vec<_> = (0..4).map(|sequence| packet(0, sequence, 30_000)).collect();
    let size = packets[0].1.len();
    let all: Vec<u8> = packets.iter().flat_map(|packet| packet.1.clone()).collect();
    channel.with(0, |mut buffer| {
        packets
            .iter()
            .for_each(|packet| buffer.push(packet.clone()))
    });
    channel.end();
    let (stop, _keep) = pipe_with(PipeFlags::CLOEXEC).unwrap();

    // Full within the third packet.
    limit(Some(2 * size as u64 + 10_000));
    let mut consumer = open(&channel, dir.path()).unwrap();
    let result = consumer.run(&stop);
    assert!(matches!(result, Err(Error::Write { .. })), "{result:?}");
    assert_eq!(consumer.written().packets, 2);
    drop(consumer);
    let path = dir.path().join("channel0_cpu0");
    assert!(fs::read(&path).unwrap() == all[..2 * size]);
    // What could not be written was not given back.
    channel.with(0, |buffer| assert_eq!(buffer.put, [0, 1]));

    // Room again: it goes on where it was.
    limit(None);
    let mut consumer = open(&channel, dir.path()).unwrap();
    assert!(consumer.sink().resumed());
    assert_eq!(consumer.run(&stop).unwrap(), End::Over);
    assert!(fs::read(&path).unwrap() == all);
}
