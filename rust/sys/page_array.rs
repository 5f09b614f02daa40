// SPDX-License-Identifier: GPL-2.0

//! Arrays in whole pages of their own.

use super::pages::{KernelPages, PAGE_SIZE};
use super::reserved::Piece;
use crate::arch::chosen::Items;
use core::mem::{align_of, needs_drop, size_of};
use core::ptr::NonNull;

/// An array. Its items are never dropped.
///
/// # Invariants
///
/// `first` is the address of `count` items in the memory, which contains no other object.
pub(crate) struct PageArray<T> {
    first: NonNull<T>,
    count: usize,
    _memory: Memory,
}

enum Memory {
    Allocated(#[allow(dead_code)] KernelPages),
    Reserved(#[allow(dead_code)] Piece),
}

// SAFETY: The type gives out shared references only.
unsafe impl<T: Sync> Sync for PageArray<T> {}
// SAFETY: If one `T` can be sent, an array of them can.
unsafe impl<T: Send> Send for PageArray<T> {}

impl<T> PageArray<T> {
    /// Creates `count` items with `make`, in order, in memory near `cpu`. [`None`]: there is not enough memory.
    /// May sleep.
    ///
    /// The memory is not from a slab. makedumpfile mistakes the slabs of kernels that it does not know for
    /// memory of programs, and leaves them out of dumps.
    pub(crate) fn allocated(count: usize, cpu: u32, make: impl FnMut(u64) -> T) -> Option<Self> {
        let len = count.checked_mul(size_of::<T>())?;
        let pages = KernelPages::new(len.checked_next_multiple_of(PAGE_SIZE)?, cpu)?;
        // The kernel's direct mapping of a page needs no TLB entry for that page alone.
        let (base, len) = (pages.direct(), pages.len());
        // SAFETY: While the array has the pages, it has `len` bytes there. They begin at a page.
        unsafe { Self::fill(base, len, Memory::Allocated(pages), count, make) }
    }

    /// Creates `count` items in a piece of reserved memory. [`None`]: the piece is too small.
    pub(crate) fn reserved(piece: Piece, count: usize, make: impl FnMut(u64) -> T) -> Option<Self> {
        let (base, len) = (piece.base(), piece.len());
        // SAFETY: As above.
        unsafe { Self::fill(base, len, Memory::Reserved(piece), count, make) }
    }

    /// # Safety
    ///
    /// `base` must be the page-aligned address of `len` bytes. No other code may use them while `memory` lives.
    unsafe fn fill(
        base: NonNull<u8>,
        len: usize,
        memory: Memory,
        count: usize,
        mut make: impl FnMut(u64) -> T,
    ) -> Option<Self> {
        const { assert!(align_of::<T>() <= PAGE_SIZE && !needs_drop::<T>()) };
        if count.checked_mul(size_of::<T>())? > len {
            return None;
        }
        let first = base.cast::<T>();
        for index in 0..count {
            // SAFETY: By the test the item is inside the memory. It is aligned, because the memory begins at a
            // page. No other code writes there.
            unsafe { first.add(index).write(make(index as u64)) };
        }
        // INVARIANT: The loop above has filled the items.
        Some(Self {
            first,
            count,
            _memory: memory,
        })
    }
}

// SAFETY: By the invariant. The memory does not move while the array has it.
unsafe impl<T> Items<T> for PageArray<T> {
    #[inline(always)]
    fn items(&self) -> &[T] {
        // SAFETY: By the invariant.
        unsafe { core::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}
