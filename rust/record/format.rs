// SPDX-License-Identifier: GPL-2.0

//! What a trace's records are made of: an event header and a clock.
//!
//! Both are fixed when a trace starts. Probes are compiled for each combination and the right
//! one is attached, so that the hot path asks neither.

use super::clock::{ClockKind, ClockSource, Monotonic, Tsc};
use super::header::{Compact, EventHeader, Large};
use crate::abi::header::Layout;
use crate::channel::Setup;
use crate::sys::tracepoint::Handler;

/// A combination.
pub(crate) trait Format {
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
pub(crate) type CompactTsc = (Compact, Tsc);
/// Compact headers, monotonic clock.
pub(crate) type CompactMonotonic = (Compact, Monotonic);
/// Large headers, time stamp counter.
pub(crate) type LargeTsc = (Large, Tsc);
/// Large headers, monotonic clock.
pub(crate) type LargeMonotonic = (Large, Monotonic);

/// A probe, compiled for each format.
pub(crate) struct Handlers<D> {
    pub(crate) compact_tsc: Handler<D>,
    pub(crate) compact_monotonic: Handler<D>,
    pub(crate) large_tsc: Handler<D>,
    pub(crate) large_monotonic: Handler<D>,
}

impl<D> Handlers<D> {
    /// The one for a trace that is set up so.
    pub(crate) fn select(&self, setup: &Setup) -> Handler<D> {
        match (setup.layout, setup.clock) {
            (Layout::Compact, ClockKind::Tsc { .. }) => self.compact_tsc,
            (Layout::Compact, ClockKind::Monotonic) => self.compact_monotonic,
            (Layout::Large, ClockKind::Tsc { .. }) => self.large_tsc,
            (Layout::Large, ClockKind::Monotonic) => self.large_monotonic,
        }
    }
}

/// Compiles `$probe`, a function that is generic over a [`Format`], for each of them. `$new` is
/// the constructor of [`Handler`] for its number of arguments, `$prototype` its tracepoint's.
macro_rules! handlers {
    ($new:ident, $probe:ident, $prototype:path) => {{
        use $crate::record::format;
        use $crate::sys::tracepoint::Handler;
        format::Handlers {
            compact_tsc: Handler::$new($probe::<format::CompactTsc>, $prototype),
            compact_monotonic: Handler::$new($probe::<format::CompactMonotonic>, $prototype),
            large_tsc: Handler::$new($probe::<format::LargeTsc>, $prototype),
            large_monotonic: Handler::$new($probe::<format::LargeMonotonic>, $prototype),
        }
    }};
}
pub(crate) use handlers;
