// SPDX-License-Identifier: GPL-2.0

//! A receiver, and senders of small traces.

// Each test program uses a part of this file.
#![allow(dead_code)]

use consumer::{Consumer, End, Source};
use network::{Notice, Peer, Receiver, Retry, Security, Sender, ServerTls};
use rtrace_abi::header::Layout;
use rtrace_abi::ioctl::Packet;
use rustix::pipe::{pipe_with, PipeFlags};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use store::OutputOptions;
use synthetic::fake::{Channel, Full};
use synthetic::{PacketBuilder, UUID};
use tempfile::TempDir;
use uuid::Uuid;

/// Short delays for tests.
pub const RETRY: Retry = Retry {
    first: Duration::from_millis(1),
    most: Duration::from_millis(20),
};

/// Messages for the user.
pub type Messages = Arc<Mutex<Vec<String>>>;

/// A notice that stores its messages.
pub fn notice() -> (Notice, Messages) {
    let messages = Messages::default();
    let clone = Arc::clone(&messages);
    let notice = move |text: &str| clone.lock().unwrap().push(text.to_owned());
    (Arc::new(notice), messages)
}

/// A receiver that runs until this is dropped.
pub struct Running {
    pub dir: PathBuf,
    pub address: String,
    pub messages: Messages,
    stopper: Option<OwnedFd>,
    thread: Option<JoinHandle<system::Result<()>>>,
}

impl Running {
    /// Listens at a port that the system chooses.
    pub fn start(dir: &Path) -> Self {
        let options = OutputOptions::default();
        Self::start_at("127.0.0.1:0", dir, Security::Plain, options)
    }

    pub fn start_at(
        address: &str,
        dir: &Path,
        security: Security<ServerTls>,
        options: OutputOptions,
    ) -> Self {
        Self::start_with(address, dir, security, options, None)
    }

    pub fn start_with(
        address: &str,
        dir: &Path,
        security: Security<ServerTls>,
        options: OutputOptions,
        quota: Option<u64>,
    ) -> Self {
        let (notice, messages) = notice();
        fs::create_dir_all(dir).unwrap();
        let dir = dir.to_owned();
        let receiver =
            Receiver::bind(address, security, dir.clone(), options, quota, notice).unwrap();
        let address = receiver.address().unwrap();
        let (stop, stopper) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        Self {
            dir,
            address,
            messages,
            stopper: Some(stopper),
            thread: Some(thread::spawn(move || receiver.run(&stop))),
        }
    }

    /// The directory of the trace that all tests send.
    pub fn trace(&self) -> PathBuf {
        let uuid = Uuid::from_bytes(UUID);
        self.dir.join(format!("{}-{uuid}", network::host()))
    }

    pub fn file(&self, cpu: u32) -> Vec<u8> {
        fs::read(self.trace().join(format!("channel0_cpu{cpu}"))).unwrap_or_default()
    }

    pub fn has_said(&self, what: &str) -> bool {
        self.messages
            .lock()
            .unwrap()
            .iter()
            .any(|messages| messages.contains(what))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stopper.take());
        let ended = self.thread.take().unwrap().join();
        if !thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

/// Stops a consumer when the second descriptor is dropped or written to.
pub fn stopper() -> (OwnedFd, OwnedFd) {
    pipe_with(PipeFlags::CLOEXEC).unwrap()
}

/// A consumer of the channel that sends to an address.
pub fn open(
    channel: &Channel,
    address: &str,
    stop: &OwnedFd,
) -> system::Result<(Consumer<Channel>, Messages)> {
    open_to(
        channel,
        Peer::new(address.to_owned(), Security::Plain),
        stop,
    )
}

pub fn open_to(
    channel: &Channel,
    peer: Peer,
    stop: &OwnedFd,
) -> system::Result<(Consumer<Channel>, Messages)> {
    let (notice, messages) = notice();
    let stop = stop.try_clone().unwrap();
    let consumer = Consumer::open(channel.clone(), |source| {
        let streams = source.streams()?;
        let sender = Sender::begin(peer, source.uuid(), streams, RETRY, stop, notice)?;
        Ok(Box::new(sender))
    })?;
    Ok((consumer, messages))
}

/// Sends a finished channel to its end.
pub fn send(channel: &Channel, address: &str) {
    let (stop, _keep) = stopper();
    let (mut consumer, _) = open(channel, address, &stop).unwrap();
    assert_eq!(consumer.run(&stop).unwrap(), End::Over);
    let end = consumer.into_sink();
    end.end(consumer::State::Over, 0, "").unwrap();
}

/// A small packet.
pub fn small(cpu: u32, sequence: u64) -> Full {
    let builder = PacketBuilder::new(Layout::Compact, cpu, sequence, sequence * 1000)
        .softirq(sequence * 1000 + 1, sequence as u32);
    let records = builder.records;
    let bytes = builder.close(sequence * 1000 + 1, 8);
    let size = bytes.len() as u64;
    let packet = Packet {
        sequence,
        size,
        content: size,
        records,
    };
    (packet, bytes)
}

/// A finished channel with these packets, and the expected contents of its files.
pub fn filled(cpus: u32, packets: u64, make: impl Fn(u32, u64) -> Full) -> (Channel, Vec<Vec<u8>>) {
    let channel = Channel::new(cpus);
    let mut expected = Vec::new();
    for cpu in 0..cpus {
        let mut file = Vec::new();
        for sequence in 0..packets {
            let packet = make(cpu, sequence);
            file.extend(&packet.1);
            channel.with(cpu, |mut buffer| buffer.push(packet));
        }
        expected.push(file);
    }
    channel.end();
    (channel, expected)
}

pub fn temporary() -> TempDir {
    TempDir::new().unwrap()
}
