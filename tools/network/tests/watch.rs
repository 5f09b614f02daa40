// SPDX-License-Identifier: GPL-2.0

//! A watcher of a trace gets the events in its files, each once and in the order of time.

mod common;

use common::{open, send, small, stopper, temporary, Running};
use consumer::viewer::View;
use consumer::{End, State};
use ctf::{Item, Metadata};
use network::message::Message;
use network::{watch, Peer, Security};
use rtrace_abi::header::Layout;
use rtrace_abi::ioctl::Packet;
use std::io::Write;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use store::{Every, OutputOptions, Rotate, Trace};
use synthetic::fake::{Channel, Full};
use synthetic::PacketBuilder;

/// The events that a watcher got: times and fields, as text.
#[derive(Clone, Debug, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// An event as text. Losses are left out: in files they have other places, because missing packets are known
/// earlier.
fn text(item: &Item<'_>) -> Option<String> {
    match item {
        Item::Event(event) => Some(format!("{} {:?}", event.timestamp, event.value(0))),
        _ => None,
    }
}

impl View for Seen {
    fn describe(&mut self, _: &Metadata) -> system::Result<()> {
        Ok(())
    }

    fn item(&mut self, _: usize, item: &Item<'_>) -> system::Result<()> {
        self.0.lock().unwrap().extend(text(item));
        Ok(())
    }

    fn pause(&mut self, _: u64) -> system::Result<()> {
        Ok(())
    }

    fn end(&mut self) -> system::Result<()> {
        self.0.lock().unwrap().push("end".to_owned());
        Ok(())
    }
}

fn peer(receiver: &Running) -> Peer {
    Peer::new(receiver.address.clone(), Security::Plain)
}

/// The events in the files.
fn in_files(receiver: &Running) -> Vec<String> {
    let trace = Trace::open(&receiver.trace()).unwrap();
    let mut merge = trace.merge().unwrap();
    let mut all = Vec::new();
    while let Some((_, item)) = merge.next_item().unwrap() {
        all.extend(text(&item));
    }
    all.push("end".to_owned());
    all
}

/// A packet of CPU 0 or 1 whose events interleave with those of the other CPU.
fn spread(cpu: u32, sequence: u64) -> Full {
    let begin = (3 * sequence + u64::from(cpu)) * 1000;
    let mut builder = PacketBuilder::new(Layout::Compact, cpu, sequence, begin);
    for i in 0..500 {
        builder = builder.softirq(begin + 3 * i, i as u32);
    }
    let records = builder.records;
    let bytes = builder.close(begin + 1500, 4096);
    let size = bytes.len() as u64;
    let packet = Packet {
        sequence,
        size,
        content: size,
        records,
    };
    (packet, bytes)
}

#[test]
fn from_the_beginning_on_to_the_end() {
    let dir = temporary();
    let receiver = Running::start(dir.path());
    let channel = Channel::new(2);
    let (early, late) = (Seen::default(), Seen::default());
    let (stop, _keep) = stopper();
    let (never, _kept) = stopper();
    let peer = peer(&receiver);
    thread::scope(|scope| {
        // One watcher connects before the trace begins, one during it.
        let host = network::host();
        let (peer, never) = (&peer, &never);
        let mut view = early.clone();
        let first = scope.spawn(move || watch(peer, Some(host), never, &mut view));
        let (mut consumer, _) = open(&channel, &receiver.address, &stop).unwrap();
        let stop = &stop;
        let sending = scope.spawn(move || (consumer.run(stop), consumer));
        // As in the kernel, finished packets are counted, and events that are not counted are later.
        let push = |sequence: u64| {
            let next = sequence + 1;
            let counted = format!("cpu packets\n0 {next}\n1 {next}\ntotal 0\n");
            *channel.counters.lock().unwrap() = counted;
            for cpu in 0..2 {
                channel.with(cpu, |mut buffer| buffer.push(spread(cpu, sequence)));
            }
        };
        (0..5).for_each(push);
        // The watcher gets events while the trace continues.
        let began = Instant::now();
        while early.len() < 500 {
            assert!(began.elapsed() < Duration::from_secs(60), "{}", early.len());
            thread::sleep(Duration::from_millis(10));
        }
        let mut view = late.clone();
        let name = receiver
            .trace()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let second = scope.spawn(move || watch(peer, Some(name), never, &mut view));
        while late.len() == 0 {
            assert!(began.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(10));
        }
        (5..8).for_each(push);
        channel.end();
        let (end, consumer) = sending.join().unwrap();
        assert_eq!(end.unwrap(), End::Over);
        consumer.into_sink().end(State::Over, 0, "").unwrap();
        first.join().unwrap().unwrap();
        second.join().unwrap().unwrap();
    });
    let expected = in_files(&receiver);
    assert_eq!(expected.len(), 8 * 2 * 500 + 1);
    assert!(*early.0.lock().unwrap() == expected);
    assert!(*late.0.lock().unwrap() == expected);
}

