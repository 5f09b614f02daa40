// SPDX-License-Identifier: GPL-2.0

//! Text that a tracepoint passes as it is, and in what a program is started with.

use super::{c_text, Task};
use crate::sys::bindings;
use crate::sys::tracepoint::Arg;
use kernel::ffi::c_char;
use kernel::types::Opaque;

/// A `char *` to a C string, or NULL.
#[repr(transparent)]
pub(crate) struct CharPointer(*const c_char);

// SAFETY: The same pointer; tracepoints that pass one pass a C string that lives, or NULL.
unsafe impl Arg for CharPointer {
    type Raw = *mut c_char;
}

impl CharPointer {
    /// The text; empty if there is none.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: A C string that lives while the handler runs, and so as long as `self`.
        unsafe { c_text(self.0.cast()) }
    }
}

/// A `const char *` to the name that a task gets.
#[repr(transparent)]
pub(crate) struct NewName(*const c_char);

// SAFETY: The same pointer; `task_rename` passes a C string that lives, not NULL.
unsafe impl Arg for NewName {
    type Raw = *const c_char;
}

impl NewName {
    /// The name, cut to the bytes that the kernel keeps.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: A C string that lives while the handler runs, and so as long as `self`.
        let text = unsafe { c_text(self.0.cast()) };
        text.get(..Task::NAME_MAX).unwrap_or(text)
    }
}

/// A `struct linux_binprm`: a program that is being started.
#[repr(transparent)]
pub(crate) struct ExecutedProgram(Opaque<bindings::linux_binprm>);

// SAFETY: A pointer to a live binprm; tracepoints that pass one pass no NULL.
unsafe impl Arg for &ExecutedProgram {
    type Raw = *mut bindings::linux_binprm;
}

impl ExecutedProgram {
    /// The path it is started by.
    #[inline(always)]
    pub(crate) fn file_name(&self) -> &[u8] {
        // SAFETY: A live binprm; its file name lives as long.
        unsafe { c_text((*self.0.get()).filename.cast()) }
    }
}
