// SPDX-License-Identifier: GPL-2.0

//! The consumer's loop against a fake source.

use consumer::{Consumer, End, Sink, State, Stream};
use ctf::{StreamName, METADATA};
use rtrace_abi::header::Layout;
use rtrace_abi::ioctl::Packet;
use rustix::io::Errno;
use rustix::pipe::{pipe_with, PipeFlags};
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use synthetic::fake::{name, open, packet, Channel};
use synthetic::UUID;
use system::Error;
use tempfile::TempDir;

/// A pair that stops a consumer when its second half is written to.
fn stopper() -> (OwnedFd, OwnedFd) {
    pipe_with(PipeFlags::CLOEXEC).unwrap()
}

fn file(dir: &TempDir, cpu: u32) -> Vec<u8> {
    fs::read(dir.path().join(format!("channel0_cpu{cpu}"))).unwrap()
}

/// A sink in memory: it has the packets' numbers, by stream.
#[derive(Debug, Default)]
struct Numbers {
    streams: Vec<(StreamName, Vec<u64>)>,
    /// The packet at which it fails.
    bad: Option<u64>,
}

/// The test's view of the sink.
#[derive(Clone, Debug, Default)]
struct Shared(Arc<Mutex<Numbers>>);

impl Sink for Shared {
    fn resumed(&self) -> bool {
        false
    }

    fn describe(&mut self, _: &str) -> system::Result<()> {
        Ok(())
    }

    fn open(&mut self, stream: &StreamName) -> system::Result<usize> {
        let streams = &mut self.0.lock().unwrap().streams;
        streams.push((stream.clone(), Vec::new()));
        Ok(streams.len() - 1)
    }

    fn last(&self, stream: usize) -> Option<u64> {
        self.0.lock().unwrap().streams[stream].1.last().copied()
    }

    fn packet(
        &mut self,
        stream: usize,
        packet: &Packet,
        from: &mut dyn Stream,
    ) -> system::Result<()> {
        let mut numbers = self.0.lock().unwrap();
        if numbers.bad == Some(packet.sequence) {
            let cause = Errno::CONNRESET.into();
            let what = "the sink".to_owned();
            return Err(Error::System { what, cause });
        }
        let (reader, writer) = stopper();
        let mut left = packet.size as usize;
        while left > 0 {
            left -= from.splice(writer.as_fd(), left.min(4096)).unwrap();
            rustix::io::read(&reader, &mut [0; 4096]).unwrap();
        }
        numbers.streams[stream].1.push(packet.sequence);
        Ok(())
    }

    fn name(&self, stream: usize) -> String {
        self.0.lock().unwrap().streams[stream].0.to_string()
    }

    fn sync(&mut self) -> system::Result<()> {
        Ok(())
    }

    fn end(self: Box<Self>, _: State, _: u64, _: &str) -> system::Result<()> {
        Ok(())
    }

    fn discard(self: Box<Self>) -> system::Result<()> {
        Ok(())
    }
}

/// Reads a channel that is over to its end.
fn run(channel: &Channel, dir: &Path) -> system::Result<End> {
    let (stop, _keep) = stopper();
    open(channel, dir)?.run(&stop)
}

#[test]
fn every_packet_reaches_its_file() {
    let (channel, dir) = (Channel::new(2), TempDir::new().unwrap());
    let mut expected: [Vec<u8>; 2] = [Vec::new(), Vec::new()];
    for sequence in 0..20 {
        for cpu in 0..2 {
            let packet = packet(cpu, sequence, 5000 << (sequence % 6));
            expected[cpu as usize].extend(&packet.1);
            channel.with(cpu, |mut buffer| buffer.push(packet));
        }
    }
    channel.with(1, |mut buffer| buffer.most = 1000);
    channel.end();
    assert_eq!(run(&channel, dir.path()).unwrap(), End::Over);
    for cpu in 0..2 {
        assert!(file(&dir, cpu) == expected[cpu as usize], "CPU {cpu}");
        channel.with(cpu, |buffer| assert_eq!(buffer.put, Vec::from_iter(0..20)));
    }
    let text = fs::read_to_string(dir.path().join(METADATA)).unwrap();
    assert_eq!(text, synthetic::metadata(UUID, Layout::Compact));
}

