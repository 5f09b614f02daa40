// SPDX-License-Identifier: GPL-2.0

//! Large areas of memory, contiguous in the kernel's address space: made of single pages, or reserved.
//!
//! All memory whose size a user chooses comes from here. So one rule holds for it: a request that the free memory cannot
//! satisfy fails, the memory cgroup of the caller is charged, and no process is killed for it.

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
/// `base` is the address of `len` bytes; `len` is a multiple of the page size. They are a live vmap area that
/// owns its pages, or the reserved piece.
pub(crate) struct KernelPages {
    base: NonNull<u8>,
    len: usize,
    reserved: Option<Piece>,
}

// SAFETY: This is plain memory. The owner decides which code writes where.
unsafe impl Send for KernelPages {}
// SAFETY: As above.
unsafe impl Sync for KernelPages {}

impl KernelPages {
    /// Size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The page that holds the byte at `offset`.
    pub(super) fn page(&self, offset: usize) -> Option<*mut bindings::page> {
        if offset >= self.len {
            return None;
        }
        // SAFETY: By the invariant and the test, the address is in a vmap area or in memory that has pages.
        Some(unsafe { bindings::rtrace_page_of(self.base.as_ptr().add(offset).cast()) })
    }

    /// An address of the same memory. If it is a single page, the address is in the kernel's direct mapping;
    /// otherwise it is the usual one.
    pub(super) fn direct(&self) -> NonNull<u8> {
        if self.len != PAGE_SIZE {
            return self.base;
        }
        // SAFETY: By the invariant, the address is in a vmap area or in memory that has pages.
        let direct = unsafe { bindings::rtrace_direct(self.base.as_ptr().cast()) };
        NonNull::new(direct.cast()).unwrap_or(self.base)
    }
}

/// Whether the free memory has room for `len` bytes. If it has not, an allocation could make the kernel kill processes.
pub(super) fn has_room(len: usize) -> bool {
    // SAFETY: The function reads counters.
    let available = unsafe { bindings::si_mem_available() };
    len / PAGE_SIZE < available.max(0) as usize
}

impl KernelPages {
    /// Allocates `len` bytes, a multiple of the page size, all zero. [`None`]: there is not enough memory, or the
    /// caller was killed. May sleep.
    ///
    /// The memory is on the node of `cpu` if there is room. If too little memory is available, the call fails
    /// at once, so that the kernel does not kill processes for it. The memory cgroup of the caller is charged.
    pub(crate) fn new(len: usize, cpu: u32) -> Option<Self> {
        if !has_room(len) {
            return None;
        }
        // SAFETY: The call may sleep, as this function may. `cpu` is possible.
        let memory = unsafe { bindings::rtrace_vmalloc_near(len / PAGE_SIZE, cpu as c_int) };
        let base = NonNull::new(memory.cast())?;
        // INVARIANT: The area was allocated above.
        Some(Self {
            base,
            len,
            reserved: None,
        })
    }

    /// Whether this is reserved memory.
    pub(crate) fn is_reserved(&self) -> bool {
        self.reserved.is_some()
    }

    /// Address of the byte at `offset`.
    pub(crate) fn address(&self, offset: usize) -> Option<NonNull<u8>> {
        if offset >= self.len {
            return None;
        }
        NonNull::new(self.base.as_ptr().wrapping_add(offset))
    }

    /// The first `len` bytes of a reserved piece, a multiple of the page size. They are zero. [`None`]: the
    /// piece is too small.
    pub(crate) fn reserved(piece: Piece, len: usize) -> Option<Self> {
        if len > piece.len() {
            return None;
        }
        // INVARIANT: The bytes are those of the piece, which this owns.
        Some(Self {
            base: piece.base(),
            len,
            reserved: Some(piece),
        })
    }
}

// SAFETY: By the invariant. The memory does not move until the last reference is dropped.
unsafe impl memory::Pages for Arc<KernelPages> {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn size(&self) -> usize {
        self.len
    }
}

/// Allocated pages that only their owner reads and writes. A pipe that has one of them reads its current
/// contents.
pub(crate) struct OwnPages(KernelPages);

impl OwnPages {
    /// As [`KernelPages::new`].
    pub(crate) fn new(len: usize, cpu: u32) -> Option<Self> {
        KernelPages::new(len, cpu).map(Self)
    }

    /// The pages, for moving them into a pipe.
    pub(crate) fn pages(&self) -> &KernelPages {
        &self.0
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: By the invariant of `KernelPages`. Only `bytes_mut` writes the bytes.
        unsafe { core::slice::from_raw_parts(self.0.base.as_ptr(), self.0.len) }
    }

    /// All bytes, for writing.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: By the invariant of `KernelPages`. Only `bytes` and pipes read the bytes.
        unsafe { core::slice::from_raw_parts_mut(self.0.base.as_ptr(), self.0.len) }
    }
}

impl Drop for KernelPages {
    fn drop(&mut self) {
        if self.reserved.is_some() {
            return;
        }
        // SAFETY: By the invariant. A page in a pipe has its own reference, and stays until the pipe drops it.
        unsafe { bindings::rtrace_vfree(self.base.as_ptr().cast()) };
    }
}
