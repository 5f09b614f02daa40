// SPDX-License-Identifier: GPL-2.0

//! Showing pages to a program (mmap(2)), to read.

use crate::sys::bindings;
use crate::sys::pages::{KernelPages, PAGE_SIZE};
use kernel::error::to_result;
use kernel::mm::virt::{vm_flags_t, VmaNew};
use kernel::prelude::*;

/// The mapping is shared, whatever it may do. (`VM_SHARED` is not set where it cannot be written.)
const MAYSHARE: vm_flags_t = bindings::rtrace_vm_flag_RTRACE_VM_MAYSHARE as vm_flags_t;

/// Pages inserted at a time.
const BATCH: usize = 16;

/// What a mmap(2) call shall fill.
pub(crate) struct Mapping<'a>(pub(super) &'a VmaNew);

impl Mapping<'_> {
    /// Fills it with `pages`, from the offset that the call has. All of them are there at once, each
    /// with a reference of its own until it is unmapped. The program can only read them, and never
    /// make them writable; fork(2) does not hand them on, and they are in no core dump.
    ///
    /// Fails with `EACCES` if they should be written or executed, `EINVAL` if the mapping is private
    /// or reaches beyond the pages. May sleep.
    pub(crate) fn fill(&self, pages: &KernelPages) -> Result {
        let vma = self.0;
        // A private mapping would be a copy of its own once it is written; who wants that has read(2).
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
        // mremap(2) finds nothing behind it.
        vma.set_dontexpand();
        vma.set_dontdump();
        vma.set_mixedmap();
        let mut done = 0;
        while done < len {
            done += self.insert(pages, from + done, vma.start() + done, len - done)?;
        }
        Ok(())
    }

    /// Where in the file it begins, in bytes. [`None`]: further than can be counted.
    fn offset(&self) -> Option<usize> {
        // SAFETY: The area is being made, so nobody changes that.
        let page = unsafe { (*self.0.as_ptr()).vm_pgoff };
        page.checked_mul(PAGE_SIZE)
    }

    /// Inserts some pages, from the byte at `from` on, at an address inside the area; returns how many
    /// bytes, at most `len`.
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
        // Those that were not inserted.
        let mut left = count as c_ulong;
        // SAFETY:
        // - The area is being made by a mmap(2) call, which holds the lock for it; it is one for
        //   single pages (VM_MIXEDMAP), and the addresses are inside it.
        // - So many live pages are in the array; each gets a reference for its place in the area.
        to_result(unsafe {
            bindings::vm_insert_pages(self.0.as_ptr(), address, batch.as_mut_ptr(), &mut left)
        })?;
        Ok(count * PAGE_SIZE)
    }
}
