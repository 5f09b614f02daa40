// SPDX-License-Identifier: GPL-2.0

//! Faults of a receiver, a sender, and the connection between them.

mod common;

use common::{filled, notice, open, send, stopper, temporary, Running, RETRY};
use consumer::{End, Sink, State};
use network::message::Message;
use network::{Hello, Peer, Receiver, Security, Sender, Sent};
use rtrace_abi::header::Layout;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use store::{Every, OutputOptions, Recording, Rotate};
use synthetic::fake::{packet, Channel};
use synthetic::UUID;
use uuid::Uuid;

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

fn small_packet(cpu: u32, sequence: u64) -> synthetic::fake::Full {
    packet(cpu, sequence, 4096)
}

#[test]
fn a_receiver_that_is_not_there_yet_or_goes_away_for_a_while() {
    let dir = temporary();
    let address = Running::start(dir.path()).address.clone();
    let channel = Channel::new(2);
    let (stop, _keep) = stopper();
    let (mut consumer, messages) = open(&channel, &address, &stop).unwrap();
    let end = thread::scope(|scope| {
        let stop = &stop;
        let sending = scope.spawn(move || (consumer.run(stop), consumer));
        for round in 0..3 {
            for cpu in 0..2 {
                channel.with(cpu, |mut buffer| {
                    (0..3).for_each(|i| buffer.push(small_packet(cpu, 3 * round + i)));
                });
            }
            // One packet of each stream is taken from the kernel, and none is returned.
            thread::sleep(Duration::from_millis(30));
            for cpu in 0..2 {
                channel.with(cpu, |buffer| {
                    assert_eq!(buffer.put.len() as u64, 3 * round);
                    assert!(buffer.ready.len() >= 2);
                });
            }
            let options = OutputOptions::default();
            let _receiver = Running::start_at(&address, dir.path(), Security::Plain, options);
            wait_until("all are given back", || {
                (0..2).all(|cpu| channel.with(cpu, |b| b.put.len() as u64 == 3 * (round + 1)))
            });
        }
        let options = OutputOptions::default();
        let _receiver = Running::start_at(&address, dir.path(), Security::Plain, options);
        channel.end();
        let (end, consumer) = sending.join().unwrap();
        consumer.into_sink().end(State::Over, 0, "").unwrap();
        end
    });
    assert_eq!(end.unwrap(), End::Over);
    let receiver = Running::start(dir.path());
    for cpu in 0..2 {
        let expected: Vec<u8> = (0..9).flat_map(|i| small_packet(cpu, i).1).collect();
        assert!(receiver.file(cpu) == expected);
    }
    let messages = messages.lock().unwrap();
    assert!(messages[0].contains("trying again"), "{messages:?}");
    assert!(messages[1].contains("arrive again"), "{messages:?}");
}

#[test]
fn a_stop_while_nobody_answers() {
    let dir = temporary();
    let address = Running::start(dir.path()).address.clone();
    let channel = Channel::new(1);
    channel.with(0, |mut buffer| buffer.push(small_packet(0, 0)));
    let (stop, stopper) = stopper();
    let (mut consumer, _) = open(&channel, &address, &stop).unwrap();
    drop(stopper);
    let error = consumer.run(&stop).unwrap_err().to_string();
    assert!(error.contains("1 packets were not acknowledged"), "{error}");
    let error = consumer.into_sink().end(State::Failed, 0, "").unwrap_err();
    assert!(
        error.to_string().contains("cannot tell the receiver"),
        "{error}"
    );
    // The kernel has the packet again.
    channel.with(0, |buffer| {
        assert!(buffer.put.is_empty());
        assert_eq!(buffer.ready.len(), 1);
    });
    let receiver = Running::start(dir.path());
    let metadata = synthetic::metadata(UUID, Layout::Compact);
    *channel.metadata.lock().unwrap() = Some(metadata);
    channel.end();
    send(&channel, &receiver.address);
    assert!(receiver.file(0) == small_packet(0, 0).1);
}

/// Receives a trace over one connection, and closes the connection instead of handling the end.
fn die_at_the_end(listener: &TcpListener) {
    let (mut stream, _) = listener.accept().unwrap();
    loop {
        let answer = match Message::read(&mut stream).unwrap() {
            Message::Hello(_) => Message::Welcome {
                trace: "trace".to_owned(),
                resumed: false,
            },
            Message::Stream { number, .. } => Message::Have { number, next: 0 },
            Message::End { .. } => return,
            _ => continue,
        };
        stream.write_all(&answer.to_bytes()).unwrap();
    }
}

