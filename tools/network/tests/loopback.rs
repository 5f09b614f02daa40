// SPDX-License-Identifier: GPL-2.0

//! A sender and a receiver, within this machine.

mod common;

use common::{filled, open, send, stopper, temporary, Running};
use consumer::{End, State};
use ctf::METADATA;
use rtrace_abi::header::Layout;
use std::fs;
use std::thread;
use std::time::Duration;
use store::{Recording, Trace};
use synthetic::fake::{packet, Channel};
use synthetic::UUID;
use uuid::Uuid;

const STATS: &str = "channel channel0\ncpu recorded full packets\n0 7 3 2\ntotal 7 3 2\n";

#[test]
fn a_trace_arrives_byte_by_byte() {
    let dir = temporary();
    let receiver = Running::start(dir.path());
    let make = |cpu, sequence| packet(cpu, sequence, 5000 << (sequence % 8));
    let (channel, expected) = filled(3, 20, make);
    send(&channel, &receiver.address);
    for (cpu, expected) in (0..).zip(&expected) {
        assert!(receiver.file(cpu) == *expected, "CPU {cpu}");
        channel.with(cpu, |buffer| assert_eq!(buffer.put, Vec::from_iter(0..20)));
    }
    let text = fs::read_to_string(receiver.trace().join(METADATA)).unwrap();
    assert_eq!(text, synthetic::metadata(UUID, Layout::Compact));
    assert!(receiver.has_said("the trace is over"));
}

#[test]
fn how_it_ended_is_said_there() {
    let dir = temporary();
    let receiver = Running::start(dir.path());
    let (channel, _) = filled(1, 2, |cpu, sequence| packet(cpu, sequence, 4096));
    let (stop, _keep) = stopper();
    let (mut consumer, _) = open(&channel, &receiver.address, &stop).unwrap();
    assert_eq!(consumer.run(&stop).unwrap(), End::Over);
    consumer.into_sink().end(State::Failed, 5, STATS).unwrap();
    let recording = Recording::read(&receiver.trace(), Uuid::from_bytes(UUID)).unwrap();
    let recording = recording.unwrap();
    assert_eq!((recording.state, recording.unwritten), (State::Failed, 5));
    assert_eq!(recording.stats.unwrap().all.total.full, 3);
}

#[test]
fn a_stop_while_more_comes_than_a_buffer_holds() {
    let dir = temporary();
    let receiver = Running::start(dir.path());
    let make = |cpu, sequence| packet(cpu, sequence, 4096);
    let (channel, expected) = filled(2, 50, make);
    let (stop, stopper) = stopper();
    drop(stopper);
    let (mut consumer, messages) = open(&channel, &receiver.address, &stop).unwrap();
    let end = consumer.run(&stop).map_err(|error| error.to_string());
    assert_eq!(end, Ok(End::Stopped), "{messages:?}");
    consumer.into_sink().end(State::Stopped, 0, "").unwrap();
    for (cpu, expected) in (0..).zip(&expected) {
        let put = channel.with(cpu, |buffer| buffer.put.clone());
        assert!((6..50).contains(&put.len()), "{} packets", put.len());
        assert_eq!(put, Vec::from_iter(0..put.len() as u64));
        let sent: usize = put
            .iter()
            .map(|sequence| make(cpu, *sequence).1.len())
            .sum();
        assert!(receiver.file(cpu) == expected[..sent], "CPU {cpu}");
    }
}

#[test]
fn it_is_a_trace_at_every_moment() {
    let dir = temporary();
    let receiver = Running::start(dir.path());
    let channel = Channel::new(2);
    let (stop, stopper) = stopper();
    let (mut consumer, _) = open(&channel, &receiver.address, &stop).unwrap();
    let end = thread::scope(|scope| {
        let end = scope.spawn(|| consumer.run(&stop));
        for sequence in 0..5 {
            let next = packet(sequence as u32 % 2, sequence / 2, 20_000);
            channel.with(sequence as u32 % 2, |mut buffer| buffer.push(next));
            while channel.with(sequence as u32 % 2, |buffer| {
                buffer.put.len() as u64 <= sequence / 2
            }) {
                thread::sleep(Duration::from_millis(1));
            }
            // The packets that were returned are in the trace.
            let trace = Trace::open(&receiver.trace()).unwrap();
            assert_eq!(trace.metadata.uuid, Uuid::from_bytes(UUID));
            let bytes = receiver.file(0).len() + receiver.file(1).len();
            assert_eq!(bytes as u64, (sequence + 1) * 20_480);
        }
        channel.with(0, |mut buffer| buffer.open = Some(packet(0, 3, 4096)));
        // A stop flushes first.
        drop(stopper);
        end.join().unwrap()
    });
    assert_eq!(end.unwrap(), End::Stopped);
    channel.with(0, |buffer| assert_eq!(buffer.put, [0, 1, 2, 3]));
    assert_eq!(receiver.file(0).len(), 3 * 20_480 + 4096);
}

#[test]
fn a_receiver_goes_on_in_a_directory_that_it_has() {
    let dir = temporary();
    let make = |cpu, sequence| packet(cpu, sequence, 20_000);
    let (channel, expected) = filled(2, 4, make);
    let first = channel.with(0, |buffer| buffer.ready[0].1.clone());
    {
        let receiver = Running::start(dir.path());
        send(&channel, &receiver.address);
        // Simulates a receiver that was killed while it wrote its second packet, before any packet was
        // returned.
        let path = receiver.trace().join("channel0_cpu0");
        fs::write(path, &expected[0][..first.len() + 777]).unwrap();
    }
    let (again, _) = filled(2, 4, make);
    let receiver = Running::start(dir.path());
    send(&again, &receiver.address);
    for (cpu, expected) in (0..).zip(&expected) {
        assert!(receiver.file(cpu) == *expected, "CPU {cpu}");
        again.with(cpu, |buffer| assert_eq!(buffer.put, [0, 1, 2, 3]));
    }
    assert!(receiver.has_said("continuing"));
}
