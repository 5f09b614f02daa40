// SPDX-License-Identifier: GPL-2.0

//! A process as the write side sees it: the thread that writes is pinned to the one CPU there is.

use crate::machine::{self, NoPreempt, Once, OneCpu, Pages};
use rtrace_arch::chosen::Chosen;
use rtrace_arch::clock;
use rtrace_arch::word::{compiler_barrier, full_barrier, CountAndFlags, LocalWord, SharedWord};
use rtrace_record::gate::Level;
use rtrace_record::platform::Wakeup;
use rtrace_ring::slot::Slot;
use rustix::thread::{membarrier, MembarrierCommand};
use rustix::time::{clock_gettime, ClockId};
use std::io;

/// A ring's surroundings in this process.
#[derive(Debug)]
pub(crate) struct Process(());

impl Process {
    /// They.
    pub(crate) fn new() -> io::Result<Self> {
        // Needed before the other command.
        membarrier(MembarrierCommand::RegisterPrivateExpedited)?;
        Ok(Self(()))
    }
}

impl rtrace_ring::platform::Platform for Process {
    type Local = LocalWord;
    type Shared = SharedWord;
    type Slots = Chosen<Slot<Self>>;

    fn publish(&self) {
        compiler_barrier();
    }

    /// Interrupts every CPU that runs a thread of this process, as the module interrupts the
    /// writer's.
    fn promote(&self) {
        full_barrier();
        // It cannot fail once it was registered.
        let _ = membarrier(MembarrierCommand::PrivateExpedited);
        full_barrier();
    }
}

impl rtrace_record::platform::WritePlatform for Process {
    const PAGE_SIZE: u64 = 4096;

    type NoPreempt = NoPreempt;
    type PerCpu<T> = OneCpu<T>;
    type Place<T> = Once<T>;
    type GateState = CountAndFlags;
    type Pages = Pages;
    type Wakeup = Polling;

    #[inline(always)]
    fn no_preempt() -> NoPreempt {
        NoPreempt::new()
    }

    /// Gates are opened, and never closed while threads record.
    fn wait_for_entries() {}

    #[inline(always)]
    fn level(_guard: &NoPreempt) -> Level {
        machine::level()
    }

    #[inline(always)]
    fn tsc() -> u64 {
        clock::tsc()
    }

    /// Without a system call, by the vDSO.
    #[inline(always)]
    fn monotonic_ns() -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        (now.tv_sec as u64)
            .wrapping_mul(1_000_000_000)
            .wrapping_add(now.tv_nsec as u64)
    }

    fn slots(&mut self, count: usize, slot: impl FnMut(u64) -> Slot<Self>) -> Option<Self::Slots> {
        Chosen::new((0..count as u64).map(slot).collect())
    }

    fn pages(&mut self, bytes: usize, _cpu: u32) -> Option<Pages> {
        Some(Pages::new(bytes))
    }
}

/// Readers poll: nobody is woken.
#[derive(Debug)]
pub(crate) struct Polling;

impl Wakeup for Polling {
    fn packet_ready(&self, _unread: impl FnOnce() -> u64) {}
}
