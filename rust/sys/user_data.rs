// SPDX-License-Identifier: GPL-2.0

//! What is copied from user space for a record.

use crate::sys::bindings;
use core::mem::MaybeUninit;

/// The most bytes that a piece has.
pub(crate) const PIECE_MAX: usize = 256;

/// Up to `N` pieces, one after the other.
///
/// # Invariants
///
/// The first `len` bytes are initialised.
pub(crate) struct UserData<const N: usize> {
    bytes: [[MaybeUninit<u8>; PIECE_MAX]; N],
    len: usize,
}

impl<const N: usize> UserData<N> {
    /// None yet.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        // INVARIANT: Nothing is initialised.
        Self {
            bytes: [const { [MaybeUninit::uninit(); PIECE_MAX] }; N],
            len: 0,
        }
    }

    /// Bytes that there is still room for.
    #[inline(always)]
    fn room(&self) -> usize {
        (N * PIECE_MAX).wrapping_sub(self.len)
    }

    /// Copies the text at `address` in user space, and puts a NUL behind it; an empty one if that cannot be
    /// read. Of a long one as much as a piece can have. May fault and sleep.
    pub(crate) fn put_text(&mut self, address: u64) {
        let Some(most) = self.room().min(PIECE_MAX).checked_sub(1) else {
            return;
        };
        // SAFETY:
        // - Inside the array: there is room for `most` bytes and the NUL.
        // - rtrace_copy_text() checks the address and writes at most `most` bytes; what it
        //   returns is how many of them are text, or an error.
        unsafe {
            let to = self.bytes.as_mut_ptr().cast::<u8>().add(self.len);
            let copied = bindings::rtrace_copy_text(to.cast(), address, most);
            let len = usize::try_from(copied).unwrap_or(0).min(most);
            to.add(len).write(0);
            // INVARIANT: So many more bytes are initialised.
            self.len = self.len.wrapping_add(len).wrapping_add(1);
        }
    }

    /// Puts these bytes; those for which there is no room are left out.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        let len = bytes.len().min(self.room());
        // SAFETY:
        // - `bytes` has `len` bytes, and there is room for so many.
        // - A borrowed slice is not part of `self`.
        unsafe {
            let to = self.bytes.as_mut_ptr().cast::<u8>().add(self.len);
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len);
        }
        // INVARIANT: So many more bytes are initialised.
        self.len = self.len.wrapping_add(len);
    }

    /// All of them.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: So many bytes are initialised.
        unsafe { core::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.len) }
    }
}

/// Copies what is at `address` in user space; whether all of it could be read: if not, `to` is all 0.
/// May fault and sleep.
pub(crate) fn copy_from_user(address: u64, to: &mut [u8]) -> bool {
    // SAFETY: There is room for so many bytes.
    let is_read =
        unsafe { bindings::rtrace_copy_from_user(to.as_mut_ptr().cast(), address, to.len()) };
    if !is_read {
        to.fill(0);
    }
    is_read
}
