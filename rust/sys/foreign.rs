// SPDX-License-Identifier: GPL-2.0

//! Arguments that C code of other modules passes to exported functions.
//!
//! Only these callers create values of the types here. The types stand for the contract of the C prototypes: a
//! pointer is NULL, or valid until the call returns.

use crate::sys::args::c_text;
use crate::sys::bindings;
use core::ffi::c_void;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A `const char *`.
#[repr(transparent)]
pub(crate) struct ForeignStr<'a> {
    text: *const c_char,
    lifetime: PhantomData<&'a u8>,
}

impl<'a> ForeignStr<'a> {
    /// The bytes; [`None`] for NULL.
    pub(crate) fn get(&self) -> Option<&'a [u8]> {
        (!self.text.is_null()).then(|| self.bytes())
    }

    /// The bytes without the NUL, at most 255; empty for NULL. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        // SAFETY: The caller's contract: the pointer is NULL, or NUL-terminated and valid until the call
        // returns.
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
        // SAFETY: The caller's contract: `len` items follow, valid until the call returns.
        unsafe { core::slice::from_raw_parts(self.first, self.len) }
    }
}

/// A `const T *` and a `size_t`, as two arguments. The caller lends the items until it calls again to take them
/// back, which drops this.
#[repr(C)]
pub(crate) struct ForeignLoan<T: 'static> {
    first: *const T,
    len: usize,
}

// SAFETY: The items are only read.
unsafe impl<T> Send for ForeignLoan<T> {}
// SAFETY: As above.
unsafe impl<T> Sync for ForeignLoan<T> {}

impl<T> ForeignLoan<T> {
    /// The items; none for NULL.
    pub(crate) fn items(&self) -> &[T] {
        if self.first.is_null() {
            return &[];
        }
        // SAFETY: The caller's contract: `len` items follow, valid until this is dropped.
        unsafe { core::slice::from_raw_parts(self.first, self.len) }
    }
}

/// A function. The caller guarantees that it has the expected prototype.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct ForeignFunction(pub(super) *const c_void);

/// A `struct module *`: the module of the object that is described together with it.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct ForeignModule(pub(super) *mut bindings::module);

// SAFETY: The module's reference count is atomic. Only the count is used.
unsafe impl Send for ForeignModule {}
// SAFETY: As above.
unsafe impl Sync for ForeignModule {}

/// A reference that keeps a module loaded.
pub(crate) struct HeldModule(ForeignModule);

impl ForeignModule {
    /// Takes a reference. [`None`]: the module is being unloaded.
    pub(super) fn hold(self) -> Option<HeldModule> {
        // SAFETY: The caller's contract: the pointer is NULL, which stands for the kernel itself, or the module
        // stays until all that it has registered is unregistered.
        unsafe { bindings::try_module_get(self.0) }.then_some(HeldModule(self))
    }
}

impl Drop for HeldModule {
    fn drop(&mut self) {
        // SAFETY: `hold` took the reference.
        unsafe { bindings::module_put(self.0 .0) };
    }
}

/// Room for a `T` that the caller provides in two calls and leaves unchanged between them. The first call fills
/// it. The caller's type for the room is `C`.
#[repr(transparent)]
pub(crate) struct ForeignRoom<'a, T, C = bindings::rtrace_record> {
    room: *mut T,
    lifetime: PhantomData<(&'a mut T, C)>,
}

impl<'a, T, C> ForeignRoom<'a, T, C> {
    /// Fills it.
    #[inline(always)]
    pub(crate) fn fill(self, value: T) -> &'a mut T {
        const { assert!(size_of::<T>() <= size_of::<C>()) };
        // SAFETY: The caller's contract: the room is a `C` that no other code uses until the second call.
        unsafe {
            self.room.write(value);
            &mut *self.room
        }
    }

    /// The value that the first call stored. For the second call.
    #[inline(always)]
    pub(crate) fn filled(self) -> &'a mut T {
        // SAFETY: The caller's contract: the room holds the value that `fill` stored.
        unsafe { &mut *self.room }
    }
}

/// Content of a room that is nearly always a `T`, and otherwise an `R`.
///
/// # Invariants
///
/// If `usual` is [`None`], `rest` is initialised.
// Not an enum: code that stores and reads a `T` then has no separate tag to store and test.
#[repr(C)]
pub(crate) struct Usually<T, R> {
    usual: Option<T>,
    rest: MaybeUninit<R>,
}

impl<'a, T, R, C> ForeignRoom<'a, Usually<T, R>, C> {
    /// Fills the room with the usual value.
    #[inline(always)]
    pub(crate) fn fill_usual(self, usual: T) {
        const { assert!(size_of::<Usually<T, R>>() <= size_of::<C>()) };
        // SAFETY: As for `fill`. By the invariant `rest` may stay uninitialised.
        unsafe { (&raw mut (*self.room).usual).write(Some(usual)) };
    }

    /// Fills the room with the other value.
    #[inline(always)]
    pub(crate) fn fill_rest(self, rest: R) -> &'a mut R {
        const { assert!(size_of::<Usually<T, R>>() <= size_of::<C>()) };
        // SAFETY: As for `fill`. INVARIANT: `rest` is initialised.
        unsafe {
            (&raw mut (*self.room).usual).write(None);
            (*self.room).rest.write(rest)
        }
    }

    /// The value that the first call stored. For the second call.
    #[inline(always)]
    pub(crate) fn taken(self) -> Result<T, &'a mut R> {
        // SAFETY:
        // - The caller's contract: one of the functions above stored the value, and no other code takes it
        //   again.
        // - By the invariant `rest` is initialised where it is used.
        unsafe {
            match (&raw const (*self.room).usual).read() {
                Some(usual) => Ok(usual),
                None => Err((*self.room).rest.assume_init_mut()),
            }
        }
    }
}

/// A result: a pointer, or an error (`ERR_PTR`). The caller owns the object behind the pointer, and returns it
/// as a [`ForeignArc`].
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

/// An object that the caller got by a [`ResultPtr`] and returns.
#[repr(transparent)]
pub(crate) struct ForeignArc<T>(*const T);

impl<T> ForeignArc<T> {
    /// The object.
    pub(crate) fn into_arc(self) -> Arc<T> {
        // SAFETY: The caller's contract: it got this pointer from a [`ResultPtr`], and does not use it any
        // more.
        unsafe { Arc::from_raw(self.0) }
    }
}
