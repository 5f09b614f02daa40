// SPDX-License-Identifier: GPL-2.0

//! Items in a row, in whole pages of their own.

use super::pages::{KernelPages, PAGE_SIZE};
use super::reserved::Piece;
use crate::arch::chosen::Items;
use core::mem::{align_of, needs_drop, size_of};
use core::ptr::NonNull;

/// Items in a row. They are never dropped.
///
/// # Invariants
///
/// `first` is the address of `count` items in the memory, which holds nothing else.
pub(crate) struct PageArray<T> {
    first: NonNull<T>,
    count: usize,
    _memory: Memory,
}

enum Memory {
    Allocated(#[allow(dead_code)] KernelPages),
    Reserved(#[allow(dead_code)] Piece),
}

// SAFETY: Only shared references are given out.
unsafe impl<T: Sync> Sync for PageArray<T> {}
// SAFETY: What is true of a T is true of many.
unsafe impl<T: Send> Send for PageArray<T> {}

impl<T> PageArray<T> {
    /// So many items, from the first to the last as `make` makes them, in memory near to `cpu`. [`None`]: there
    /// is none. May sleep.
    ///
    /// Not in a slab: makedumpfile takes the slabs of kernels that it does not know for memory of programs, and
    /// leaves them out of dumps.
    pub(crate) fn allocated(count: usize, cpu: u32, make: impl FnMut(u64) -> T) -> Option<Self> {
        let len = count.checked_mul(size_of::<T>())?;
        let pages = KernelPages::new(len.checked_next_multiple_of(PAGE_SIZE)?, cpu)?;
        // Where all memory is mapped a page costs no entry of the TLB of its own.
        let (base, len) = (pages.direct(), pages.len());
        // SAFETY: As long as it has the pages, the row has so many bytes there, which begin at a page.
        unsafe { Self::fill(base, len, Memory::Allocated(pages), count, make) }
    }

    /// So many in a piece of reserved memory. [`None`]: it has not the room.
    pub(crate) fn reserved(piece: Piece, count: usize, make: impl FnMut(u64) -> T) -> Option<Self> {
        let (base, len) = (piece.base(), piece.len());
        // SAFETY: As above.
        unsafe { Self::fill(base, len, Memory::Reserved(piece), count, make) }
    }

    /// # Safety
    ///
    /// `base` is the address of `len` bytes at a page, which nobody else has as long as `memory` lives.
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
            // SAFETY: Inside the memory, by the test, and aligned, for it begins at a page; nobody
            // else writes it.
            unsafe { first.add(index).write(make(index as u64)) };
        }
        // INVARIANT: Filled above.
        Some(Self {
            first,
            count,
            _memory: memory,
        })
    }
}

// SAFETY: By the invariant, memory that stays where it is as long as what the row has of it.
unsafe impl<T> Items<T> for PageArray<T> {
    #[inline(always)]
    fn items(&self) -> &[T] {
        // SAFETY: By the invariant.
        unsafe { core::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}
