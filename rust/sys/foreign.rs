// SPDX-License-Identifier: GPL-2.0

//! What C code of other modules passes to exported functions.
//!
//! These types are made only by such callers, and stand for what the C prototypes say: that a
//! pointer is NULL or valid as long as the call.

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
    /// The same; [`None`] for NULL.
    pub(crate) fn get(&self) -> Option<&'a [u8]> {
        (!self.text.is_null()).then(|| self.bytes())
    }

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

/// A `const T *` and a `size_t`, as two arguments: lent until the caller takes them back by another call, which
/// drops this.
#[repr(C)]
pub(crate) struct ForeignLoan<T: 'static> {
    first: *const T,
    len: usize,
}

// SAFETY: What is lent is only read.
unsafe impl<T> Send for ForeignLoan<T> {}
// SAFETY: As above.
unsafe impl<T> Sync for ForeignLoan<T> {}

impl<T> ForeignLoan<T> {
    /// The items; none for NULL.
    pub(crate) fn items(&self) -> &[T] {
        if self.first.is_null() {
            return &[];
        }
        // SAFETY: The caller's contract: so many items, valid as long as this.
        unsafe { core::slice::from_raw_parts(self.first, self.len) }
    }
}

/// A function, whose prototype the caller vouches for.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct ForeignFunction(pub(super) *const c_void);

/// A `struct module *`: that of what is described beside it.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct ForeignModule(pub(super) *mut bindings::module);

// SAFETY: The module's count of references is atomic, and nothing else of it is used.
unsafe impl Send for ForeignModule {}
// SAFETY: As above.
unsafe impl Sync for ForeignModule {}

/// A module that is not unloaded while this lives.
pub(crate) struct HeldModule(ForeignModule);

impl ForeignModule {
    /// Keeps it. [`None`]: it goes already.
    pub(super) fn hold(self) -> Option<HeldModule> {
        // SAFETY: The caller's contract: NULL, which is the kernel itself, or a module that is there
        // as long as what it has registered.
        unsafe { bindings::try_module_get(self.0) }.then_some(HeldModule(self))
    }
}

impl Drop for HeldModule {
    fn drop(&mut self) {
        // SAFETY: What `hold` took.
        unsafe { bindings::module_put(self.0 .0) };
    }
}

/// Room for a `T` between two calls of the caller, who does not change it meanwhile: the first fills
/// it. For the caller it is a `C`.
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
        // SAFETY: The caller's contract: a `C`, its own, until the second call.
        unsafe {
            self.room.write(value);
            &mut *self.room
        }
    }

    /// What it was filled with, in the second call.
    #[inline(always)]
    pub(crate) fn filled(self) -> &'a mut T {
        // SAFETY: The caller's contract: what `fill` put there.
        unsafe { &mut *self.room }
    }
}

/// What room is filled with where that is nearly always a `T`, and else an `R`.
///
/// # Invariants
///
/// There is `rest` where there is no `usual`.
// No enum: who stores a `T`, and asks for it, has no tag to store and to look at.
#[repr(C)]
pub(crate) struct Usually<T, R> {
    usual: Option<T>,
    rest: MaybeUninit<R>,
}

impl<'a, T, R, C> ForeignRoom<'a, Usually<T, R>, C> {
    /// Fills it as usual.
    #[inline(always)]
    pub(crate) fn fill_usual(self, usual: T) {
        const { assert!(size_of::<Usually<T, R>>() <= size_of::<C>()) };
        // SAFETY: As for `fill`; the rest need not be there by the invariant.
        unsafe { (&raw mut (*self.room).usual).write(Some(usual)) };
    }

    /// Fills it with the other.
    #[inline(always)]
    pub(crate) fn fill_rest(self, rest: R) -> &'a mut R {
        const { assert!(size_of::<Usually<T, R>>() <= size_of::<C>()) };
        // SAFETY: As for `fill`. INVARIANT: There is `rest`.
        unsafe {
            (&raw mut (*self.room).usual).write(None);
            (*self.room).rest.write(rest)
        }
    }

    /// What it was filled with, in the second call.
    #[inline(always)]
    pub(crate) fn taken(self) -> Result<T, &'a mut R> {
        // SAFETY:
        // - The caller's contract: one of the above put it there, and nobody takes it again.
        // - By the invariant there is `rest` where that is asked for.
        unsafe {
            match (&raw const (*self.room).usual).read() {
                Some(usual) => Ok(usual),
                None => Err((*self.room).rest.assume_init_mut()),
            }
        }
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
