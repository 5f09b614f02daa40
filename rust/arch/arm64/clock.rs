// SPDX-License-Identifier: GPL-2.0

//! Clocks that may be read in any context, NMI included.

use core::arch::asm;
#[cfg(MODULE)]
use kernel::bindings;

/// The generic timer's virtual counter, in ticks. It serves as the time stamp counter.
///
/// Unordered: the processor may execute two reads out of order.
#[inline(always)]
pub fn tsc() -> u64 {
    let ticks: u64;
    // SAFETY: Reads a register.
    unsafe {
        asm!("mrs {ticks}, cntvct_el0", ticks = out(reg) ticks, options(nomem, nostack, preserves_flags));
    }
    ticks
}

/// The kernel's monotonic clock, in nanoseconds. It may go back a little in an NMI that interrupts
/// the clock's own update.
#[cfg(MODULE)]
#[inline(always)]
pub fn monotonic_ns() -> u64 {
    let now: u64;
    // SAFETY: The function is NMI-safe by its contract. It takes no argument and returns a number.
    unsafe {
        asm!(
            "bl {clock}",
            clock = sym bindings::ktime_get_mono_fast_ns,
            lateout("x0") now,
            clobber_abi("C"),
            options(nostack),
        );
    }
    now
}
