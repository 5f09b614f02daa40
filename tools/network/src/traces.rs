// SPDX-License-Identifier: GPL-2.0

//! The traces that come in at the moment, by name. One connection has a trace at a time.

use crate::trouble::Trouble;
use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long who has a trace may take to let go of it.
const LET_GO: Duration = Duration::from_secs(10);

/// All that come in.
#[derive(Debug, Default)]
pub struct Traces {
    /// The connection that each comes by.
    connections: Mutex<BTreeMap<String, TcpStream>>,
    changed: Condvar,
}

/// A trace that comes in by one connection, until this is dropped.
#[derive(Debug)]
pub struct Claim {
    traces: Arc<Traces>,
    name: String,
}

impl Traces {
    /// Takes a trace for a connection. Another one that has it is ended: it is that of a sender who has
    /// lost it and does not come back to it.
    pub fn claim(self: &Arc<Self>, name: &str, socket: &TcpStream) -> Result<Claim, Trouble> {
        let socket = socket.try_clone()?;
        let until = Instant::now() + LET_GO;
        let mut connections = self.lock();
        while let Some(other) = connections.get(name) {
            // One that is not connected any more is about to let go.
            let _ = other.shutdown(Shutdown::Both);
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let what = format!("{name} is being written for another connection");
                return Err(Trouble::passing(what));
            }
            let waited = self.changed.wait_timeout(connections, left);
            connections = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        connections.insert(name.to_owned(), socket);
        Ok(Claim {
            traces: Arc::clone(self),
            name: name.to_owned(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, TcpStream>> {
        // Whoever panicked did so between two changes.
        let locked = self.connections.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.traces.lock().remove(&self.name);
        self.traces.changed.notify_all();
    }
}
