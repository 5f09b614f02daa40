// SPDX-License-Identifier: GPL-2.0

//! Items in a row, one of which is chosen and found by one load.

use super::word::LocalWord;
use core::marker::PhantomData;

/// A vector.
#[cfg(MODULE)]
pub type Vector<T> = kernel::alloc::KVVec<T>;
/// A vector.
#[cfg(not(MODULE))]
pub type Vector<T> = alloc::vec::Vec<T>;

/// Items in a row.
///
/// # Safety
///
/// [`items`](Self::items) always gives the same items, whose memory neither moves nor goes as long
/// as this lives, wherever it is moved.
pub unsafe trait Items<T> {
    /// They.
    fn items(&self) -> &[T];
}

// SAFETY: Nobody has it exclusively once it is shared; what a vector holds does not move, even where
// the vector itself does.
unsafe impl<T> Items<T> for Vector<T> {
    #[inline(always)]
    fn items(&self) -> &[T] {
        self
    }
}

/// Items, one of which is chosen. One CPU chooses, in any of its contexts; any may look.
///
/// # Invariants
///
/// `chosen` is the address of one of `items`, whose memory neither moves nor goes before `self`.
pub struct Chosen<T, I = Vector<T>> {
    chosen: LocalWord,
    items: I,
    item: PhantomData<T>,
}

impl<T, I: Items<T>> Chosen<T, I> {
    /// These items, of which the first is chosen; [`None`] if there is none.
    pub fn new(items: I) -> Option<Self> {
        let first = core::ptr::from_ref(items.items().first()?);
        // INVARIANT: The first. Items are not exchanged any more.
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

    /// The chosen one. Any context, NMI included.
    #[inline(always)]
    pub fn get(&self) -> &T {
        let chosen = core::ptr::with_exposed_provenance::<T>(self.chosen.load() as usize);
        // SAFETY: By the invariant; so it is not NULL, which the compiler cannot know.
        unsafe {
            core::hint::assert_unchecked(!chosen.is_null());
            &*chosen
        }
    }

    /// Chooses the item at `index`; nothing changes where there is none. As [`get`](Self::get).
    pub fn choose(&self, index: usize) {
        if let Some(item) = self.items.items().get(index) {
            // INVARIANT: One of them.
            self.chosen
                .store(core::ptr::from_ref(item).expose_provenance() as u64);
        }
    }
}
