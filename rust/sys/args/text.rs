// SPDX-License-Identifier: GPL-2.0

//! Texts that a tracepoint passes directly, and in the description of a started program.

use super::{c_text, Task};
use crate::sys::bindings;
use crate::sys::tracepoint::Arg;
use kernel::ffi::c_char;
use kernel::types::Opaque;

/// A `char *` to a C string, or NULL.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct CharPointer(*const c_char);

// SAFETY: Both are the same pointer. Tracepoints pass a live C string or NULL for it.
unsafe impl Arg for CharPointer {
    type Raw = *mut c_char;
}

impl CharPointer {
    /// The text; empty for NULL.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: The C string lives while the handler runs, which is at least as long as `self`.
        unsafe { c_text(self.0.cast()) }
    }
}

/// A `const char *` to the new name of a task.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct NewName(*const c_char);

// SAFETY: Both are the same pointer. `task_rename` passes a live C string, and never NULL.
unsafe impl Arg for NewName {
    type Raw = *const c_char;
}

impl NewName {
    /// The name, cut to the length that the kernel keeps.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: The C string lives while the handler runs, which is at least as long as `self`.
        let text = unsafe { c_text(self.0.cast()) };
        text.get(..Task::NAME_MAX).unwrap_or(text)
    }
}

/// A `struct linux_binprm`: a program during its start.
#[repr(transparent)]
pub(crate) struct ExecutedProgram(Opaque<bindings::linux_binprm>);

// SAFETY: The pointer is to a live binprm. No tracepoint passes NULL for it.
unsafe impl Arg for &ExecutedProgram {
    type Raw = *mut bindings::linux_binprm;
}

impl ExecutedProgram {
    /// The path of the program.
    #[inline(always)]
    pub(crate) fn file_name(&self) -> &[u8] {
        // SAFETY: The binprm is live. Its file name lives as long.
        unsafe { c_text((*self.0.get()).filename.cast()) }
    }
}
