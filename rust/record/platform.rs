// SPDX-License-Identifier: GPL-2.0

//! The one seam between the write side and what it runs on.
//!
//! The kernel's implementation is in `channel/platform.rs`; the benchmark in user space
//! (tools/native) has one of its own.

use super::gate::{Level, PerCpu, Place, State};
use super::memory::Pages;
use super::ring;
use super::ring::slot::Slot;

/// What the write side runs on: what a ring does, and the surroundings of its CPU.
pub trait Platform: ring::platform::Platform {
    /// Bytes of a page. Packets are moved out in whole pages.
    const PAGE_SIZE: u64;

    /// While one lives, the code that has it stays on its CPU.
    type NoPreempt;
    /// A CPU's values.
    type PerCpu<T>: PerCpu<T, Self::NoPreempt>;
    /// Where a gate has what is behind it.
    type Place<T>: Place<T>;
    /// What a gate asks.
    type GateState: State;
    /// A buffer's memory.
    type Pages: Pages;
    /// Whom a buffer announces its packets to.
    type Wakeup: Wakeup;

    /// Stays on this CPU from now on. Any context, NMI included.
    fn no_preempt() -> Self::NoPreempt;

    /// Waits until all who have a [`NoPreempt`](Self::NoPreempt) now have ended it. May sleep.
    fn wait_for_entries();

    /// The level of the context that this runs in, which has `guard`. The same as long as that
    /// lives. Any context, NMI included.
    fn level(guard: &Self::NoPreempt) -> Level;

    /// The processor's time stamp counter, in ticks. What is read earlier on a CPU is not later,
    /// in whatever context. Any context, NMI included.
    fn tsc() -> u64;

    /// A monotonic clock, in nanoseconds, which may step back by a little. Any context, NMI
    /// included.
    fn monotonic_ns() -> u64;

    /// Ticks that the trace's clock has missed since the trace began, to add to each reading. They
    /// never become fewer. Any CPU, any context, NMI included.
    fn missed(&self) -> u64 {
        0
    }

    /// Allocates a ring's slots, from the first to the last as `slot` makes them by their index.
    /// Called once, before [`pages`](Self::pages). [`None`]: there is no memory. May sleep.
    fn slots(&mut self, count: usize, slot: impl FnMut(u64) -> Slot<Self>) -> Option<Self::Slots>;

    /// Allocates the memory of a buffer: `bytes`, all zero, a multiple of the page size, near `cpu`,
    /// which need not be online. Called once. [`None`]: there is none. May sleep.
    fn pages(&mut self, bytes: usize, cpu: u32) -> Option<Self::Pages>;
}

/// Whom a buffer announces its packets to.
pub trait Wakeup {
    /// A packet is finished; `unread` says how many bytes of the buffer are unread
    /// ([`Ring::unread`](ring::Ring::unread)). On the writer's CPU; any context, NMI included: nobody
    /// may be woken from here.
    fn packet_ready(&self, unread: impl FnOnce() -> u64);
}
