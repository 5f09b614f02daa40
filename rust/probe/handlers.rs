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

/// Defines how a handler with these arguments records an event: `record` in the common case; in functions of their own
/// `admit`, if the handler was stopped at the gate, and `record_any`. All have the arguments of the handler, so that
/// nothing has to be moved to get there.
///
/// `least` is the smallest size of the fields. `payload` is their size and a function that writes them. `looking`
/// handles an event of a probe that must look first.
macro_rules! recording {
    (
        $probe:ident [$($arg:ident: $ty:ty),*],
        least: $least:expr, payload: $payload:expr, looking: $looking:expr $(,)?
    ) => {
        #[inline(always)]
        fn record<F: $crate::record::format::Format>(
            $probe: &$crate::probe::Probe $(, $arg: $ty)*, entered: $crate::channel::Entry<'_>
        ) {
            let recorded = $crate::channel::Buffer::record_open::<F, _>(
                entered,
                &$probe.label,
                #[inline(always)]
                || $payload,
            );
            if let Err(entered) = recorded {
                record_any::<F>($probe $(, $arg)*, entered);
            }
        }

        #[cold]
        #[inline(never)]
        #[link_section = ".kprobes.text"]
        fn admit<F: $crate::record::format::Format>(
            $probe: &$crate::probe::Probe $(, $arg: $ty)*, stopped: $crate::channel::Stopped<'_>
        ) {
            let entered = match stopped.pass() {
                Ok(entered) => entered,
                Err(stopped) => return closed($probe $(, $arg)*, stopped),
            };
            let short = <F::Header as $crate::record::header::EventHeader>::SHORT;
            let least = short.wrapping_add($least);
            if let Some(entered) = $crate::channel::Buffer::admit(entered, least) {
                record_any::<F>($probe $(, $arg)*, entered);
            }
        }

        // Handles an event that found the gate closed.
        #[cold]
        #[inline(never)]
        #[link_section = ".kprobes.text"]
        fn closed(
            $probe: &$crate::probe::Probe $(, $arg: $ty)*, stopped: $crate::channel::Stopped<'_>
        ) {
            if $probe.must_look(stopped) {
                $looking;
            }
        }

        #[cold]
        #[inline(never)]
        fn record_any<F: $crate::record::format::Format>(
            $probe: &$crate::probe::Probe $(, $arg: $ty)*, entered: $crate::channel::Entry<'_>
        ) {
            $crate::channel::Buffer::record_any::<F, _>(
                entered,
                &$probe.label,
                #[inline(always)]
                || $payload,
            );
        }
    };
}
pub(crate) use recording;
