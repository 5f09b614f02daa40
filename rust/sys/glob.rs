// SPDX-License-Identifier: GPL-2.0

//! Shell patterns, as the kernel matches them: `*`, `?`, `[...]`, `[!...]`.

use crate::sys::bindings;
use kernel::prelude::*;

/// Whether all of `text` matches `pattern`.
pub(crate) fn matches(pattern: &CStr, text: &CStr) -> bool {
    // SAFETY: Both are NUL-terminated.
    unsafe { bindings::glob_match(pattern.as_ptr().cast(), text.as_ptr().cast()) }
}
