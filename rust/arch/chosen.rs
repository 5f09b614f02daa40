// SPDX-License-Identifier: GPL-2.0

//! A slice of items, one of which is chosen. One load finds the chosen item.

use super::word::LocalWord;
use core::marker::PhantomData;

/// A vector.
#[cfg(MODULE)]
pub type Vector<T> = kernel::alloc::KVVec<T>;
/// A vector.
#[cfg(not(MODULE))]
pub type Vector<T> = alloc::vec::Vec<T>;

/// A slice of items that does not move.
///
/// # Safety
///
/// [`items`](Self::items) always returns the same items. Their memory neither moves nor is freed
/// while this value exists, wherever the value is moved.
pub unsafe trait Items<T> {
    /// Returns the items.
    fn items(&self) -> &[T];
}

// SAFETY: A shared vector is not changed. The items of a vector do not move, even if the vector
// itself is moved.
unsafe impl<T> Items<T> for Vector<T> {
    #[inline(always)]
    fn items(&self) -> &[T] {
        self
    }
}

/// Items, one of which is chosen. One CPU chooses, in any of its contexts; any CPU may read.
///
/// # Invariants
///
/// `chosen` is the address of one of `items`, whose memory neither moves nor is freed before
/// `self`.
pub struct Chosen<T, I = Vector<T>> {
    chosen: LocalWord,
    items: I,
    item: PhantomData<T>,
}

impl<T, I: Items<T>> Chosen<T, I> {
    /// Makes a choice among `items`, whose first is chosen; [`None`] if there are no items.
    pub fn new(items: I) -> Option<Self> {
        let first = core::ptr::from_ref(items.items().first()?);
        // INVARIANT: The first item is chosen. The items are never replaced.
        Some(Self {
            chosen: LocalWord::new(first.expose_provenance() as u64),
            items,
            item: PhantomData,
        })
    }

    /// All items.
    #[inline(always)]
    pub fn all(&self) -> &[T] {
        self.items.items()
    }

    /// Returns the chosen item. Any context, NMI included.
    #[inline(always)]
    pub fn get(&self) -> &T {
        let chosen = core::ptr::with_exposed_provenance::<T>(self.chosen.load() as usize);
        // SAFETY: By the invariant. So the address is not NULL, which the compiler cannot know.
        unsafe {
            core::hint::assert_unchecked(!chosen.is_null());
            &*chosen
        }
    }

    /// Chooses the item at `index`; does nothing if there is none. On the choosing CPU, in any
    /// context, NMI included.
    pub fn choose(&self, index: usize) {
        if let Some(item) = self.items.items().get(index) {
            // INVARIANT: `item` is one of the items.
            self.chosen
                .store(core::ptr::from_ref(item).expose_provenance() as u64);
        }
    }
}
