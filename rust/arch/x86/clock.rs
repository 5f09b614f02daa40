// SPDX-License-Identifier: GPL-2.0

//! Clocks that may be read in any context, NMI included.

use core::arch::asm;
#[cfg(MODULE)]
use kernel::bindings;

/// The processor's time stamp counter, in ticks.
///
/// Unordered: two reads may come out of order by what the processor has in flight.
#[inline(always)]
pub fn tsc() -> u64 {
    let ticks: u64;
    // Put together in `rdx`: what comes next needs `rax`, for `cmpxchg`.
    // SAFETY: Reads a register. It comes in two halves.
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

/// The kernel's monotonic clock, in nanoseconds. It may step back by a little where it is
/// read in an NMI that interrupts its own update.
#[cfg(MODULE)]
#[inline(always)]
pub fn monotonic_ns() -> u64 {
    let now: u64;
    // SAFETY:
    // - NMI-safe by its contract; takes nothing and returns a number.
    // - `nostack` in spite of the call: see `NoPreempt`. The compiler would align the stack to 16
    //   bytes on the way, which kernel code does not ask for.
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
