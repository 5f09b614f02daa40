// SPDX-License-Identifier: GPL-2.0

//! Memory that may not be there: reading it where nothing may sleep.

use crate::sys::bindings;
use core::mem::MaybeUninit;

/// An address, and whose it is.
#[derive(Clone, Copy)]
pub(crate) struct Somewhere {
    /// The address; anything.
    pub(crate) address: u64,
    /// Whether it is one of user space.
    pub(crate) is_user: bool,
}

impl Somewhere {
    /// The `size` bytes there, 8 at most, as a number. [`None`]: they cannot be read now. Any context,
    /// NMI included.
    pub(crate) fn read(self, size: usize) -> Option<u64> {
        let mut value = 0;
        // SAFETY: Any address will do; the value has 8 bytes.
        let is_there =
            unsafe { bindings::rtrace_read(self.address, self.is_user, &mut value, size.min(8)) };
        is_there.then_some(value)
    }
}

/// Up to `N` bytes, one part put behind the other.
///
/// # Invariants
///
/// The first `len` bytes are initialised; `len` is at most `N`.
pub(crate) struct Parts<const N: usize> {
    bytes: [MaybeUninit<u8>; N],
    len: usize,
}

impl<const N: usize> Parts<N> {
    /// None yet.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        // INVARIANT: Nothing is.
        Self {
            bytes: [const { MaybeUninit::uninit() }; N],
            len: 0,
        }
    }

    /// Those that were put.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: By the invariant.
        unsafe { core::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.len) }
    }

    /// Puts these bytes, or none if there is no room for all.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        if let Some(room) = self.bytes.get_mut(self.len..end) {
            for (to, from) in room.iter_mut().zip(bytes) {
                to.write(*from);
            }
            // INVARIANT: So many more are initialised; there was the room.
            self.len = end;
        }
    }

    /// Puts the text that is at a place, without its NUL and up to `longest` bytes of it. Returns
    /// whether it could be read; nothing is put if not.
    pub(crate) fn put_text(&mut self, from: Somewhere, longest: usize) -> bool {
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        let longest = longest.min(room.len());
        // SAFETY: Any address will do; there is room for so many bytes.
        let read = unsafe {
            bindings::rtrace_read_text(
                from.address,
                from.is_user,
                room.as_mut_ptr().cast(),
                longest,
            )
        };
        let Ok(len) = usize::try_from(read) else {
            return false;
        };
        // INVARIANT: So many more were written; `longest` is not more than was left.
        self.len = self.len.wrapping_add(len.min(longest));
        true
    }
}
