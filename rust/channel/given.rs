// SPDX-License-Identifier: GPL-2.0

//! A channel whose records are given: a thread writes them, with times and CPUs that it has from elsewhere.
//!
//! The writer of each buffer is the thread that has locked the buffer's cursor. So gates stay closed, no interrupt acts
//! as the writer, and the writer pays for the order of memory.
//!
//! The thread gives records in order of time, some time after they were made. A record that another thread makes
//! [waits](Channel::let_wait) until the earlier ones were given.

use super::stream::Stream;
use super::Channel;
use crate::abi::header::Layout;
use crate::arch::preempt::NoPreempt;
use crate::record::header::{Compact, Large, RecordLabel};
use crate::record::memory::{Space, Tail};
use crate::ring::lost::Lost;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Gives the records of channels.
pub(crate) trait Giver: Send + Sync {
    /// Gives all records up to now. May sleep.
    fn give_all(&self);
}

/// Maximum size in bytes of the records of a channel that wait.
const WAITING_MAX: usize = 1 << 20;

/// The part of a channel that only given records need.
#[pin_data]
pub(super) struct GivenRecords {
    giver: Arc<dyn Giver>,
    /// Taken before a cursor.
    #[pin]
    waiting: Mutex<Waiting>,
}

impl GivenRecords {
    /// Makes it for the records of `giver`. May sleep.
    pub(super) fn new(giver: Arc<dyn Giver>) -> Result<Pin<KBox<Self>>> {
        let waiting = Waiting {
            bytes: KVVec::new(),
            at: 0,
        };
        let given = pin_init!(Self {
            giver,
            waiting <- new_mutex!(waiting),
        });
        KBox::pin_init(given, GFP_KERNEL)
    }
}

/// Records that wait, in order of time. Each one is a [`Head`] and the payload.
struct Waiting {
    bytes: KVVec<u8>,
    /// Offset of the first one.
    at: usize,
}

/// Time and place of a record.
#[derive(Clone, Copy)]
struct Head {
    time: u64,
    cpu: u32,
    /// Number of the event.
    id: u32,
    /// Bytes of the payload.
    len: u32,
}

impl Head {
    const SIZE: usize = 20;

    fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let (time, rest) = bytes.split_at_mut(8);
        time.copy_from_slice(&self.time.to_le_bytes());
        for (to, word) in rest.chunks_exact_mut(4).zip([self.cpu, self.id, self.len]) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let [t0, t1, t2, t3, t4, t5, t6, t7, c0, c1, c2, c3, i0, i1, i2, i3, l0, l1, l2, l3] =
            *bytes;
        Self {
            time: u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
            cpu: u32::from_le_bytes([c0, c1, c2, c3]),
            id: u32::from_le_bytes([i0, i1, i2, i3]),
            len: u32::from_le_bytes([l0, l1, l2, l3]),
        }
    }
}

impl Waiting {
    /// The first record, if its time is not after `until`.
    fn first(&self, until: u64) -> Option<(Head, &[u8])> {
        let (head, rest) = self.bytes.get(self.at..)?.split_first_chunk()?;
        let head = Head::from_bytes(head);
        let payload = rest.get(..head.len as usize)?;
        (head.time <= until).then_some((head, payload))
    }

    /// Removes the first record, whose payload has `len` bytes.
    fn remove(&mut self, len: usize) {
        self.at += Head::SIZE + len;
        if self.at >= self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
        }
    }

    /// Adds a record. Returns whether there was room.
    fn add(&mut self, head: Head, payload: &[u8]) -> bool {
        let more = Head::SIZE + payload.len();
        let has_room = self.bytes.len() + more <= WAITING_MAX;
        if !has_room || self.bytes.reserve(more, GFP_KERNEL).is_err() {
            return false;
        }
        // The room was reserved above.
        let _ = self.bytes.extend_from_slice(&head.to_bytes(), GFP_KERNEL);
        let _ = self.bytes.extend_from_slice(payload, GFP_KERNEL);
        true
    }
}

impl Channel {
    /// Whether the records are given.
    pub(crate) fn is_given(&self) -> bool {
        self.given.is_some()
    }

    /// Has all records up to now given, if they are given. May sleep.
    pub(crate) fn give_all(&self) {
        if let Some(given) = &self.given {
            given.giver.give_all();
        }
    }

    /// Gives a record with this payload: its contexts and fields. Does nothing unless records are accepted. One caller at
    /// a time, in order of time. May sleep.
    pub(crate) fn give(&self, cpu: u32, time: u64, label: &RecordLabel, payload: &[u8]) {
        let Some(given) = &self.given else {
            return;
        };
        let mut waiting = given.waiting.lock();
        self.give_first(&mut waiting, time);
        self.write_given(cpu, time, label, payload);
    }

    /// Gives the waiting records up to a time. The caller is that of [`give`](Self::give). May sleep.
    pub(crate) fn give_waiting(&self, until: u64) {
        if let Some(given) = &self.given {
            self.give_first(&mut given.waiting.lock(), until);
        }
    }

    fn give_first(&self, waiting: &mut Waiting, until: u64) {
        while let Some((head, payload)) = waiting.first(until) {
            let label = RecordLabel::in_layout(head.id, self.setup.layout);
            self.write_given(head.cpu, head.time, &label, payload);
            waiting.remove(head.len as usize);
        }
    }

    /// Makes a record of this moment, which waits until all earlier ones were given. Any number of callers. May sleep.
    pub(crate) fn let_wait(&self, cpu: u32, label: &RecordLabel, payload: &[u8]) {
        let Some(given) = &self.given else {
            return;
        };
        let mut waiting = given.waiting.lock();
        // Read with the lock held, so that the records are in order of time.
        let head = Head {
            time: self.setup.clock.now(),
            cpu,
            id: label.id,
            len: payload.len() as u32,
        };
        let is_added = waiting.add(head, payload);
        drop(waiting);
        if !is_added {
            self.count_given_lost(cpu, 1);
        }
    }

    fn write_given(&self, cpu: u32, time: u64, label: &RecordLabel, payload: &[u8]) {
        if !self.is_active() || !self.setup.cpus.has(cpu) {
            return;
        }
        let Some(stream) = self.stream(cpu) else {
            return self.entrance.count_no_buffer_of(cpu);
        };
        let _cursor = stream.cursor.lock();
        let _guard = NoPreempt::new();
        let (buffer, payload) = (stream.buffer(), GivenBytes(payload));
        match self.setup.layout {
            Layout::Compact => buffer.record_given::<Compact>(label, time, &payload),
            Layout::Large => buffer.record_given::<Large>(label, time, &payload),
        }
    }

    /// Counts records that a program has lost on `cpu`, if records are accepted. May sleep.
    pub(crate) fn count_given_lost(&self, cpu: u32, records: u64) {
        if !self.is_active() || !self.setup.cpus.has(cpu) {
            return;
        }
        if let Some(stream) = self.stream(cpu) {
            count_lost(stream, records);
        }
    }
}

fn count_lost(stream: &Stream, records: u64) {
    // The counters have one writer.
    let _cursor = stream.cursor.lock();
    stream.ring().lost().count_many(Lost::Full, records);
}

/// A payload.
struct GivenBytes<'a>(&'a [u8]);

impl Tail for GivenBytes<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn write(&self, mut space: Space<'_>) {
        space.put_bytes(self.0);
    }
}
