// SPDX-License-Identifier: GPL-2.0

//! The interface between the write side and the machine.
//!
//! `channel/platform.rs` implements it for the kernel. The benchmark in user space (tools/native)
//! has its own implementation.

use super::gate::{EachCpu, FilledOnce, GateState, Level};
use super::memory::Pages;
use super::ring;
use super::ring::slot::Slot;

/// The machine that the write side runs on: the platform of a ring, and more functions of its CPU.
pub trait WritePlatform: ring::platform::Platform {
    /// Size of a page in bytes. Readers move out packets in whole pages.
    const PAGE_SIZE: u64;

    /// Guard that keeps the code that owns it on its CPU.
    type NoPreempt;
    /// One value for each possible CPU.
    type PerCpu<T>: EachCpu<T, Self::NoPreempt>;
    /// Cell for the value behind a gate.
    type FilledOnce<T>: FilledOnce<T>;
    /// State of a gate.
    type GateState: GateState;
    /// Memory of a buffer.
    type Pages: Pages;
    /// Wake-up of a buffer's readers.
    type Wakeup: Wakeup;

    /// Keeps the caller on this CPU while the guard exists. Any context, NMI included.
    fn no_preempt() -> Self::NoPreempt;

    /// Waits until all [`NoPreempt`](Self::NoPreempt) guards that exist now are dropped. May sleep.
    fn wait_for_entries();

    /// Level of the calling context, which owns `guard`. It does not change while the guard exists.
    /// Any context, NMI included.
    fn level(guard: &Self::NoPreempt) -> Level;

    /// The processor's time stamp counter, in ticks. A later reading on the same CPU is not less,
    /// in any context. Any context, NMI included.
    fn tsc() -> u64;

    /// A monotonic clock, in nanoseconds, which may go back a little. Any context, NMI included.
    fn monotonic_ns() -> u64;

    /// Number of ticks that the trace's clock has missed since the trace began, to add to each
    /// reading. It never decreases. Any CPU, any context, NMI included.
    fn missed(&self) -> u64 {
        0
    }

    /// Time at which the trace stopped. `u64::MAX` until all its records are complete. Any CPU, any
    /// context, NMI included.
    fn stopped(&self) -> u64 {
        u64::MAX
    }

    /// Allocates a ring's slots, in order. `slot` makes each by its index. Called once, before
    /// [`pages`](Self::pages). [`None`]: out of memory. May sleep.
    fn slots(&mut self, count: usize, slot: impl FnMut(u64) -> Slot<Self>) -> Option<Self::Slots>;

    /// Allocates the memory of a buffer near `cpu`, which need not be online: `bytes` bytes, all
    /// zero, a multiple of the page size. Called once. [`None`]: out of memory. May sleep.
    fn pages(&mut self, bytes: usize, cpu: u32) -> Option<Self::Pages>;
}

/// Wake-up of a buffer's readers.
pub trait Wakeup {
    /// Announces a finished packet. `unread` returns the number of unread bytes in the buffer
    /// ([`Ring::unread`](ring::Ring::unread)). Runs on the writer's CPU in any context, NMI
    /// included, so it must not wake a thread directly.
    fn packet_ready(&self, unread: impl FnOnce() -> u64);
}
