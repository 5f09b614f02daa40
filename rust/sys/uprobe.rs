// SPDX-License-Identifier: GPL-2.0

//! Uprobes: being called where a program reaches code of its, and where a function of its returns.

use crate::sys::args::Registers;
use crate::sys::bindings;
use crate::sys::kprobe::Reached;
use crate::sys::retired::{self, Retirable};
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

// SAFETY: The kernel's references to paths have locks of their own.
unsafe impl Send for KeptFile {}
// SAFETY: As above.
unsafe impl Sync for KeptFile {}

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
/// While `on` holds something, its consumer is registered there.
#[pin_data(PinnedDrop)]
pub(crate) struct Uprobe<T: Reached> {
    target: Arc<T>,
    file: KeptFile,
    offset: u64,
    at_return: bool,
    #[pin]
    on: Mutex<Option<On<T>>>,
}

/// A registration.
struct On<T: Reached> {
    uprobe: NonNull<bindings::uprobe>,
    /// One for each registration: the kernel may still look at the last one.
    used: KBox<Retirable<Consumer<T>>>,
}

// SAFETY: The kernel's functions for uprobes have locks of their own.
unsafe impl<T: Reached> Send for On<T> {}

/// A consumer that the kernel calls.
#[repr(C)]
struct Consumer<T> {
    /// First, so that its address is that of all.
    consumer: Opaque<bindings::uprobe_consumer>,
    target: Arc<T>,
}

// SAFETY: The kernel's functions for uprobes have locks of their own; the target is `Send` and `Sync`.
unsafe impl<T: Reached> Send for Consumer<T> {}
// SAFETY: As above.
unsafe impl<T: Reached> Sync for Consumer<T> {}

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
        let file = KeptFile::find(file)?;
        let uprobe = KBox::pin_init(
            pin_init!(Self {
                target,
                file,
                offset,
                at_return,
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
        if on.is_some() {
            return Ok(());
        }
        let mut consumer = bindings::uprobe_consumer::default();
        if self.at_return {
            consumer.ret_handler = Some(returned::<T>);
        } else {
            consumer.handler = Some(reached::<T>);
        }
        let used = Retirable::new(Consumer {
            consumer: Opaque::new(consumer),
            target: self.target.clone(),
        })?;
        retired::settle(false)?;
        // SAFETY: The file is kept, and with it its inode. The consumer stays where it is, in its box, until it was
        // unregistered and runs nowhere (`disable`).
        let uprobe = from_err_ptr(unsafe {
            bindings::rtrace_uprobe_register(
                self.file.0.as_ptr(),
                self.offset,
                used.value().consumer.get(),
            )
        })?;
        // INVARIANT: Registered above.
        *on = NonNull::new(uprobe).map(|uprobe| On { uprobe, used });
        Ok(())
    }

    /// Has it not called any more. It may still run, or sleep. May sleep.
    pub(crate) fn disable(&self) {
        // INVARIANT: Unregistered below; nobody else can have seen it.
        if let Some(On { uprobe, used }) = self.on.lock().take() {
            // SAFETY: By the invariant it was registered.
            unsafe {
                bindings::rtrace_uprobe_unregister(uprobe.as_ptr(), used.value().consumer.get());
            }
            used.retire();
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
/// `consumer` must be that of a `Consumer<T>` that lives, `registers` live.
unsafe fn call<T: Reached>(
    consumer: *mut bindings::uprobe_consumer,
    registers: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: By the contract. Nobody has the target mutably.
    let (target, registers) = unsafe {
        let consumer = consumer.cast::<Consumer<T>>();
        const { assert!(core::mem::offset_of!(Consumer<T>, consumer) == 0) };
        (&(*consumer).target, &*registers.cast::<Registers>())
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
