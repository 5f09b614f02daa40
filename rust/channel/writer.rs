// SPDX-License-Identifier: GPL-2.0

//! Acting as the writer of a CPU's buffer: to close the packet being written, or to exchange the memory.
//!
//! An interrupt of that CPU does this, except while the CPU is offline or if it is isolated. For an isolated
//! CPU another one does it, as the [`Deputy`](record::gate::Deputy) of the CPU's gate. For [given](super::given) records
//! the CPU does not write, so any CPU does it that has locked the cursor.

use super::platform::Kernel;
use super::stream::Stream;
use super::{Buffer, Ways};
use crate::arch::preempt::NoPreempt;
use crate::record;
use crate::sys::cpu::{self, NoHotplug};
use crate::sys::errno::enodata;
use crate::sys::signal;
use crate::sys::work::{Ask, Work};
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::time::{delay::fsleep, Delta};

/// Pause of a deputy that has found a context inside.
const PAUSE: Delta = Delta::from_micros(10);
/// Number of attempts of a deputy. A context is inside only while it writes a record.
const TRIES: u32 = 1000;

/// The deputy of a gate.
type Deputy<'a> = record::gate::Deputy<'a, Kernel, Buffer>;

/// The right to act as the writer of the buffers behind some gates. No CPU comes or goes while this lives.
pub(super) struct Writer<'a> {
    ways: &'a Ways,
    cpus: NoHotplug,
}

impl<'a> Writer<'a> {
    /// May sleep.
    pub(super) fn new(ways: &'a Ways) -> Self {
        let cpus = NoHotplug::new();
        Self { ways, cpus }
    }

    /// Calls `act` with `work` as the writer of the buffer that has this `platform`, with preemption disabled. The
    /// caller has locked the buffer's cursor, so that one thread at a time acts in place of a CPU. For an isolated
    /// CPU this waits for a grace period. Errors, without a call: `EAGAIN` if records are being written on an isolated
    /// CPU at each of many attempts, `EINTR` if the caller was killed meanwhile. May sleep.
    pub(super) fn act<T: Send>(&self, platform: &Kernel, work: &mut T, act: fn(&mut T)) -> Result {
        let cpu = platform.cpu;
        if platform.is_given || !self.cpus.is_online(cpu) {
            let _guard = NoPreempt::new();
            act(work);
            return Ok(());
        }
        // If all CPUs are isolated, one of them is interrupted: that of the buffer.
        let Some(other) = cpu::housekeeping().filter(|_| platform.is_isolated) else {
            return cpu::run_on(cpu, work, act);
        };
        if other == cpu {
            // The CPU was isolated when the buffer was made, and is not any more.
            return cpu::run_on(cpu, work, act);
        }
        let deputy = self.ways.deputy(cpu).ok_or_else(enodata)?;
        let mut call = Call {
            deputy: &deputy,
            work,
            act,
            is_done: false,
        };
        for _ in 0..TRIES {
            cpu::run_on(other, &mut call, Call::run)?;
            if call.is_done {
                return Ok(());
            }
            signal::go_on()?;
            fsleep(PAUSE);
        }
        Err(EAGAIN)
    }
}

/// The action of a deputy.
struct Call<'a, T> {
    deputy: &'a Deputy<'a>,
    work: &'a mut T,
    act: fn(&mut T),
    is_done: bool,
}

impl<T> Call<'_, T> {
    fn run(&mut self) {
        let Self { work, act, .. } = self;
        self.is_done = self.deputy.act(|| act(work));
    }
}

/// Closes the packet being written to the buffer of `stream`, behind the gate that `ways` lead to. May sleep.
pub(super) fn flush(ways: &Ways, stream: &Stream) -> Result {
    let flush: fn(&mut &Buffer) = |buffer| buffer.flush();
    let (platform, mut buffer) = (stream.ring().platform(), stream.buffer());
    let writer = Writer::new(ways);
    let interrupts_cpu = !platform.is_isolated && !platform.is_given;
    if interrupts_cpu && writer.cpus.is_online(platform.cpu) {
        return cpu::run_on(platform.cpu, &mut buffer, flush);
    }
    let _cursor = stream.cursor.lock();
    writer.act(platform, &mut buffer, flush)
}

/// Closes the packet being written: on the buffer's CPU, or, if that CPU is isolated, after the last record was
/// written. May sleep.
pub(super) fn flush_here(stream: &Stream) {
    // Excludes deputies, and the thread that gives records.
    let platform = stream.ring().platform();
    let is_shared = platform.is_isolated || platform.is_given;
    let _cursor = is_shared.then(|| stream.cursor.lock());
    let _guard = NoPreempt::new();
    stream.buffer().flush();
}

/// A flush by a thread.
type FlushWork = Work<(Ways, Arc<Stream>)>;

/// The forced switch of a CPU's packets.
pub(super) struct Switch {
    stream: Arc<Stream>,
    /// Flushes in a thread. Only if an interrupt of the buffer's CPU must not do it.
    deputy: Option<Arc<FlushWork>>,
}

impl Switch {
    /// The forced switch of `stream`. May sleep.
    pub(super) fn new(ways: &Ways, stream: &Arc<Stream>) -> Result<Self> {
        let platform = stream.ring().platform();
        let deputy = if platform.is_isolated || platform.is_given {
            Some(Work::new(
                (ways.clone(), stream.clone()),
                |(ways, stream)| {
                    // The next tick tries again.
                    let _ = flush(ways, stream);
                },
            )?)
        } else {
            None
        };
        Ok(Self {
            stream: stream.clone(),
            deputy,
        })
    }

    /// Each switch period, in an interrupt on the buffer's CPU, or on another one if that CPU is isolated.
    pub(super) fn tick(&self) {
        // A flight recorder that nobody reads keeps its packets full.
        if self.stream.wakeup.is_open() && !self.stream.is_stopped() {
            match &self.deputy {
                Some(deputy) => deputy.ask(),
                None => self.stream.buffer().flush(),
            }
        }
    }
}
