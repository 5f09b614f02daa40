// SPDX-License-Identifier: GPL-2.0

//! A packet in transit consists of pages of the kernel's buffer, not of a copy. After the kernel has them back,
//! they are never sent.

mod common;

use common::{filled, notice, stopper, RETRY};
use consumer::{Sink, Source, State, Stream};
use network::message::Message;
use network::{Peer, Security, Sender};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;
use synthetic::fake::{name, packet, FakeStream};
use synthetic::UUID;
use uuid::Uuid;

/// Accepts and welcomes the next sender.
fn welcome(listener: &TcpListener) -> TcpStream {
    let (mut peer, _) = listener.accept().unwrap();
    assert!(matches!(
        Message::read(&mut peer).unwrap(),
        Message::Hello(_)
    ));
    let trace = "a".to_owned();
    let resumed = false;
    say(&mut peer, &Message::Welcome { trace, resumed });
    peer
}

fn say(peer: &mut TcpStream, message: &Message) {
    peer.write_all(&message.to_bytes()).unwrap();
}

/// A sender with a packet in transit, and the receiver, which has not read the packet. The packet is larger
/// than the receiver's socket buffer.
struct OnItsWay {
    sender: Box<Sender>,
    stream: FakeStream,
    listener: TcpListener,
    receiver: TcpStream,
}

impl OnItsWay {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let welcoming = thread::spawn(move || (welcome(&listener), listener));
        // The sender is to stop, so it waits only for a short time.
        let (stop, _) = stopper();
        let (channel, _) = filled(1, 1, |cpu, sequence| packet(cpu, sequence, 300_000));
        let name = name("channel0", 0);
        let mut stream = channel.open(&name).unwrap().unwrap();
        let peer = Peer::new(address, Security::Plain);
        let (uuid, streams) = (Uuid::from_bytes(UUID), vec![name.clone()]);
        let mut sender = Sender::begin(peer, uuid, streams, RETRY, stop, notice().0).unwrap();
        let (receiver, listener) = welcoming.join().unwrap();
        let number = sender.open(&name).unwrap();
        let packet = stream.get().unwrap();
        sender.packet(number, &packet, &mut stream).unwrap();
        Self {
            sender: Box::new(sender),
            stream,
            listener,
            receiver,
        }
    }
}

#[test]
fn it_ends_with_the_sender() {
    let OnItsWay {
        sender,
        mut receiver,
        ..
    } = OnItsWay::new();
    // As after a kill: only the kernel acts on the socket.
    drop(sender);
    let read = receiver.read_to_end(&mut Vec::new());
    assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn an_answer_counts_however_late_it_is_looked_at() {
    let OnItsWay {
        mut sender,
        stream: _stream,
        listener: _listener,
        mut receiver,
    } = OnItsWay::new();
    // The sender notices that it is to stop. Its other result does not matter.
    sender.attend().unwrap();
    let (number, next) = (0, 1);
    say(&mut receiver, &Message::Have { number, next });
    // Longer than it waits for an answer after that.
    thread::sleep(Duration::from_secs(6));
    sender.attend().unwrap();
    assert_eq!(sender.last(0), Some(0));
}

#[test]
fn it_is_not_sent_again_after_the_stream_was_closed() {
    let OnItsWay {
        mut sender,
        stream,
        listener,
        ..
    } = OnItsWay::new();
    sender.sync().unwrap();
    drop(stream);
    let heard = thread::spawn(move || {
        let mut peer = welcome(&listener);
        loop {
            match Message::read(&mut peer).unwrap() {
                Message::Stream { number, .. } => {
                    say(&mut peer, &Message::Have { number, next: 0 });
                }
                Message::End { state, .. } => {
                    say(&mut peer, &Message::Done);
                    return state;
                }
                Message::Stats(_) => {}
                other => panic!("{other:?}"),
            }
        }
    });
    sender.end(State::Failed, 0, "").unwrap();
    assert_eq!(heard.join().unwrap(), State::Failed);
}
