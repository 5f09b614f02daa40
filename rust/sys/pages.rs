// SPDX-License-Identifier: GPL-2.0

//! A large piece of memory, contiguous for the kernel, made of single pages.

use crate::sys::bindings;
use core::alloc::Layout;
use core::ptr::NonNull;
use kernel::alloc::allocator::Vmalloc;
use kernel::alloc::{Allocator, NumaNode};
use kernel::prelude::*;

pub(crate) use kernel::page::PAGE_SIZE;

/// Zeroed pages, on the memory node of the CPU that allocates.
///
/// # Invariants
///
/// `base` is a live vmalloc allocation of `len` bytes, a multiple of the page size.
pub(crate) struct Pages {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: Plain memory; who writes where is the owner's concern.
unsafe impl Send for Pages {}
// SAFETY: As above.
unsafe impl Sync for Pages {}

impl Pages {
    fn layout(len: usize) -> Result<Layout> {
        Layout::from_size_align(len, PAGE_SIZE).map_err(|_| EINVAL)
    }

    /// Allocates `len` bytes, a multiple of the page size. May sleep.
    ///
    /// Fails with `ENOMEM` at once if there is not that much memory to be had, rather than make
    /// the kernel kill processes for it.
    pub(crate) fn new(len: usize) -> Result<Self> {
        // SAFETY: Reads counters.
        let available = unsafe { bindings::si_mem_available() };
        if len / PAGE_SIZE >= available.max(0) as usize {
            return Err(ENOMEM);
        }
        let memory = Vmalloc::alloc(
            Self::layout(len)?,
            GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN,
            NumaNode::NO_NODE,
        )?;
        // INVARIANT: Just allocated.
        Ok(Self {
            base: memory.cast(),
            len,
        })
    }

    /// First byte.
    #[inline(always)]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Bytes.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The page that holds the byte at `offset`.
    pub(super) fn page(&self, offset: usize) -> Option<*mut bindings::page> {
        if offset >= self.len {
            return None;
        }
        // SAFETY: By the invariant and the test, an address in a vmalloc allocation.
        Some(unsafe { bindings::vmalloc_to_page(self.base.as_ptr().add(offset).cast()) })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if let Ok(layout) = Self::layout(self.len) {
            // SAFETY: By the invariant. Pages that stand in a pipe have a reference of their
            // own and stay until the pipe lets them go.
            unsafe { Vmalloc::free(self.base, layout) };
        }
    }
}
