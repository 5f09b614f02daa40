// SPDX-License-Identifier: GPL-2.0

//! Read-only mappings of the module's pages into programs (mmap(2)).

use crate::sys::bindings;
use crate::sys::pages::{KernelPages, PAGE_SIZE};
use kernel::error::to_result;
use kernel::mm::virt::{vm_flags_t, VmaNew};
use kernel::prelude::*;

/// Flag of a shared mapping, whatever its access rights are. (`VM_SHARED` is not set if the file cannot be
/// written.)
const MAYSHARE: vm_flags_t = bindings::rtrace_vm_flag_RTRACE_VM_MAYSHARE as vm_flags_t;

/// Number of pages to insert at a time.
const BATCH: usize = 16;

/// The mapping that a mmap(2) call creates.
pub(crate) struct Mapping<'a>(pub(super) &'a VmaNew);

impl Mapping<'_> {
    /// Fills the mapping with `pages`, from the call's offset on. All pages are inserted at once. The mapping
    /// holds a reference to each until it is unmapped. The program can only read the pages, and cannot make
    /// them writable. fork(2) does not copy the mapping, and core dumps omit it.
    ///
    /// Fails with `EACCES` if the mapping is writable or executable. Fails with `EINVAL` if it is private or
    /// reaches beyond the pages. May sleep.
    pub(crate) fn fill(&self, pages: &KernelPages) -> Result {
        let vma = self.0;
        // A write to a private mapping would make a copy. A program that wants a copy uses read(2).
        if vma.flags() & MAYSHARE == 0 {
            return Err(EINVAL);
        }
        vma.try_clear_maywrite().map_err(|_| EACCES)?;
        vma.try_clear_mayexec().map_err(|_| EACCES)?;
        let len = vma.end() - vma.start();
        let from = self.offset().ok_or(EINVAL)?;
        if from.checked_add(len).is_none_or(|end| end > pages.len()) {
            return Err(EINVAL);
        }
        vma.set_dontcopy();
        // mremap(2) would find no pages after the end.
        vma.set_dontexpand();
        vma.set_dontdump();
        vma.set_mixedmap();
        let mut done = 0;
        while done < len {
            done += self.insert(pages, from + done, vma.start() + done, len - done)?;
        }
        Ok(())
    }

    /// Offset of the mapping in the file, in bytes. [`None`]: the offset is too large for a `usize`.
    fn offset(&self) -> Option<usize> {
        // SAFETY: The area is being created, so no other code changes the field.
        let page = unsafe { (*self.0.as_ptr()).vm_pgoff };
        page.checked_mul(PAGE_SIZE)
    }

    /// Inserts some pages, beginning with the one at byte `from`, at an address inside the area. Returns the
    /// number of bytes, at most `len`.
    fn insert(
        &self,
        pages: &KernelPages,
        from: usize,
        address: usize,
        len: usize,
    ) -> Result<usize> {
        let mut batch = [core::ptr::null_mut(); BATCH];
        let count = BATCH.min(len / PAGE_SIZE);
        for (i, page) in batch.iter_mut().take(count).enumerate() {
            *page = pages.page(from + i * PAGE_SIZE).ok_or(EINVAL)?;
        }
        // The number of pages that were not inserted.
        let mut left = count as c_ulong;
        // SAFETY:
        // - The area is being created by a mmap(2) call, which holds the lock for it. It accepts single pages
        //   (VM_MIXEDMAP), and the addresses are inside it.
        // - The array has `count` live pages. Each gets a reference for its place in the area.
        to_result(unsafe {
            bindings::vm_insert_pages(self.0.as_ptr(), address, batch.as_mut_ptr(), &mut left)
        })?;
        Ok(count * PAGE_SIZE)
    }
}
