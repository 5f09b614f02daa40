// SPDX-License-Identifier: GPL-2.0

//! What C code of other modules passes to exported functions.
//!
//! These types are made only by such callers, and stand for what the C prototypes say: that a
//! pointer is NULL or valid as long as the call.

use core::marker::PhantomData;
use kernel::prelude::*;

/// A `const char *`.
#[repr(transparent)]
pub(crate) struct ForeignStr<'a> {
    text: *const c_char,
    lifetime: PhantomData<&'a u8>,
}

impl<'a> ForeignStr<'a> {
    /// Its bytes, without the NUL; [`None`] for NULL.
    pub(crate) fn bytes(&self) -> Option<&'a [u8]> {
        if self.text.is_null() {
            return None;
        }
        // SAFETY: The caller's contract: NUL-terminated, valid as long as the call.
        Some(unsafe { CStr::from_ptr(self.text.cast()) }.to_bytes())
    }
}

/// A `const T *` and a `size_t`, as two arguments or two members.
#[repr(C)]
pub(crate) struct ForeignSlice<'a, T> {
    first: *const T,
    len: usize,
    lifetime: PhantomData<&'a T>,
}

impl<'a, T> ForeignSlice<'a, T> {
    /// The items; none for NULL.
    #[inline(always)]
    pub(crate) fn items(&self) -> &'a [T] {
        if self.first.is_null() {
            return &[];
        }
        // SAFETY: The caller's contract: so many items, valid as long as the call.
        unsafe { core::slice::from_raw_parts(self.first, self.len) }
    }
}

/// A pointer that is a result, or an error (`ERR_PTR`).
#[repr(transparent)]
pub(crate) struct ResultPtr<T>(*const T);

impl<T> From<Result<&'static T>> for ResultPtr<T> {
    fn from(result: Result<&'static T>) -> Self {
        Self(match result {
            Ok(value) => value,
            Err(error) => error.to_errno() as isize as usize as *const T,
        })
    }
}
