// SPDX-License-Identifier: GPL-2.0

//! Addresses of this CPU's per-CPU variables.

use core::arch::asm;
use kernel::bindings;

/// Returns the address of this CPU's instance of the per-CPU variable at `offset`
/// (`this_cpu_ptr()`). After the caller moves to another CPU, it is the address of another CPU's
/// instance. Any context.
#[inline(always)]
pub fn this_cpu_address(offset: usize) -> usize {
    let base: usize;
    // SAFETY: Reads the register with this CPU's distance from offset to address. A kernel that runs as a host for
    // virtual machines (VHE) has it in another register. Not `nomem`: the compiler must read it again after the caller
    // has disabled preemption.
    unsafe {
        asm!(
            alternative!("mrs {base}, tpidr_el1", "mrs {base}, tpidr_el2"),
            base = out(reg) base,
            capability = const bindings::ARM64_HAS_VIRT_HOST_EXTN,
            options(nostack, readonly, pure, preserves_flags),
        );
    }
    base.wrapping_add(offset)
}
