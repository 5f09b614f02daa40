// SPDX-License-Identifier: GPL-2.0

//! Work that any context can ask for, NMI included, and that runs in a thread, where it may sleep.

use crate::sys::bindings;
use crate::sys::irq_work::IrqWork;
use core::marker::PhantomPinned;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// Work, whatever it does.
pub(crate) trait Ask: Send + Sync {
    /// Asks for a run that begins after this. Several may become one. Any context, NMI included.
    fn ask(&self);
}

/// A piece of work, and what it works on. Dropping it waits for a run that was asked for.
#[pin_data]
pub(crate) struct Work<T: Send + Sync + 'static> {
    // In the order of their end: this one queues the other.
    #[pin]
    asked: IrqWork<Arc<Item<T>>>,
    item: Arc<Item<T>>,
}

impl<T: Send + Sync + 'static> Work<T> {
    /// Makes work that calls `run` with `data`, in a thread of the kernel's. May sleep.
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

    /// What it works on.
    pub(crate) fn data(&self) -> &T {
        &self.item.data
    }

    /// Waits for the end of what runs. Not for the work itself to call. May sleep.
    pub(crate) fn wait(&self) {
        // SAFETY: Initialised, and pinned until the drop below.
        unsafe { bindings::flush_work(self.item.work.get()) };
    }
}

impl<T: Send + Sync + 'static> Ask for Work<T> {
    fn ask(&self) {
        // The queue's lock may be held by what this interrupts: an interrupt of its own takes it.
        self.asked.queue();
    }
}

/// What the kernel's work queue has of it.
#[pin_data(PinnedDrop)]
struct Item<T: Send + Sync> {
    #[pin]
    work: Opaque<bindings::work_struct>,
    data: T,
    run: fn(&T),
    #[pin]
    pinned: PhantomPinned,
}

// SAFETY: The kernel may queue a work from any CPU; `T` is Sync.
unsafe impl<T: Send + Sync> Sync for Item<T> {}
// SAFETY: Not bound to a thread.
unsafe impl<T: Send + Sync> Send for Item<T> {}

impl<T: Send + Sync> Item<T> {
    fn new(data: T, run: fn(&T)) -> impl PinInit<Self> {
        pin_init!(Self {
            work <- Opaque::ffi_init(|work| {
                // SAFETY: `work` is memory for a work that will stay in place.
                unsafe { bindings::rtrace_init_work(work, Some(Self::callback)) }
            }),
            data,
            run,
            pinned: PhantomPinned,
        })
    }

    /// Asks for one run. Any context but NMI.
    fn queue(&self) {
        // SAFETY: Initialised, and pinned until the drop below. The queue is there from boot on.
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
    /// For the kernel to call, with the `work` of an `Item<T>`.
    unsafe extern "C" fn callback(work: *mut bindings::work_struct) {
        // SAFETY:
        // - `work` is the field of an `Item<T>`; an Opaque is transparent.
        // - The `Item` is not dropped while it runs.
        unsafe {
            let this = kernel::container_of!(Opaque::cast_from(work), Self, work);
            ((*this).run)(&(*this).data);
        }
    }
}

#[pinned_drop]
impl<T: Send + Sync> PinnedDrop for Item<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Initialised. Takes it off the queue, and waits for a run; it may sleep here.
        unsafe { bindings::cancel_work_sync(self.work.get()) };
    }
}
