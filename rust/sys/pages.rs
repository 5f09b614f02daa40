// SPDX-License-Identifier: GPL-2.0

//! A large piece of memory, contiguous for the kernel, made of single pages.

use crate::record::memory;
use crate::sys::bindings;
use core::ptr::NonNull;
use kernel::ffi::c_int;

pub(crate) use kernel::page::PAGE_SIZE;

/// Zeroed pages.
///
/// # Invariants
///
/// `base` is a live vmap area of `len` bytes, a multiple of the page size, that owns its pages.
pub(crate) struct Pages {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: Plain memory; who writes where is the owner's concern.
unsafe impl Send for Pages {}
// SAFETY: As above.
unsafe impl Sync for Pages {}

impl Pages {
    /// The page that holds the byte at `offset`.
    pub(super) fn page(&self, offset: usize) -> Option<*mut bindings::page> {
        if offset >= self.len {
            return None;
        }
        // SAFETY: By the invariant and the test, an address in a vmap area.
        Some(unsafe { bindings::vmalloc_to_page(self.base.as_ptr().add(offset).cast()) })
    }
}

// SAFETY: By the invariant; the allocation stays where it is until the drop.
unsafe impl memory::Pages for Pages {
    /// On the memory node of `cpu`, if there is room. Fails at once if there is not that much memory
    /// to be had, rather than make the kernel kill processes for it.
    fn new(len: usize, cpu: u32) -> Option<Self> {
        // SAFETY: Reads counters.
        let available = unsafe { bindings::si_mem_available() };
        if len / PAGE_SIZE >= available.max(0) as usize {
            return None;
        }
        // SAFETY: May sleep, as this function may; `cpu` is possible.
        let memory = unsafe { bindings::rtrace_vmalloc_near(len / PAGE_SIZE, cpu as c_int) };
        let base = NonNull::new(memory.cast())?;
        // INVARIANT: Just allocated.
        Some(Self { base, len })
    }

    fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: By the invariant. Pages that stand in a pipe have a reference of their own and
        // stay until the pipe lets them go.
        unsafe { bindings::rtrace_vfree(self.base.as_ptr().cast()) };
    }
}
