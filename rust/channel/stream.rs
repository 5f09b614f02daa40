// SPDX-License-Identifier: GPL-2.0

//! A stream: the packets of one CPU's buffer, for readers.

use super::config::Config;
use super::cursor::{Cursor, HeldPacket};
use super::platform::Kernel;
use super::wakeup::StreamWakeup;
use super::Buffer;
use crate::arch::word::SharedWord;
use crate::ring::Ring;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// One CPU's buffer, as its readers see it.
#[pin_data]
pub(super) struct Stream {
    buffer: Arc<Buffer>,
    pub(super) wakeup: Arc<StreamWakeup>,
    /// Non-zero once the trace is over and all its records are in packets.
    finished: SharedWord,
    /// Non-zero from the moment when the watermark was reached or a read period ended, until a reader finds no
    /// packet.
    due: SharedWord,
    /// The packet that the reader holds. Each operation of the reader takes this lock, and may sleep on user
    /// memory while it holds the lock. No other code takes it. Taken before `cursor`.
    #[pin]
    pub(super) held: Mutex<Option<HeldPacket>>,
    /// A stop, a flush and the statistics also take this lock. No holder accesses user memory.
    #[pin]
    pub(super) cursor: Mutex<Cursor>,
}

impl Stream {
    /// The stream of `buffer`. `wakeup` is notified of its packets.
    pub(super) fn new(
        buffer: Arc<Buffer>,
        wakeup: Arc<StreamWakeup>,
        config: &Config,
    ) -> impl PinInit<Self, Error> {
        let cursor = Cursor::new(buffer.ring().reader(), config);
        try_pin_init!(Self {
            buffer,
            wakeup,
            finished: SharedWord::new(0),
            due: SharedWord::new(0),
            held <- new_mutex!(None),
            cursor <- new_mutex!(cursor),
        }? Error)
    }

    /// The buffer.
    pub(super) fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// The buffer's ring.
    pub(super) fn ring(&self) -> &Ring<Kernel> {
        self.buffer.ring()
    }

    /// Whether the trace has stopped. The stop then closes the packet being written, at the time of the stop, and
    /// no other code does. Any context.
    pub(super) fn is_stopped(&self) -> bool {
        self.ring().platform().location.time.is_stopped()
    }

    /// Whether the trace is over and all its records are in packets. The caller reads this before the ring.
    pub(super) fn is_finished(&self) -> bool {
        self.finished.load_acquire() != 0
    }

    /// Whether there is a packet and the channel's watermark allows its reading: the watermark was reached, or
    /// a read period ended, since a reader last [found nothing](Self::found_nothing). Any context.
    pub(super) fn is_due(&self) -> bool {
        if !self.ring().is_readable() {
            return false;
        }
        if self.wakeup.threshold().is_reached(self.ring().unread()) {
            self.due.store(1);
        }
        self.due.load() != 0
    }

    /// Notes that a reader has taken all packets. If a read period ends at this moment, it may be lost; the
    /// next one has the same effect.
    pub(super) fn found_nothing(&self) {
        self.due.store(0);
    }

    /// Whether a reader has seen the end of the trace, and no reader is left.
    pub(super) fn is_read(&self) -> bool {
        !self.wakeup.is_open() && self.cursor.lock().ended
    }

    /// Ends the stream, when no writer is left. Lets readers see the end. May sleep.
    pub(super) fn finish(&self) {
        let cursor = self.cursor.lock();
        self.buffer.report_losses();
        drop(cursor);
        // The store comes after all others; pairs with `is_finished`.
        self.finished.store_release(1);
        self.wakeup.waiters().wake_all();
    }

    /// Wakes the reader if there is enough for it. In an interrupt of another CPU, because the buffer's CPU is
    /// isolated.
    pub(super) fn poll_tick(&self) {
        if self.wakeup.is_open() && self.is_due() {
            self.wakeup.wake_soon();
        }
    }

    /// Each read period, in an interrupt on the buffer's CPU, or on another one if that CPU is isolated (Algorithm
    /// 8).
    pub(super) fn read_tick(&self) {
        if self.wakeup.is_open() && self.ring().is_readable() {
            self.due.store(1);
            self.wakeup.wake_soon();
        }
    }
}
