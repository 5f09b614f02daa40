// SPDX-License-Identifier: GPL-2.0

//! Watches a trace that is being received.

use crate::hello::Hello;
use crate::message::Message;
use crate::peer::Peer;
use crate::trouble::Trouble;
use crate::wire::Wire;
use consumer::viewer::View;
use ctf::Feed;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use system::{Error, Result};

/// Maximum memory for packets in bytes. Above it, events are passed on at once, even if they are out of order.
const MOST: usize = 256 << 20;

/// Passes a trace that `peer` is receiving to `view`: from its beginning to its end, or until `stop` is
/// readable. `trace` is the name of the trace or of its machine. Without it, the trace that began last, or the
/// next one.
pub fn watch(
    peer: &Peer,
    trace: Option<String>,
    stop: impl AsFd,
    view: &mut dyn View,
) -> Result<()> {
    let error =
        |trouble: Trouble| Error::system(format!("cannot watch {peer}"))(io::Error::from(trouble));
    let mut wire = peer.connect(None).map_err(error)?;
    let hello = Message::Hello(Hello::Watch { trace });
    wire.say(&hello).map_err(|e| error(e.into()))?;
    wire.be_patient().map_err(|e| error(e.into()))?;
    let mut from = Waiting {
        wire,
        stop: stop.as_fd(),
        stopped: false,
    };
    let mut feed = Feed::default();
    let mut is_welcome = false;
    loop {
        let message = match Message::read(&mut from) {
            _ if from.stopped => break,
            Err(e) if !is_welcome => return Err(error(Trouble::of_greeting(e))),
            message => message.map_err(|e| error(e.into()))?,
        };
        match message {
            Message::Welcome { .. } => is_welcome = true,
            Message::Metadata(text) => view.describe(feed.describe(&text)?)?,
            Message::Stream { name, .. } => {
                feed.open(&name)?;
            }
            Message::Packet { number, size } => {
                let mut packet = Vec::new();
                let read = (&mut from).take(size.into()).read_to_end(&mut packet);
                if from.stopped {
                    break;
                }
                if read.map_err(|e| error(e.into()))? < size as usize {
                    return Err(error(io::Error::from(io::ErrorKind::UnexpectedEof).into()));
                }
                if number as usize >= feed.streams() {
                    return Err(error(Trouble::passing("a packet of an unknown stream")));
                }
                feed.push(number as usize, packet)?;
                if feed.bytes() > MOST {
                    let newest = feed.newest();
                    hand_on(&mut feed, newest, view)?;
                }
            }
            Message::Complete { time } => hand_on(&mut feed, time, view)?,
            Message::End { .. } => break,
            Message::Refused { reason, .. } => return Err(error(Trouble::lasting(reason))),
            _ => return Err(error(Trouble::passing("the peer does not show a trace"))),
        }
    }
    hand_on(&mut feed, u64::MAX, view)?;
    view.end()
}

fn hand_on(feed: &mut Feed, until: u64, view: &mut dyn View) -> Result<()> {
    while let Some((stream, item)) = feed.next_item(until)? {
        view.item(stream, &item)?;
    }
    view.pause(until.min(feed.newest()))
}

/// A connection that may be silent for a long time.
struct Waiting<'a> {
    wire: Wire,
    stop: BorrowedFd<'a>,
    stopped: bool,
}

impl Read for Waiting<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.wire.read_now(bytes) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            let mut fds = [
                PollFd::new(&self.wire, PollFlags::IN),
                PollFd::new(&self.stop, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            if !fds[1].revents().is_empty() {
                self.stopped = true;
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
