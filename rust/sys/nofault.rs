// SPDX-License-Identifier: GPL-2.0

//! Reads of memory that may not be present.

use crate::record::memory::CUT;
use crate::sys::bindings;
use core::mem::MaybeUninit;

/// An address in an address space.
#[derive(Clone, Copy)]
pub(crate) struct Somewhere {
    /// The address; any value is allowed.
    pub(crate) address: u64,
    /// The address space.
    pub(crate) space: AddressSpace,
}

/// An address space, and what to do about missing pages.
#[derive(Clone, Copy)]
pub(crate) enum AddressSpace {
    /// The kernel's.
    Kernel,
    /// The current task's. If a page is not in memory, the read fails.
    User,
    /// The current task's. If a page is not in memory, it is faulted in, which may sleep.
    UserFaults,
}

impl AddressSpace {
    /// This address space, or, if `is_user`, the current task's instead of the kernel's.
    pub(crate) fn or_user(self, is_user: bool) -> Self {
        match self {
            Self::Kernel if is_user => Self::User,
            space => space,
        }
    }

    /// Whether this is the current task's address space.
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
    /// Reads `size` bytes, 8 at most, as a number. [`None`]: they cannot be read now. Any context, NMI
    /// included, except for [`AddressSpace::UserFaults`].
    pub(crate) fn read(self, size: usize) -> Option<u64> {
        let mut value = 0;
        // SAFETY: The function accepts any address. The value has 8 bytes.
        let is_there = unsafe {
            bindings::rtrace_read(self.address, self.space.raw(), &mut value, size.min(8))
        };
        is_there.then_some(value)
    }
}

/// A buffer of up to `N` bytes, filled part by part.
///
/// # Invariants
///
/// The first `len` bytes are initialised; `len` is at most `N`.
pub(crate) struct TextParts<const N: usize> {
    bytes: [MaybeUninit<u8>; N],
    len: usize,
}

impl<const N: usize> TextParts<N> {
    /// An empty buffer.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        // INVARIANT: No byte is initialised.
        Self {
            bytes: [const { MaybeUninit::uninit() }; N],
            len: 0,
        }
    }

    /// The bytes of all parts.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: By the invariant.
        unsafe { core::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.len) }
    }

    /// Appends these bytes, or nothing if there is no room for all.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        if let Some(room) = self.bytes.get_mut(self.len..end) {
            for (to, from) in room.iter_mut().zip(bytes) {
                to.write(*from);
            }
            // INVARIANT: `bytes.len()` more bytes are initialised; there was room for them.
            self.len = end;
        }
    }

    /// Appends the lowest `size` bytes of a number, 8 at most, the lowest first. Appends nothing if there is no
    /// room for all.
    #[inline(always)]
    pub(crate) fn put_number(&mut self, value: u64, size: usize) {
        let size = size.min(8);
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        let Some(room) = room.first_chunk_mut() else {
            return self.put(value.to_le_bytes().get(..size).unwrap_or_default());
        };
        // The bytes after `size` are overwritten by the next part, or stay after the end.
        *room = value.to_le_bytes().map(MaybeUninit::new);
        // INVARIANT: `size` more bytes are initialised; there was room for them.
        self.len = self.len.wrapping_add(size);
    }

    /// Appends the text at an address, without its NUL, up to `longest` bytes; a longer one is cut and ends in [`CUT`].
    /// There must be room for one byte more. Returns whether the text could be read; if not, appends nothing. Context as
    /// for [`Somewhere::read`].
    pub(crate) fn put_text(&mut self, from: Somewhere, longest: usize) -> bool {
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        let Some(longest) = room.len().checked_sub(1).map(|most| most.min(longest)) else {
            return false;
        };
        // SAFETY: The function accepts any address. There is room for `longest` bytes and one more.
        let read = unsafe {
            bindings::rtrace_read_text(
                from.address,
                from.space.raw(),
                room.as_mut_ptr().cast(),
                longest.wrapping_add(1),
            )
        };
        let Ok(len) = usize::try_from(read) else {
            return false;
        };
        if len > longest {
            let end = longest.saturating_sub(CUT.len())..longest;
            for (to, from) in room.get_mut(end).unwrap_or_default().iter_mut().zip(CUT) {
                to.write(from);
            }
        }
        // INVARIANT: `len` more bytes were written; `longest` is at most the room that was left.
        self.len = self.len.wrapping_add(len.min(longest));
        true
    }
}
