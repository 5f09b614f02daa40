// SPDX-License-Identifier: GPL-2.0

//! Sorting by the kernel's `sort_r()`.
//!
//! Core's `sort_unstable` takes kilobytes of code for each type. It can also panic in a function that objtool
//! does not know as one that never returns.

use crate::sys::bindings;
use core::cmp::Ordering;
use core::ffi::{c_int, c_void};

/// Sorts in place. The order of equal values is not specified.
pub(crate) fn sort_by<T, F: Fn(&T, &T) -> Ordering>(values: &mut [T], compare: F) {
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
}

/// Calls the function of a [`sort_by`].
///
/// # Safety
///
/// The pointers are valid for reading: two values of type `T`, and an `F`.
unsafe extern "C" fn call<T, F: Fn(&T, &T) -> Ordering>(
    one: *const c_void,
    other: *const c_void,
    compare: *const c_void,
) -> c_int {
    // SAFETY: The caller's promise; nothing changes the values during a comparison.
    let (one, other, compare) = unsafe { (&*one.cast(), &*other.cast(), &*compare.cast::<F>()) };
    compare(one, other) as c_int
}
