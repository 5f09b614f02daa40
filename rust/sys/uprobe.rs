// SPDX-License-Identifier: GPL-2.0

//! Uprobes: callbacks where a program reaches a place in its code, and where a function of it returns.

use crate::sys::args::Registers;
use crate::sys::bindings;
use crate::sys::kprobe::Reached;
use crate::sys::retired::{self, Retirable};
use core::ptr::NonNull;
use kernel::error::from_err_ptr;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};
use kernel::types::Opaque;

/// A reference to a regular file. The file and its file system stay while this lives.
///
/// # Invariants
///
/// The pointer is from `rtrace_path_new()`, and not yet freed.
struct KeptFile(NonNull<bindings::path>);

// SAFETY: The kernel's references to paths have locks of their own.
unsafe impl Send for KeptFile {}
// SAFETY: As above.
unsafe impl Sync for KeptFile {}

impl KeptFile {
    /// Finds a file. Errors: `EINVAL` if it is not a regular file, and those of open(2). May sleep.
    fn find(name: &CStr) -> Result<Self> {
        // SAFETY: The name is NUL-terminated.
        let path = from_err_ptr(unsafe { bindings::rtrace_path_new(name.as_ptr().cast()) })?;
        // INVARIANT: `rtrace_path_new()` returned the pointer.
        Ok(Self(NonNull::new(path).ok_or(ENOENT)?))
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        // SAFETY: By the invariant.
        unsafe { bindings::rtrace_path_free(self.0.as_ptr()) };
    }
}

/// A place in a program's code, which is probed while this is enabled. The target may sleep.
///
/// # Invariants
///
/// While `on` is [`Some`], its consumer is registered.
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
    /// A new consumer for each registration: the kernel may still use that of the previous one.
    used: KBox<Retirable<Consumer<T>>>,
}

// SAFETY: The kernel's functions for uprobes have their own locks.
unsafe impl<T: Reached> Send for On<T> {}

/// A consumer that the kernel calls.
#[repr(C)]
struct Consumer<T> {
    /// First field, so that it has the same address as the whole.
    consumer: Opaque<bindings::uprobe_consumer>,
    target: Arc<T>,
}

// SAFETY: The kernel's functions for uprobes have their own locks; the target is `Send` and `Sync`.
unsafe impl<T: Reached> Send for Consumer<T> {}
// SAFETY: As above.
unsafe impl<T: Reached> Sync for Consumer<T> {}

impl<T: Reached> Uprobe<T> {
    /// Creates a disabled probe at `offset` bytes from the beginning of the file. With `at_return`, it is at
    /// the returns of the function that begins there. Errors: those of open(2); `EINVAL` if the file has no
    /// such place or is not a regular file; `ENOSYS` if this kernel has no uprobes. May sleep.
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
        // Only a registration shows whether a probe is possible there.
        uprobe.enable()?;
        uprobe.disable();
        Ok(uprobe)
    }

    /// Enables the probe. May sleep.
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
        // SAFETY: The reference keeps the file and its inode. The consumer does not move, in its box, until it
        // was unregistered and does not run any more (`disable`).
        let uprobe = from_err_ptr(unsafe {
            bindings::rtrace_uprobe_register(
                self.file.0.as_ptr(),
                self.offset,
                used.value().consumer.get(),
            )
        })?;
        // INVARIANT: The consumer was registered above.
        *on = NonNull::new(uprobe).map(|uprobe| On { uprobe, used });
        Ok(())
    }

    /// Disables the probe. The target may still run, or sleep. May sleep.
    pub(crate) fn disable(&self) {
        // INVARIANT: The consumer is unregistered below. No other code can have seen it.
        if let Some(On { uprobe, used }) = self.on.lock().take() {
            // SAFETY: By the invariant the consumer was registered.
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
/// `consumer` must be that of a live `Consumer<T>`, and `registers` must be live.
unsafe fn call<T: Reached>(
    consumer: *mut bindings::uprobe_consumer,
    registers: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: By the contract. No code has a mutable reference to the target.
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
