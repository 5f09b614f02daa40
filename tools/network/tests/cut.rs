// SPDX-License-Identifier: GPL-2.0

//! Connections that are cut after each of their bytes: the trace continues without gaps or duplicate packets.

mod common;

use common::{filled, open, small, stopper, temporary, Running};
use consumer::{End, State};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use store::Recording;
use synthetic::{uuid_text, UUID};
use uuid::Uuid;

/// Direction of bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    There,
    Back,
}

/// A proxy between a sender and a receiver. It cuts the first connection after a number of bytes.
struct Proxy {
    address: String,
    /// Whether it has cut the connection.
    is_cut: Arc<AtomicBool>,
}

impl Proxy {
    fn start(to: &str, way: Way, after: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let is_cut = Arc::new(AtomicBool::new(false));
        let (to, cuts) = (to.to_owned(), Arc::clone(&is_cut));
        thread::spawn(move || {
            let mut cut = Some(after);
            while let Ok((near, _)) = listener.accept() {
                let Ok(far) = TcpStream::connect(&to) else {
                    continue;
                };
                let limit = cut.take();
                let pairs = [
                    (
                        Way::There,
                        near.try_clone().unwrap(),
                        far.try_clone().unwrap(),
                    ),
                    (Way::Back, far, near),
                ];
                for (this, from, into) in pairs {
                    let limit = limit.filter(|_| this == way);
                    let cuts = Arc::clone(&cuts);
                    thread::spawn(move || {
                        if pass(&from, &into, limit) {
                            cuts.store(true, Ordering::Relaxed);
                        }
                        let _ = from.shutdown(Shutdown::Both);
                        let _ = into.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Self { address, is_cut }
    }
}

/// Forwards the bytes that arrive, up to `limit`. Returns whether the limit was reached.
fn pass(mut from: &TcpStream, mut into: &TcpStream, limit: Option<u64>) -> bool {
    let mut moved = 0;
    let mut bytes = [0; 4096];
    while limit != Some(moved) {
        let most = limit.map_or(4096, |limit| (limit - moved).min(4096)) as usize;
        match from.read(&mut bytes[..most]) {
            Ok(read @ 1..) if into.write_all(&bytes[..read]).is_ok() => moved += read as u64,
            _ => return false,
        }
    }
    true
}

/// Sends two streams of small packets through a proxy. Returns whether the connection was cut.
fn is_cut(receiver: &Running, way: Way, after: u64) -> bool {
    let _ = fs::remove_dir_all(receiver.trace());
    let (channel, expected) = filled(2, 2, small);
    // A short text, because the test runs once for each byte.
    let metadata = format!("trace {{ uuid = \"{}\"; }};", uuid_text(UUID));
    *channel.metadata.lock().unwrap() = Some(metadata.clone());
    let proxy = Proxy::start(&receiver.address, way, after);
    let (stop, _keep) = stopper();
    let (mut consumer, _) = open(&channel, &proxy.address, &stop).unwrap();
    assert_eq!(consumer.run(&stop).unwrap(), End::Over);
    for (cpu, expected) in (0..).zip(&expected) {
        assert!(
            receiver.file(cpu) == *expected,
            "CPU {cpu}, cut after {after}"
        );
        channel.with(cpu, |buffer| assert_eq!(buffer.put, [0, 1]));
    }
    let text = fs::read_to_string(receiver.trace().join("metadata")).unwrap();
    assert_eq!(text, metadata);
    // The same holds if the connection is cut within the last messages.
    consumer.into_sink().end(State::Over, 0, "").unwrap();
    let recording = Recording::read(&receiver.trace(), Uuid::from_bytes(UUID));
    assert_eq!(recording.unwrap().unwrap().state, State::Over);
    proxy.is_cut.load(Ordering::Relaxed)
}

#[test]
fn at_each_byte() {
    let dir = temporary();
    let receiver = Running::start(dir.path());
    for (way, least) in [(Way::There, 500), (Way::Back, 50)] {
        let bytes = (0..).take_while(|after| is_cut(&receiver, way, *after));
        let bytes = bytes.count();
        assert!(bytes > least, "{bytes} bytes");
    }
}
