// SPDX-License-Identifier: GPL-2.0

//! Deferred work that any context can queue, NMI included. The work runs soon after: in an interrupt, or, with
//! PREEMPT_RT, in a thread.

use crate::sys::bindings;
use core::marker::PhantomPinned;
use kernel::prelude::*;
use kernel::types::Opaque;

/// A piece of deferred work and its data.
#[pin_data(PinnedDrop)]
pub(crate) struct IrqWork<T: Sync> {
    #[pin]
    work: Opaque<bindings::irq_work>,
    data: T,
    run: fn(&T),
    #[pin]
    pinned: PhantomPinned,
}

// SAFETY: Any context may call `irq_work_queue`; `T` is Sync.
unsafe impl<T: Sync> Sync for IrqWork<T> {}
// SAFETY: Not bound to a thread.
unsafe impl<T: Send + Sync> Send for IrqWork<T> {}

impl<T: Sync> IrqWork<T> {
    /// Creates work that calls `run` with `data`, with interrupts off (with PREEMPT_RT, in a thread). `run`
    /// must not sleep.
    pub(crate) fn new(data: T, run: fn(&T)) -> impl PinInit<Self> {
        pin_init!(Self {
            work <- Opaque::ffi_init(|work: *mut bindings::irq_work| {
                // SAFETY: `work` is valid memory, zeroed here. init_irq_work() also makes a zeroed irq_work
                // with a function.
                unsafe {
                    work.write_bytes(0, 1);
                    (*work).func = Some(Self::callback);
                }
            }),
            data,
            run,
            pinned: PhantomPinned,
        })
    }

    /// Queues one run. Any context, NMI included.
    pub(crate) fn queue(&self) {
        // SAFETY: The work is initialised, and pinned until the drop below.
        unsafe { bindings::irq_work_queue(self.work.get()) };
    }

    /// Runs the work.
    ///
    /// # Safety
    ///
    /// Only the kernel calls this, with the `work` of an `IrqWork<T>`.
    unsafe extern "C" fn callback(work: *mut bindings::irq_work) {
        // SAFETY:
        // - `work` is the field of an `IrqWork<T>`; an Opaque is transparent.
        // - The `IrqWork` is not dropped while the work runs.
        unsafe {
            let this = kernel::container_of!(Opaque::cast_from(work), Self, work);
            ((*this).run)(&(*this).data);
        }
    }
}

#[pinned_drop]
impl<T: Sync> PinnedDrop for IrqWork<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The work is initialised. The call waits for a queued run.
        unsafe { bindings::irq_work_sync(self.work.get()) };
    }
}
