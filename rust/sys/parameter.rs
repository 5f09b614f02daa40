// SPDX-License-Identifier: GPL-2.0

//! The module's parameters (`parameter.c`), as they were given when it was loaded. They do not
//! change afterwards: their files under /sys/module can only be read.

use crate::sys::bindings;
use kernel::prelude::*;

/// 0: the reader interrupts the writer's CPU; anything else: a barrier at delivery. Any context.
pub(crate) fn delivery_barrier() -> u8 {
    // SAFETY: Reads a variable that nobody writes once the module is being initialized.
    unsafe { bindings::rtrace_delivery_barrier() }
}

/// Mode of the directories in debugfs: nine bits, those of the owner set. Any context.
pub(crate) fn mode() -> u16 {
    // SAFETY: As above.
    unsafe { bindings::rtrace_mode() }
}

/// Where buffer positions begin. Any context.
pub(crate) fn origin() -> u64 {
    // SAFETY: As above.
    unsafe { bindings::rtrace_origin() }
}

/// Settings that were given as texts; none for those that were not. Any context.
macro_rules! settings {
    ($($name:ident = $given:ident;)*) => {$(
        #[allow(missing_docs)] // The description is MODULE_PARM_DESC().
        pub(crate) fn $name() -> Option<&'static CStr> {
            // SAFETY: As above; what it points to stays as long as the module.
            unsafe { text(bindings::$given()) }
        }
    )*};
}

settings! {
    clock = rtrace_given_clock;
    channel_mode = rtrace_given_channel_mode;
    subbuf_size = rtrace_given_subbuf_size;
    subbuf_count = rtrace_given_subbuf_count;
    tracing_cpus = rtrace_given_tracing_cpus;
    contexts = rtrace_given_contexts;
    memory = rtrace_given_memory;
    set_event = rtrace_given_set_event;
    set_filter = rtrace_given_set_filter;
    enable = rtrace_given_enable;
}

/// # Safety
///
/// `text` is null, or a NUL-terminated text that is there for ever.
unsafe fn text(text: *const c_char) -> Option<&'static CStr> {
    if text.is_null() {
        return None;
    }
    // SAFETY: The caller's promise.
    Some(unsafe { CStr::from_ptr(text.cast()) })
}
