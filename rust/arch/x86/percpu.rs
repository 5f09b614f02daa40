// SPDX-License-Identifier: GPL-2.0

//! Finding a per-CPU variable of this CPU.

use core::arch::asm;
use kernel::bindings;

/// The address that the per-CPU variable at `offset` has on this CPU (`this_cpu_ptr()`). Any
/// context, NMI included; it is another CPU's as soon as this is moved to one.
#[inline(always)]
pub fn this_cpu_address(offset: usize) -> usize {
    let address: usize;
    // SAFETY: Reads `this_cpu_off`, this CPU's distance from offset to address, which does not
    // change.
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
