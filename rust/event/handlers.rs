// SPDX-License-Identifier: GPL-2.0

//! A probe for each [`format`](crate::record::format) that a trace can have, to choose from.

use crate::abi::header::Layout;
use crate::channel::clock::ClockKind;
use crate::channel::Setup;
use crate::sys::tracepoint::Handler;

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
        use $crate::event::handlers::Handlers;
        use $crate::record::format;
        use $crate::sys::tracepoint::Handler;
        Handlers {
            compact_tsc: Handler::$new($probe::<format::CompactTsc>, $prototype),
            compact_monotonic: Handler::$new($probe::<format::CompactMonotonic>, $prototype),
            large_tsc: Handler::$new($probe::<format::LargeTsc>, $prototype),
            large_monotonic: Handler::$new($probe::<format::LargeMonotonic>, $prototype),
        }
    }};
}
pub(crate) use handlers;