#[test]
fn it_goes_on_where_the_sender_comes_back() {
    let dir = temporary();
    let receiver = Running::start(dir.path());
    let channel = Channel::new(1);
    let seen = Seen::default();
    let (never, _kept) = stopper();
    let peer = peer(&receiver);
    thread::scope(|scope| {
        let (peer, never) = (&peer, &never);
        let mut view = seen.clone();
        let watching = scope.spawn(move || watch(peer, None, never, &mut view));
        let metadata = channel.metadata.lock().unwrap().clone();
        for sequence in 0..3 {
            channel.with(0, |mut buffer| buffer.push(small(0, sequence)));
            *channel.counters.lock().unwrap() = format!("cpu packets\n0 {sequence}\n");
            channel.metadata.lock().unwrap().clone_from(&metadata);
            let (stop, stopper) = stopper();
            let (mut consumer, _) = open(&channel, &receiver.address, &stop).unwrap();
            let sending = scope.spawn(move || consumer.run(&stop));
            let began = Instant::now();
            while channel.with(0, |buffer| buffer.put.len() as u64) <= sequence {
                assert!(began.elapsed() < Duration::from_secs(60));
                thread::sleep(Duration::from_millis(1));
            }
            drop(stopper);
            sending.join().unwrap().unwrap();
        }
        channel.metadata.lock().unwrap().clone_from(&metadata);
        channel.end();
        send(&channel, &receiver.address);
        watching.join().unwrap().unwrap();
    });
    assert_eq!(*seen.0.lock().unwrap(), in_files(&receiver));
    assert_eq!(seen.len(), 3 + 1);
}

#[test]
fn who_waits_for_nothing_can_be_stopped() {
    let dir = temporary();
    let receiver = Running::start(dir.path());
    let (stop, stopper) = stopper();
    let peer = peer(&receiver);
    thread::scope(|scope| {
        let watching = scope.spawn(|| watch(&peer, None, &stop, &mut Seen::default()));
        drop(stopper);
        watching.join().unwrap().unwrap();
    });
}

#[test]
fn chunks_are_not_shown() {
    let dir = temporary();
    let rotate = Rotate {
        every: Every::Size(1 << 20),
        keep: None,
    };
    let options = OutputOptions {
        rotate: Some(rotate),
        ..OutputOptions::default()
    };
    let receiver = Running::start_at("127.0.0.1:0", dir.path(), Security::Plain, options);
    let (never, _kept) = stopper();
    let error = watch(&peer(&receiver), None, &never, &mut Seen::default()).unwrap_err();
    assert!(error.to_string().contains("--rotate"), "{error}");
}

#[test]
fn a_connection_that_ends_in_a_packet_is_no_damaged_trace() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (mut to, _) = listener.accept().unwrap();
        Message::read(&mut to).unwrap();
        let name = synthetic::fake::name("channel0", 0);
        let (packet, bytes) = small(0, 0);
        let size = packet.size as u32;
        for message in [
            Message::Metadata(synthetic::metadata(synthetic::UUID, Layout::Compact)),
            Message::Stream { number: 0, name },
            Message::Packet { number: 0, size },
        ] {
            to.write_all(&message.to_bytes()).unwrap();
        }
        to.write_all(&bytes[..90]).unwrap();
    });
    let (never, _kept) = stopper();
    let from = Peer::new(address, Security::Plain);
    let error = watch(&from, None, &never, &mut Seen::default()).unwrap_err();
    assert!(error.to_string().contains("closed"), "{error}");
}
