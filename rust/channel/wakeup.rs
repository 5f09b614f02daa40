// SPDX-License-Identifier: GPL-2.0

//! Waking a stream's readers, from where nobody may be woken.

use super::platform::Barriers;
use super::stopper::Stopper;
use super::watermark::Threshold;
use crate::arch::word::{full_barrier, SharedWord};
use crate::sys::cpu::{self, NoHotplug};
use crate::sys::irq_work::IrqWork;
use crate::sys::wait::WaitQueue;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Who waits for a stream's packets, and whether anybody does. The writer and the reader share it.
#[pin_data]
pub(crate) struct StreamWakeup {
    /// Not 0 while a reader has the stream open.
    opened: SharedWord,
    /// When readers are woken by packets.
    threshold: Threshold,
    /// The side that orders the writer's store of `commit_seq` and its load of `opened`.
    barriers: Barriers,
    /// Whether a timer of another CPU looks for packets, because the writer's CPU is isolated and must not interrupt
    /// itself.
    is_polled: bool,
    waiters: Arc<WaitQueue>,
    /// Told of each packet, too.
    stopper: Arc<Stopper>,
    #[pin]
    work: IrqWork<Arc<WaitQueue>>,
}

impl StreamWakeup {
    /// Nobody waits.
    pub(super) fn new(
        threshold: Threshold,
        stopper: Arc<Stopper>,
        barriers: Barriers,
        is_polled: bool,
    ) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(move || {
            let waiters = Arc::pin_init(WaitQueue::new(), GFP_KERNEL)?;
            Ok(try_pin_init!(Self {
                opened: SharedWord::new(0),
                threshold,
                barriers,
                is_polled,
                work <- IrqWork::new(waiters.clone(), |waiters| waiters.wake_all()),
                waiters,
                stopper,
            }? Error))
        })
    }

    /// The readers that wait.
    pub(super) fn waiters(&self) -> &Arc<WaitQueue> {
        &self.waiters
    }

    /// When they are woken by packets.
    pub(super) fn threshold(&self) -> Threshold {
        self.threshold
    }

    /// A reader opens the stream that `cpu` writes: from now on it is woken by packets. Returns
    /// false if the stream is open already. May sleep.
    pub(super) fn open(&self, cpu: u32) -> bool {
        if !self.opened.compare_exchange(0, 1) {
            return false;
        }
        // R4: sets `opened` before it looks for packets; pairs with W4. With `Delivery` the exchange
        // above is the barrier.
        if self.barriers == Barriers::Interrupt {
            // A CPU that is offline (ENXIO) stays so meanwhile: it stored all its packets before it
            // went, and sees `opened` when it comes back.
            let _cpus = NoHotplug::new();
            let _ = cpu::full_barrier_on(cpu);
        }
        true
    }

    /// The reader closes the stream.
    pub(super) fn close(&self) {
        self.opened.store_release(0);
    }

    /// Whether a reader has the stream open.
    pub(super) fn is_open(&self) -> bool {
        self.opened.load() != 0
    }

    /// Whether the writer wakes a reader who has the stream open, once it has stored what tells readers that
    /// there is more (W4): `commit_seq`, or an area's `head`.
    #[inline(always)]
    pub(super) fn wakes_at_delivery(&self) -> bool {
        if self.is_polled {
            return false;
        }
        // With `Interrupt` nothing here makes the CPU keep that store before this load (store
        // buffering): the reader that sets `opened` does (R4).
        if self.barriers == Barriers::Delivery {
            full_barrier();
        }
        self.is_open()
    }

    /// A packet is finished, and so many bytes of the buffer are `unread`, or fewer if a reader takes
    /// packets meanwhile. On the writer's CPU; any context, NMI included.
    pub(super) fn packet_ready(&self, unread: impl FnOnce() -> u64) {
        // Of what is unread it knows the past, which is more: it may wake too early, never too late.
        if self.wakes_at_delivery() && self.threshold.is_passed(unread()) {
            self.wake_soon();
        }
        self.stopper.packet_ready();
    }

    /// Has the readers woken. Any context, NMI included.
    pub(super) fn wake_soon(&self) {
        // The queue's lock may be held by what this interrupts: an interrupt of its own does it.
        self.work.queue();
    }
}
