// SPDX-License-Identifier: GPL-2.0

//! Memory that the kernel's command line reserves under a name (`reserve_mem=`): at the next boot it is
//! at the same place, with what was in it, if the machine does not clear it.

use crate::sys::bindings;
use crate::sys::pages::PAGE_SIZE;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Reserved memory.
///
/// # Invariants
///
/// `base` is the address of `len` bytes that the kernel has reserved for ever: memory with pages, mapped
/// as all memory is, a multiple of the page size. Only who has the [`Claim`] writes it, or else who
/// holds the lock of `claimed`, which is true while there is a claim.
#[pin_data]
pub(crate) struct ReservedMemory {
    base: NonNull<u8>,
    len: usize,
    #[pin]
    claimed: Mutex<bool>,
}

// SAFETY: Plain memory; who writes where is said by the claim.
unsafe impl Send for ReservedMemory {}
// SAFETY: As above.
unsafe impl Sync for ReservedMemory {}

impl ReservedMemory {
    /// The memory that was reserved as `name`. There must be one object for a name. `ENOENT`: none
    /// was. May sleep.
    pub(crate) fn find(name: &CStr) -> Result<Arc<Self>> {
        let mut len = 0;
        // SAFETY: A NUL-terminated text, and a place for the length.
        let base = unsafe { bindings::rtrace_reserved(name.as_ptr().cast(), &mut len) };
        let base = NonNull::new(base.cast()).ok_or(ENOENT)?;
        let len = len as usize;
        // INVARIANT: As the helper says.
        Arc::pin_init(
            pin_init!(Self { base, len, claimed <- new_mutex!(false) }),
            GFP_KERNEL,
        )
    }

    /// Bytes of it.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Copies what is there from `at` on. `EBUSY`: somebody has the claim; `EINVAL`: it is not so
    /// large. May sleep.
    pub(crate) fn read(&self, at: usize, to: &mut [u8]) -> Result {
        let claimed = self.claimed.lock();
        self.check(*claimed, at, to.len())?;
        // SAFETY: Inside the memory, by the check; nobody writes it while the lock is held.
        unsafe {
            core::ptr::copy_nonoverlapping(self.base.as_ptr().add(at), to.as_mut_ptr(), to.len())
        };
        Ok(())
    }

    /// Puts bytes there. As [`read`](Self::read).
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) -> Result {
        let claimed = self.claimed.lock();
        self.check(*claimed, at, bytes.len())?;
        // SAFETY: As in `read`; nobody else reads it, either.
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

    /// Takes all of it. `EBUSY`: somebody has it. May sleep.
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
/// There is one for a memory. The first `taken` bytes are those of its pieces.
#[pin_data(PinnedDrop)]
pub(crate) struct Claim {
    memory: Arc<ReservedMemory>,
    #[pin]
    taken: Mutex<usize>,
}

impl Claim {
    /// The next `len` bytes, all set to zero; `len` is a multiple of the page size. And where they are.
    /// [`None`]: there are not so many. May sleep.
    pub(crate) fn take(self: &Arc<Self>, len: usize) -> Option<(usize, Piece)> {
        let mut taken = self.taken.lock();
        let at = *taken;
        let end = at.checked_add(len)?;
        if end > self.memory.len || len % PAGE_SIZE != 0 {
            return None;
        }
        *taken = end;
        // SAFETY: At most one past the end.
        let base = unsafe { self.memory.base.add(at) };
        // SAFETY: These bytes are the new piece's, by the invariant.
        unsafe { base.as_ptr().write_bytes(0, len) };
        // INVARIANT: Nobody else has bytes from `taken` on, and nobody gets these again.
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

/// A piece of reserved memory, which nobody else writes.
///
/// # Invariants
///
/// `base` is the address of `len` bytes of the claim's memory that no other piece has; both are
/// multiples of the page size.
pub(crate) struct Piece {
    base: NonNull<u8>,
    len: usize,
    _claim: Arc<Claim>,
}

// SAFETY: Plain memory; who writes where is the owner's concern.
unsafe impl Send for Piece {}
// SAFETY: As above.
unsafe impl Sync for Piece {}

impl Piece {
    /// Bytes of it.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Its first byte, to write to what it has.
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Puts bytes there; `EINVAL`: it is not so large. What was put before is there before.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) -> Result {
        match at.checked_add(bytes.len()) {
            Some(end) if end <= self.len => {}
            _ => return Err(EINVAL),
        }
        // SAFETY: Inside the piece, by the check, which nobody else writes, by the invariant.
        unsafe {
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.as_ptr().add(at), bytes.len())
        };
        // The machine may stop at any moment; it keeps the order of stores.
        crate::arch::word::compiler_barrier();
        Ok(())
    }

    /// Two of one: the first has `len` bytes, a multiple of the page size. [`None`]: it has not so
    /// many.
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
        // SAFETY: At most one past the end.
        let base = unsafe { self.base.add(len) };
        // INVARIANT: Each byte is of one of the two.
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