/// A sender whose receiver has everything except the end, and dies then. Also returns the receiver's address.
fn at_the_end(stop: &OwnedFd) -> (Box<dyn Sink>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || die_at_the_end(&listener));
    let channel = Channel::new(1);
    channel.end();
    let (mut consumer, _) = open(&channel, &address, stop).unwrap();
    assert_eq!(consumer.run(stop).unwrap(), End::Over);
    (consumer.into_sink(), address)
}

#[test]
fn a_receiver_that_dies_at_the_end_is_waited_for() {
    let (stop, _keep) = stopper();
    let (sink, address) = at_the_end(&stop);
    let ending = thread::spawn(move || sink.end(State::Over, 0, ""));
    // Longer than a sender waits after a stop.
    thread::sleep(Duration::from_secs(7));
    assert!(!ending.is_finished());
    let dir = temporary();
    let options = OutputOptions::default();
    let receiver = Running::start_at(&address, dir.path(), Security::Plain, options);
    ending.join().unwrap().unwrap();
    let recording = Recording::read(&receiver.trace(), Uuid::from_bytes(UUID));
    assert_eq!(recording.unwrap().unwrap().state, State::Over);
}

#[test]
fn after_a_stop_a_receiver_that_dies_at_the_end_is_an_error() {
    let (stop, stopper) = stopper();
    let (sink, _) = at_the_end(&stop);
    drop(stopper);
    let error = sink.end(State::Stopped, 0, "").unwrap_err().to_string();
    assert!(error.contains("cannot tell the receiver"), "{error}");
}

/// The receiver's answer to these bytes, until it closes the connection.
fn answers(receiver: &Running, bytes: &[u8]) -> Vec<Message> {
    let mut stream = TcpStream::connect(&receiver.address).unwrap();
    stream.write_all(bytes).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answers = Vec::new();
    while let Ok(answer) = Message::read(&mut stream) {
        answers.push(answer);
    }
    answers
}

fn hello(host: &str, uuid: [u8; 16]) -> Message {
    Message::Hello(Hello::Send(Sent {
        host: host.to_owned(),
        uuid: Uuid::from_bytes(uuid),
        streams: Vec::new(),
    }))
}

