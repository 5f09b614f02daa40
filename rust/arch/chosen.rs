// SPDX-License-Identifier: GPL-2.0

//! Items in a row, one of which is chosen and found by one load.

use super::word::LocalWord;

/// A vector.
#[cfg(MODULE)]
pub type Items<T> = kernel::alloc::KVVec<T>;
/// A vector.
#[cfg(not(MODULE))]
pub type Items<T> = alloc::vec::Vec<T>;

/// Items, one of which is chosen. One CPU chooses, in any of its contexts; any may look.
///
/// # Invariants
///
/// `chosen` is the address of one of `items`, whose memory neither moves nor goes before `self`.
pub struct Chosen<T> {
    chosen: LocalWord,
    items: Items<T>,
}

impl<T> Chosen<T> {
    /// These items, of which the first is chosen; [`None`] if there is none.
    pub fn new(items: Items<T>) -> Option<Self> {
        let first = core::ptr::from_ref(items.first()?);
        // INVARIANT: The first. The vector is not changed any more: what it holds does not move,
        // even where the vector itself does.
        Some(Self {
            chosen: LocalWord::new(first.expose_provenance() as u64),
            items,
        })
    }

    /// All items.
    #[inline(always)]
    pub fn all(&self) -> &[T] {
        &self.items
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
        if let Some(item) = self.items.get(index) {
            // INVARIANT: One of them.
            self.chosen
                .store(core::ptr::from_ref(item).expose_provenance() as u64);
        }
    }
}
