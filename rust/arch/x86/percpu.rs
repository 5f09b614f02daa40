// SPDX-License-Identifier: GPL-2.0

//! Addresses of this CPU's per-CPU variables.

use core::arch::asm;
use kernel::bindings;

/// Returns the address of this CPU's instance of the per-CPU variable at `offset`
/// (`this_cpu_ptr()`). After the caller moves to another CPU, it is the address of another CPU's
/// instance. Any context, NMI included.
#[inline(always)]
pub fn this_cpu_address(offset: usize) -> usize {
    let address: usize;
    // SAFETY: Reads `this_cpu_off`, this CPU's distance from offset to address, which never
    // changes.
    unsafe {
        asm!(
            "add {address}, qword ptr gs:[rip + {off}]",
            address = inout(reg) offset => address,
            off = sym bindings::this_cpu_off,
            options(nostack, readonly, pure),
        );
    }
    address
}
