// SPDX-License-Identifier: GPL-2.0

//! A place for an `Arc` that is read in any context and replaced under RCU.

use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::sys::bindings;
use core::marker::PhantomData;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Waits until every section without preemption has ended that runs now. May sleep.
pub(crate) fn synchronize() {
    // SAFETY: May sleep here.
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

    /// What is there. Any context, NMI included; not in the idle loop, where RCU does not look.
    #[inline(always)]
    pub(crate) fn get<'a>(&'a self, _guard: &'a NoPreempt) -> Option<&'a T> {
        // SAFETY: By the invariant, NULL or valid; `replace` waits for us before it drops what was
        // there, for with preemption disabled we are an RCU reader.
        unsafe { (self.pointer.load_acquire() as *const T).as_ref() }
    }

    /// What is there, to keep.
    pub(crate) fn get_arc(&self) -> Option<Arc<T>> {
        let _guard = NoPreempt::new();
        let pointer = self.pointer.load_acquire() as *const T;
        if pointer.is_null() {
            return None;
        }
        // SAFETY: By the invariant; it is not dropped before the guard is. The reference that the
        // place holds stays with it.
        let held = core::mem::ManuallyDrop::new(unsafe { Arc::from_raw(pointer) });
        Some((*held).clone())
    }

    /// Puts `value` there, waits until nobody reads what was there, and drops that. May sleep.
    pub(crate) fn replace(&self, value: Option<Arc<T>>) {
        if let Some(old) = self.exchange(value) {
            // SAFETY: May sleep here.
            unsafe { bindings::synchronize_rcu() };
            drop(old);
        }
    }

    /// As [`replace`](Self::replace), but what was there goes with `retired`, which waits for all at
    /// once. May sleep.
    pub(crate) fn replace_later(&self, value: Option<Arc<T>>, retired: &mut Retired<T>) {
        if retired.0.reserve(1, GFP_KERNEL).is_err() {
            return self.replace(value);
        }
        if let Some(old) = self.exchange(value) {
            // There is room.
            let _ = retired.0.push(old, GFP_KERNEL);
        }
    }

    /// Who read what was there before may still do.
    fn exchange(&self, value: Option<Arc<T>>) -> Option<Arc<T>> {
        let new = value.map_or(core::ptr::null(), Arc::into_raw) as u64;
        let mut old = self.pointer.load();
        while !self.pointer.compare_exchange(old, new) {
            old = self.pointer.load();
        }
        let old = old as *const T;
        // SAFETY: By the invariant it was this place's, and it is not there any more.
        (!old.is_null()).then(|| unsafe { Arc::from_raw(old) })
    }
}

/// What was in places before. Dropping it waits, once, until nobody reads any of it. May sleep.
pub(crate) struct Retired<T>(KVec<Arc<T>>);

impl<T> Retired<T> {
    /// Nothing.
    pub(crate) fn new() -> Self {
        Self(KVec::new())
    }
}

impl<T> Drop for Retired<T> {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            // SAFETY: May sleep here. The items go after it.
            unsafe { bindings::synchronize_rcu() };
        }
    }
}

impl<T> Drop for RcuArc<T> {
    fn drop(&mut self) {
        let pointer = self.pointer.load() as *const T;
        if !pointer.is_null() {
            // SAFETY: By the invariant. Nobody reads what is there: who does has borrowed `self`.
            drop(unsafe { Arc::from_raw(pointer) });
        }
    }
}
