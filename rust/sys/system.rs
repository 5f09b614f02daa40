// SPDX-License-Identifier: GPL-2.0

//! Identification of this machine, this kernel and this boot.

use crate::abi::packet::Uuid;
use crate::sys::bindings;
use kernel::prelude::*;

/// A new random UUID (version 4).
pub(crate) fn random_uuid() -> Uuid {
    let mut uuid: Uuid = [0; 16];
    // SAFETY: Writes 16 bytes.
    unsafe { bindings::generate_random_uuid(uuid.as_mut_ptr()) };
    uuid
}

/// This boot's id as text, as in /proc/sys/kernel/random/boot_id. May sleep.
pub(crate) fn boot_id() -> Result<[u8; 36]> {
    let mut id = [0u8; 36];
    // SAFETY: The path is a literal with its NUL. The flags request no special mode.
    let file = unsafe {
        bindings::filp_open(
            c"/proc/sys/kernel/random/boot_id".as_ptr().cast(),
            bindings::O_RDONLY as c_int,
            0,
        )
    };
    let file = kernel::error::from_err_ptr(file)?;
    let mut position = 0;
    // SAFETY: The file is open, and the buffer has the given size.
    let read =
        unsafe { bindings::kernel_read(file, id.as_mut_ptr().cast(), id.len(), &mut position) };
    // SAFETY: Opened above.
    unsafe { bindings::filp_close(file, core::ptr::null_mut()) };
    if read != id.len() as isize || !id.is_ascii() {
        return Err(EIO);
    }
    Ok(id)
}

/// Answer of uname(2) in the initial namespace.
pub(crate) struct SystemNames {
    /// Name of the machine.
    pub(crate) node: [u8; 65],
    /// Release, e.g. `7.2.12+deb13-amd64`.
    pub(crate) release: [u8; 65],
    /// Version, e.g. `#1 SMP PREEMPT_DYNAMIC ...`.
    pub(crate) version: [u8; 65],
}

impl SystemNames {
    /// Reads the names. A node name that changes during the read may be mixed.
    pub(crate) fn new() -> Self {
        // SAFETY: The object is never freed. A change during the read at worst mixes texts.
        let name = unsafe { bindings::rtrace_utsname().read() };
        Self {
            node: name.nodename,
            release: name.release,
            version: name.version,
        }
    }
}

/// The text before the first NUL.
pub(crate) fn text(bytes: &[u8]) -> &str {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    core::str::from_utf8(&bytes[..end]).unwrap_or("?")
}
