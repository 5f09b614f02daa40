// SPDX-License-Identifier: GPL-2.0

//! Pages that programs map writable. A program may change any byte at any time, so each access reads or writes a word
//! once, and returns a value, not a reference.

use crate::arch::word::SharedWord;
use crate::sys::mapping::Mapped;
use crate::sys::pages::{KernelPages, PAGE_SIZE};
use core::ptr::NonNull;
use kernel::prelude::*;

/// Zeroed pages, shared with a program.
pub(crate) struct SharedPages {
    pages: KernelPages,
    /// Number of mappings that [`Mapping::notify`](crate::sys::mapping::Mapping::notify) watches.
    mappings: SharedWord,
}

impl SharedPages {
    /// Allocates `len` bytes or more, up to the end of a page. The memory cgroup of the caller is charged. `ENOMEM`:
    /// there is not enough memory. May sleep.
    pub(crate) fn new(len: usize) -> Result<Self> {
        let len = len.checked_next_multiple_of(PAGE_SIZE).ok_or(EINVAL)?;
        // Memory near CPU 0: the threads of a program may be anywhere.
        Ok(Self {
            pages: KernelPages::new(len, 0).ok_or(ENOMEM)?,
            mappings: SharedWord::new(0),
        })
    }

    /// The pages, for mappings.
    pub(crate) fn pages(&self) -> &KernelPages {
        &self.pages
    }

    /// Notes a mapping that will be watched. The caller holds the lock of the process's mappings, as at its end; a single
    /// process has them mapped.
    pub(crate) fn count_mapping(&self) {
        self.mappings.add(1);
    }

    /// Whether a program has them mapped.
    pub(crate) fn is_mapped(&self) -> bool {
        self.mappings.load() != 0
    }

    /// Size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    /// The word at an offset, which is a multiple of 8. [`None`]: there is none.
    pub(crate) fn word(&self, at: usize) -> Option<&SharedWord> {
        if at % 8 != 0 {
            return None;
        }
        let word = self.pages.address(at)?.cast::<SharedWord>();
        // SAFETY:
        // - The address is a multiple of 8, because the pages begin at a page. The pages are as large as a multiple of 8,
        //   so 8 bytes follow, which stay as long as `self`.
        // - All accesses to a `SharedWord` are single instructions, so the program's accesses have no other effect than
        //   those of another CPU.
        Some(unsafe { word.as_ref() })
    }

    /// Stores a 32-bit number at an offset, which is a multiple of 4. Only for pages that the program cannot write.
    pub(crate) fn store_u32(&self, at: usize, value: u32) {
        let Some(at) = self.pages.address(at).filter(|_| at % 4 == 0) else {
            return;
        };
        // SAFETY: 4 bytes follow, as for `word`. The program only reads them.
        unsafe { at.cast::<u32>().as_ptr().write_volatile(value) };
    }

    /// Copies bytes from an offset on, up to the end and then from the beginning. The offset and the number of bytes are
    /// multiples of 8. There are at most as many bytes as the pages have.
    pub(crate) fn copy(&self, from: usize, to: &mut [u8]) {
        let (mut at, size) = (from, self.len());
        for word in to.chunks_exact_mut(8) {
            if at >= size {
                at = 0;
            }
            if let Some(place) = self.address(at) {
                // SAFETY: 8 bytes follow, as for `word`. They are read once.
                let value = unsafe { place.as_ptr().read_volatile() };
                word.copy_from_slice(&value.to_ne_bytes());
            }
            at = at.wrapping_add(8);
        }
    }

    fn address(&self, at: usize) -> Option<NonNull<u64>> {
        let address = self.pages.address(at).filter(|_| at % 8 == 0)?;
        Some(address.cast())
    }
}

impl Mapped for SharedPages {
    fn unmapped(&self) {
        self.mappings.store(self.mappings.load().wrapping_sub(1));
    }
}
