// SPDX-License-Identifier: GPL-2.0

//! Moving pages into a pipe (splice(2)) without a copy.

use crate::sys::bindings;
use crate::sys::pages::{KernelPages, PAGE_SIZE};
use kernel::prelude::*;

/// The pipe of a splice(2) or sendfile(2) call. No other thread uses it during the call: the caller holds its
/// lock, or the pipe is the task's own.
pub(crate) struct Pipe(pub(super) *mut bindings::pipe_inode_info);

/// Number of pages moved at a time. A pipe has 16 places unless it was enlarged.
const BATCH: usize = 16;

impl Pipe {
    /// Puts references to the pages of up to `len` bytes from `offset` into the pipe. Returns the number of
    /// bytes.
    ///
    /// Fails with `EAGAIN` if the pipe is full, `EPIPE` if it has no reader. May sleep.
    pub(crate) fn splice(
        &mut self,
        pages: &KernelPages,
        offset: usize,
        len: usize,
    ) -> Result<usize> {
        let mut moved = 0;
        while moved < len {
            match self.splice_batch(pages, offset + moved, len - moved) {
                Ok(0) => break,
                Ok(bytes) => moved += bytes,
                Err(_) if moved > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(moved)
    }

    fn splice_batch(&mut self, pages: &KernelPages, offset: usize, len: usize) -> Result<usize> {
        let mut page = [core::ptr::null_mut(); BATCH];
        let mut partial = [bindings::partial_page::default(); BATCH];
        let mut count = 0;
        let mut done = 0;
        while done < len && count < BATCH {
            let at = offset + done;
            let in_page = at % PAGE_SIZE;
            let bytes = (PAGE_SIZE - in_page).min(len - done);
            let Some(p) = pages.page(at) else { break };
            // SAFETY: The page is live. Its reference moves to the pipe, or `release` puts it.
            unsafe { bindings::rtrace_get_page(p) };
            page[count] = p;
            partial[count].offset = in_page as u32;
            partial[count].len = bytes as u32;
            count += 1;
            done += bytes;
        }
        if count == 0 {
            return Ok(0);
        }
        let mut descriptor = bindings::splice_pipe_desc {
            pages: page.as_mut_ptr(),
            partial: partial.as_mut_ptr(),
            nr_pages: count as c_int,
            nr_pages_max: BATCH as c_uint,
            // The operations are the kernel's, not this module's: a page in a pipe may outlive the module.
            ops: &raw const bindings::nosteal_pipe_buf_ops,
            spd_release: Some(release),
        };
        // SAFETY:
        // - The pipe is valid during the call, and no other thread uses it.
        // - The descriptor's arrays have `count` entries. Each has a reference for the pipe.
        let moved = unsafe { bindings::splice_to_pipe(self.0, &mut descriptor) };
        if moved < 0 {
            return Err(Error::from_errno(moved as c_int));
        }
        Ok(moved as usize)
    }
}

/// Puts the reference to a page for which the pipe had no place.
///
/// # Safety
///
/// Only `splice_to_pipe` calls this.
unsafe extern "C" fn release(descriptor: *mut bindings::splice_pipe_desc, index: c_uint) {
    // SAFETY: The kernel passes the descriptor above and an index below its `nr_pages`.
    unsafe { bindings::rtrace_put_page(*(*descriptor).pages.add(index as usize)) };
}
