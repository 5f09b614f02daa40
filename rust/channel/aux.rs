// SPDX-License-Identifier: GPL-2.0

//! A CPU's AUX area: memory that producers write large chunks into, beside the buffer.
//!
//! Whose bytes are whose says [`Aux`]; here are the bytes, and what wakes the
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
    /// Unread bytes from which on the reader is woken, in discard mode.
    pub(super) watermark: u64,
    /// Not 0 once nobody writes any more.
    finished: SharedWord,
    #[pin]
    pub(super) wakeup: StreamWakeup,
    #[pin]
    pub(super) cursor: Mutex<AuxCursor>,
}

impl AuxArea {
    /// Makes an empty area for `cpu`, which need not be online. May sleep.
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
                // As perf's, a part of it, so that there is room while it is read.
                watermark: (size as u64 / 4).max(PAGE_SIZE as u64),
                finished: SharedWord::new(0),
                wakeup <- StreamWakeup::new(threshold, stopper, barriers, is_isolated),
                cursor <- new_mutex!(cursor),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Whose it is.
    pub(crate) fn cpu(&self) -> u32 {
        self.identity.cpu
    }

    /// Whether its oldest bytes are overwritten.
    pub(crate) fn overwrites(&self) -> bool {
        self.aux.mode() == Mode::Overwrite
    }

    /// Begins a chunk, as [`Aux::begin`], and says where in memory it is.
    pub(crate) fn begin(&self, wanted: u64) -> Option<(Chunk, NonNull<u8>)> {
        let chunk = self.aux.begin(wanted)?;
        // Below the area's size, so there is an address.
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

    /// Ends a chunk that nobody records any more, as [`Aux::abandon`].
    pub(crate) fn abandon(&self, written: u64) {
        self.aux.abandon(written);
    }

    /// Counts somebody who came while there was a chunk. On the area's CPU; any context, NMI included.
    pub(crate) fn count_collision(&self) {
        self.aux.count_collision();
    }

    /// What it has counted.
    pub(super) fn counts(&self) -> AuxCounts {
        self.aux.counts()
    }

    /// Whether nobody writes any more. To be asked before the positions are.
    pub(super) fn is_finished(&self) -> bool {
        self.finished.load_acquire() != 0
    }

    /// Nobody writes any more: what begins or ends a chunk does not find the area. Lets the reader see
    /// the end. May sleep.
    pub(super) fn finish(&self) {
        // After everything else; pairs with `is_finished`.
        self.finished.store_release(1);
        self.wakeup.waiters().wake_all();
    }

    /// Whether nothing is left for a reader, and none is there now.
    pub(super) fn is_read(&self) -> bool {
        !self.wakeup.is_open() && self.cursor.lock().is_at_end(self)
    }
}