#[test]
fn each_channel_has_its_files() {
    let (channel, dir) = (Channel::new(2), TempDir::new().unwrap());
    channel.add_to("aux", 1);
    let packets = [packet(1, 0, 4096), packet(1, 0, 8192)];
    channel.with(1, |mut buffer| buffer.push(packets[0].clone()));
    channel.with_of("aux", 1, |mut buffer| buffer.push(packets[1].clone()));
    channel.end();
    assert_eq!(run(&channel, dir.path()).unwrap(), End::Over);
    assert!(file(&dir, 1) == packets[0].1);
    assert!(fs::read(dir.path().join("aux_cpu1")).unwrap() == packets[1].1);
    assert!(!dir.path().join("aux_cpu0").exists());
    assert!(file(&dir, 0).is_empty());
}

#[test]
fn a_packet_that_the_sink_does_not_take_is_not_given_back() {
    let (channel, sink, (stop, _keep)) = (Channel::new(2), Shared::default(), stopper());
    for cpu in 0..2 {
        for sequence in 0..3 {
            channel.with(cpu, |mut buffer| buffer.push(packet(cpu, sequence, 4096)));
        }
    }
    channel.end();
    let open = || Consumer::open(channel.clone(), |_| Ok(Box::new(sink.clone())));
    sink.0.lock().unwrap().bad = Some(2);
    let error = open().unwrap().run(&stop).unwrap_err();
    assert!(error.to_string().starts_with("the sink: "), "{error}");
    channel.with(0, |buffer| assert_eq!(buffer.put, [0, 1]));
    *sink.0.lock().unwrap() = Numbers::default();
    let mut consumer = open().unwrap();
    assert_eq!(consumer.run(&stop).unwrap(), End::Over);
    let streams = sink.0.lock().unwrap().streams.clone();
    assert_eq!(streams[0].0.to_string(), "channel0_cpu0");
    assert_eq!(streams[0].1, [2]);
    assert_eq!(streams[1].1.last(), Some(&2));
    // The error of a stream has the sink's name for it.
    channel.add(0);
    channel.with(0, |mut buffer| {
        buffer.push(packet(0, 3, 4096));
        let packet = buffer.ready.pop_front();
        buffer.held = packet.map(|packet| (packet, 0));
    });
    let error = open().unwrap().run(&stop).unwrap_err();
    assert!(
        error.to_string().starts_with("channel0_cpu0: taking"),
        "{error}"
    );
}

#[test]
fn a_stop_flushes_first() {
    let (channel, dir) = (Channel::new(1), TempDir::new().unwrap());
    let (first, last) = (packet(0, 0, 4096), packet(0, 1, 4096));
    let expected = [first.1.clone(), last.1.clone()].concat();
    channel.with(0, |mut buffer| {
        buffer.push(first);
        buffer.open = Some(last);
    });
    let (stop, stopper) = stopper();
    let mut consumer = open(&channel, dir.path()).unwrap();
    let end = thread::scope(|scope| {
        let end = scope.spawn(|| consumer.run(&stop));
        thread::sleep(Duration::from_millis(50));
        rustix::io::write(&stopper, b"x").unwrap();
        end.join().unwrap()
    });
    assert_eq!(end.unwrap(), End::Stopped);
    assert!(file(&dir, 0) == expected);
    assert_eq!(consumer.written().packets, 2);
}

#[test]
fn a_snapshot_leaves_the_trace_alone() {
    let (channel, dir) = (Channel::new(1), TempDir::new().unwrap());
    channel.with(0, |mut buffer| {
        for sequence in 3..6 {
            buffer.push(packet(0, sequence, 4096));
        }
        buffer.open = Some(packet(0, 6, 4096));
    });
    let mut consumer = open(&channel, dir.path()).unwrap();
    consumer.snapshot().unwrap();
    assert_eq!(consumer.written().packets, 4);
    channel.with(0, |buffer| assert!(!buffer.over));
}

