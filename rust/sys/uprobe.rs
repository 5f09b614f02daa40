// SPDX-License-Identifier: GPL-2.0

//! Uprobes: callbacks where a program reaches a place in its code. The handlers may sleep.
//!
//! The kernel could also call a handler where a function returns. For that it replaces the return address on the
//! program's stack, which the program can see: exceptions, backtraces and Go's runtime read it.

use crate::sys::args::Registers;
use crate::sys::bindings;
use crate::sys::kprobe::Reached;
use crate::sys::retired::{self, Retirable, UsedBy};
use crate::sys::threads::ProcessMemory;
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
pub(crate) struct KeptFile(NonNull<bindings::path>);

// SAFETY: The kernel's references to paths have locks of their own.
unsafe impl Send for KeptFile {}
// SAFETY: As above.
unsafe impl Sync for KeptFile {}

impl KeptFile {
    /// Finds a file. Errors: `EINVAL` if it is not a regular file, and those of open(2). May sleep.
    pub(crate) fn find(name: &CStr) -> Result<Self> {
        // SAFETY: The name is NUL-terminated.
        let path = from_err_ptr(unsafe { bindings::rtrace_path_new(name.as_ptr().cast()) })?;
        // INVARIANT: `rtrace_path_new()` returned the pointer.
        Ok(Self(NonNull::new(path).ok_or(ENOENT)?))
    }
}

impl KeptFile {
    /// Its inode, if the file is in an overlay file system. Otherwise NULL.
    fn overlay(&self) -> *const bindings::inode {
        // SAFETY: By the invariant.
        unsafe { bindings::rtrace_path_overlay(self.0.as_ptr()) }
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        // SAFETY: By the invariant.
        unsafe { bindings::rtrace_path_free(self.0.as_ptr()) };
    }
}

/// Receives the reached places of a program. The calls may sleep.
pub(crate) trait ReachedInProgram: Reached {
    /// Whether tasks with this memory are wanted. Only there the program has breakpoints. Must not sleep.
    fn wants(&self, memory: &ProcessMemory<'_>) -> bool;

    /// Whether the current task is wanted. If not, no other function is called.
    fn wants_current_task(&self) -> bool;
}

/// A place in a program's code, which is probed while this is enabled. The target may sleep.
#[pin_data(PinnedDrop)]
pub(crate) struct Uprobe<T: ReachedInProgram> {
    target: Arc<T>,
    file: Arc<KeptFile>,
    offset: u64,
    counter: u64,
    #[pin]
    on: Mutex<Option<On<T>>>,
}

/// A registration. Dropped only by [`unregister`](Self::unregister).
///
/// # Invariants
///
/// The consumer is registered with the uprobe.
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
    consumer: Opaque<bindings::rtrace_uprobe_consumer>,
    target: Arc<T>,
    /// The inode of the file in its overlay file system, or NULL. Only compared.
    overlay: *const bindings::inode,
}

// SAFETY: The kernel's functions for uprobes have their own locks; the target is `Send` and `Sync`.
unsafe impl<T: ReachedInProgram> Send for Consumer<T> {}
// SAFETY: As above.
unsafe impl<T: ReachedInProgram> Sync for Consumer<T> {}

impl<T: ReachedInProgram> Uprobe<T> {
    /// Creates a disabled probe at `offset` bytes from the beginning of the file. `counter` is the offset of a 16-bit
    /// number, which the kernel increments in each memory with the breakpoint; 0: there is none.
    pub(crate) fn new(
        file: Arc<KeptFile>,
        offset: u64,
        counter: u64,
        target: Arc<T>,
    ) -> Result<Pin<KBox<Self>>> {
        KBox::pin_init(
            pin_init!(Self {
                target,
                file,
                offset,
                counter,
                on <- new_mutex!(None),
            }),
            GFP_KERNEL,
        )
    }

    /// Checks that a probe is possible there. Errors: `EINVAL` if the file has no such place, or if another probe is there
    /// with another counter; `ENOSYS` if this kernel has no uprobes. May sleep.
    pub(crate) fn check(&self) -> Result {
        // Only a registration shows it.
        self.visit(is_current)
    }

    /// Enables the probe, in the memory that the target wants. May sleep.
    pub(crate) fn enable(&self) -> Result {
        let mut on = self.on.lock();
        if on.is_some() {
            return self.visit(wants::<T>);
        }
        *on = Some(self.register(reached::<T>, wants::<T>)?);
        Ok(())
    }

    /// If the probe is enabled, moves it to the memory that the target wants now. May sleep.
    pub(crate) fn follow(&self) -> Result {
        match &*self.on.lock() {
            Some(_) => self.visit(wants::<T>),
            None => Ok(()),
        }
    }

    /// Disables the probe. The target may still run, or sleep. May sleep.
    pub(crate) fn disable(&self) {
        if let Some(on) = self.on.lock().take() {
            on.unregister();
        }
    }

    /// Registers and unregisters a consumer that handles nothing. Thus the kernel adds breakpoints where `filter` is
    /// true, and then removes breakpoints that no consumer wants. Modules cannot call uprobe_apply(). May sleep.
    fn visit(&self, filter: Filter) -> Result {
        self.register(ignored, filter)?.unregister();
        Ok(())
    }

