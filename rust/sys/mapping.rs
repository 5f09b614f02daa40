// SPDX-License-Identifier: GPL-2.0

//! Mappings of the module's pages into programs (mmap(2)).

use crate::sys::bindings;
use crate::sys::pages::{KernelPages, PAGE_SIZE};
use core::marker::PhantomData;
use kernel::error::to_result;
use kernel::mm::virt::{vm_flags_t, VmaNew};
use kernel::prelude::*;
use kernel::sync::Arc;

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
        self.prepare(false)?;
        let from = self.offset().ok_or(EINVAL)?;
        if from
            .checked_add(self.len())
            .is_none_or(|end| end > pages.len())
        {
            return Err(EINVAL);
        }
        self.0.set_dontcopy();
        self.insert_all(pages, from, 0)
    }

    /// As [`fill`](Self::fill) with all `pages`, whatever the offset is; but a child after fork(2) has the mapping, too.
    pub(crate) fn fill_inherited(&self, pages: &KernelPages) -> Result {
        self.prepare(false)?;
        if self.len() != pages.len() {
            return Err(EINVAL);
        }
        self.insert_all(pages, 0, 0)
    }

    /// Fills the mapping with all `pages`, `times` times in a row, whatever the offset is. The program can read and write
    /// them. fork(2) does not copy the mapping, and the program cannot change that. Core dumps omit it. The errors are
    /// those of [`fill`](Self::fill). May sleep.
    pub(crate) fn fill_writable(&self, pages: &KernelPages, times: usize) -> Result {
        self.prepare(true)?;
        if pages.len().checked_mul(times) != Some(self.len()) {
            return Err(EINVAL);
        }
        self.0.set_dontcopy();
        // Only for this flag, madvise(2) refuses to make a child have the mapping.
        self.0.set_io();
        (0..times).try_for_each(|time| self.insert_all(pages, 0, time * pages.len()))
    }

    /// Calls [`Mapped::unmapped`] when the mapping ends: by munmap(2), by exec, or with the process. The program cannot
    /// move the mapping or unmap a part of it. Call this last.
    pub(crate) fn notify<T: Mapped>(&self, mapped: Arc<T>) {
        // SAFETY: The area is being created, so no other code uses it. It owns the reference from now on, which
        // `close` drops. The table is that of a `T`.
        unsafe {
            let area = self.0.as_ptr();
            (*area).vm_private_data = Arc::into_raw(mapped).cast_mut().cast();
            (*area).vm_ops = &Watched::<T>::TABLE;
        }
    }

    /// Sets the flags of all mappings. Unless it is `writable`, the program cannot make the mapping so.
    fn prepare(&self, writable: bool) -> Result {
        let vma = self.0;
        // A write to a private mapping would make a copy. A program that wants a copy uses read(2).
        if vma.flags() & MAYSHARE == 0 {
            return Err(EINVAL);
        }
        if !writable {
            vma.try_clear_maywrite().map_err(|_| EACCES)?;
        }
        vma.try_clear_mayexec().map_err(|_| EACCES)?;
        // mremap(2) would find no pages after the end.
        vma.set_dontexpand();
        vma.set_dontdump();
        vma.set_mixedmap();
        Ok(())
    }

    /// Size of the mapping in bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.end() - self.0.start()
    }

    /// Inserts pages at `to` in the mapping, from byte `from` of the pages up to their end or the mapping's.
    fn insert_all(&self, pages: &KernelPages, from: usize, to: usize) -> Result {
        let len = (pages.len() - from).min(self.len() - to);
        let mut done = 0;
        while done < len {
            let address = self.0.start() + to + done;
            done += self.insert(pages, from + done, address, len - done)?;
        }
        Ok(())
    }

    /// Offset of the mapping in the file, in bytes. [`None`]: the offset is too large for a `usize`.
    pub(crate) fn offset(&self) -> Option<usize> {
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

/// State behind a mapping.
pub(crate) trait Mapped: Send + Sync + 'static {
    /// Handles the end of the mapping. No thread of the process can write its pages any more. The caller holds the lock
    /// of the process's mappings.
    fn unmapped(&self);
}

/// The operations of a mapping whose end a `T` handles. Its area owns a reference to a `T`, as its private data.
struct Watched<T>(PhantomData<T>);

impl<T: Mapped> Watched<T> {
    const TABLE: bindings::vm_operations_struct = bindings::vm_operations_struct {
        open: Some(Self::open),
        close: Some(Self::close),
        may_split: Some(Self::may_split),
        mremap: Some(Self::mremap),
        ..pin_init::zeroed()
    };

    /// Handles a second area of the same kind. The flags and the other functions allow none; if there is one
    /// nevertheless, it has a reference of its own.
    ///
    /// # Safety
    ///
    /// Only the kernel calls this, with an area of these operations.
    unsafe extern "C" fn open(area: *mut bindings::vm_area_struct) {
        // SAFETY: The private data are those of an area that owns a reference, which stays.
        let held = unsafe { Arc::from_raw((*area).vm_private_data.cast::<T>()) };
        core::mem::forget(held.clone());
        core::mem::forget(held);
    }

    /// Handles the end of an area.
    ///
    /// # Safety
    ///
    /// As [`open`](Self::open). No code uses the area any more.
    unsafe extern "C" fn close(area: *mut bindings::vm_area_struct) {
        // SAFETY: The area owns this reference, and ends.
        let held = unsafe { Arc::from_raw((*area).vm_private_data.cast::<T>()) };
        held.unmapped();
    }

    /// Refuses to divide an area.
    ///
    /// # Safety
    ///
    /// None: no argument is used.
    unsafe extern "C" fn may_split(_: *mut bindings::vm_area_struct, _: c_ulong) -> c_int {
        EINVAL.to_errno()
    }

    /// Refuses to move an area.
    ///
    /// # Safety
    ///
    /// As [`may_split`](Self::may_split).
    unsafe extern "C" fn mremap(_: *mut bindings::vm_area_struct) -> c_int {
        EINVAL.to_errno()
    }
}
