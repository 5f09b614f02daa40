// SPDX-License-Identifier: GPL-2.0

//! Memory that the kernel's command line reserves under a name (`reserve_mem=`). At the next boot it has the
//! same address, and its old contents if the machine does not clear it.

use crate::sys::bindings;
use crate::sys::pages::PAGE_SIZE;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Reserved memory.
///
/// # Invariants
///
/// - `base` is the address of `len` bytes, a multiple of the page size. The kernel has reserved them for ever.
///   They have pages, and are in the direct mapping.
/// - `claimed` is true while there is a [`Claim`]. Only the owner of the claim writes the memory. Without a
///   claim, the holder of the lock of `claimed` may write it.
#[pin_data]
pub(crate) struct ReservedMemory {
    base: NonNull<u8>,
    len: usize,
    #[pin]
    claimed: Mutex<bool>,
}

// SAFETY: This is plain memory. The claim decides which code writes where.
unsafe impl Send for ReservedMemory {}
// SAFETY: As above.
unsafe impl Sync for ReservedMemory {}

impl ReservedMemory {
    /// The memory that was reserved as `name`. There must be one object for a name. `ENOENT`: none was
    /// reserved. May sleep.
    pub(crate) fn find(name: &CStr) -> Result<Arc<Self>> {
        let mut len = 0;
        // SAFETY: The text is NUL-terminated. `len` is memory for the length.
        let base = unsafe { bindings::rtrace_reserved(name.as_ptr().cast(), &mut len) };
        let base = NonNull::new(base.cast()).ok_or(ENOENT)?;
        let len = len as usize;
        // INVARIANT: The helper guarantees this.
        Arc::pin_init(
            pin_init!(Self { base, len, claimed <- new_mutex!(false) }),
            GFP_KERNEL,
        )
    }

    /// Size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Copies the bytes from `at` on. Errors: `EBUSY` if the memory is claimed, `EINVAL` if it is too small.
    /// May sleep.
    pub(crate) fn read(&self, at: usize, to: &mut [u8]) -> Result {
        let claimed = self.claimed.lock();
        self.check(*claimed, at, to.len())?;
        // SAFETY: By the check the bytes are inside the memory. No code writes it while the lock is held.
        unsafe {
            core::ptr::copy_nonoverlapping(self.base.as_ptr().add(at), to.as_mut_ptr(), to.len())
        };
        Ok(())
    }

    /// Stores bytes. Errors and context as for [`read`](Self::read).
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) -> Result {
        let claimed = self.claimed.lock();
        self.check(*claimed, at, bytes.len())?;
        // SAFETY: As in `read`. No other code reads the memory either.
        unsafe {
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.as_ptr().add(at), bytes.len())
        };
        Ok(())
    }

    fn check(&self, claimed: bool, at: usize, len: usize) -> Result {
        if claimed {
            return Err(EBUSY);
        }
        match at.checked_add(len) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(EINVAL),
        }
    }

    /// Claims all of the memory. `EBUSY`: it is claimed already. May sleep.
    pub(crate) fn claim(self: &Arc<Self>) -> Result<Arc<Claim>> {
        let mut claimed = self.claimed.lock();
        if *claimed {
            return Err(EBUSY);
        }
        let claim = Arc::pin_init(
            pin_init!(Claim {
                memory: self.clone(),
                taken <- new_mutex!(0),
            }),
            GFP_KERNEL,
        )?;
        *claimed = true;
        Ok(claim)
    }
}

/// The right to write to reserved memory, piece by piece.
///
/// # Invariants
///
/// A memory has one claim at most. The first `taken` bytes belong to its pieces.
#[pin_data(PinnedDrop)]
pub(crate) struct Claim {
    memory: Arc<ReservedMemory>,
    #[pin]
    taken: Mutex<usize>,
}

impl Claim {
    /// Takes the next `len` bytes, a multiple of the page size, and clears them. Returns their offset and the
    /// piece. [`None`]: too few bytes are left. May sleep.
    pub(crate) fn take(self: &Arc<Self>, len: usize) -> Option<(usize, Piece)> {
        let mut taken = self.taken.lock();
        let at = *taken;
        let end = at.checked_add(len)?;
        if end > self.memory.len || len % PAGE_SIZE != 0 {
            return None;
        }
        *taken = end;
        // SAFETY: The address is at most one past the end.
        let base = unsafe { self.memory.base.add(at) };
        // SAFETY: By the invariant these bytes belong to the new piece alone.
        unsafe { base.as_ptr().write_bytes(0, len) };
        // INVARIANT: No other piece has bytes from `taken` on. No other piece gets these bytes later.
        Some((
            at,
            Piece {
                base,
                len,
                _claim: self.clone(),
            },
        ))
    }
}

#[pinned_drop]
impl PinnedDrop for Claim {
    fn drop(self: Pin<&mut Self>) {
        *self.memory.claimed.lock() = false;
    }
}

/// A piece of reserved memory. Only its owner writes it.
///
/// # Invariants
///
/// `base` is the address of `len` bytes of the claim's memory that no other piece has. Both are multiples of
/// the page size.
pub(crate) struct Piece {
    base: NonNull<u8>,
    len: usize,
    _claim: Arc<Claim>,
}

// SAFETY: This is plain memory. The owner decides which code writes where.
unsafe impl Send for Piece {}
// SAFETY: As above.
unsafe impl Sync for Piece {}

impl Piece {
    /// Size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Address of the first byte, for writing.
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Stores bytes. `EINVAL`: the piece is too small. Bytes of earlier calls are in memory before those of
    /// this call.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) -> Result {
        match at.checked_add(bytes.len()) {
            Some(end) if end <= self.len => {}
            _ => return Err(EINVAL),
        }
        // SAFETY: By the check the bytes are inside the piece. By the invariant no other code writes them.
        unsafe {
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.as_ptr().add(at), bytes.len())
        };
        // The machine may stop at any moment; it keeps the order of stores.
        crate::arch::word::release_barrier();
        Ok(())
    }

    /// Splits the piece in two. The first has `len` bytes, a multiple of the page size. [`None`]: the piece is
    /// too small.
    pub(crate) fn split(self, len: usize) -> Option<(Self, Self)> {
        if len % PAGE_SIZE != 0 {
            return None;
        }
        let rest = self.len.checked_sub(len)?;
        let claim = self._claim;
        let first = Self {
            base: self.base,
            len,
            _claim: claim.clone(),
        };
        // SAFETY: The address is at most one past the end.
        let base = unsafe { self.base.add(len) };
        // INVARIANT: Each byte belongs to one of the two.
        Some((
            first,
            Self {
                base,
                len: rest,
                _claim: claim,
            },
        ))
    }
}
