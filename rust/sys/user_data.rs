// SPDX-License-Identifier: GPL-2.0

//! Data that is copied from user space for a record.

use crate::record::memory::CUT;
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
    /// one. If it is longer than a piece, cuts it, and ends it with [`CUT`]. May fault and sleep.
    pub(crate) fn put_text(&mut self, address: u64) {
        let Some(most) = self.room().min(PIECE_MAX).checked_sub(1) else {
            return;
        };
        // SAFETY:
        // - The writes are inside the array: there is room for `most` bytes and the NUL. The mark ends before the NUL.
        // - rtrace_copy_text() checks the address and writes at most this number of bytes. It returns the number of
        //   bytes of the text, or an error. If it finds no NUL, it returns the number that was asked for.
        unsafe {
            let to = self.bytes.as_mut_ptr().cast::<u8>().add(self.len);
            let copied = bindings::rtrace_copy_text(to.cast(), address, most.wrapping_add(1));
            let len = usize::try_from(copied).unwrap_or(0);
            if len > most && most >= CUT.len() {
                to.add(most)
                    .sub(CUT.len())
                    .cast::<[u8; CUT.len()]>()
                    .write(CUT);
            }
            let len = len.min(most);
            to.add(len).write(0);
            // INVARIANT: `len + 1` more bytes are initialised.
            self.len = self.len.wrapping_add(len).wrapping_add(1);
        }
    }

    /// Appends these bytes, if there is room for all.
    #[inline(always)]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        let len = bytes.len();
        if len > self.room() {
            return;
        }
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

    /// Appends `len` zeros, at most `MOST`, if there is room for `MOST`.
    #[inline(always)]
    pub(crate) fn put_zeros<const MOST: usize>(&mut self, len: usize) {
        if MOST > self.room() {
            return;
        }
        // SAFETY: There is room for `MOST` bytes.
        unsafe {
            let to = self.bytes.as_mut_ptr().cast::<u8>().add(self.len);
            to.write_bytes(0, MOST);
        }
        // INVARIANT: `MOST` more bytes are initialised.
        self.len = self.len.wrapping_add(len.min(MOST));
    }

    /// All bytes.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: By the invariant `len` bytes are initialised.
        unsafe { core::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.len) }
    }
}

/// Room for up to `N` bytes that are read from user space. It is uninitialised before that.
pub(crate) struct UserBytes<const N: usize>(MaybeUninit<[u8; N]>);

impl<const N: usize> UserBytes<N> {
    /// Holds nothing yet.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self(MaybeUninit::uninit())
    }

    /// Reads the text at `address`, up to its NUL. [`None`]: it cannot be read, or there is no room for it and its NUL. May
    /// fault and sleep.
    pub(crate) fn read_text(&mut self, address: u64) -> Option<&[u8]> {
        self.read_begin_of_text(address)
            .filter(|text| text.len() < N)
    }

    /// Reads the text at `address`, up to its NUL, or its first `N` bytes. [`None`]: it cannot be read. May fault and
    /// sleep.
    pub(crate) fn read_begin_of_text(&mut self, address: u64) -> Option<&[u8]> {
        let to = self.0.as_mut_ptr().cast::<u8>();
        // SAFETY:
        // - There is room for `N` bytes.
        // - rtrace_copy_text() checks the address. It returns the number of bytes before the NUL, all of which it has
        //   written, or an error, or `N` if there is no NUL among the `N` bytes that it has written.
        unsafe {
            let copied = bindings::rtrace_copy_text(to.cast(), address, N);
            let len = usize::try_from(copied).ok().filter(|len| *len <= N)?;
            Some(core::slice::from_raw_parts(to, len))
        }
    }

    /// Reads `len` bytes at `address`. [`None`]: some of them cannot be read, or there is no room for so many. May
    /// fault and sleep.
    #[inline(always)]
    pub(crate) fn read(&mut self, address: u64, len: usize) -> Option<&[u8]> {
        if len > N {
            return None;
        }
        let to = self.0.as_mut_ptr().cast::<u8>();
        // SAFETY:
        // - There is room for `len` bytes.
        // - If rtrace_copy_from_user() returns true, it has written all of them.
        unsafe {
            bindings::rtrace_copy_from_user(to.cast(), address, len)
                .then(|| core::slice::from_raw_parts(to, len))
        }
    }
}
