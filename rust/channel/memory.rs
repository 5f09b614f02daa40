// SPDX-License-Identifier: GPL-2.0

//! A buffer's memory: the one file that touches the bytes of a trace.
//!
//! Whose bytes are whose is the ring's to say. Everything here takes positions that the ring
//! gave to the caller and trusts them: checking each store would cost more than the store.

use crate::sys::pages::Pages;
use core::mem::size_of;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::uaccess::UserSliceWriter;

/// A value that can be laid down in a record as it is.
///
/// # Safety
///
/// All bytes of a value are initialised: there is no padding.
pub(crate) unsafe trait Payload: Copy {}

// SAFETY: No bytes.
unsafe impl Payload for () {}

macro_rules! plain_payloads {
    ($($t:ty),*) => { $(
        // SAFETY: An integer has no padding.
        unsafe impl Payload for $t {}
    )* };
}

plain_payloads!(u8, u16, u32, u64, i8, i16, i32, i64);

// SAFETY: An array has no padding between its items.
unsafe impl<T: Payload, const N: usize> Payload for [T; N] {}

/// Defines a struct whose fields lie one after the other, as in a record.
macro_rules! payload {
    (
        $(#[$attr:meta])*
        $vis:vis struct $name:ident { $($field:ident: $ty:ty),* $(,)? }
    ) => {
        $(#[$attr])*
        #[repr(C, packed)]
        #[derive(Clone, Copy)]
        $vis struct $name { $($field: $ty),* }

        // SAFETY: Packed, so there is no padding between fields, and each field has none.
        unsafe impl $crate::channel::memory::Payload for $name
        where
            $($ty: $crate::channel::memory::Payload),*
        {
        }
    };
}
pub(crate) use payload;

/// What follows the fixed part of a record; its size is known when it is recorded.
pub(crate) trait Tail {
    /// Bytes.
    fn len(&self) -> usize;
    /// The bytes, or fewer: the rest becomes NUL.
    fn bytes(&self) -> &[u8];
}

/// Nothing follows.
impl Tail for () {
    #[inline(always)]
    fn len(&self) -> usize {
        0
    }
    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        &[]
    }
}

/// A string and its NUL follow.
#[derive(Clone, Copy)]
pub(crate) struct NulTerminated<'a>(pub(crate) &'a [u8]);

impl Tail for NulTerminated<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len().wrapping_add(1)
    }
    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        self.0
    }
}

/// The sub-buffers of one CPU: those of the slots and the reader's.
pub(crate) struct Memory {
    // Beside `pages`, so that the hot path finds it without asking.
    base: NonNull<u8>,
    pages: Pages,
}

// SAFETY: Plain memory, see `Pages`.
unsafe impl Send for Memory {}
// SAFETY: Writers and the reader never touch the same bytes at a time (ring, I4).
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates zeroed memory, on the memory node of the CPU that this runs on. May sleep.
    pub(super) fn new(bytes: usize) -> Result<Self> {
        let pages = Pages::new(bytes)?;
        Ok(Self {
            base: pages.base(),
            pages,
        })
    }

    /// The pages, to move them out.
    pub(super) fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Lays `value` down at `at`.
    ///
    /// The caller has reserved these bytes and not committed them.
    #[inline(always)]
    pub(super) fn write<T: Payload>(&self, at: u64, value: T) {
        debug_assert!(at as usize + size_of::<T>() <= self.pages.len());
        // SAFETY:
        // - The ring gives positions inside the memory: an index of a sub-buffer that exists,
        //   and an offset below the sub-buffer size; a reservation does not cross its end (I1).
        // - Nobody else touches reserved bytes until they are committed (I4).
        unsafe {
            self.base
                .add(at as usize)
                .cast::<T>()
                .write_unaligned(value)
        };
    }

    /// Lays a record's tail down at `at`. As [`write`](Self::write).
    #[inline(always)]
    pub(super) fn write_tail(&self, at: u64, tail: &impl Tail) {
        let len = tail.len();
        if len == 0 {
            return;
        }
        let bytes = tail.bytes();
        // SAFETY: As for `write`; `len` bytes were reserved for the tail and `bytes` is not longer.
        unsafe {
            let to = self.base.add(at as usize);
            copy(bytes.as_ptr(), to.as_ptr(), bytes.len());
            if len > bytes.len() {
                to.add(bytes.len()).write(0);
            }
        }
    }

    /// Reads a word of the header of a packet that the reader holds.
    pub(super) fn read_word(&self, at: u64) -> u64 {
        // SAFETY: The bytes of a held packet lie in the memory, and nobody writes them (I4).
        unsafe { self.base.add(at as usize).cast::<u64>().read_unaligned() }
    }

    /// Copies bytes of a packet that the reader holds to user space.
    pub(super) fn copy_out(&self, at: u64, len: usize, out: &mut UserSliceWriter) -> Result {
        // SAFETY: The bytes of a held packet lie in the memory, and nobody writes them (I4).
        let bytes =
            unsafe { core::slice::from_raw_parts(self.base.add(at as usize).as_ptr(), len) };
        out.write_slice(bytes)
    }
}

/// Copies `len` bytes, eight at a time where there are eight.
///
/// Written out, because memcpy() would be a call; records' tails are short.
///
/// # Safety
///
/// Both are valid for `len` bytes and do not overlap.
#[inline(always)]
unsafe fn copy(mut from: *const u8, mut to: *mut u8, mut len: usize) {
    // SAFETY: Each step stays within what is left of `len`.
    unsafe {
        while len >= 8 {
            to.cast::<u64>()
                .write_unaligned(from.cast::<u64>().read_unaligned());
            (from, to, len) = (from.add(8), to.add(8), len - 8);
        }
        if len & 4 != 0 {
            to.cast::<u32>()
                .write_unaligned(from.cast::<u32>().read_unaligned());
            (from, to) = (from.add(4), to.add(4));
        }
        if len & 2 != 0 {
            to.cast::<u16>()
                .write_unaligned(from.cast::<u16>().read_unaligned());
            (from, to) = (from.add(2), to.add(2));
        }
        if len & 1 != 0 {
            to.write(from.read());
        }
    }
}
