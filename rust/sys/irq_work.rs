// SPDX-License-Identifier: GPL-2.0

//! Work that any context, NMI included, can ask for, and that runs soon in one where more is
//! allowed: in an interrupt, or with PREEMPT_RT in a thread.

use crate::sys::bindings;
use core::marker::PhantomPinned;
use kernel::prelude::*;
use kernel::types::Opaque;

/// A piece of deferred work, and what it works on.
#[pin_data(PinnedDrop)]
pub(crate) struct IrqWork<T: Sync> {
    #[pin]
    work: Opaque<bindings::irq_work>,
    data: T,
    run: fn(&T),
    #[pin]
    pinned: PhantomPinned,
}

// SAFETY: `irq_work_queue` may be called from anywhere; `T` is Sync.
unsafe impl<T: Sync> Sync for IrqWork<T> {}
// SAFETY: Not bound to a thread.
unsafe impl<T: Send + Sync> Send for IrqWork<T> {}

impl<T: Sync> IrqWork<T> {
    /// Makes work that calls `run` with `data`, with interrupts off (in a thread with
    /// PREEMPT_RT). It must not sleep.
    pub(crate) fn new(data: T, run: fn(&T)) -> impl PinInit<Self> {
        pin_init!(Self {
            work <- Opaque::ffi_init(|work: *mut bindings::irq_work| {
                // SAFETY: `work` is valid memory, zeroed here; a zeroed irq_work with a
                // function is what init_irq_work() makes.
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

    /// Asks for one run. Any context, NMI included.
    pub(crate) fn queue(&self) {
        // SAFETY: Initialised, and pinned until the drop below.
        unsafe { bindings::irq_work_queue(self.work.get()) };
    }

    /// Runs the work.
    ///
    /// # Safety
    ///
    /// For the kernel to call, with the `work` of an `IrqWork<T>`.
    unsafe extern "C" fn callback(work: *mut bindings::irq_work) {
        // SAFETY:
        // - `work` is the field of an `IrqWork<T>`; an Opaque is transparent.
        // - The `IrqWork` is not dropped while it runs.
        unsafe {
            let this = kernel::container_of!(Opaque::cast_from(work), Self, work);
            ((*this).run)(&(*this).data);
        }
    }
}

#[pinned_drop]
impl<T: Sync> PinnedDrop for IrqWork<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Initialised. Waits for a run that was asked for.
        unsafe { bindings::irq_work_sync(self.work.get()) };
    }
}
