// SPDX-License-Identifier: GPL-2.0

//! Uprobes: callbacks where a program reaches a place in its code, and where a function of it returns.

use crate::sys::args::Registers;
use crate::sys::bindings;
use crate::sys::errno::eopnotsupp;
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

/// Receives the reached places of a program, and the calls and returns of its functions. The calls may sleep.
#[cfg_attr(linux_6_12, allow(dead_code))]
pub(crate) trait ReachedInProgram: Reached {
    /// Handles the call of a function. Returns a word that is kept until the function returns.
    fn called(&self) -> u64;

    /// Handles the return of a function. `kept` is what [`called`](Self::called) has returned.
    fn returned(&self, registers: &Registers, kept: u64);
}

/// A place in a program's code, which is probed while this is enabled. The target may sleep.
///
/// # Invariants
///
/// While `on` is [`Some`], its consumer is registered.
#[pin_data(PinnedDrop)]
pub(crate) struct Uprobe<T: ReachedInProgram> {
    target: Arc<T>,
    file: KeptFile,
    offset: u64,
    at_return: bool,
    #[pin]
    on: Mutex<Option<On<T>>>,
}

/// A registration.
struct On<T: ReachedInProgram> {
    uprobe: NonNull<bindings::uprobe>,
    /// A new consumer for each registration: the kernel may still use that of the previous one.
    used: KBox<Retirable<Consumer<T>>>,
}

// SAFETY: The kernel's functions for uprobes have their own locks.
unsafe impl<T: ReachedInProgram> Send for On<T> {}

/// A consumer that the kernel calls.
#[repr(C)]
struct Consumer<T> {
    /// First field, so that it has the same address as the whole.
    consumer: Opaque<bindings::uprobe_consumer>,
    target: Arc<T>,
}

// SAFETY: The kernel's functions for uprobes have their own locks; the target is `Send` and `Sync`.
unsafe impl<T: ReachedInProgram> Send for Consumer<T> {}
// SAFETY: As above.
unsafe impl<T: ReachedInProgram> Sync for Consumer<T> {}

impl<T: ReachedInProgram> Uprobe<T> {
    /// Creates a disabled probe at `offset` bytes from the beginning of the file. With `at_return`, it is at
    /// the returns of the function that begins there. Errors: those of open(2); `EINVAL` if the file has no
    /// such place or is not a regular file; `ENOSYS` if this kernel has no uprobes; `EOPNOTSUPP` with `at_return` on
    /// 6.12, which keeps no word for a call. May sleep.
    pub(crate) fn new(
        file: &CStr,
        offset: u64,
        at_return: bool,
        target: Arc<T>,
    ) -> Result<Pin<KBox<Self>>> {
        if at_return && cfg!(linux_6_12) {
            return Err(eopnotsupp());
        }
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
        #[cfg_attr(linux_6_12, allow(unused_mut))]
        let mut consumer = bindings::uprobe_consumer {
            handler: Some(reached::<T>),
            ..Default::default()
        };
        #[cfg(not(linux_6_12))]
        if self.at_return {
            consumer.handler = Some(called::<T>);
            consumer.ret_handler = Some(returned::<T>);
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
impl<T: ReachedInProgram> PinnedDrop for Uprobe<T> {
    fn drop(self: Pin<&mut Self>) {
        self.disable();
    }
}

/// The target of a consumer.
///
/// # Safety
///
/// `consumer` must be that of a live `Consumer<T>`.
unsafe fn target<'a, T>(consumer: *mut bindings::uprobe_consumer) -> &'a T {
    const { assert!(core::mem::offset_of!(Consumer<T>, consumer) == 0) };
    // SAFETY: By the contract. No code has a mutable reference to the target.
    unsafe { &(*consumer.cast::<Consumer<T>>()).target }
}

/// # Safety
///
/// `consumer` must be that of a live `Consumer<T>`, and `registers` must be live.
unsafe extern "C" fn reached<T: ReachedInProgram>(
    consumer: *mut bindings::uprobe_consumer,
    registers: *mut bindings::pt_regs,
    #[cfg(not(linux_6_12))] _kept: *mut u64,
) -> c_int {
    // SAFETY: By the contract.
    let (target, registers) = unsafe { (target::<T>(consumer), &*registers.cast::<Registers>()) };
    target.reached(registers);
    0
}

/// # Safety
///
/// As [`reached`], and `kept` must be the word that the kernel keeps for the call.
#[cfg(not(linux_6_12))]
unsafe extern "C" fn called<T: ReachedInProgram>(
    consumer: *mut bindings::uprobe_consumer,
    _registers: *mut bindings::pt_regs,
    kept: *mut u64,
) -> c_int {
    // SAFETY: By the contract. The kernel gives each call a word of its own, because the consumer has both handlers.
    unsafe { *kept = target::<T>(consumer).called() };
    0
}

/// # Safety
///
/// As [`called`], which must have been called with this word.
#[cfg(not(linux_6_12))]
unsafe extern "C" fn returned<T: ReachedInProgram>(
    consumer: *mut bindings::uprobe_consumer,
    _function: usize,
    registers: *mut bindings::pt_regs,
    kept: *mut u64,
) -> c_int {
    // SAFETY: By the contract. The kernel calls this only for calls that `called` has handled.
    let (target, registers, kept) = unsafe {
        (
            target::<T>(consumer),
            &*registers.cast::<Registers>(),
            *kept,
        )
    };
    target.returned(registers, kept);
    0
}
