// SPDX-License-Identifier: GPL-2.0

//! What C code of other modules passes to exported functions.
//!
//! These types are made only by such callers, and stand for what the C prototypes say: that a
//! pointer is NULL or valid as long as the call.

use crate::sys::args::c_text;
use core::marker::PhantomData;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A `const char *`.
#[repr(transparent)]
pub(crate) struct ForeignStr<'a> {
    text: *const c_char,
    lifetime: PhantomData<&'a u8>,
}

impl<'a> ForeignStr<'a> {
    /// Its bytes, without the NUL, cut off after 255; none for NULL. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        // SAFETY: The caller's contract: NULL, or NUL-terminated and valid as long as the call.
        unsafe { c_text(self.text.cast()) }
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

/// A pointer that is a result, or an error (`ERR_PTR`). The caller owns what it points to, and
/// gives it back as a [`ForeignArc`].
#[repr(transparent)]
pub(crate) struct ResultPtr<T>(*const T);

impl<T> From<Result<Arc<T>>> for ResultPtr<T> {
    fn from(result: Result<Arc<T>>) -> Self {
        Self(match result {
            Ok(value) => Arc::into_raw(value),
            Err(error) => error.to_errno() as isize as usize as *const T,
        })
    }
}

/// What a caller got by a [`ResultPtr`], given back.
#[repr(transparent)]
pub(crate) struct ForeignArc<T>(*const T);

impl<T> ForeignArc<T> {
    /// It.
    pub(crate) fn into_arc(self) -> Arc<T> {
        // SAFETY: The caller's contract: what it got, and uses no more.
        unsafe { Arc::from_raw(self.0) }
    }
}