    /// Registers a consumer. May sleep.
    fn register(&self, reached: Handler, filter: Filter) -> Result<On<T>> {
        let consumer = bindings::rtrace_uprobe_consumer {
            consumer: bindings::uprobe_consumer {
                filter: Some(filter),
                ..Default::default()
            },
            reached: Some(reached),
        };
        let used = Retirable::new(Consumer {
            consumer: Opaque::new(consumer),
            target: self.target.clone(),
            overlay: self.file.overlay(),
        })?;
        retired::settle(false)?;
        // SAFETY: The reference keeps the file and its inode. The consumer does not move, in its box, until it
        // was unregistered and does not run any more (`On::unregister`).
        let uprobe = from_err_ptr(unsafe {
            bindings::rtrace_uprobe_register(
                self.file.0.as_ptr(),
                self.offset,
                self.counter,
                used.value().consumer.get(),
            )
        })?;
        let uprobe = NonNull::new(uprobe).ok_or(EINVAL)?;
        // INVARIANT: The consumer was registered above.
        Ok(On { uprobe, used })
    }
}

impl<T: ReachedInProgram> On<T> {
    /// Unregisters the consumer, which may still run. May sleep.
    fn unregister(self) {
        let Self { uprobe, used } = self;
        // SAFETY: By the invariant the consumer is registered.
        unsafe {
            bindings::rtrace_uprobe_unregister(uprobe.as_ptr(), used.value().consumer.get());
        }
        used.retire(UsedBy::Uprobe);
    }
}

#[pinned_drop]
impl<T: ReachedInProgram> PinnedDrop for Uprobe<T> {
    fn drop(self: Pin<&mut Self>) {
        self.disable();
    }
}

/// The whole of a consumer.
///
/// # Safety
///
/// `consumer` must be that of a live `Consumer<T>`.
unsafe fn whole<'a, T, C>(consumer: *mut C) -> &'a Consumer<T> {
    const { assert!(core::mem::offset_of!(Consumer<T>, consumer) == 0) };
    const { assert!(core::mem::offset_of!(bindings::rtrace_uprobe_consumer, consumer) == 0) };
    // SAFETY: By the contract. No code has a mutable reference to it.
    unsafe { &*consumer.cast::<Consumer<T>>() }
}

/// Handles a reached breakpoint.
type Handler =
    unsafe extern "C" fn(*mut bindings::rtrace_uprobe_consumer, *mut bindings::pt_regs) -> c_int;

/// Decides whether the kernel adds breakpoints to a memory.
type Filter =
    unsafe extern "C" fn(*mut bindings::uprobe_consumer, *mut bindings::mm_struct) -> bool;

/// The [`Filter`] of a probe.
///
/// # Safety
///
/// `consumer` must be that of a live `Consumer<T>`, and `memory` must live.
unsafe extern "C" fn wants<T: ReachedInProgram>(
    consumer: *mut bindings::uprobe_consumer,
    memory: *mut bindings::mm_struct,
) -> bool {
    // SAFETY: By the contract.
    let (consumer, memory) = unsafe { (whole::<T, _>(consumer), ProcessMemory::of(memory)) };
    memory.is_some_and(|memory| consumer.target.wants(&memory))
}

/// The [`Filter`] of a trial: only the calling process meets a breakpoint.
///
/// # Safety
///
/// Only the kernel calls this.
unsafe extern "C" fn is_current(
    _consumer: *mut bindings::uprobe_consumer,
    memory: *mut bindings::mm_struct,
) -> bool {
    ProcessMemory::current().is_some_and(|own| own.is(memory))
}

/// Handles nothing, and needs no breakpoint.
///
/// # Safety
///
/// Only the kernel calls this.
unsafe extern "C" fn ignored(
    _consumer: *mut bindings::rtrace_uprobe_consumer,
    _registers: *mut bindings::pt_regs,
) -> c_int {
    bindings::UPROBE_HANDLER_REMOVE as c_int
}

impl<T: ReachedInProgram> Consumer<T> {
    /// Returns the target, if it wants what the current task has reached; else the answer to the kernel. A breakpoint that
    /// a task inherited by fork(2), and that is not wanted in its memory, is removed.
    ///
    /// # Safety
    ///
    /// `registers` must be those of the current task where it met the breakpoint.
    unsafe fn wanted(&self, registers: *mut bindings::pt_regs) -> Result<&T, c_int> {
        let target = &*self.target;
        if !target.wants_current_task() {
            let memory = ProcessMemory::current();
            return Err(match memory.is_some_and(|memory| target.wants(&memory)) {
                true => 0,
                false => bindings::UPROBE_HANDLER_REMOVE as c_int,
            });
        }
        let is_other = || {
            // SAFETY: By the contract. The inode is not accessed.
            !unsafe { bindings::rtrace_runs_code_of(self.overlay, registers) }
        };
        if !self.overlay.is_null() && is_other() {
            return Err(0);
        }
        Ok(target)
    }
}

/// # Safety
///
/// `consumer` must be that of a live `Consumer<T>`, and `registers` those of the current task at the breakpoint.
unsafe extern "C" fn reached<T: ReachedInProgram>(
    consumer: *mut bindings::rtrace_uprobe_consumer,
    registers: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: By the contract.
    match unsafe { whole::<T, _>(consumer).wanted(registers) } {
        Ok(target) => {
            // SAFETY: By the contract.
            target.reached(unsafe { &*registers.cast::<Registers>() });
            0
        }
        Err(answer) => answer,
    }
}
