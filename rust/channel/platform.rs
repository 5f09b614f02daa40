// SPDX-License-Identifier: GPL-2.0

//! The kernel, as a platform of the ring and of the write side.

use super::clock::TraceTime;
use super::dump::ListedBuffer;
use super::region::ReservedArea;
use super::wakeup;
use crate::arch::chosen::{Chosen, Items};
use crate::arch::clock;
use crate::arch::preempt::{self, NoPreempt};
use crate::arch::word::{
    acquire_barrier, release_barrier, CountAndFlags, LocalWord, SharedWord, IS_ORDERED,
};
use crate::record;
use crate::record::gate::Level;
use crate::record::memory::Pages as _;
use crate::ring::exchange::Bank;
use crate::ring::image::Image;
use crate::ring::platform::Platform;
use crate::ring::slot::Slot;
use crate::sys::cpu;
use crate::sys::page_array::PageArray;
use crate::sys::pages::{KernelPages, PAGE_SIZE};
use crate::sys::percpu::{OnceArc, SharedPerCpu};
use crate::sys::rcu;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The side that pays for the order between a packet's bytes and the word that marks it finished.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Barriers {
    /// The reader: it interrupts the writer's CPU, which executes a full barrier (the paper's
    /// Algorithm 6). The writer executes no barrier, except a release where stores are not in order.
    Interrupt,
    /// The writer, once per packet, at delivery: a full barrier before it looks for a reader to
    /// wake. (Where [`IS_ORDERED`] its stores are in order anyway.) Readers never interrupt the writer's CPU.
    Delivery,
}

/// The side that pays, on each CPU of a channel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BarrierPolicy {
    /// The reader, except that the writer pays on a CPU which the kernel keeps free of interrupts
    /// (`isolcpus`, `nohz_full`, an isolated cpuset partition). Where stores are not [in order](IS_ORDERED), the
    /// writer, because each delivery is a release there anyway.
    Auto,
    /// The reader.
    Reader,
    /// The writer.
    Writer,
}

impl BarrierPolicy {
    /// The barriers of a CPU.
    pub(super) fn on(self, is_isolated: bool) -> Barriers {
        match self {
            Self::Auto if is_isolated || !IS_ORDERED => Barriers::Delivery,
            Self::Auto | Self::Reader => Barriers::Interrupt,
            Self::Writer => Barriers::Delivery,
        }
    }
}

/// A ring's surroundings in the kernel.
pub(crate) struct Kernel {
    /// The CPU that writes.
    pub(super) cpu: u32,
    /// Whether nothing may interrupt that CPU: a [`Deputy`](record::gate::Deputy) acts in its place.
    pub(super) is_isolated: bool,
    /// Whether the writer is the thread that [gives](super::given) records, and not that CPU.
    pub(super) is_given: bool,
    pub(super) barriers: Barriers,
    pub(super) location: KBox<Location>,
}

/// Memory of a buffer, and the state that its writers seldom need.
pub(super) struct Location {
    /// Reserved memory for the buffer, or [`None`] for allocated memory.
    pub(super) area: Option<ReservedArea>,
    /// The buffer's entry in the list for dumps.
    pub(super) listed: ListedBuffer,
    /// The trace's time.
    pub(super) time: Arc<TraceTime>,
}

// Slots are read when their kernel is gone: in reserved memory after the next boot, and in a dump.
const _: () = assert!(Image::is_of::<Kernel>());

impl Platform for Kernel {
    type Local = LocalWord;
    type Shared = SharedWord;
    type Slots = Chosen<Slot<Self>, PageArray<Slot<Self>>>;

    fn publish(&self) {
        // Also for `Interrupt`: a CPU that goes offline may deliver a packet when no interrupt reaches it any more.
        release_barrier();
    }

    fn promote(&self) {
        match self.barriers {
            Barriers::Interrupt => {
                // A CPU that went offline (ENXIO) has delivered with a release.
                let _ = cpu::full_barrier_on(self.cpu);
            }
            Barriers::Delivery => acquire_barrier(),
        }
    }
}

impl record::platform::WritePlatform for Kernel {
    const PAGE_SIZE: u64 = PAGE_SIZE as u64;

    type NoPreempt = NoPreempt;
    type PerCpu<T> = SharedPerCpu<T>;
    type FilledOnce<T> = OnceArc<T>;
    type GateState = CountAndFlags;
    type Pages = Arc<KernelPages>;
    type Wakeup = Arc<wakeup::StreamWakeup>;

    #[inline(always)]
    fn no_preempt() -> NoPreempt {
        NoPreempt::new()
    }

    fn wait_for_entries() {
        rcu::synchronize();
    }

    #[inline(always)]
    fn level(_guard: &NoPreempt) -> Level {
        preempt::level()
    }

    #[inline(always)]
    fn tsc() -> u64 {
        clock::tsc()
    }

    #[inline(always)]
    fn monotonic_ns() -> u64 {
        clock::monotonic_ns()
    }

    fn missed(&self) -> u64 {
        self.location.time.missed()
    }

    fn stopped(&self) -> u64 {
        self.location.time.end()
    }

    fn slots(&mut self, count: usize, slot: impl FnMut(u64) -> Slot<Self>) -> Option<Self::Slots> {
        let row = match &mut self.location.area {
            Some(area) => PageArray::reserved(area.slots.take()?, count, slot),
            None => PageArray::allocated(count, self.cpu, slot),
        }?;
        self.location.listed.slots(row.items());
        Chosen::new(row)
    }

    fn pages(&mut self, bytes: usize, cpu: u32) -> Option<Arc<KernelPages>> {
        let pages = match &mut self.location.area {
            Some(area) => KernelPages::reserved(area.subbufs.take()?, bytes),
            None => KernelPages::new(bytes, cpu),
        }?;
        let pages = Arc::new(pages, GFP_KERNEL).ok()?;
        let base = Some(pages.base());
        self.location.listed.subbufs(Bank::First, base);
        Some(pages)
    }
}

impl record::platform::Wakeup for Arc<wakeup::StreamWakeup> {
    fn packet_ready(&self, unread: impl FnOnce() -> u64) {
        (**self).packet_ready(unread);
    }
}
