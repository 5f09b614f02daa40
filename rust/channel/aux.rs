// SPDX-License-Identifier: GPL-2.0

//! A CPU's AUX area: memory beside the buffer, into which producers write large chunks.
//!
//! [`Aux`] decides who owns which bytes. This file has the bytes, and the wake-up of the
//! [reader](super::aux_reader).

use super::aux_reader::AuxCursor;
use super::platform::Kernel;
use super::wakeup::StreamWakeup;
use super::watermark::Threshold;
use super::Setup;
use crate::arch::word::SharedWord;
use crate::record::packet::Identity;
use crate::ring::aux::{Aux, AuxCounts, Chunk, Told};
use crate::ring::Mode;
use crate::sys::pages::{KernelPages, OwnPages, PAGE_SIZE};
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// One CPU's area.
#[pin_data]
pub(crate) struct AuxArea {
    pub(super) identity: Identity,
    pub(super) aux: Aux<Kernel>,
    pub(super) pages: KernelPages,
    /// Number of unread bytes at which the reader is woken, in discard mode.
    pub(super) watermark: u64,
    /// Non-zero once no producer writes any more.
    finished: SharedWord,
    #[pin]
    pub(super) wakeup: StreamWakeup,
    #[pin]
    pub(super) cursor: Mutex<AuxCursor>,
}

impl AuxArea {
    /// Creates an empty area for `cpu`, which need not be online. May sleep.
    pub(super) fn new(setup: &Setup, cpu: u32, is_isolated: bool) -> Result<Arc<Self>> {
        let size = setup.config.aux_size;
        let pages = KernelPages::new(size, cpu).ok_or(ENOMEM)?;
        let cursor = AuxCursor::new(OwnPages::new(PAGE_SIZE, cpu).ok_or(ENOMEM)?);
        let aux = Aux::new(size as u64, setup.config.mode).ok_or(EINVAL)?;
        let threshold = Threshold::of(&setup.config);
        let (stopper, barriers) = (setup.stopper.clone(), setup.config.barriers.on(is_isolated));
        Arc::pin_init(
            try_pin_init!(Self {
                identity: Identity {
                    cpu,
                    uuid: setup.uuid,
                    stream_id: setup.stream_id,
                },
                aux,
                pages,
                // As in perf, only a part of the area, so that there is room while it is read.
                watermark: (size as u64 / 4).max(PAGE_SIZE as u64),
                finished: SharedWord::new(0),
                wakeup <- StreamWakeup::new(threshold, stopper, barriers, is_isolated),
                cursor <- new_mutex!(cursor),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// The CPU of the area.
    pub(crate) fn cpu(&self) -> u32 {
        self.identity.cpu
    }

    /// Whether new bytes overwrite the oldest.
    pub(crate) fn overwrites(&self) -> bool {
        self.aux.mode() == Mode::Overwrite
    }

    /// Begins a chunk, as [`Aux::begin`]. Also returns its address.
    pub(crate) fn begin(&self, wanted: u64) -> Option<(Chunk, NonNull<u8>)> {
        let chunk = self.aux.begin(wanted)?;
        // The offset is below the area's size, so there is an address.
        let at = self.aux.offset(chunk.position) as usize;
        Some((chunk, self.pages.address(at)?))
    }

    /// Ends a chunk, as [`Aux::end`].
    pub(crate) fn end(&self, chunk: Chunk, written: u64) -> Told {
        let told = self.aux.end(chunk, written);
        if self.wakeup.wakes_at_delivery() && self.is_due() {
            self.wake();
        }
        told
    }

    /// Whether there is enough for the reader to be woken.
    fn is_due(&self) -> bool {
        !self.overwrites() && self.aux.unread() >= self.watermark
    }

    /// Wakes the reader if there is enough for it. In an interrupt of another CPU, because the area's CPU is
    /// isolated.
    pub(super) fn poll_tick(&self) {
        if self.wakeup.is_open() && self.is_due() {
            self.wakeup.wake_soon();
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&self) {
        self.wakeup.wake_soon();
    }

    /// Ends a chunk without its producer, as [`Aux::abandon`].
    pub(crate) fn abandon(&self, written: u64) {
        self.aux.abandon(written);
    }

    /// Counts a chunk that was refused because another was open. On the area's CPU; any context, NMI included.
    pub(crate) fn count_collision(&self) {
        self.aux.count_collision();
    }

    /// The area's counters.
    pub(super) fn counts(&self) -> AuxCounts {
        self.aux.counts()
    }

    /// Whether no producer writes any more. The caller reads this before the positions.
    pub(super) fn is_finished(&self) -> bool {
        self.finished.load_acquire() != 0
    }

    /// Ends the area: no producer finds it any more to begin or end a chunk. Lets the reader see the end. May
    /// sleep.
    pub(super) fn finish(&self) {
        // The store comes after all others; pairs with `is_finished`.
        self.finished.store_release(1);
        self.wakeup.waiters().wake_all();
    }

    /// Whether no reader is left, and nothing is left to read.
    pub(super) fn is_read(&self) -> bool {
        !self.wakeup.is_open() && self.cursor.lock().is_at_end(self)
    }
}
