// SPDX-License-Identifier: GPL-2.0

//! The open connections, and their maximum number: of each kind, and of each peer.

use crate::stream::{PeerId, StreamSocket};
use crate::trouble::Trouble;
use rustix::net::Shutdown;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The kind of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionKind {
    /// A connection before its hello.
    New,
    /// A connection of a sender.
    Sender,
    /// A connection of a watcher.
    Watcher,
}

impl ConnectionKind {
    /// Maximum number of connections of this kind, and of one peer among them.
    pub const fn most(self) -> (usize, usize) {
        match self {
            Self::New => (64, 16),
            Self::Sender => (768, 384),
            Self::Watcher => (192, 32),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::New => "new connections",
            Self::Sender => "senders",
            Self::Watcher => "watchers",
        }
    }
}

/// All connections.
#[derive(Debug, Default)]
pub struct Slots(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    open: BTreeMap<u64, Open>,
    /// Number of connections so far.
    count: u64,
}

#[derive(Debug)]
struct Open {
    socket: StreamSocket,
    peer: PeerId,
    kind: ConnectionKind,
}

/// The slot of a connection. The drop frees it.
#[derive(Debug)]
pub struct Slot<'a> {
    slots: &'a Slots,
    number: u64,
}

impl Slots {
    /// Takes a slot for a new connection.
    pub fn take(&self, socket: &StreamSocket, peer: PeerId) -> io::Result<Slot<'_>> {
        let mut inner = self.lock();
        inner.check(ConnectionKind::New, peer)?;
        inner.count += 1;
        let number = inner.count;
        let open = Open {
            socket: socket.try_clone()?,
            peer,
            kind: ConnectionKind::New,
        };
        inner.open.insert(number, open);
        Ok(Slot {
            slots: self,
            number,
        })
    }

    /// Ends all connections.
    pub fn shut_down(&self) {
        for open in self.lock().open.values() {
            let _ = open.socket.shutdown(Shutdown::Both);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic can happen only between two changes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Fails if the maximum number of this kind is reached.
    fn check(&self, kind: ConnectionKind, peer: PeerId) -> Result<(), Trouble> {
        let (most, most_of_peer) = kind.most();
        let same = || self.open.values().filter(|open| open.kind == kind);
        let of_peer = same().filter(|open| open.peer == peer).count();
        if same().count() >= most || of_peer >= most_of_peer {
            let name = kind.name();
            return Err(Trouble::passing(format!(
                "the receiver has too many {name}"
            )));
        }
        Ok(())
    }
}

impl Slot<'_> {
    /// Sets the kind of the connection.
    pub fn is_now(&self, kind: ConnectionKind) -> Result<(), Trouble> {
        let mut inner = self.slots.lock();
        let open = inner.open.get(&self.number);
        if let Some(peer) = open.map(|open| open.peer) {
            inner.check(kind, peer)?;
        }
        if let Some(open) = inner.open.get_mut(&self.number) {
            open.kind = kind;
        }
        Ok(())
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.slots.lock().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::panic::{catch_unwind, AssertUnwindSafe};

    #[test]
    fn limits_by_kind_and_by_peer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = StreamSocket::from(socket);
        let slots = Slots::default();
        let take = |user| slots.take(&socket, PeerId::User(user));
        let (most, of_peer) = ConnectionKind::New.most();
        let full: Vec<_> = (0..of_peer).map(|_| take(0).unwrap()).collect();
        let error = take(0).unwrap_err().to_string();
        assert!(error.contains("too many new connections"), "{error}");
        // A connection whose kind is known leaves its slot to a new one.
        full[0].is_now(ConnectionKind::Watcher).unwrap();
        let last = take(0).unwrap();
        let _others: Vec<_> = (of_peer..most)
            .map(|n| take(1 + (n / of_peer) as u32).unwrap())
            .collect();
        assert!(take(99).is_err());
        drop(last);
        // A panic also frees the slot.
        let panic = catch_unwind(AssertUnwindSafe(|| {
            let _slot = take(99).unwrap();
            panic!("the connection's thread");
        }));
        assert!(panic.is_err());
        take(99).unwrap();
    }
}