#[test]
fn garbage_harms_nothing() {
    let dir = temporary();
    let receiver = Running::start(dir.path());
    let refused = |bytes: &[u8]| match answers(&receiver, bytes).pop() {
        Some(Message::Refused { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert!(refused(b"GET / HTTP/1.1\r\n\r\n").contains("rtrace's protocol does not have"));
    assert!(refused(&[0xff; 4096]).contains("rtrace's protocol does not have"));
    assert!(refused(&[1, 0, 0, 0, 0, 0, 0, 0x7f]).contains("too long"));
    let newer = [&[1, 0, 0, 0, 17, 0, 0, 0][..], b"rtrace-network 9\n"].concat();
    assert!(refused(&newer).contains("version 9"));
    assert!(refused(&Message::Done.to_bytes()).contains("does not speak"));
    // These bytes follow after the beginning of a trace.
    let stream = Message::Stream {
        number: 0,
        name: synthetic::fake::name("channel0", 0),
    };
    let metadata = synthetic::metadata(UUID, Layout::Compact);
    let metadata = Message::Metadata(metadata).to_bytes();
    let full = small_packet(0, 0).1;
    let head = |size: usize| Message::Packet {
        number: 0,
        size: size as u32,
    };
    let whole = [head(full.len()).to_bytes(), full.clone()].concat();
    let mut damaged = full.clone();
    damaged[0] ^= 1;
    let other = small_packet(1, 0).1;
    for (i, (words, why)) in [
        (
            vec![stream.to_bytes(), stream.to_bytes()],
            "not the next one",
        ),
        (vec![whole.clone()], "unknown stream"),
        (
            vec![stream.to_bytes(), whole.clone()],
            "before the description",
        ),
        (
            vec![Message::Metadata("trace { }".to_owned()).to_bytes()],
            "another trace",
        ),
        (
            vec![metadata.clone(), stream.to_bytes(), head(83).to_bytes()],
            "too few for a packet",
        ),
        (
            vec![
                metadata.clone(),
                stream.to_bytes(),
                head(full.len()).to_bytes(),
                damaged,
            ],
            "magic",
        ),
        (
            vec![
                metadata.clone(),
                stream.to_bytes(),
                head(other.len()).to_bytes(),
                other,
            ],
            "number of a packet is wrong",
        ),
        (
            vec![
                metadata.clone(),
                stream.to_bytes(),
                head(full.len() + 8).to_bytes(),
                full.clone(),
                vec![0; 8],
            ],
            "number of a packet is wrong",
        ),
        (
            vec![Message::Stats("trace 1\nstate over\n".to_owned()).to_bytes()],
            "counters",
        ),
        (vec![Message::Done.to_bytes()], "an answer"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut bytes = hello(&format!("h{i}"), UUID).to_bytes();
        bytes.extend(words.concat());
        let reason = refused(&bytes);
        assert!(reason.contains(why), "{why}: {reason}");
    }
    // The connection is cut: complete packets are on the disk.
    let begin = [
        hello("cut", UUID).to_bytes(),
        metadata,
        stream.to_bytes(),
        whole.clone(),
    ];
    let half = [begin.concat(), whole[..2000].to_vec()].concat();
    answers(&receiver, &half);
    let name = format!("cut-{}", Uuid::from_bytes(UUID));
    let path = dir.path().join(name).join("channel0_cpu0");
    wait_until("the half is cut off", || fs::read(&path).unwrap() == full);
    // A correct sender is served after that.
    let (channel, expected) = filled(1, 3, small_packet);
    send(&channel, &receiver.address);
    assert!(receiver.file(0) == expected[0]);
    // All files are in directories with names of this form.
    for entry in fs::read_dir(dir.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            name.ends_with(&Uuid::from_bytes(UUID).to_string()),
            "{name}"
        );
    }
}

/// Bytes on the disk of a directory and all in it, as du(1) counts them.
fn used(dir: &Path) -> u64 {
    let own = fs::metadata(dir).unwrap();
    let entries = own.is_dir().then(|| fs::read_dir(dir).unwrap());
    let entries = entries.into_iter().flatten();
    own.blocks() * 512
        + entries
            .map(|entry| used(&entry.unwrap().path()))
            .sum::<u64>()
}

#[test]
fn a_hello_is_counted_before_it_takes_space() {
    let dir = temporary();
    let options = OutputOptions::default();
    let quota = 1 << 20;
    let receiver = Running::start_with(
        "127.0.0.1:0",
        dir.path(),
        Security::Plain,
        options,
        Some(quota),
    );
    // Each stream has a channel of its own: the space for the final counters would be 40 MB.
    let streams = (0..20_000).map(|n| synthetic::fake::name(&format!("c{n}"), 0));
    let hostile = Message::Hello(Hello::Send(Sent {
        host: "hostile".to_owned(),
        uuid: Uuid::from_bytes(UUID),
        streams: streams.collect(),
    }));
    let refused = |message: &Message| match &*answers(&receiver, &message.to_bytes()) {
        [Message::Refused {
            reason,
            lasting: false,
        }] => reason.contains("--quota"),
        _ => false,
    };
    assert!(refused(&hostile));
    assert!(used(dir.path()) <= quota);
    // Small ones are counted, too: each leaves a directory.
    assert!((0..1000).any(|n| refused(&hello(&format!("h{n}"), UUID))));
    assert!(used(dir.path()) <= quota);
}

#[test]
fn chunks_are_counted_before_they_take_space() {
    let dir = temporary();
    let rotate = Rotate {
        every: Every::Size(4096),
        keep: None,
    };
    let options = OutputOptions {
        rotate: Some(rotate),
        ..OutputOptions::default()
    };
    let quota = 1 << 20;
    let (address, security) = ("127.0.0.1:0", Security::Plain);
    let receiver = Running::start_with(address, dir.path(), security, options, Some(quota));
    let name = synthetic::fake::name("channel0", 0);
    let text = synthetic::metadata(UUID, Layout::Compact) + &" ".repeat(100_000);
    let stream = Message::Stream { number: 0, name };
    let begin = [hello("a", UUID), Message::Metadata(text), stream];
    let mut bytes: Vec<u8> = begin.iter().flat_map(Message::to_bytes).collect();
    // Each packet begins a chunk, which has the description again.
    for sequence in 0..100 {
        let (_, packet) = small_packet(0, sequence);
        let size = packet.len() as u32;
        bytes.extend(Message::Packet { number: 0, size }.to_bytes());
        bytes.extend(packet);
    }
    let mut peer = TcpStream::connect(&receiver.address).unwrap();
    let _ = peer.write_all(&bytes);
    wait_until("it is refused", || receiver.has_said("--quota"));
    assert!(used(dir.path()) <= quota);
}

#[test]
fn machines_of_one_name_and_many_at_a_time() {
    let dir = temporary();
    let receiver = Running::start(dir.path());
    thread::scope(|scope| {
        for machine in 0..8 {
            let address = &receiver.address;
            scope.spawn(move || {
                let mut channel = Channel::new(1);
                channel.uuid = [machine; 16];
                let metadata = synthetic::metadata([machine; 16], Layout::Compact);
                *channel.metadata.lock().unwrap() = Some(metadata);
                for sequence in 0..10 {
                    let mut full = small_packet(0, sequence);
                    full.1[4..20].fill(machine);
                    channel.with(0, |mut buffer| buffer.push(full));
                }
                channel.end();
                send(&channel, address);
            });
        }
    });
    for machine in 0..8 {
        let uuid = Uuid::from_bytes([machine; 16]);
        let path = dir.path().join(format!("{}-{uuid}", network::host()));
        assert_eq!(fs::read(path.join("channel0_cpu0")).unwrap().len(), 40_960);
        let recording = Recording::read(&path, uuid).unwrap().unwrap();
        assert_eq!(recording.state, State::Over);
    }
}

#[test]
fn who_comes_again_takes_the_trace_over() {
    let dir = temporary();
    let receiver = Running::start(dir.path());
    // The first sender's connection is dead, and the sender does not know that.
    let mut first = TcpStream::connect(&receiver.address).unwrap();
    first
        .write_all(&hello(&network::host(), UUID).to_bytes())
        .unwrap();
    assert!(matches!(
        Message::read(&mut first).unwrap(),
        Message::Welcome { resumed: false, .. }
    ));
    let (channel, expected) = filled(1, 3, small_packet);
    send(&channel, &receiver.address);
    assert!(receiver.file(0) == expected[0]);
    let mut rest = Vec::new();
    let _ = first.read_to_end(&mut rest);
}

#[test]
fn chunks() {
    let dir = temporary();
    let rotate = Rotate {
        every: Every::Size(3 * 4096),
        keep: None,
    };
    let options = OutputOptions {
        rotate: Some(rotate),
        ..OutputOptions::default()
    };
    let receiver = Running::start_at("127.0.0.1:0", dir.path(), Security::Plain, options);
    let (channel, expected) = filled(1, 7, small_packet);
    send(&channel, &receiver.address);
    let files = (1..=3).flat_map(|number| {
        let chunk = format!("chunk-{number:06}/channel0_cpu0");
        fs::read(receiver.trace().join(chunk)).unwrap()
    });
    assert!(files.collect::<Vec<u8>>() == expected[0]);
}

#[test]
fn a_stopped_receiver_says_so() {
    let dir = temporary();
    let receiver = Running::start(dir.path());
    let trace = receiver.trace();
    let channel = Channel::new(1);
    channel.with(0, |mut buffer| buffer.push(small_packet(0, 0)));
    let (stop, stopper) = stopper();
    let (mut consumer, _) = open(&channel, &receiver.address, &stop).unwrap();
    thread::scope(|scope| {
        let end = scope.spawn(|| consumer.run(&stop));
        wait_until("it is given back", || {
            channel.with(0, |b| !b.put.is_empty())
        });
        drop(receiver);
        let recording = Recording::read(&trace, Uuid::from_bytes(UUID));
        assert_eq!(recording.unwrap().unwrap().state, State::Stopped);
        drop(stopper);
        // No packet is left to send.
        assert_eq!(end.join().unwrap().unwrap(), End::Stopped);
    });
}

/// Message of a sender to a peer that must refuse it.
fn refusal(peer: Peer) -> String {
    let (stop, _keep): (OwnedFd, OwnedFd) = stopper();
    let uuid = Uuid::from_bytes(UUID);
    let (notice, _) = notice();
    let sender = Sender::begin(peer, uuid, Vec::new(), RETRY, stop, notice);
    sender.unwrap_err().to_string()
}

#[test]
fn what_is_no_receiver_is_an_error_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
        let _ = stream.read(&mut [0; 4096]);
    });
    let error = refusal(Peer::new(address, Security::Plain));
    assert!(error.contains("rtrace's protocol does not have"), "{error}");
}

#[test]
fn a_directory_has_one_receiver() {
    let dir = temporary();
    let path = dir.path().to_owned();
    let bind = || {
        let options = OutputOptions::default();
        Receiver::bind(
            "127.0.0.1:0",
            Security::Plain,
            path.clone(),
            options,
            None,
            notice().0,
        )
    };
    let first = bind().unwrap();
    let error = bind().unwrap_err().to_string();
    assert!(error.contains("another receiver"), "{error}");
    drop(first);
    bind().unwrap();
}

#[test]
fn nothing_goes_out_unprotected_unasked() {
    for address in ["192.0.2.1:5344", "127.0.0.1:5344", "[::1]:5344"] {
        let error = refusal(Peer::new(address.to_owned(), Security::Local));
        assert!(error.contains("--plain"), "{error}");
    }
    let dir = temporary();
    for address in ["0.0.0.0:0", "127.0.0.1:0"] {
        let (options, path) = (OutputOptions::default(), dir.path().to_owned());
        let bound = Receiver::bind(address, Security::Local, path, options, None, notice().0);
        let error = bound.unwrap_err().to_string();
        assert!(error.contains("--plain"), "{error}");
        assert!(error.contains("every user of this machine"), "{error}");
    }
}
