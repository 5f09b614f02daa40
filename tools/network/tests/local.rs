// SPDX-License-Identifier: GPL-2.0

//! Unix sockets: the users that may send and watch, and traces over them.

mod common;

use common::{filled, open_to, small, stopper, temporary, Running};
use consumer::{End, State};
use network::message::Message;
use network::{Hello, Peer, Security, Sent};
use rustix::process::{geteuid, Uid};
use rustix::thread::set_thread_res_uid;
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use store::OutputOptions;
use synthetic::fake::packet;
use synthetic::UUID;
use tempfile::TempDir;
use uuid::Uuid;

fn start(dir: &Path, quota: Option<u64>) -> Running {
    let address = dir.join("socket").display().to_string();
    let traces = dir.join("traces");
    let options = OutputOptions::default();
    Running::start_with(&address, &traces, Security::Local, options, quota)
}

fn send(channel: &synthetic::fake::Channel, receiver: &Running) -> common::Messages {
    let (stop, _keep) = stopper();
    let peer = Peer::new(receiver.address.clone(), Security::Local);
    let (mut consumer, messages) = open_to(channel, peer, &stop).unwrap();
    assert_eq!(consumer.run(&stop).unwrap(), End::Over);
    consumer.into_sink().end(State::Over, 0, "").unwrap();
    messages
}

#[test]
fn a_trace_arrives_byte_by_byte() {
    let dir = temporary();
    let receiver = start(dir.path(), None);
    let make = |cpu, sequence| packet(cpu, sequence, 5000 << (sequence % 8));
    let (channel, expected) = filled(3, 20, make);
    send(&channel, &receiver);
    for (cpu, expected) in (0..).zip(&expected) {
        assert!(receiver.file(cpu) == *expected, "CPU {cpu}");
    }
}

#[test]
fn the_socket_is_for_its_user_and_ends_with_the_receiver() {
    let dir = temporary();
    let receiver = start(dir.path(), None);
    let path = dir.path().join("socket");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(receiver);
    assert!(!path.exists());
    // A receiver that was killed leaves its socket. The next receiver replaces it.
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let receiver = start(dir.path(), None);
    let (channel, expected) = filled(1, 3, small);
    send(&channel, &receiver);
    assert!(receiver.file(0) == expected[0]);
}

#[test]
fn what_is_there_is_not_replaced() {
    let dir = temporary();
    let bind = |name: &str| {
        let path = dir.path().join(name).display().to_string();
        let traces = dir.path().join("other");
        fs::create_dir_all(&traces).unwrap();
        let options = OutputOptions::default();
        let notice = common::notice().0;
        let bound = network::Receiver::bind(&path, Security::Local, traces, options, None, notice);
        bound.unwrap_err().to_string()
    };
    let _receiver = start(dir.path(), None);
    assert!(bind("socket").contains("in use"));
    fs::write(dir.path().join("file"), "text").unwrap();
    assert!(bind("file").contains("in use"));
    assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"text");
}

#[test]
fn a_quota_of_bytes() {
    let dir = TempDir::new().unwrap();
    let quota = 200_000;
    let receiver = start(dir.path(), Some(quota));
    let old = receiver.dir.join("old");
    fs::create_dir(&old).unwrap();
    fs::write(old.join("file"), vec![1; 100_000]).unwrap();
    let (channel, expected) = filled(1, 30, |cpu, sequence| packet(cpu, sequence, 4096));
    let messages = thread::scope(|scope| {
        let sending = scope.spawn(|| send(&channel, &receiver));
        while !receiver.has_said("--quota") {
            assert!(!sending.is_finished());
            thread::yield_now();
        }
        assert!(receiver.file(0).len() as u64 + 100_000 <= quota);
        // There is room again.
        fs::remove_dir_all(&old).unwrap();
        sending.join().unwrap()
    });
    assert!(receiver.file(0) == expected[0]);
    let messages = messages.lock().unwrap();
    assert!(messages[0].contains("--quota"), "{messages:?}");
}

/// A user that is neither root nor, where it matters, the current one.
const NOBODY: u32 = 65534;

/// Runs this as another user; [`None`] if the current user is not root.
fn as_nobody<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if !geteuid().is_root() {
        return None;
    }
    let other = thread::spawn(|| {
        let nobody = Uid::from_raw(NOBODY);
        set_thread_res_uid(nobody, nobody, nobody).unwrap();
        run()
    });
    Some(other.join().unwrap())
}

/// Lets all users access a path, so that only the check of the user counts.
fn open_up(path: &Path) {
    let mode = if path.is_dir() { 0o777 } else { 0o666 };
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn other_users_may_neither_send_nor_watch() {
    let dir = temporary();
    let receiver = start(dir.path(), None);
    open_up(dir.path());
    let path = dir.path().join("socket");
    let address = receiver.address.clone();
    let connect = move || {
        let closed = UnixStream::connect(&path).unwrap_err().kind();
        assert_eq!(closed, ErrorKind::PermissionDenied);
    };
    if as_nobody(connect).is_none() {
        synthetic::skip("needs root");
        return;
    }
    // The check holds even if the socket's permissions were changed.
    open_up(&dir.path().join("socket"));
    let hello = |hello: Hello| {
        let address = address.clone();
        let answer = move || {
            let mut stream = UnixStream::connect(address).unwrap();
            let sent = stream.write_all(&Message::Hello(hello).to_bytes());
            sent.and_then(|()| Message::read(&mut stream)).unwrap()
        };
        match as_nobody(answer).unwrap() {
            Message::Refused { reason, .. } => reason,
            other => panic!("{other:?}"),
        }
    };
    let sent = Sent {
        host: "host".to_owned(),
        uuid: Uuid::from_bytes(UUID),
        streams: Vec::new(),
    };
    for hello in [
        hello(Hello::Send(sent)),
        hello(Hello::Watch { trace: None }),
    ] {
        assert!(hello.contains("only root and user"), "{hello}");
    }
    assert_eq!(fs::read_dir(dir.path().join("traces")).unwrap().count(), 0);
}

#[test]
fn nothing_is_sent_to_another_user() {
    let dir = temporary();
    open_up(dir.path());
    let path = dir.path().join("socket");
    let theirs = path.clone();
    let Some(listener) = as_nobody(move || UnixListener::bind(theirs).unwrap()) else {
        synthetic::skip("needs root");
        return;
    };
    let (stop, _keep) = stopper();
    let peer = Peer::new(path.display().to_string(), Security::Local);
    let (channel, _) = filled(1, 1, small);
    let error = open_to(&channel, peer, &stop).unwrap_err().to_string();
    assert!(error.contains("only root and user"), "{error}");
    let mut received = Vec::new();
    let (mut stream, _) = listener.accept().unwrap();
    stream.read_to_end(&mut received).unwrap();
    assert!(received.is_empty());
}
