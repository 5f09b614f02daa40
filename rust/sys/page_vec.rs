// SPDX-License-Identifier: GPL-2.0

//! A vector in pages of its own. A program chooses its length.

use super::pages::{KernelPages, PAGE_SIZE};
use crate::sys::args::Task;
use core::marker::PhantomData;
use core::mem::{align_of, size_of};
use core::ops::{Deref, DerefMut};
use kernel::prelude::*;

/// A vector of plain values.
///
/// # Invariants
///
/// The pages begin with `len` values, and contain no other object.
pub(crate) struct PageVec<T> {
    pages: Option<KernelPages>,
    len: usize,
    item: PhantomData<T>,
}

// SAFETY: References to the values follow the references to the vector.
unsafe impl<T: Sync> Sync for PageVec<T> {}
// SAFETY: If one `T` can be sent, several of them can.
unsafe impl<T: Send> Send for PageVec<T> {}

impl<T: Copy> PageVec<T> {
    /// An empty vector.
    pub(crate) const fn new() -> Self {
        const { assert!(align_of::<T>() <= PAGE_SIZE && size_of::<T>() != 0) };
        Self {
            pages: None,
            len: 0,
            item: PhantomData,
        }
    }

    /// Address of the first value; NULL without pages.
    fn first(&self) -> *mut T {
        let first = self.pages.as_ref().and_then(|pages| pages.address(0));
        first.map_or(core::ptr::null_mut(), |first| first.as_ptr().cast())
    }

    /// Makes room for `more` values. `ENOMEM`: see [`KernelPages::new`]. May sleep.
    pub(crate) fn reserve(&mut self, more: usize) -> Result {
        let room = self.pages.as_ref().map_or(0, KernelPages::len);
        let len = self.len.checked_add(more).ok_or(ENOMEM)?;
        let needed = len.checked_mul(size_of::<T>()).ok_or(ENOMEM)?;
        if needed <= room {
            return Ok(());
        }
        let wanted = needed.max(room.saturating_mul(2));
        let wanted = wanted.checked_next_multiple_of(PAGE_SIZE).ok_or(ENOMEM)?;
        let here = Task::current().cpu() as u32;
        let pages = KernelPages::new(wanted, here);
        let mut new = Self::new();
        new.pages = Some(pages.ok_or(ENOMEM)?);
        // SAFETY: The new pages have room for the values of the old ones. They begin at a page, which is aligned for a
        // `T`. Without values, no byte is copied.
        unsafe { core::ptr::copy_nonoverlapping(self.as_ptr(), new.first(), self.len) };
        // INVARIANT: The values were copied.
        new.len = self.len;
        *self = new;
        Ok(())
    }

    /// Appends values. Errors and context as for [`reserve`](Self::reserve).
    pub(crate) fn extend(&mut self, values: &[T]) -> Result {
        if values.is_empty() {
            return Ok(());
        }
        self.reserve(values.len())?;
        // SAFETY: The pages have room for these values after the first `len`. No reference to them exists.
        unsafe {
            let end = self.first().add(self.len);
            core::ptr::copy_nonoverlapping(values.as_ptr(), end, values.len());
        }
        // INVARIANT: The values were copied.
        self.len += values.len();
        Ok(())
    }

    /// Appends a value. Errors and context as for [`reserve`](Self::reserve).
    pub(crate) fn push(&mut self, value: T) -> Result {
        self.extend(&[value])
    }

    /// Drops the values from the index `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl<T: Copy> Deref for PageVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self.len {
            0 => &[],
            // SAFETY: By the invariant.
            len => unsafe { core::slice::from_raw_parts(self.first(), len) },
        }
    }
}

impl<T: Copy> DerefMut for PageVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self.len {
            0 => &mut [],
            // SAFETY: By the invariant. The vector is borrowed as long as the result.
            len => unsafe { core::slice::from_raw_parts_mut(self.first(), len) },
        }
    }
}
