// SPDX-License-Identifier: GPL-2.0

//! A process as a platform of the write side: the writing thread is pinned to the only CPU.

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

/// The platform of a ring in this process.
#[derive(Debug)]
pub(crate) struct Process(());

impl Process {
    /// Creates the platform.
    pub(crate) fn new() -> io::Result<Self> {
        // The other command requires this registration.
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

    /// Interrupts each CPU that runs a thread of this process, as the module interrupts the writer's CPU.
    fn promote(&self) {
        full_barrier();
        // The command cannot fail after the registration.
        let _ = membarrier(MembarrierCommand::PrivateExpedited);
        full_barrier();
    }
}

impl rtrace_record::platform::WritePlatform for Process {
    const PAGE_SIZE: u64 = 4096;

    type NoPreempt = NoPreempt;
    type PerCpu<T> = OneCpu<T>;
    type FilledOnce<T> = Once<T>;
    type GateState = CountAndFlags;
    type Pages = Pages;
    type Wakeup = Polling;

    #[inline(always)]
    fn no_preempt() -> NoPreempt {
        NoPreempt::new()
    }

    /// Gates are opened. They are never closed while threads record.
    fn wait_for_entries() {}

    #[inline(always)]
    fn level(_guard: &NoPreempt) -> Level {
        machine::level()
    }

    #[inline(always)]
    fn tsc() -> u64 {
        clock::tsc()
    }

    /// Without a system call, through the vDSO.
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

/// Does nothing: readers poll.
#[derive(Debug)]
pub(crate) struct Polling;

impl Wakeup for Polling {
    fn packet_ready(&self, _unread: impl FnOnce() -> u64) {}
}
