// SPDX-License-Identifier: GPL-2.0

//! Sorting by the kernel's `sort_r()`.
//!
//! Core's `sort_unstable` takes kilobytes of code for each type. It can also panic in a function that objtool
//! does not know as one that never returns.

use crate::sys::{bindings, signal};
use core::cell::Cell;
use core::cmp::Ordering;
use core::ffi::{c_int, c_void};
use kernel::prelude::*;

/// Number of comparisons after which other threads may run.
const AT_ONCE: u32 = 1024;

/// Calls of the function that compares.
struct Compare<F> {
    compare: F,
    count: Cell<u32>,
    /// Whether a fatal signal of the calling thread ends the sort.
    ends: bool,
    /// The sort ends: all values are equal from now on.
    has_ended: Cell<bool>,
}

/// Sorts in place. The order of equal values is not specified. May sleep.
pub(crate) fn sort_by<T, F: Fn(&T, &T) -> Ordering>(values: &mut [T], compare: F) {
    sort(values, compare, false);
}

/// As [`sort_by`]. `EINTR`: the calling thread has a fatal signal; the order of the values is any.
pub(crate) fn sort_unless_killed<T, F: Fn(&T, &T) -> Ordering>(
    values: &mut [T],
    compare: F,
) -> Result {
    match sort(values, compare, true) {
        true => Ok(()),
        false => Err(EINTR),
    }
}

/// Returns whether the sort did not end early.
fn sort<T, F: Fn(&T, &T) -> Ordering>(values: &mut [T], compare: F, ends: bool) -> bool {
    let compare = Compare {
        compare,
        count: Cell::new(0),
        ends,
        has_ended: Cell::new(false),
    };
    // SAFETY:
    // - The pointer, the number and the size describe the slice, which is borrowed until the call returns.
    // - The kernel moves values by swapping their bytes, so each exists once, in whatever order.
    // - `call` gets pointers to two values of the slice, and to `compare`.
    unsafe {
        bindings::sort_r(
            values.as_mut_ptr().cast(),
            values.len(),
            size_of::<T>(),
            Some(call::<T, F>),
            None,
            (&raw const compare).cast(),
        )
    };
    !compare.has_ended.get()
}

/// Calls the function of a [`sort_by`].
///
/// # Safety
///
/// The pointers are valid for reading: two values of type `T`, and a `Compare<F>`. The context may sleep.
unsafe extern "C" fn call<T, F: Fn(&T, &T) -> Ordering>(
    one: *const c_void,
    other: *const c_void,
    compare: *const c_void,
) -> c_int {
    // SAFETY: The caller's promise; nothing changes the values during a comparison.
    let (one, other, compare) =
        unsafe { (&*one.cast(), &*other.cast(), &*compare.cast::<Compare<F>>()) };
    let count = compare.count.get().wrapping_add(1);
    compare.count.set(count);
    if count % AT_ONCE == 0 {
        let is_killed = signal::go_on().is_err();
        compare.has_ended.set(is_killed && compare.ends);
    }
    match compare.has_ended.get() {
        true => 0,
        false => (compare.compare)(one, other) as c_int,
    }
}
