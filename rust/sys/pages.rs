// SPDX-License-Identifier: GPL-2.0

//! A large piece of memory, contiguous for the kernel: made of single pages, or reserved.

use crate::record::memory;
use crate::sys::bindings;
use crate::sys::reserved::Piece;
use core::ptr::NonNull;
use kernel::ffi::c_int;
use kernel::sync::Arc;

pub(crate) use kernel::page::PAGE_SIZE;

/// Zeroed pages.
///
/// # Invariants
///
/// `base` is the address of `len` bytes, a multiple of the page size: a live vmap area that owns its
/// pages, or the reserved piece.
pub(crate) struct KernelPages {
    base: NonNull<u8>,
    len: usize,
    reserved: Option<Piece>,
}

// SAFETY: Plain memory; who writes where is the owner's concern.
unsafe impl Send for KernelPages {}
// SAFETY: As above.
unsafe impl Sync for KernelPages {}

impl KernelPages {
    /// Bytes of it.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The page that holds the byte at `offset`.
    pub(super) fn page(&self, offset: usize) -> Option<*mut bindings::page> {
        if offset >= self.len {
            return None;
        }
        // SAFETY: By the invariant and the test, an address in a vmap area or of memory with pages.
        Some(unsafe { bindings::rtrace_page_of(self.base.as_ptr().add(offset).cast()) })
    }

    /// Another address of its first byte, with all behind it: where all memory is mapped, if it is one page; else
    /// the same.
    pub(super) fn direct(&self) -> NonNull<u8> {
        if self.len != PAGE_SIZE {
            return self.base;
        }
        // SAFETY: By the invariant, an address in a vmap area or of memory with pages.
        let direct = unsafe { bindings::rtrace_direct(self.base.as_ptr().cast()) };
        NonNull::new(direct.cast()).unwrap_or(self.base)
    }
}

impl KernelPages {
    /// Allocates `len` bytes, a multiple of the page size, all zero. [`None`]: there is no memory. May
    /// sleep.
    ///
    /// On the memory node of `cpu`, if there is room. Fails at once if there is not that much memory
    /// to be had, rather than make the kernel kill processes for it.
    pub(crate) fn new(len: usize, cpu: u32) -> Option<Self> {
        // SAFETY: Reads counters.
        let available = unsafe { bindings::si_mem_available() };
        if len / PAGE_SIZE >= available.max(0) as usize {
            return None;
        }
        // SAFETY: May sleep, as this function may; `cpu` is possible.
        let memory = unsafe { bindings::rtrace_vmalloc_near(len / PAGE_SIZE, cpu as c_int) };
        let base = NonNull::new(memory.cast())?;
        // INVARIANT: Just allocated.
        Some(Self {
            base,
            len,
            reserved: None,
        })
    }

    /// Whether it is reserved memory.
    pub(crate) fn is_reserved(&self) -> bool {
        self.reserved.is_some()
    }

    /// Where the byte at `offset` is.
    pub(crate) fn address(&self, offset: usize) -> Option<NonNull<u8>> {
        if offset >= self.len {
            return None;
        }
        NonNull::new(self.base.as_ptr().wrapping_add(offset))
    }

    /// The first `len` bytes, a multiple of the page size, of a reserved piece, which are zero. [`None`]:
    /// it has not so many.
    pub(crate) fn reserved(piece: Piece, len: usize) -> Option<Self> {
        if len > piece.len() {
            return None;
        }
        // INVARIANT: The piece's, which goes along.
        Some(Self {
            base: piece.base(),
            len,
            reserved: Some(piece),
        })
    }
}

// SAFETY: By the invariant; the memory stays where it is until the last reference is dropped.
unsafe impl memory::Pages for Arc<KernelPages> {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn size(&self) -> usize {
        self.len
    }
}

/// Allocated pages that only their owner reads and writes. A pipe that has one of them reads it as it finds it.
pub(crate) struct OwnPages(KernelPages);

impl OwnPages {
    /// As [`KernelPages::new`].
    pub(crate) fn new(len: usize, cpu: u32) -> Option<Self> {
        KernelPages::new(len, cpu).map(Self)
    }

    /// The pages, to move them out.
    pub(crate) fn pages(&self) -> &KernelPages {
        &self.0
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: By the invariant of `KernelPages`. Only `bytes_mut` writes them.
        unsafe { core::slice::from_raw_parts(self.0.base.as_ptr(), self.0.len) }
    }

    /// All bytes, to write them.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: By the invariant of `KernelPages`. Only `bytes` reads them, besides pipes.
        unsafe { core::slice::from_raw_parts_mut(self.0.base.as_ptr(), self.0.len) }
    }
}

impl Drop for KernelPages {
    fn drop(&mut self) {
        if self.reserved.is_some() {
            return;
        }
        // SAFETY: By the invariant. Pages that stand in a pipe have a reference of their own and
        // stay until the pipe lets them go.
        unsafe { bindings::rtrace_vfree(self.base.as_ptr().cast()) };
    }
}
