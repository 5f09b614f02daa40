// SPDX-License-Identifier: GPL-2.0

//! Words in pages of their own, 0 at first. A program chooses their number.

use super::pages::{KernelPages, PAGE_SIZE};
use super::percpu::OnceArc;
use crate::arch::word::{LocalWord, SharedWord};
use crate::record::gate::FilledOnce;
use core::marker::PhantomData;
use core::mem::size_of;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A word for which memory that is 0 has the value 0.
///
/// # Safety
///
/// The type has the layout of a `u64`, and can be shared between CPUs.
pub(crate) unsafe trait ZeroWord {}

// SAFETY: A transparent `u64`; `Sync`.
unsafe impl ZeroWord for LocalWord {}
// SAFETY: As above.
unsafe impl ZeroWord for SharedWord {}

/// Words in pages of their own; without words until it is filled, which happens once.
///
/// # Invariants
///
/// `first` is the address of `count` words of `pages`. If `count` is not 0, none of the three changes any more.
pub(crate) struct PageWords<W> {
    first: SharedWord,
    count: SharedWord,
    pages: OnceArc<KernelPages>,
    word: PhantomData<W>,
}

// SAFETY: The type gives out shared references to words only, which can be shared.
unsafe impl<W: ZeroWord> Sync for PageWords<W> {}
// SAFETY: The pages are not bound to a thread.
unsafe impl<W: ZeroWord> Send for PageWords<W> {}

impl<W: ZeroWord> PageWords<W> {
    /// Without words.
    pub(crate) fn empty() -> Self {
        // INVARIANT: A slice without items may have any address that is not NULL.
        Self {
            first: SharedWord::new(NonNull::<W>::dangling().as_ptr() as u64),
            count: SharedWord::new(0),
            pages: OnceArc::new(),
            word: PhantomData,
        }
    }

    /// This many words near `cpu`, all 0. `ENOMEM`: see [`KernelPages::new`]. May sleep.
    pub(crate) fn new(count: usize, cpu: u32) -> Result<Self> {
        let words = Self::empty();
        match words.fill(count, cpu) {
            true => Ok(words),
            false => Err(ENOMEM),
        }
    }

    /// Number of bytes that this many words take.
    pub(crate) fn bytes(count: usize) -> usize {
        let bytes = count.saturating_mul(size_of::<W>());
        bytes.checked_next_multiple_of(PAGE_SIZE).unwrap_or(bytes)
    }

    /// Gets this many words near `cpu`, all 0, unless it has words. Returns whether it has words then. One caller at a
    /// time. May sleep.
    pub(crate) fn fill(&self, count: usize, cpu: u32) -> bool {
        if self.pages.is_filled() {
            return true;
        }
        let pages = KernelPages::new(Self::bytes(count), cpu);
        let Some(pages) = pages.and_then(|pages| Arc::new(pages, GFP_KERNEL).ok()) else {
            return false;
        };
        let Some(first) = pages.address(0) else {
            return false;
        };
        if self.pages.set(pages) {
            // INVARIANT: The pages have this many words, and stay. The release follows the other two.
            self.first.store(first.as_ptr() as u64);
            self.count.store_release(count as u64);
        }
        true
    }
}

impl<W: ZeroWord> AsRef<[W]> for PageWords<W> {
    /// The words. Any context, NMI included, of any CPU.
    #[inline(always)]
    fn as_ref(&self) -> &[W] {
        // An acquire: the address is that of these words, which are seen as 0 or as somebody wrote them.
        let count = self.count.load_acquire() as usize;
        // SAFETY: By the invariant, these are words of the pages, which live as long as `self`. All bits 0 is a value.
        unsafe { core::slice::from_raw_parts(self.first.load() as *const W, count) }
    }
}
