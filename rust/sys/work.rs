// SPDX-License-Identifier: GPL-2.0

//! Deferred work that any context can queue, NMI included, and that runs in a thread, where it may sleep.

use crate::sys::bindings;
use crate::sys::irq_work::IrqWork;
use core::marker::PhantomPinned;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// Work that can be queued.
pub(crate) trait Ask: Send + Sync {
    /// Queues a run that begins after this call. Several calls may cause one run. Any context, NMI included.
    fn ask(&self);
}

/// A piece of work and its data. The drop waits for a queued run.
#[pin_data]
pub(crate) struct Work<T: Send + Sync + 'static> {
    // In the order of the drop: this field queues the other.
    #[pin]
    asked: IrqWork<Arc<Item<T>>>,
    item: Arc<Item<T>>,
}

impl<T: Send + Sync + 'static> Work<T> {
    /// Creates work that calls `run` with `data`, in a thread of the kernel. May sleep.
    pub(crate) fn new(data: T, run: fn(&T)) -> Result<Arc<Self>> {
        let item = Arc::pin_init(Item::new(data, run), GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self {
                asked <- IrqWork::new(item.clone(), |item| item.queue()),
                item,
            }),
            GFP_KERNEL,
        )
    }

    /// Its data.
    pub(crate) fn data(&self) -> &T {
        &self.item.data
    }

    /// Waits for the end of a run. The work itself must not call this. May sleep.
    pub(crate) fn wait(&self) {
        // SAFETY: The work is initialised, and pinned until the drop below.
        unsafe { bindings::flush_work(self.item.work.get()) };
    }
}

impl<T: Send + Sync + 'static> Ask for Work<T> {
    fn ask(&self) {
        // The interrupted code may hold the queue's lock. So an interrupt work queues the item.
        self.asked.queue();
    }
}

/// The part of the work that the kernel's work queue accesses.
#[pin_data(PinnedDrop)]
struct Item<T: Send + Sync> {
    #[pin]
    work: Opaque<bindings::work_struct>,
    data: T,
    run: fn(&T),
    #[pin]
    pinned: PhantomPinned,
}

// SAFETY: Any CPU may queue a work; `T` is Sync.
unsafe impl<T: Send + Sync> Sync for Item<T> {}
// SAFETY: Not bound to a thread.
unsafe impl<T: Send + Sync> Send for Item<T> {}

impl<T: Send + Sync> Item<T> {
    fn new(data: T, run: fn(&T)) -> impl PinInit<Self> {
        pin_init!(Self {
            work <- Opaque::ffi_init(|work| {
                // SAFETY: `work` is memory for a work that will not move.
                unsafe { bindings::rtrace_init_work(work, Some(Self::callback)) }
            }),
            data,
            run,
            pinned: PhantomPinned,
        })
    }

    /// Queues one run. Any context except NMI.
    fn queue(&self) {
        // SAFETY: The work is initialised, and pinned until the drop below. The queue exists from boot on.
        unsafe {
            bindings::queue_work_on(
                bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int,
                bindings::system_dfl_wq,
                self.work.get(),
            )
        };
    }

    /// Runs the work.
    ///
    /// # Safety
    ///
    /// Only the kernel calls this, with the `work` of an `Item<T>`.
    unsafe extern "C" fn callback(work: *mut bindings::work_struct) {
        // SAFETY:
        // - `work` is the field of an `Item<T>`; an Opaque is transparent.
        // - The `Item` is not dropped while the work runs.
        unsafe {
            let this = kernel::container_of!(Opaque::cast_from(work), Self, work);
            ((*this).run)(&(*this).data);
        }
    }
}

#[pinned_drop]
impl<T: Send + Sync> PinnedDrop for Item<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The work is initialised. The call removes it from the queue, and waits for a run. This
        // context may sleep.
        unsafe { bindings::cancel_work_sync(self.work.get()) };
    }
}
