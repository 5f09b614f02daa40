// SPDX-License-Identifier: GPL-2.0

//! Wake-up of a stream's readers from contexts that cannot wake a thread.

use super::platform::Barriers;
use super::stopper::Stopper;
use super::watermark::Threshold;
use crate::arch::word::{full_barrier, SharedWord};
use crate::sys::cpu::{self, NoHotplug};
use crate::sys::irq_work::IrqWork;
use crate::sys::timer::Timer;
use crate::sys::wait::WaitQueue;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Period in which a reader's packets of an isolated CPU are looked for, in microseconds.
const POLL_PERIOD_US: u32 = 10_000;

/// A timer that looks for packets of an isolated CPU, on another CPU, until dropped. The reader owns it.
pub(super) type PollTimer<T> = Pin<KBox<Timer<(T, fn(&T))>>>;

/// Wakes the readers of a stream. Writer and reader share it.
#[pin_data]
pub(crate) struct StreamWakeup {
    /// Non-zero while a reader has the stream open.
    opened: SharedWord,
    /// The condition for a packet to wake readers.
    threshold: Threshold,
    /// The side that orders the writer's store of `commit_seq` and its load of `opened`.
    barriers: Barriers,
    /// Whether the reader's [`PollTimer`] looks for packets, because the writer's CPU is isolated and must not
    /// interrupt itself.
    is_polled: bool,
    waiters: Arc<WaitQueue>,
    /// Also notified of each packet.
    stopper: Arc<Stopper>,
    #[pin]
    work: IrqWork<Arc<WaitQueue>>,
}

impl StreamWakeup {
    /// Without readers.
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

    /// The queue of the waiting readers.
    pub(super) fn waiters(&self) -> &Arc<WaitQueue> {
        &self.waiters
    }

    /// The condition for a packet to wake them.
    pub(super) fn threshold(&self) -> Threshold {
        self.threshold
    }

    /// Opens the stream that `cpu` writes. From now on packets wake the reader. Returns false if the stream is
    /// open already. May sleep.
    pub(super) fn open(&self, cpu: u32) -> bool {
        if !self.opened.compare_exchange(0, 1) {
            return false;
        }
        // R4: sets `opened` before the reader looks for packets; pairs with W4. With `Delivery` the exchange
        // above is the barrier.
        if self.barriers == Barriers::Interrupt {
            // An offline CPU (ENXIO) stays offline while we hold this. It stored all its packets before it went
            // offline, and sees `opened` when it comes back.
            let _cpus = NoHotplug::new();
            let _ = cpu::full_barrier_on(cpu);
        }
        true
    }

    /// Starts to call `tick` with `data` periodically, if the writer does not wake the reader itself. May sleep.
    pub(super) fn poller<T: Send + Sync>(
        &self,
        data: T,
        tick: fn(&T),
    ) -> Result<Option<PollTimer<T>>> {
        if !self.is_polled {
            return Ok(None);
        }
        let timer = Timer::new((data, tick), |(data, tick), _| tick(data), POLL_PERIOD_US);
        let timer = KBox::pin_init(timer, GFP_KERNEL)?;
        cpu::run_on_housekeeping(&mut &*timer, |timer| timer.start());
        Ok(Some(timer))
    }

    /// Closes the stream.
    pub(super) fn close(&self) {
        self.opened.store_release(0);
    }

    /// Whether a reader has the stream open.
    pub(super) fn is_open(&self) -> bool {
        self.opened.load() != 0
    }

    /// Whether a reader has the stream open. The writer calls this after the store that shows readers new data
    /// (W4): `commit_seq`, or an area's `head`.
    #[inline(always)]
    pub(super) fn wakes_at_delivery(&self) -> bool {
        if self.is_polled {
            return false;
        }
        // With `Interrupt` no instruction here makes the CPU keep that store before this load (store
        // buffering). The reader that sets `opened` does (R4).
        if self.barriers == Barriers::Delivery {
            full_barrier();
        }
        self.is_open()
    }

    /// Handles a finished packet. `unread` returns the number of unread bytes in the buffer, or more if a
    /// reader takes packets at the same time. On the writer's CPU; any context, NMI included.
    pub(super) fn packet_ready(&self, unread: impl FnOnce() -> u64) {
        // The number of unread bytes may be too high, never too low. So this may wake too early, never too
        // late.
        if self.wakes_at_delivery() && self.threshold.is_passed(unread()) {
            self.wake_soon();
        }
        self.stopper.packet_ready();
    }

    /// Wakes the readers soon. Any context, NMI included.
    pub(super) fn wake_soon(&self) {
        // The interrupted code may hold the queue's lock. So an interrupt work wakes them.
        self.work.queue();
    }
}
