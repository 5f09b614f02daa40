// SPDX-License-Identifier: GPL-2.0

//! Format of a trace's records: an event header and a clock.
//!
//! Both are fixed when a trace starts. Probes are compiled for each combination, and the matching
//! one is attached. So the hot path tests neither.

use super::clock::{ClockSource, Monotonic, Tsc};
use super::header::{Compact, EventHeader, Large};

/// A combination of header and clock.
pub trait Format {
    /// The event header.
    type Header: EventHeader;
    /// The clock.
    type Clock: ClockSource;
}

impl<H: EventHeader, C: ClockSource> Format for (H, C) {
    type Header = H;
    type Clock = C;
}

/// Compact headers, time stamp counter.
pub type CompactTsc = (Compact, Tsc);
/// Compact headers, monotonic clock.
pub type CompactMonotonic = (Compact, Monotonic);
/// Large headers, time stamp counter.
pub type LargeTsc = (Large, Tsc);
/// Large headers, monotonic clock.
pub type LargeMonotonic = (Large, Monotonic);
