// SPDX-License-Identifier: GPL-2.0

//! Waits: on a queue, for blocking readers and for poll(2), or for a time.

use crate::sys::bindings;
use kernel::fs::File;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};
use kernel::time::msecs_to_jiffies;
use kernel::types::Opaque;

/// Sleeps for some milliseconds. Fails with `ERESTARTSYS` on a signal.
pub(crate) fn sleep(ms: u32) -> Result {
    let jiffies = msecs_to_jiffies(ms) as c_long;
    // SAFETY: This is process context, and no spinlock is held.
    unsafe { bindings::schedule_timeout_interruptible(jiffies) };
    if kernel::current!().signal_pending() {
        return Err(ERESTARTSYS);
    }
    Ok(())
}

/// Queues that an open file was polled on. The open file owns this list.
///
/// A sleeping poll(2) holds the file, and epoll removes its entries from the queues before the file is
/// released. So each queue in the list outlives its entries, even if its session is destroyed.
#[pin_data]
pub(crate) struct Polled {
    #[pin]
    queues: Mutex<KVec<Arc<WaitQueue>>>,
}

impl Polled {
    /// An empty list.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            queues <- new_mutex!(KVec::new()),
        })
    }

    /// The argument of a poll(2) call of the file.
    pub(super) fn table(&self, table: *mut bindings::poll_table) -> PollTable<'_> {
        PollTable {
            table,
            polled: self,
        }
    }

    /// Keeps `queue` until the file is released.
    fn keep(&self, queue: &Arc<WaitQueue>) -> Result {
        let mut queues = self.queues.lock();
        if !queues.iter().any(|known| Arc::ptr_eq(known, queue)) {
            queues.push(queue.clone(), GFP_KERNEL)?;
        }
        Ok(())
    }
}

/// The table of a poll(2) call; see [`WaitQueue::register`].
pub(crate) struct PollTable<'a> {
    table: *mut bindings::poll_table,
    polled: &'a Polled,
}

/// A queue of threads that wait.
#[pin_data]
pub(crate) struct WaitQueue {
    #[pin]
    head: Opaque<bindings::wait_queue_head>,
}

// SAFETY: The wait queue has its own lock.
unsafe impl Sync for WaitQueue {}
// SAFETY: Not bound to a thread.
unsafe impl Send for WaitQueue {}

impl WaitQueue {
    /// Creates an empty queue.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            head <- Opaque::ffi_init(|head| {
                let key = kernel::static_lock_class!();
                // SAFETY: `head` is memory for a wait queue head that will not move.
                unsafe {
                    bindings::__init_waitqueue_head(head, c"rtrace".as_ptr().cast(), key.as_ptr())
                }
            }),
        })
    }

    /// Wakes all threads. Not from NMI, nor while a run-queue lock may be held.
    pub(crate) fn wake_all(&self) {
        const ALL: c_int = 0;
        // SAFETY: The queue is initialised.
        unsafe {
            bindings::__wake_up(
                self.head.get(),
                bindings::TASK_NORMAL,
                ALL,
                core::ptr::null_mut(),
            )
        };
    }

    /// Registers the calling poll(2) of `file` with this queue. `table` must be of the same file. `ENOMEM`: the
    /// call is not registered. May sleep.
    pub(crate) fn register(self: &Arc<Self>, file: &File, table: &PollTable<'_>) -> Result {
        table.polled.keep(self)?;
        // SAFETY:
        // - File and table are valid during the call.
        // - By the line above, the file keeps the queue until it has no entry of a poll(2): see `Polled`.
        unsafe { bindings::poll_wait(file.as_ptr(), self.head.get(), table.table) };
        Ok(())
    }

    /// Sleeps until `is_ready`, for at most `ms` milliseconds.
    pub(crate) fn wait_at_most(&self, ms: u32, is_ready: impl Fn() -> bool) {
        let mut left = msecs_to_jiffies(ms) as c_long;
        let mut entry = bindings::wait_queue_entry::default();
        // SAFETY: Initialises the entry, which is on this stack frame.
        unsafe { bindings::init_wait_entry(&mut entry, 0) };
        while left > 0 {
            // SAFETY: Both are initialised. The entry is removed below, before its stack frame ends.
            unsafe {
                bindings::prepare_to_wait_event(
                    self.head.get(),
                    &mut entry,
                    bindings::TASK_UNINTERRUPTIBLE as c_int,
                )
            };
            // The entry is in the queue already, as below.
            if is_ready() {
                break;
            }
            // SAFETY: This is process context. A wake-up since prepare_to_wait makes the call return.
            left = unsafe { bindings::schedule_timeout(left) };
        }
        // SAFETY: As above.
        unsafe { bindings::finish_wait(self.head.get(), &mut entry) };
    }

    /// Sleeps until `ready` returns an answer. Fails with `ERESTARTSYS` on a signal.
    pub(crate) fn wait_for<R>(&self, mut ready: impl FnMut() -> Option<R>) -> Result<R> {
        let mut entry = bindings::wait_queue_entry::default();
        // SAFETY: Initialises the entry, which is on this stack frame.
        unsafe { bindings::init_wait_entry(&mut entry, 0) };
        let answer = loop {
            // SAFETY: Both are initialised. The entry is removed below, before its stack frame ends.
            let signalled = unsafe {
                bindings::prepare_to_wait_event(
                    self.head.get(),
                    &mut entry,
                    bindings::TASK_INTERRUPTIBLE as c_int,
                )
            };
            // The entry is in the queue already, so that no wake-up is missed.
            if let Some(answer) = ready() {
                break Ok(answer);
            }
            if signalled != 0 {
                break Err(ERESTARTSYS);
            }
            // SAFETY: This is process context. A wake-up since prepare_to_wait makes the call return.
            unsafe { bindings::schedule() };
        };
        // SAFETY: As above.
        unsafe { bindings::finish_wait(self.head.get(), &mut entry) };
        answer
    }
}
