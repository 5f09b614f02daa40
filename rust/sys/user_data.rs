// SPDX-License-Identifier: GPL-2.0

//! Data that is copied from user space for a record.

use crate::sys::bindings;
use core::mem::MaybeUninit;

/// Maximum size of a piece in bytes.
pub(crate) const PIECE_MAX: usize = 256;

/// A buffer of up to `N` pieces, one after the other.
///
/// # Invariants
///
/// The first `len` bytes are initialised.
pub(crate) struct UserData<const N: usize> {
    bytes: MaybeUninit<[[u8; PIECE_MAX]; N]>,
    len: usize,
}

impl<const N: usize> UserData<N> {
    /// An empty buffer.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        // INVARIANT: No byte is initialised.
        Self {
            // Not an array of `MaybeUninit`, which the compiler fills with zeros.
            bytes: MaybeUninit::uninit(),
            len: 0,
        }
    }

    /// Number of bytes that are still free.
    #[inline(always)]
    fn room(&self) -> usize {
        (N * PIECE_MAX).wrapping_sub(self.len)
    }

    /// Appends the text at `address` in user space, with a NUL. If the text cannot be read, appends an empty
    /// one. If it is longer than a piece, cuts it. May fault and sleep.
    pub(crate) fn put_text(&mut self, address: u64) {
        let Some(most) = self.room().min(PIECE_MAX).checked_sub(1) else {
            return;
        };
        // SAFETY:
        // - The write is inside the array: there is room for `most` bytes and the NUL.
        // - rtrace_copy_text() checks the address and writes at most `most` bytes. It returns the number of
        //   bytes of the text, or an error.
        unsafe {
            let to = self.bytes.as_mut_ptr().cast::<u8>().add(self.len);
            let copied = bindings::rtrace_copy_text(to.cast(), address, most);
            let len = usize::try_from(copied).unwrap_or(0).min(most);
            to.add(len).write(0);
            // INVARIANT: `len + 1` more bytes are initialised.
            self.len = self.len.wrapping_add(len).wrapping_add(1);
        }
    }

    /// Appends these bytes, as many as there is room for.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        let len = bytes.len().min(self.room());
        // SAFETY:
        // `bytes` has `len` bytes, and there is room for them.
        // - A borrowed slice is not part of `self`.
        unsafe {
            let to = self.bytes.as_mut_ptr().cast::<u8>().add(self.len);
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len);
        }
        // INVARIANT: `len` more bytes are initialised.
        self.len = self.len.wrapping_add(len);
    }

    /// All bytes.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: By the invariant `len` bytes are initialised.
        unsafe { core::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.len) }
    }
}

/// Copies from `address` in user space. Returns whether all bytes could be read; if not, `to` is all zero. May
/// fault and sleep.
pub(crate) fn copy_from_user(address: u64, to: &mut [u8]) -> bool {
    // SAFETY: There is room for `to.len()` bytes.
    let is_read =
        unsafe { bindings::rtrace_copy_from_user(to.as_mut_ptr().cast(), address, to.len()) };
    if !is_read {
        to.fill(0);
    }
    is_read
}
