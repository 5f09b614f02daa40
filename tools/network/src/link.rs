// SPDX-License-Identifier: GPL-2.0

//! A connection that a receiver has accepted: sends messages, and reads the answers.

use crate::hello::Sent;
use crate::message::{invalid, Message};
use crate::peer::Peer;
use crate::trouble::Trouble;
use crate::wire::Wire;
use crate::Hello;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Maximum size in bytes of an answer that is not complete yet.
const MOST: usize = 64 << 10;

/// A connection after the welcome. When it is closed, unsent data is dropped.
#[derive(Debug)]
pub struct Link {
    wire: Wire,
    /// Bytes that were received and are not a complete answer yet.
    came: Vec<u8>,
    resumed: bool,
}

impl Link {
    /// Connects to the receiver, and announces the trace.
    pub fn connect(peer: &Peer, sent: &Sent, stop: Option<OwnedFd>) -> Result<Self, Trouble> {
        let mut wire = peer.connect(stop)?;
        wire.forget_on_close()?;
        wire.say(&Message::Hello(Hello::Send(sent.clone())))?;
        match Message::read(&mut wire).map_err(Trouble::of_greeting)? {
            Message::Welcome { resumed, .. } => Ok(Self {
                wire,
                came: Vec::new(),
                resumed,
            }),
            Message::Refused { lasting, reason } => Err(Trouble {
                lasting,
                what: reason,
            }),
            _ => Err(Trouble::lasting(
                "the peer does not speak rtrace's protocol",
            )),
        }
    }

    /// Whether the receiver had a part of the trace before.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Sends a message.
    pub fn say(&mut self, message: &Message) -> io::Result<()> {
        self.wire.say(message)
    }

    /// Sends several messages at once.
    pub fn say_all(&mut self, messages: &[Message]) -> io::Result<()> {
        let bytes: Vec<u8> = messages.iter().flat_map(Message::to_bytes).collect();
        self.wire.write_all(&bytes)?;
        self.wire.flush()
    }

    /// Sends a packet of a stream: the `size` bytes in `pipe`.
    pub fn send(&mut self, number: u32, pipe: BorrowedFd<'_>, size: usize) -> io::Result<()> {
        let length = u32::try_from(size).map_err(|_| invalid("a packet is too large"))?;
        self.wire.begin(&Message::Packet {
            number,
            size: length,
        })?;
        self.wire.send_pipe(pipe, size)
    }

    /// From now on the receiver may be silent for any time, while its machine is reachable.
    pub fn let_be_silent(&mut self) {
        self.wire.let_be_silent();
    }

    /// The next answer, if one was received.
    pub fn answer(&mut self) -> io::Result<Option<Message>> {
        self.next(Wire::read_now)
    }

    /// Waits for the next answer.
    pub fn wait_for_answer(&mut self) -> io::Result<Message> {
        let answer = self.next(io::Read::read)?;
        answer.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    fn next(
        &mut self,
        mut read: impl FnMut(&mut Wire, &mut [u8]) -> io::Result<usize>,
    ) -> io::Result<Option<Message>> {
        loop {
            let mut rest = &*self.came;
            match Message::read(&mut rest) {
                Ok(message) => {
                    let taken = self.came.len() - rest.len();
                    self.came.drain(..taken);
                    return Ok(Some(message));
                }
                Err(e) if e.kind() != io::ErrorKind::UnexpectedEof => return Err(e),
                Err(_) if self.came.len() > MOST => return Err(invalid("an answer is too long")),
                Err(_) => {}
            }
            let mut bytes = [0; 4096];
            match read(&mut self.wire, &mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.came.extend_from_slice(&bytes[..read]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(e) => return Err(e),
            }
        }
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}
