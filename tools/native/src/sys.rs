// SPDX-License-Identifier: GPL-2.0

//! What the record path uses of rust/sys: the words are the module's, the rest stands in.

#[path = "../../../rust/arch/x86/word.rs"]
#[allow(dead_code)]
pub(crate) mod word;

#[path = "../../../rust/sys/chosen.rs"]
pub(crate) mod chosen;
#[path = "../../../rust/sys/gate.rs"]
#[allow(dead_code)]
pub(crate) mod gate;

pub(crate) mod percpu {
    //! Per-CPU variables of a machine with one CPU.

    pub(crate) use crate::machine::{OnceArc, PerCpu};
}

pub(crate) mod clock {
    //! Clocks.

    use rustix::time::{clock_gettime, ClockId};

    pub(crate) use crate::machine::tsc;

    /// The monotonic clock, in nanoseconds: without a system call, by the vDSO.
    #[inline(always)]
    pub(crate) fn monotonic_ns() -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        (now.tv_sec as u64)
            .wrapping_mul(1_000_000_000)
            .wrapping_add(now.tv_nsec as u64)
    }

    /// Not asked here: the benchmark says which clock it takes.
    pub(crate) fn tsc_frequency() -> Option<u64> {
        None
    }

    /// Nanoseconds since the epoch.
    pub(crate) fn realtime_ns() -> u64 {
        let now = clock_gettime(ClockId::Realtime);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}

pub(crate) mod cpu {
    //! CPUs.

    use crate::prelude::{Error, Result};
    use rustix::thread::{membarrier, MembarrierCommand};

    /// Makes every CPU that runs a thread of this process execute a full barrier, by an
    /// interrupt.
    pub(crate) fn full_barrier_on(_cpu: u32) -> Result {
        membarrier(MembarrierCommand::PrivateExpedited).map_err(|why| Error(why.raw_os_error()))
    }

    /// No CPU comes or goes here.
    pub(crate) struct NoHotplug;

    impl NoHotplug {
        /// As the module's.
        pub(crate) fn new() -> Self {
            Self
        }
    }

    /// All CPUs.
    pub(crate) fn possible() -> impl Iterator<Item = u32> {
        core::iter::once(0)
    }

    /// Needed once, before [`full_barrier_on`].
    pub(crate) fn register() -> std::io::Result<()> {
        Ok(membarrier(MembarrierCommand::RegisterPrivateExpedited)?)
    }
}

pub(crate) mod irq_work {
    //! Deferred work: readers poll here, so there is none.

    use crate::prelude::{PinInit, Result};
    use core::marker::PhantomData;

    /// Work that is never done.
    pub(crate) struct IrqWork<T>(PhantomData<T>);

    impl<T> IrqWork<T> {
        /// Makes it.
        pub(crate) fn new(_data: T, _run: fn(&T)) -> impl PinInit<Self> {
            || -> Result<Self> { Ok(Self(PhantomData)) }
        }

        /// Does nothing.
        pub(crate) fn queue(&self) {}
    }
}

pub(crate) mod pages {
    //! Memory.

    use crate::prelude::Result;
    use core::ptr::NonNull;

    pub(crate) const PAGE_SIZE: usize = 4096;

    /// Zeroed memory, never given back: a process measures a handful of buffers.
    pub(crate) struct Pages(NonNull<u8>);

    impl Pages {
        /// Allocates.
        pub(crate) fn new(len: usize, _cpu: u32) -> Result<Self> {
            let memory: &mut [u8] = Box::leak(vec![0; len].into_boxed_slice());
            // As the module's, which zeroes: no page fault is measured.
            memory.fill(0xff);
            Ok(Self(NonNull::from(memory).cast()))
        }

        /// First byte.
        pub(crate) fn base(&self) -> NonNull<u8> {
            self.0
        }
    }
}

pub(crate) mod preempt {
    //! Disabling preemption.

    pub(crate) use crate::machine::NoPreempt;
}

pub(crate) mod system {
    //! The system.

    /// Identifies a trace.
    pub(crate) type Uuid = [u8; 16];
}

pub(crate) mod tracepoint {
    //! Tracepoints: benchmarks call their probes themselves.

    use core::marker::PhantomData;

    /// No probe.
    pub(crate) struct Handler<D>(PhantomData<D>);

    impl<D> Clone for Handler<D> {
        fn clone(&self) -> Self {
            *self
        }
    }
    impl<D> Copy for Handler<D> {}
}

pub(crate) mod wait {
    //! Waiting: readers poll here.

    use crate::prelude::{PinInit, Result};

    /// Nobody waits.
    pub(crate) struct WaitQueue;

    impl WaitQueue {
        /// Makes it.
        pub(crate) fn new() -> impl PinInit<Self> {
            || -> Result<Self> { Ok(Self) }
        }

        /// Does nothing.
        pub(crate) fn wake_all(&self) {}
    }
}
