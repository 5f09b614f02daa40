// SPDX-License-Identifier: GPL-2.0

//! The clocks of a trace.

use super::platform::Kernel;
use super::Channel;
use crate::abi::tsdl;
use crate::arch::clock::{monotonic_ns, tsc};
use crate::arch::word::SharedWord;
use crate::record::clock::TraceClock;
use crate::sys::clock::{self, Leap};
use core::num::NonZeroU64;
use kernel::prelude::*;
use kernel::sync::Arc;

const NSEC_PER_SEC: u64 = 1_000_000_000;

/// The clock of a trace's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockKind {
    /// The processor's time stamp counter: one instruction.
    Tsc {
        /// Ticks per second.
        frequency: u64,
    },
    /// The kernel's monotonic clock, in nanoseconds, by its NMI-safe reader.
    Monotonic,
}

impl ClockKind {
    /// The names of all clocks, as in the `clock` file.
    pub(crate) const NAMES: [&'static str; 2] = ["tsc", "mono"];

    /// The clock with this name, if this machine has it.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        match name {
            "tsc" => Some(Self::Tsc {
                frequency: clock::tsc_frequency()?,
            }),
            "mono" => Some(Self::Monotonic),
            _ => None,
        }
    }

    /// The cheapest reliable clock of this machine.
    pub(crate) fn best() -> Self {
        Self::by_name("tsc").unwrap_or(Self::Monotonic)
    }

    /// This clock, or the monotonic one if this machine does not have it any more: the kernel can find the time stamp
    /// counter unstable at any time.
    pub(crate) fn if_reliable(self) -> Self {
        Self::by_name(self.name()).unwrap_or(Self::Monotonic)
    }

    /// Whether programs read the same clock by one instruction.
    pub(crate) fn is_readable_by_programs(self) -> bool {
        matches!(self, Self::Tsc { .. })
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tsc { .. } => "tsc",
            Self::Monotonic => "mono",
        }
    }

    /// The clock, as a CPU's buffer reads it.
    pub(super) fn reader(self) -> TraceClock<Kernel> {
        match self {
            Self::Tsc { .. } => TraceClock::tsc(),
            Self::Monotonic => TraceClock::monotonic(),
        }
    }

    /// Ticks per second.
    pub(crate) fn frequency(self) -> NonZeroU64 {
        let frequency = match self {
            Self::Tsc { frequency } => frequency,
            Self::Monotonic => NSEC_PER_SEC,
        };
        // No clock has a frequency of 0.
        NonZeroU64::new(frequency).unwrap_or(NonZeroU64::MIN)
    }

    /// The current time.
    pub(crate) fn now(self) -> u64 {
        match self {
            Self::Tsc { .. } => tsc(),
            Self::Monotonic => monotonic_ns(),
        }
    }

    /// Its description in a trace that starts now. `boot_id` is in text form.
    pub(crate) fn describe(self, boot_id: &str) -> tsdl::Clock<'_> {
        let frequency = self.frequency().get();
        // Of several tries, the one with the shortest time between the two readings of the clock is used.
        let mut best = (u64::MAX, 0, 0);
        for _ in 0..8 {
            let before = self.now();
            let real = clock::realtime_ns();
            let after = self.now();
            let taken = after.wrapping_sub(before);
            if taken < best.0 {
                best = (taken, before.wrapping_add(taken / 2), real);
            }
        }
        let (_, now, real) = best;
        // Seconds and the rest are computed apart: a product of both would overflow.
        let mut offset_s = (real / NSEC_PER_SEC) as i64 - (now / frequency) as i64;
        let mut offset =
            (real % NSEC_PER_SEC * frequency / NSEC_PER_SEC) as i64 - (now % frequency) as i64;
        if offset < 0 {
            offset_s -= 1;
            offset += frequency as i64;
        }
        tsdl::Clock {
            name: "monotonic",
            description: match self {
                Self::Tsc { .. } => "Time stamp counter",
                Self::Monotonic => "Monotonic clock",
            },
            uuid: boot_id,
            frequency,
            offset_s,
            offset: offset as u64,
        }
    }
}

/// The time of a trace: a reading of its clock, plus the ticks that the clock has missed since the trace
/// began, because the machine slept or the time stamp counter started over. It ends at the trace's stop.
pub(crate) struct TraceTime {
    clock: ClockKind,
    missed: SharedWord,
    /// Time of the stop; `u64::MAX` before.
    stop: SharedWord,
    /// The same; `u64::MAX` until all records are complete.
    end: SharedWord,
}

impl TraceTime {
    /// Of a trace that begins now.
    pub(crate) fn new(clock: ClockKind) -> Self {
        Self {
            clock,
            missed: SharedWord::new(0),
            stop: SharedWord::new(u64::MAX),
            end: SharedWord::new(u64::MAX),
        }
    }

    /// Number of missed ticks. Any context, NMI included.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load()
    }

    /// The current time, as records have it.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now().wrapping_add(self.missed())
    }

    /// Notes that the trace stops now, unless it has stopped before. The caller has closed the gates. A context
    /// that is inside may still record, at a later time. Any context, NMI included.
    pub(crate) fn stop(&self) {
        self.stop.compare_exchange(u64::MAX, self.now());
    }

    /// Whether the trace has stopped. Any context, NMI included.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load() != u64::MAX
    }

    /// Ends the trace at its stop. All records are complete.
    pub(crate) fn end_at_stop(&self) {
        self.end.store(self.stop.load());
    }

    /// The end of the trace; `u64::MAX` before [`end_at_stop`](Self::end_at_stop). Any context, NMI included.
    pub(super) fn end(&self) -> u64 {
        self.end.load()
    }
}

/// Corrects the times of a trace after leaps of its clock.
pub(crate) struct ClockFollower {
    time: Arc<TraceTime>,
    channels: KVec<Arc<Channel>>,
}

impl ClockFollower {
    /// Follows the clock for the channels of a trace. Their buffers add the missed ticks to the clock's readings.
    pub(crate) fn new(time: &Arc<TraceTime>, channels: &[Arc<Channel>]) -> Result<Self> {
        let mut all = KVec::with_capacity(channels.len(), GFP_KERNEL)?;
        for channel in channels {
            all.push(channel.clone(), GFP_KERNEL)?;
        }
        Ok(Self {
            time: time.clone(),
            channels: all,
        })
    }
}

impl clock::FollowClock for ClockFollower {
    fn leapt(&self, leap: &Leap) {
        let more = match self.time.clock {
            ClockKind::Tsc { .. } => leap.ticks,
            ClockKind::Monotonic => leap.slept,
        };
        if more != 0 {
            let missed = &self.time.missed;
            missed.store(missed.load().wrapping_add(more));
            // Set after the ticks, so that each stopped context adds them.
            for channel in &self.channels {
                channel.watch_gates();
            }
        }
    }
}
