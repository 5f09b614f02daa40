// SPDX-License-Identifier: GPL-2.0

//! Texts from user space.

use crate::sys::bindings;
use core::mem::MaybeUninit;
use kernel::ffi::c_char;

/// The longest text that is taken, in bytes; the rest is cut off.
const TEXT_MAX: usize = 255;

/// Up to `N` texts, one after the other, each with a NUL behind.
///
/// # Invariants
///
/// - The first `len` bytes are initialised.
/// - There is room for a longest text and its NUL for each of `N` pushes.
pub(crate) struct UserTexts<const N: usize> {
    bytes: [[MaybeUninit<u8>; TEXT_MAX + 1]; N],
    len: usize,
    pushed: usize,
}

impl<const N: usize> UserTexts<N> {
    /// None yet.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        // INVARIANT: Nothing is initialised and nothing was pushed.
        Self {
            bytes: [const { [MaybeUninit::uninit(); TEXT_MAX + 1] }; N],
            len: 0,
            pushed: 0,
        }
    }

    /// Copies the text at `address` in user space; an empty one if that cannot be read. More
    /// than `N` are ignored. May fault and sleep.
    pub(crate) fn push(&mut self, address: u64) {
        if self.pushed >= N {
            return;
        }
        // SAFETY:
        // - Inside the array: at most `N - 1` were pushed, so there is room for one more.
        // - strncpy_from_user() checks the address and writes at most `TEXT_MAX` bytes; what it
        //   returns is how many of them are text, or an error.
        unsafe {
            let to = self.bytes.as_mut_ptr().cast::<u8>().add(self.len);
            let copied =
                bindings::strncpy_from_user(to.cast(), address as *const c_char, TEXT_MAX as isize);
            let len = usize::try_from(copied).unwrap_or(0).min(TEXT_MAX);
            to.add(len).write(0);
            // INVARIANT: So many more bytes are initialised, not more than there was room for.
            self.len = self.len.wrapping_add(len).wrapping_add(1);
        }
        self.pushed = self.pushed.wrapping_add(1);
    }

    /// All of them.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: So many bytes are initialised.
        unsafe { core::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.len) }
    }
}