#[test]
fn a_snapshot_leaves_what_comes_after_its_moment() {
    let (channel, dir) = (Channel::new(3), TempDir::new().unwrap());
    // Of CPU 0 two packets are finished and one follows meanwhile; of CPU 1 all follow meanwhile; CPU 2 is over.
    for (cpu, sequences, next) in [(0, 7..10, Some(9)), (1, 4..6, Some(4)), (2, 0..3, None)] {
        for sequence in sequences {
            channel.with(cpu, |mut buffer| buffer.push(packet(cpu, sequence, 4096)));
        }
        if let Some(next) = next {
            let mut all = channel.next_packets.lock().unwrap();
            all.insert(name("channel0", cpu), next);
        }
    }
    let mut consumer = open(&channel, dir.path()).unwrap();
    consumer.snapshot().unwrap();
    assert_eq!(consumer.written().packets, 2 + 3);
    drop(consumer);
    let left = |cpu| {
        channel.with(cpu, |buffer| {
            assert!(buffer.held.is_none());
            let left = buffer.ready.iter().map(|packet| packet.0.sequence);
            left.collect::<Vec<_>>()
        })
    };
    assert_eq!((left(0), left(1), left(2)), (vec![9], vec![4, 5], vec![]));
}

#[test]
fn a_snapshot_takes_all_at_one_moment() {
    let (channel, dir) = (Channel::new(3), TempDir::new().unwrap());
    for cpu in 0..3 {
        channel.with(cpu, |mut buffer| {
            buffer.push(packet(cpu, 7, 4096));
            buffer.open = Some(packet(cpu, 8, 4096));
            buffer.late = Some(packet(cpu, 9, 4096));
            // CPU 1 cannot be taken at once; on CPU 2 nothing is overwritten.
            buffer.refuses = [None, Some(Errno::NOMEM), Some(Errno::OPNOTSUPP)][cpu as usize];
        });
        let mut next = channel.next_packets.lock().unwrap();
        next.insert(name("channel0", cpu), 9);
    }
    let mut consumer = open(&channel, dir.path()).unwrap();
    consumer.snapshot().unwrap();
    assert_eq!(consumer.written().packets, 2 * 3);
    let exposed = consumer.exposed().unwrap();
    assert_eq!(exposed.streams, 1);
    let text = exposed.to_string();
    assert!(text.starts_with("1 stream could not be frozen"), "{text}");
    assert!(text.contains("memory"), "{text}");
    assert!(consumer.exposed().is_none());
    drop(consumer);
    for cpu in 0..3 {
        channel.with(cpu, |buffer| {
            assert_eq!(buffer.put, [7, 8]);
            assert_eq!(buffer.ready[0].0.sequence, 9);
        });
    }
}

#[test]
fn cpus_that_appear_are_read() {
    let (channel, dir) = (Channel::new(1), TempDir::new().unwrap());
    let (stop, _keep) = stopper();
    let mut consumer = open(&channel, dir.path()).unwrap();
    let end = thread::scope(|scope| {
        let end = scope.spawn(|| consumer.run(&stop));
        channel.add(1);
        channel.with(1, |mut buffer| buffer.push(packet(1, 0, 4096)));
        // Another packet arrives just before the end.
        while channel.with(1, |buffer| buffer.put.is_empty()) {
            thread::sleep(Duration::from_millis(10));
        }
        channel.add(2);
        channel.with(2, |mut buffer| buffer.push(packet(2, 0, 4096)));
        channel.end();
        end.join().unwrap()
    });
    assert_eq!(end.unwrap(), End::Over);
    assert_eq!(file(&dir, 1).len(), 4096);
    assert_eq!(file(&dir, 2).len(), 4096);
}

#[test]
fn metadata_is_there_before_the_events_that_need_it() {
    let (channel, dir) = (Channel::new(1), TempDir::new().unwrap());
    let longer = format!(
        "{}\n/* more */\n",
        synthetic::metadata(UUID, Layout::Compact)
    );
    let mut consumer = open(&channel, dir.path()).unwrap();
    *channel.metadata.lock().unwrap() = Some(longer.clone());
    channel.with(0, |mut buffer| {
        buffer.push(packet(0, 0, 4096));
        // The packet itself cannot be read.
        buffer.fail_after = Some(0);
    });
    let (stop, _keep) = stopper();
    assert!(consumer.run(&stop).is_err());
    assert_eq!(
        fs::read_to_string(dir.path().join(METADATA)).unwrap(),
        longer
    );
}

