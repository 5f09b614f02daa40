// SPDX-License-Identifier: GPL-2.0

//! A place for an `Arc` that is read in any context and replaced under RCU.

use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::sys::bindings;
use core::marker::PhantomData;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Waits until each section without preemption that runs now has ended. May sleep.
pub(crate) fn synchronize() {
    // SAFETY: This context may sleep.
    unsafe { bindings::synchronize_rcu() };
}

/// A place that holds an `Arc` or nothing.
///
/// # Invariants
///
/// The word is 0 or the pointer of an `Arc` that this owns.
pub(crate) struct RcuArc<T> {
    pointer: SharedWord,
    data: PhantomData<Arc<T>>,
}

impl<T> RcuArc<T> {
    /// An empty place.
    pub(crate) const fn new() -> Self {
        Self {
            pointer: SharedWord::new(0),
            data: PhantomData,
        }
    }

    /// The value. Any context, NMI included, except the idle loop, where RCU does not watch.
    #[inline(always)]
    pub(crate) fn get<'a>(&'a self, _guard: &'a NoPreempt) -> Option<&'a T> {
        // SAFETY: By the invariant the pointer is NULL or valid. With preemption disabled we are an RCU reader,
        // and `replace` waits for us before it drops the old value.
        unsafe { (self.pointer.load_acquire() as *const T).as_ref() }
    }

    /// A reference to the value.
    pub(crate) fn get_arc(&self) -> Option<Arc<T>> {
        let _guard = NoPreempt::new();
        let pointer = self.pointer.load_acquire() as *const T;
        if pointer.is_null() {
            return None;
        }
        // SAFETY: By the invariant. The value is not dropped before the guard. The place keeps its own
        // reference.
        let held = core::mem::ManuallyDrop::new(unsafe { Arc::from_raw(pointer) });
        Some((*held).clone())
    }

    /// Stores `value`, waits until no reader uses the old value, and drops that. May sleep.
    pub(crate) fn replace(&self, value: Option<Arc<T>>) {
        if let Some(old) = self.exchange(value) {
            // SAFETY: This context may sleep.
            unsafe { bindings::synchronize_rcu() };
            drop(old);
        }
    }

    /// As [`replace`](Self::replace), except that `retired` gets the old value. It waits once for all its
    /// values. May sleep.
    pub(crate) fn replace_later(&self, value: Option<Arc<T>>, retired: &mut Retired<T>) {
        if retired.0.reserve(1, GFP_KERNEL).is_err() {
            return self.replace(value);
        }
        if let Some(old) = self.exchange(value) {
            // The room was reserved above.
            let _ = retired.0.push(old, GFP_KERNEL);
        }
    }

    /// Stores `value`, and returns the old one. Readers may still use the old value.
    fn exchange(&self, value: Option<Arc<T>>) -> Option<Arc<T>> {
        let new = value.map_or(core::ptr::null(), Arc::into_raw) as u64;
        let mut old = self.pointer.load();
        while !self.pointer.compare_exchange(old, new) {
            old = self.pointer.load();
        }
        let old = old as *const T;
        // SAFETY: By the invariant the place owned the pointer, which was removed above.
        (!old.is_null()).then(|| unsafe { Arc::from_raw(old) })
    }
}

/// Old values of several places. The drop waits once until no reader uses any of them. May sleep.
pub(crate) struct Retired<T>(KVec<Arc<T>>);

impl<T> Retired<T> {
    /// An empty list.
    pub(crate) fn new() -> Self {
        Self(KVec::new())
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<T> Drop for Retired<T> {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            // SAFETY: This context may sleep. The items are dropped after the wait.
            unsafe { bindings::synchronize_rcu() };
        }
    }
}

impl<T> Drop for RcuArc<T> {
    fn drop(&mut self) {
        let pointer = self.pointer.load() as *const T;
        if !pointer.is_null() {
            // SAFETY: By the invariant. No reader is left: each has borrowed `self`.
            drop(unsafe { Arc::from_raw(pointer) });
        }
    }
}
