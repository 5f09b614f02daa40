// SPDX-License-Identifier: GPL-2.0

//! The traces that are being received, by name. Each has one connection at a time.

use crate::hello::Sent;
use crate::progress::Progress;
use crate::stream::StreamSocket;
use crate::trouble::Trouble;
use rustix::net::Shutdown;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Maximum time for a previous connection to release a trace.
const LET_GO: Duration = Duration::from_secs(10);

/// All traces that are being received.
#[derive(Debug, Default)]
pub struct Traces {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    /// The traces that have a connection.
    active: BTreeMap<String, Active>,
    /// Progress of traces that have a connection, or that are watched although their connection is lost.
    known: BTreeMap<String, Weak<Progress>>,
    /// Number of connections so far.
    count: u64,
}

#[derive(Debug)]
struct Active {
    socket: StreamSocket,
    uuid: Uuid,
    progress: Arc<Progress>,
    /// Its number among all connections so far.
    place: u64,
}

/// A trace that is being received, for a watcher.
#[derive(Debug)]
pub struct ReceivedTrace {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uuid: Uuid,
    /// Progress of its reception.
    pub progress: Arc<Progress>,
}

/// A trace's connection, until this is dropped.
#[derive(Debug)]
pub struct Claim {
    traces: Arc<Traces>,
    name: String,
    /// Progress of its reception.
    pub progress: Arc<Progress>,
}

impl Traces {
    /// Takes a trace for a connection. Ends a previous connection that has it: its sender has lost that
    /// connection and does not return to it.
    pub fn claim(self: &Arc<Self>, sent: &Sent, socket: &StreamSocket) -> Result<Claim, Trouble> {
        let name = &*sent.name();
        let socket = socket.try_clone()?;
        let until = Instant::now() + LET_GO;
        let mut inner = self.lock();
        while let Some(other) = inner.active.get(name) {
            // A socket that is not connected any more is about to release the trace.
            let _ = other.socket.shutdown(Shutdown::Both);
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let what = format!("{name} is being written for another connection");
                return Err(Trouble::passing(what));
            }
            let waited = self.changed.wait_timeout(inner, left);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        inner.known.retain(|_, known| known.strong_count() > 0);
        let known = inner.known.get(name).and_then(Weak::upgrade);
        // Watchers have seen the end of a trace that is resumed now, so it gets a new progress.
        let progress = known.filter(|known| !known.has_ended()).unwrap_or_default();
        let weak = Arc::downgrade(&progress);
        inner.known.insert(name.to_owned(), weak);
        inner.count += 1;
        let active = Active {
            socket,
            uuid: sent.uuid,
            progress: Arc::clone(&progress),
            place: inner.count,
        };
        inner.active.insert(name.to_owned(), active);
        self.changed.notify_all();
        Ok(Claim {
            traces: Arc::clone(self),
            name: name.to_owned(),
            progress,
        })
    }

    /// Finds a trace that is being received: the one with this name, or one of the machine with this name. If
    /// there are several, the last one to begin. Waits up to `time` for it.
    pub fn find(&self, wanted: Option<&str>, time: Duration) -> Option<ReceivedTrace> {
        let fits = |(name, active): &(&String, &Active)| match wanted {
            None => true,
            Some(wanted) => name.strip_prefix(wanted).is_some_and(|rest| {
                rest.is_empty() || rest.strip_prefix('-') == Some(&*active.uuid.to_string())
            }),
        };
        let find = |inner: &Inner| {
            let fitting = inner.active.iter().filter(fits);
            let last = fitting.max_by_key(|(_, active)| active.place);
            last.map(|(name, active)| ReceivedTrace {
                name: name.clone(),
                uuid: active.uuid,
                progress: Arc::clone(&active.progress),
            })
        };
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), time, |inner| find(inner).is_none());
        find(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic can happen only between two changes.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.traces.lock().active.remove(&self.name);
        self.traces.changed.notify_all();
    }
}
