// SPDX-License-Identifier: GPL-2.0

//! A handler for each [`format`](crate::record::format) of traces.

use crate::abi::header::Layout;
use crate::channel::clock::ClockKind;
use crate::channel::Setup;
use crate::sys::tracepoint::Handler;

/// A handler, compiled for each format.
pub(crate) struct Handlers<D> {
    pub(crate) compact_tsc: Handler<D>,
    pub(crate) compact_monotonic: Handler<D>,
    pub(crate) large_tsc: Handler<D>,
    pub(crate) large_monotonic: Handler<D>,
}

impl<D> Handlers<D> {
    /// The handler for a trace with this setup.
    pub(crate) fn select(&self, setup: &Setup) -> Handler<D> {
        match (setup.layout, setup.clock) {
            (Layout::Compact, ClockKind::Tsc { .. }) => self.compact_tsc,
            (Layout::Compact, ClockKind::Monotonic) => self.compact_monotonic,
            (Layout::Large, ClockKind::Tsc { .. }) => self.large_tsc,
            (Layout::Large, ClockKind::Monotonic) => self.large_monotonic,
        }
    }
}

/// Compiles `$probe`, a function that is generic over a [`Format`](crate::record::format::Format), for each
/// format. Otherwise as [`handler!`].
macro_rules! handlers {
    ($arguments:tt, $probe:ident, $prototype:path) => {{
        use $crate::probe::handlers::{handler, Handlers};
        use $crate::record::format::{CompactMonotonic, CompactTsc, LargeMonotonic, LargeTsc};
        Handlers {
            compact_tsc: handler!($arguments, $probe::<CompactTsc>, $prototype),
            compact_monotonic: handler!($arguments, $probe::<CompactMonotonic>, $prototype),
            large_tsc: handler!($arguments, $probe::<LargeTsc>, $prototype),
            large_monotonic: handler!($arguments, $probe::<LargeMonotonic>, $prototype),
        }
    }};
}
pub(crate) use handlers;

/// Makes a [`Handler`] of `$probe`, which has as many arguments as there are names in the brackets.
/// `$prototype` is the prototype of its tracepoint.
macro_rules! handler {
    ([], $probe:expr, $prototype:path) => {
        $crate::sys::tracepoint::Handler::new0($probe, $prototype)
    };
    ([$a:ident], $probe:expr, $prototype:path) => {
        $crate::sys::tracepoint::Handler::new1($probe, $prototype)
    };
    ([$a:ident $b:ident], $probe:expr, $prototype:path) => {
        $crate::sys::tracepoint::Handler::new2($probe, $prototype)
    };
    ([$a:ident $b:ident $c:ident], $probe:expr, $prototype:path) => {
        $crate::sys::tracepoint::Handler::new3($probe, $prototype)
    };
    ([$a:ident $b:ident $c:ident $d:ident], $probe:expr, $prototype:path) => {
        $crate::sys::tracepoint::Handler::new4($probe, $prototype)
    };
    ([$a:ident $b:ident $c:ident $d:ident $e:ident], $probe:expr, $prototype:path) => {
        $crate::sys::tracepoint::Handler::new5($probe, $prototype)
    };
    ([$a:ident $b:ident $c:ident $d:ident $e:ident $f:ident], $probe:expr, $prototype:path) => {
        $crate::sys::tracepoint::Handler::new6($probe, $prototype)
    };
}
pub(crate) use handler;
