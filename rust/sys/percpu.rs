// SPDX-License-Identifier: GPL-2.0

//! Dynamically allocated per-CPU variables.

use crate::arch::percpu::this_cpu_address;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::sys::bindings;
use crate::sys::cpu;
use core::marker::PhantomData;
use core::mem::{align_of, size_of};
use kernel::prelude::*;
use kernel::sync::Arc;

/// One `T` for each possible CPU, each on its CPU's memory node, all bytes zero to begin with.
///
/// # Invariants
///
/// `offset` was returned by `pcpu_alloc_noprof` for the size and alignment of a `T`.
pub(crate) struct PerCpu<T: Zeroable> {
    offset: usize,
    data: PhantomData<T>,
}

// SAFETY: Only shared references are given out.
unsafe impl<T: Zeroable + Sync> Sync for PerCpu<T> {}
// SAFETY: What is true of a T is true of many.
unsafe impl<T: Zeroable + Send> Send for PerCpu<T> {}

impl<T: Zeroable> PerCpu<T> {
    /// Allocates. May sleep.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: A plain allocation; the result is checked.
        let pointer = unsafe {
            bindings::pcpu_alloc_noprof(
                size_of::<T>(),
                align_of::<T>(),
                false,
                bindings::GFP_KERNEL,
            )
        };
        if pointer.is_null() {
            return Err(ENOMEM);
        }
        // INVARIANT: Just allocated.
        Ok(Self {
            offset: pointer as usize,
            data: PhantomData,
        })
    }

    /// What tells these variables from others.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// This CPU's. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn this_cpu(&self, guard: &NoPreempt) -> &T {
        // SAFETY: Its own.
        unsafe { self.this_cpu_at(self.offset, guard) }
    }

    /// This CPU's, by a copy of [`offset`](Self::offset): not even `self` is looked at.
    ///
    /// # Safety
    ///
    /// `offset` must be what `self.offset()` says.
    #[inline(always)]
    pub(crate) unsafe fn this_cpu_at(&self, offset: usize, _guard: &NoPreempt) -> &T {
        let this = this_cpu_address(offset) as *const T;
        // SAFETY:
        // - By the contract and the invariant that is the address of this CPU's T.
        // - While the guard lives it is this CPU's; after that it is still a valid T.
        unsafe { &*this }
    }

    /// The one of `cpu`, or [`None`] if there can be no such CPU. Any CPU may ask.
    pub(crate) fn of(&self, cpu: u32) -> Option<&T> {
        if cpu >= cpu::count() {
            return None;
        }
        // SAFETY: `cpu` is below `nr_cpu_ids`; the array has an entry for each.
        let distance = unsafe {
            (&raw const bindings::__per_cpu_offset)
                .cast::<usize>()
                .add(cpu as usize)
                .read()
        };
        // SAFETY: By the invariant that is `cpu`'s T, valid as long as `self`.
        Some(unsafe { &*(self.offset.wrapping_add(distance) as *const T) })
    }
}

impl<T: Zeroable> Drop for PerCpu<T> {
    fn drop(&mut self) {
        for cpu in cpu::possible() {
            if let Some(value) = self.of(cpu) {
                // SAFETY: Nobody has a reference any more, and each is dropped once.
                unsafe { core::ptr::from_ref(value).cast_mut().drop_in_place() };
            }
        }
        // SAFETY: By the invariant.
        unsafe { bindings::free_percpu(self.offset as *mut _) };
    }
}

/// A place for an `Arc` that is filled once, and read in any context. Zeroed: empty.
///
/// # Invariants
///
/// The word is 0 or the pointer of an `Arc` that this owns, and changes only once.
pub(crate) struct OnceArc<T> {
    pointer: SharedWord,
    data: PhantomData<Arc<T>>,
}

// SAFETY: Zero is the empty state.
unsafe impl<T> Zeroable for OnceArc<T> {}

impl<T> OnceArc<T> {
    /// What is there. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: By the invariant, NULL or valid as long as `self`. Acquire, so that what the
        // Arc points to is seen as it was when it was put here.
        unsafe { (self.pointer.load_acquire() as *const T).as_ref() }
    }

    /// What is there.
    ///
    /// # Safety
    ///
    /// Something is, and the caller has learned so by an acquire.
    #[inline(always)]
    pub(crate) unsafe fn get_filled(&self) -> &T {
        // SAFETY: By the contract the word does not change any more; by the invariant it is a
        // pointer that is valid as long as `self`.
        unsafe {
            let pointer = self.pointer.load_settled() as *const T;
            core::hint::assert_unchecked(!pointer.is_null());
            &*pointer
        }
    }

    /// Fills it. Returns whether it was empty; if not, `value` is dropped.
    pub(crate) fn set(&self, value: Arc<T>) -> bool {
        let pointer = Arc::into_raw(value);
        if self.pointer.compare_exchange(0, pointer as u64) {
            return true;
        }
        // SAFETY: Taken apart above, and not kept.
        drop(unsafe { Arc::from_raw(pointer) });
        false
    }
}

impl<T> Drop for OnceArc<T> {
    fn drop(&mut self) {
        let pointer = self.pointer.load() as *const T;
        if !pointer.is_null() {
            // SAFETY: By the invariant.
            drop(unsafe { Arc::from_raw(pointer) });
        }
    }
}