#[test]
fn a_restart_continues_without_gap_or_double() {
    let (channel, dir) = (Channel::new(1), TempDir::new().unwrap());
    let packets: Vec<_> = (0..4).map(|sequence| packet(0, sequence, 20_000)).collect();
    let expected: Vec<u8> = packets.iter().flat_map(|packet| packet.1.clone()).collect();
    // The first consumer wrote two packets, or fewer, and a part of the next. It died before it returned the last.
    for (whole, part) in [(2, 0), (2, 1), (2, 95), (2, 19_000), (0, 50), (1, 0)] {
        let length = whole * packets[0].1.len() + part;
        fs::write(
            dir.path().join(METADATA),
            synthetic::metadata(UUID, Layout::Compact),
        )
        .unwrap();
        fs::write(dir.path().join("channel0_cpu0"), &expected[..length]).unwrap();
        channel.add(0);
        *channel.metadata.lock().unwrap() = Some(synthetic::metadata(UUID, Layout::Compact));
        channel.with(0, |mut buffer| {
            for packet in &packets[whole.saturating_sub(1)..] {
                buffer.push(packet.clone());
            }
        });
        channel.end();
        assert_eq!(run(&channel, dir.path()).unwrap(), End::Over);
        assert!(
            file(&dir, 0) == expected,
            "{whole} packets and {part} bytes"
        );
    }
}

#[test]
fn a_packet_half_read_is_taken_back() {
    let (channel, dir) = (Channel::new(1), TempDir::new().unwrap());
    let packets = [packet(0, 0, 8192), packet(0, 1, 8192)];
    channel.with(0, |mut buffer| {
        packets
            .iter()
            .for_each(|packet| buffer.push(packet.clone()));
        buffer.most = 4096;
        buffer.fail_after = Some(3);
    });
    channel.end();
    match run(&channel, dir.path()) {
        Err(Error::Stream { action, .. }) => assert_eq!(action, "reading a packet"),
        other => panic!("{other:?}"),
    }
    assert!(file(&dir, 0) == packets[0].1);
    // The next consumer continues there.
    *channel.metadata.lock().unwrap() = Some(synthetic::metadata(UUID, Layout::Compact));
    channel.with(0, |mut buffer| buffer.fail_after = None);
    assert_eq!(run(&channel, dir.path()).unwrap(), End::Over);
    assert!(file(&dir, 0) == [packets[0].1.clone(), packets[1].1.clone()].concat());
}

#[test]
fn another_directory_is_refused() {
    let (mut channel, dir) = (Channel::new(1), TempDir::new().unwrap());
    channel.end();
    run(&channel, dir.path()).unwrap();
    channel.uuid = [7; 16];
    let error = run(&channel, dir.path()).unwrap_err();
    assert!(matches!(error, Error::OutputTaken { .. }), "{error}");
    assert!(error.to_string().contains("another trace"), "{error}");

    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("letter"), "dear").unwrap();
    let error = run(&channel, dir.path()).unwrap_err();
    assert!(matches!(error, Error::OutputTaken { .. }), "{error}");
    let error = run(&channel, &dir.path().join("letter")).unwrap_err();
    assert!(error.to_string().contains("is not a directory"), "{error}");

    // The rest of a consumer that was killed before it had metadata is no obstacle.
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join(".metadata.new"), "/* CTF").unwrap();
    fs::write(dir.path().join(".recording"), "trace").unwrap();
    channel.uuid = UUID;
    *channel.metadata.lock().unwrap() = Some(synthetic::metadata(UUID, Layout::Compact));
    run(&channel, dir.path()).unwrap();
}

#[test]
fn damage_on_disk_is_not_cut_off() {
    let (channel, dir) = (Channel::new(1), TempDir::new().unwrap());
    fs::write(
        dir.path().join(METADATA),
        synthetic::metadata(UUID, Layout::Compact),
    )
    .unwrap();
    let mut bytes = [packet(0, 0, 4096).1, packet(0, 1, 4096).1].concat();
    bytes[4096] = 0;
    fs::write(dir.path().join("channel0_cpu0"), &bytes).unwrap();
    match run(&channel, dir.path()) {
        Err(Error::Corrupt { offset, .. }) => assert_eq!(offset, 4096),
        other => panic!("{other:?}"),
    }
    assert!(file(&dir, 0) == bytes);
}
