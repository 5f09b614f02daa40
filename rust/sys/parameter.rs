// SPDX-License-Identifier: GPL-2.0

//! Parameters of the module (`parameter.c`), as given when it was loaded. They are constant: their files under
//! /sys/module are read-only.

use crate::sys::bindings;
use kernel::prelude::*;

/// 0: the reader interrupts the writer's CPU. Other values: the writer executes a barrier at delivery. Any
/// context.
pub(crate) fn delivery_barrier() -> u8 {
    // SAFETY: Reads a variable that is constant once the module's initialisation has begun.
    unsafe { bindings::rtrace_delivery_barrier() }
}

/// Mode of the directories: nine bits, of which those of the owner are set. Any context.
pub(crate) fn mode() -> u16 {
    // SAFETY: As above.
    unsafe { bindings::rtrace_mode() }
}

/// First buffer position. Any context.
pub(crate) fn origin() -> u64 {
    // SAFETY: As above.
    unsafe { bindings::rtrace_origin() }
}

/// Maximum size of a ring, in bytes. So sizes cannot overflow.
const RING_SIZE_MAX: usize = 1 << 26;

/// Number of rings that an open file may have. Any context.
pub(crate) fn program_rings() -> u32 {
    // SAFETY: As above.
    unsafe { bindings::rtrace_program_rings() }
}

/// Size of such a ring in bytes. Any context.
pub(crate) fn program_ring_size() -> usize {
    // SAFETY: As above.
    let size = unsafe { bindings::rtrace_program_ring_size() };
    (size as usize).min(RING_SIZE_MAX)
}

/// Niceness of the thread that takes records from such rings, 0 to 19. Any context.
pub(crate) fn program_nice() -> u32 {
    // SAFETY: As above.
    unsafe { bindings::rtrace_program_nice() }
}

/// Bytes that all such rings of a user may have. Any context.
pub(crate) fn program_memory_user() -> usize {
    // SAFETY: As above.
    unsafe { bindings::rtrace_program_memory_user() as usize }
}

/// Bytes that all such rings may have. Any context.
pub(crate) fn program_memory() -> usize {
    // SAFETY: As above.
    unsafe { bindings::rtrace_program_memory() as usize }
}

/// Value of the parameter `name`, if it is a text and was given. Any context.
pub(crate) fn given(name: &str) -> Option<&'static CStr> {
    // SAFETY: The name has this many bytes.
    let text = unsafe { bindings::rtrace_given(name.as_ptr().cast(), name.len()) };
    if text.is_null() {
        return None;
    }
    // SAFETY: A NUL-terminated text that exists as long as the module.
    Some(unsafe { CStr::from_ptr(text.cast()) })
}
