// SPDX-License-Identifier: GPL-2.0

//! Uprobes: being called where a program reaches code of its, and where a function of its returns.

use crate::sys::args::Registers;
use crate::sys::bindings;
use crate::sys::kprobe::Reached;
use core::ptr::NonNull;
use kernel::error::from_err_ptr;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};
use kernel::types::Opaque;

/// A regular file that stays where it is as long as this lives; so does its file system.
///
/// # Invariants
///
/// From `rtrace_path_new()`, and not yet freed.
struct KeptFile(NonNull<bindings::path>);

impl KeptFile {
    /// `ENOENT` and others of open(2); `EINVAL`: it is no regular file. May sleep.
    fn find(name: &CStr) -> Result<Self> {
        // SAFETY: The name is NUL-terminated.
        let path = from_err_ptr(unsafe { bindings::rtrace_path_new(name.as_ptr().cast()) })?;
        // INVARIANT: From there.
        Ok(Self(NonNull::new(path).ok_or(ENOENT)?))
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        // SAFETY: By the invariant.
        unsafe { bindings::rtrace_path_free(self.0.as_ptr()) };
    }
}

/// A place in a program's code, probed while it is on. What is called there may sleep.
///
/// # Invariants
///
/// - While `on` holds one, the consumer is registered there.
/// - `consumer` stays where it is as long as it is registered.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub(crate) struct Uprobe<T: Reached> {
    /// First, so that its address is that of all.
    #[pin]
    consumer: Opaque<bindings::uprobe_consumer>,
    target: Arc<T>,
    file: KeptFile,
    offset: u64,
    #[pin]
    on: Mutex<Option<NonNull<bindings::uprobe>>>,
}

// SAFETY: The kernel's functions for uprobes have locks of their own; the target is `Send` and `Sync`.
unsafe impl<T: Reached> Send for Uprobe<T> {}
// SAFETY: As above.
unsafe impl<T: Reached> Sync for Uprobe<T> {}

impl<T: Reached> Uprobe<T> {
    /// At so many bytes from the file's beginning; where the function that begins there returns, if
    /// `at_return`. It is off. Errors of open(2) for the file; `EINVAL`: the file has no such place, or
    /// is no regular file; `ENOSYS`: this kernel has no uprobes. May sleep.
    pub(crate) fn new(
        file: &CStr,
        offset: u64,
        at_return: bool,
        target: Arc<T>,
    ) -> Result<Pin<KBox<Self>>> {
        let mut consumer = bindings::uprobe_consumer::default();
        if at_return {
            consumer.ret_handler = Some(returned::<T>);
        } else {
            consumer.handler = Some(reached::<T>);
        }
        let file = KeptFile::find(file)?;
        let uprobe = KBox::pin_init(
            pin_init!(Self {
                consumer: Opaque::new(consumer),
                target,
                file,
                offset,
                on <- new_mutex!(None),
            }),
            GFP_KERNEL,
        )?;
        // Whether it can be is known then.
        uprobe.enable()?;
        uprobe.disable();
        Ok(uprobe)
    }

    /// Has it called from now on. May sleep.
    pub(crate) fn enable(&self) -> Result {
        let mut on = self.on.lock();
        if on.is_none() {
            // SAFETY: The file is kept, and with it its inode. The consumer stays where it is, for this
            // is pinned, and is unregistered before this goes (`drop`).
            let uprobe = from_err_ptr(unsafe {
                bindings::rtrace_uprobe_register(
                    self.file.0.as_ptr(),
                    self.offset,
                    self.consumer.get(),
                )
            })?;
            // INVARIANT: Registered above.
            *on = NonNull::new(uprobe);
        }
        Ok(())
    }

    /// Has it not called any more, and waits until it does not run. May sleep.
    pub(crate) fn disable(&self) {
        // INVARIANT: Unregistered below; nobody else can have seen it.
        if let Some(uprobe) = self.on.lock().take() {
            // SAFETY: By the invariant it was registered.
            unsafe {
                bindings::rtrace_uprobe_unregister(uprobe.as_ptr(), self.consumer.get());
            }
        }
    }
}

#[pinned_drop]
impl<T: Reached> PinnedDrop for Uprobe<T> {
    fn drop(self: Pin<&mut Self>) {
        self.disable();
    }
}

/// # Safety
///
/// `consumer` must be that of a `Uprobe<T>` that lives, `registers` live.
unsafe fn call<T: Reached>(
    consumer: *mut bindings::uprobe_consumer,
    registers: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: By the contract. Nobody has the target mutably.
    let (target, registers) = unsafe {
        let uprobe = consumer.cast::<Uprobe<T>>();
        const { assert!(core::mem::offset_of!(Uprobe<T>, consumer) == 0) };
        (&(*uprobe).target, &*registers.cast::<Registers>())
    };
    target.reached(registers);
    0
}

/// # Safety
///
/// As [`call`].
unsafe extern "C" fn reached<T: Reached>(
    consumer: *mut bindings::uprobe_consumer,
    registers: *mut bindings::pt_regs,
    _data: *mut u64,
) -> c_int {
    // SAFETY: By the contract.
    unsafe { call::<T>(consumer, registers) }
}

/// # Safety
///
/// As [`call`].
unsafe extern "C" fn returned<T: Reached>(
    consumer: *mut bindings::uprobe_consumer,
    _function: usize,
    registers: *mut bindings::pt_regs,
    _data: *mut u64,
) -> c_int {
    // SAFETY: By the contract.
    unsafe { call::<T>(consumer, registers) }
}
