// SPDX-License-Identifier: GPL-2.0

//! Clocks that may be read in any context, NMI included.

use core::arch::asm;
#[cfg(MODULE)]
use kernel::bindings;

/// The processor's time stamp counter, in ticks.
///
/// Unordered: the processor may execute two reads out of order.
#[inline(always)]
pub fn tsc() -> u64 {
    let ticks: u64;
    // The halves are combined in `rdx`, because the following `cmpxchg` needs `rax`.
    // SAFETY: Reads a register, in two halves.
    unsafe {
        asm!(
            "rdtsc",
            "shl rdx, 32",
            "or rdx, rax",
            out("rdx") ticks,
            out("rax") _,
            options(nomem, nostack),
        );
    }
    ticks
}

/// The kernel's monotonic clock, in nanoseconds. It may go back a little in an NMI that interrupts
/// the clock's own update.
#[cfg(MODULE)]
#[inline(always)]
pub fn monotonic_ns() -> u64 {
    let now: u64;
    // SAFETY:
    // - The function is NMI-safe by its contract. It takes no argument and returns a number.
    // - `nostack` despite the call: see `NoPreempt`. Without it the compiler would align the stack
    //   to 16 bytes, which kernel code does not require.
    unsafe {
        asm!(
            "call {clock}",
            clock = sym bindings::ktime_get_mono_fast_ns,
            lateout("rax") now,
            clobber_abi("C"),
            options(nostack),
        );
    }
    now
}
