// SPDX-License-Identifier: GPL-2.0

//! A stream: the packets of one CPU's buffer, to read.

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
    /// Not 0 once the trace is over and everything is in packets.
    finished: SharedWord,
    /// Not 0 from when there was enough, or a read period ended, until a reader finds nothing more.
    due: SharedWord,
    /// The packet that the reader holds. Each operation of the reader locks it, and may sleep on user
    /// memory with it; nothing else does. Taken before `cursor`.
    #[pin]
    pub(super) held: Mutex<Option<HeldPacket>>,
    /// Locked by a stop, a flush and the statistics, too: no holder touches user memory.
    #[pin]
    pub(super) cursor: Mutex<Cursor>,
}

impl Stream {
    /// The stream of `buffer`, whose packets are announced by `wakeup`.
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

    /// Whether the trace is over and all of it is in packets. To be asked before the ring is.
    pub(super) fn is_finished(&self) -> bool {
        self.finished.load_acquire() != 0
    }

    /// Whether there is a packet for a reader, and the channel's watermark lets it have one: it was
    /// reached, or a read period ended, since a reader last [found nothing](Self::found_nothing). Any
    /// context.
    pub(super) fn is_due(&self) -> bool {
        if !self.ring().is_readable() {
            return false;
        }
        if self.wakeup.threshold().is_reached(self.ring().unread()) {
            self.due.store(1);
        }
        self.due.load() != 0
    }

    /// A reader has taken all there was. (A read period that ends at this moment may be forgotten: the
    /// next one has the same effect.)
    pub(super) fn found_nothing(&self) {
        self.due.store(0);
    }

    /// Whether a reader has seen the end of the trace, and none is there now.
    pub(super) fn is_read(&self) -> bool {
        !self.wakeup.is_open() && self.cursor.lock().ended
    }

    /// The trace is over: nobody writes any more. Lets readers see the end. May sleep.
    pub(super) fn finish(&self) {
        let cursor = self.cursor.lock();
        self.buffer.report_losses();
        drop(cursor);
        // After everything else; pairs with `is_finished`.
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
