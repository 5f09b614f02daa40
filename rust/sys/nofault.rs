// SPDX-License-Identifier: GPL-2.0

//! Memory that may not be there: reading it all the same.

use crate::sys::bindings;
use core::mem::MaybeUninit;

/// An address, and whose it is.
#[derive(Clone, Copy)]
pub(crate) struct Somewhere {
    /// The address; anything.
    pub(crate) address: u64,
    /// Whose it is.
    pub(crate) space: AddressSpace,
}

/// Whose memory it is.
#[derive(Clone, Copy)]
pub(crate) enum AddressSpace {
    /// The kernel's.
    Kernel,
    /// That of the program that runs; what is not in memory cannot be read.
    User,
    /// The same, but it is fetched then, which may sleep.
    UserFaults,
}

impl AddressSpace {
    /// This one, or that of the program that runs.
    pub(crate) fn or_user(self, is_user: bool) -> Self {
        match self {
            Self::Kernel if is_user => Self::User,
            space => space,
        }
    }

    /// Whether it is that of the program that runs.
    pub(crate) fn is_user(self) -> bool {
        !matches!(self, Self::Kernel)
    }

    fn raw(self) -> bindings::rtrace_space {
        match self {
            Self::Kernel => bindings::rtrace_space_RTRACE_KERNEL,
            Self::User => bindings::rtrace_space_RTRACE_USER,
            Self::UserFaults => bindings::rtrace_space_RTRACE_USER_FAULTS,
        }
    }
}

impl Somewhere {
    /// The `size` bytes there, 8 at most, as a number. [`None`]: they cannot be read now. Any context,
    /// NMI included, but for [`AddressSpace::UserFaults`].
    pub(crate) fn read(self, size: usize) -> Option<u64> {
        let mut value = 0;
        // SAFETY: Any address will do; the value has 8 bytes.
        let is_there = unsafe {
            bindings::rtrace_read(self.address, self.space.raw(), &mut value, size.min(8))
        };
        is_there.then_some(value)
    }
}

/// Up to `N` bytes, one part put behind the other.
///
/// # Invariants
///
/// The first `len` bytes are initialised; `len` is at most `N`.
pub(crate) struct TextParts<const N: usize> {
    bytes: [MaybeUninit<u8>; N],
    len: usize,
}

impl<const N: usize> TextParts<N> {
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

    /// Puts the lowest `size` bytes of a number, 8 at most, the lowest first, or none if there is no room for all.
    #[inline(always)]
    pub(crate) fn put_number(&mut self, value: u64, size: usize) {
        let size = size.min(8);
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        let Some(room) = room.first_chunk_mut() else {
            return self.put(value.to_le_bytes().get(..size).unwrap_or_default());
        };
        // What is too much is put over again, or nobody's.
        *room = value.to_le_bytes().map(MaybeUninit::new);
        // INVARIANT: So many more are initialised; there was the room.
        self.len = self.len.wrapping_add(size);
    }

    /// Puts the text that is at a place, without its NUL and up to `longest` bytes of it. Returns
    /// whether it could be read; nothing is put if not. Context as for [`Somewhere::read`].
    pub(crate) fn put_text(&mut self, from: Somewhere, longest: usize) -> bool {
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        let longest = longest.min(room.len());
        // SAFETY: Any address will do; there is room for so many bytes.
        let read = unsafe {
            bindings::rtrace_read_text(
                from.address,
                from.space.raw(),
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
