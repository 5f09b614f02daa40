// SPDX-License-Identifier: GPL-2.0

//! A small HTTP server: each connection has one request for a path, and one answer from memory.
//!
//! A client that is slow or silent cannot hold the server. The whole request and the whole answer have time limits, the
//! number of connections is limited for each peer and for all, and a stop ends all connections at once.

#![forbid(unsafe_code)]

mod request;

pub use request::{read, Answer, Request, HEAD};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

/// Limits of a server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of connections of one peer.
    pub of_peer: usize,
    /// Maximum time of a request, including the handshake of TLS, and of an answer without its body.
    pub time: Duration,
    /// Minimum rate at which a client takes a body, in bytes per second.
    pub rate: usize,
}

/// The limits of rtrace's servers.
pub const LIMITS: Limits = Limits {
    connections: 32,
    of_peer: 16,
    time: Duration::from_secs(10),
    rate: 64 << 10,
};

/// Pause after an error of the system.
const PAUSE: Duration = Duration::from_millis(100);

/// Period of the check of deadlines.
const CHECK: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// The open connections, by number.
#[derive(Default)]
struct Open(Mutex<BTreeMap<u64, Client>>);

struct Client {
    socket: TcpStream,
    peer: IpAddr,
    /// Deadline of the client; [`None`] while the server makes the answer.
    deadline: Option<Instant>,
}

/// The slot of a connection. The drop frees it.
struct Slot<'a>(&'a Open, u64);

impl Open {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Client>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot, if neither all nor those of the peer are taken.
    fn take(&self, limits: &Limits, number: u64, client: Client) -> io::Result<Slot<'_>> {
        let mut open = self.lock();
        let of_peer = open.values().filter(|other| other.peer == client.peer);
        let (all, of_peer) = (open.len(), of_peer.count());
        if all >= limits.connections || of_peer >= limits.of_peer {
            let peer = client.peer;
            let what = format!("{peer} has {of_peer} connections, all clients have {all}");
            return Err(io::Error::other(what));
        }
        open.insert(number, client);
        Ok(Slot(self, number))
    }

    /// Ends the connections whose deadline is before `now`; without it, all.
    fn end(&self, now: Option<Instant>) {
        let is_late = |client: &Client| client.deadline.is_some_and(|at| Some(at) < now);
        for client in self.lock().values() {
            if now.is_none() || is_late(client) {
                let _ = client.socket.shutdown(Shutdown::Both);
            }
        }
    }

    /// Waits for a client. Ends connections meanwhile. Returns whether the server goes on.
    fn wait(&self, listener: &TcpListener, stop: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        loop {
            let mut fds = vec![PollFd::new(listener, PollFlags::IN)];
            fds.extend(stop.map(|stop| PollFd::from_borrowed_fd(stop, PollFlags::IN)));
            let period = (!self.lock().is_empty()).then_some(&CHECK);
            match poll(&mut fds, period) {
                Ok(_) | Err(Errno::INTR) => self.end(Some(Instant::now())),
                Err(error) => return Err(error.into()),
            }
            let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
            match (ready.next(), ready.next()) {
                (_, Some(true)) => return Ok(false),
                (Some(true), _) => return Ok(true),
                _ => {}
            }
        }
    }
}

impl Slot<'_> {
    fn set_deadline(&self, time: Option<Duration>) {
        if let Some(client) = self.0.lock().get_mut(&self.1) {
            client.deadline = time.map(|time| Instant::now() + time);
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

/// Serves until `stop` is readable; without it, until the listener fails. `protect` makes the stream that clients use,
/// for example one that encrypts. `answer` answers requests. `notice` gets the reason why a connection is refused, once
/// until one is accepted.
pub fn serve<'a, S: Read + Write>(
    limits: &Limits,
    listener: &TcpListener,
    stop: Option<BorrowedFd<'_>>,
    protect: impl Fn(TcpStream) -> io::Result<S> + Sync,
    answer: impl Fn(&Request<'_>) -> Answer<'a> + Sync,
    notice: impl Fn(&str),
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let (open, mut number, mut is_reported) = (&Open::default(), 0, false);
    let attend = &|slot: Slot<'_>, socket| {
        let mut stream = protect(socket)?;
        let answer = |request: &Request<'_>| {
            slot.set_deadline(None);
            answer(request)
        };
        let Some(answer) = read(&mut stream, answer)? else {
            return Ok(());
        };
        let of_body = Duration::from_secs((answer.body.len() / limits.rate) as u64);
        slot.set_deadline(Some(limits.time + of_body));
        answer.write(&mut stream)
    };
    thread::scope(|scope| loop {
        match open.wait(listener, stop) {
            Ok(true) => number += 1,
            ended => {
                open.end(None);
                return ended.map(drop);
            }
        }
        let accepted = listener.accept().and_then(|(socket, from)| {
            let client = Client {
                socket: socket.try_clone()?,
                peer: system::peer::of(from.ip()),
                deadline: Some(Instant::now() + limits.time),
            };
            let slot = open.take(limits, number, client)?;
            // A client that leaves, or is too slow, is no error of the server.
            let thread = move || drop::<io::Result<()>>(attend(slot, socket));
            Builder::new().spawn_scoped(scope, thread)
        });
        match accepted.map_err(|error| (error.kind(), error)) {
            Ok(_) => is_reported = false,
            Err((ErrorKind::WouldBlock | ErrorKind::ConnectionAborted, _)) => {}
            Err((_, error)) => {
                if !is_reported {
                    notice(&format!("cannot accept a connection: {error}"));
                }
                is_reported = true;
                // Otherwise the error would repeat at once. A refused client does not delay others.
                if error.raw_os_error().is_some() {
                    thread::sleep(PAUSE);
                }
            }
        }
    })
}

#[cfg(test)]
mod tests;
