// SPDX-License-Identifier: GPL-2.0

//! From a declaration to a probe and a description.

use crate::abi::schema::Field;
use crate::probe::handlers::Handlers;
use crate::probe::Probe;
use crate::sys::tracepoint::Handler;

/// A declared event.
pub(crate) struct Declaration {
    /// Subsystem: the directory below `events/`.
    pub(crate) subsystem: &'static str,
    /// Name, as viewers of traces know it.
    pub(crate) name: &'static str,
    /// The kernel's tracepoint.
    pub(crate) tracepoint: &'static str,
    /// Fields, in the order of the record.
    pub(crate) fields: &'static [Field<'static>],
    /// Whether the event is recorded when nothing else was asked for.
    pub(crate) default: bool,
    /// The event's handlers, one for each format.
    pub(crate) handlers: Handlers<Probe>,
    /// The handler for probes that must look at something before they record.
    pub(crate) looking: Handler<Probe>,
    /// The handler for probes of maps.
    pub(crate) updating: Handler<Probe>,
}

/// Declares an event as a `Declaration` constant.
///
/// ```ignore
/// event! {
///     /// When the event happens, and what for.
///     SCHED_SWITCH: sched "sched_switch" = sched_switch(_preempt: bool, prev: &Task) {
///         prev_tid: i32 = prev.tid(),
///     }
/// }
/// ```
///
/// The parts are: the constant, the subsystem, the event's name, the tracepoint with its arguments, and the
/// fields with the expressions that read them. `string name = EXPR` may follow the fields: a field of bytes
/// (`&[u8]` without NUL) whose length varies; `EXPR` is evaluated before space is reserved. `optional` in front
/// keeps the event out of the default set.
macro_rules! event {
    (
        $(#[$doc:meta])*
        $constant:ident: $subsystem:ident $name:literal =
            $tracepoint:ident($($arg:ident: $ty:ty),*) $fields:tt $(string $tail:ident = $value:expr)?
    ) => {
        event! { @declare [$(#[$doc])*] $constant $subsystem $name true
            $tracepoint [$($arg: $ty),*] $fields [$($tail = $value)?] }
    };
    (
        $(#[$doc:meta])*
        optional $constant:ident: $subsystem:ident $name:literal =
            $tracepoint:ident($($arg:ident: $ty:ty),*) $fields:tt $(string $tail:ident = $value:expr)?
    ) => {
        event! { @declare [$(#[$doc])*] $constant $subsystem $name false
            $tracepoint [$($arg: $ty),*] $fields [$($tail = $value)?] }
    };
    (@declare
        [$(#[$doc:meta])*] $constant:ident $subsystem:ident $name:literal $default:literal
        $tracepoint:ident [$($arg:ident: $ty:ty),*]
        { $($field:ident: $fty:ty = $read:expr),* $(,)? } [$($tail:ident = $value:expr)?]
    ) => {
        $(#[$doc])*
        pub(super) const $constant: $crate::source::typed::Declaration = {
            use $crate::channel::Entry;
            use $crate::record::format::Format;
            use $crate::record::memory::{RecordWriter, Tail};
            use $crate::record::clock::ClockSource;

            const FIXED: u64 = 0 $(+ ::core::mem::size_of::<$fty>() as u64)*;
            // A string has a NUL at least.
            const LEAST: u64 = FIXED $(+ { stringify!($tail); 1 })?;
            const CAPACITY: usize =
                FIXED as usize $(+ { stringify!($tail); $crate::record::memory::TEXT_MAX + 1 })?;

            // This function cannot be probed: a kprobe on a probe could fire the probe.
            #[link_section = ".kprobes.text"]
            extern "C" fn probe<F: Format>(probe: &$crate::probe::Probe $(, $arg: $ty)*) {
                let entered = match probe.enter() {
                    Ok(entered) => entered,
                    Err(stopped) => return admit::<F>(probe $(, $arg)*, stopped),
                };
                if F::Clock::IS_CALL {
                    record_with_call::<F>(probe $(, $arg)*, entered);
                } else {
                    record::<F>(probe $(, $arg)*, entered);
                }
            }

            $crate::probe::handlers::recording!(
                probe [$($arg: $ty),*],
                least: LEAST,
                payload: event!(@payload [$($value)?] [$($fty = $read),*]),
                looking: looking(probe $(, $arg)*),
            );

            // This function is separate, so that the registers that a call needs are saved only where a call is
            // made.
            #[inline(never)]
            #[link_section = ".kprobes.text"]
            fn record_with_call<F: Format>(
                probe: &$crate::probe::Probe $(, $arg: $ty)*, entered: Entry<'_>
            ) {
                record::<F>(probe $(, $arg)*, entered);
            }

            // This handler serves all formats.
            #[link_section = ".kprobes.text"]
            extern "C" fn looking(probe: &$crate::probe::Probe $(, $arg: $ty)*) {
                probe.handle_or(
                    #[inline(always)]
                    || event!(@about [$($field: $fty = $read),*]),
                    #[inline(always)]
                    |at| event!(@number at [$($fty = $read),*]),
                    #[inline(always)]
                    || event!(@payload [$($value)?] [$($fty = $read),*]),
                    #[inline(always)]
                    || handle_list(probe $(, $arg)*),
                    #[inline(always)]
                    || handle_any(probe $(, $arg)*),
                );
            }

            // The arguments are those of the handler, so that nothing has to be moved to get here.
            #[inline(never)]
            #[link_section = ".kprobes.text"]
            fn handle_list(probe: &$crate::probe::Probe $(, $arg: $ty)*) {
                let (len, write) = event!(@payload [$($value)?] [$($fty = $read),*]);
                probe.handle_list::<CAPACITY>(0, len, write);
            }

            #[cold]
            #[inline(never)]
            #[link_section = ".kprobes.text"]
            fn handle_any(probe: &$crate::probe::Probe $(, $arg: $ty)*) {
                use $crate::sys::tracepoint::Arg;
                let about = [$(Arg::task(&$arg)),*];
                let (len, write) = event!(@payload [$($value)?] [$($fty = $read),*]);
                probe.handle_any::<CAPACITY>(0, &about, len, write);
            }

            // This handler is for maps. It tail-calls one of two functions, or updates the map itself.
            #[link_section = ".kprobes.text"]
            extern "C" fn updating(probe: &$crate::probe::Probe $(, $arg: $ty)*) {
                probe.update_single_or(
                    #[inline(always)]
                    |at| event!(@words at [$($fty = $read),*]),
                    #[inline(always)]
                    || update(probe $(, $arg)*),
                );
            }

            #[inline(never)]
            #[link_section = ".kprobes.text"]
            fn update(probe: &$crate::probe::Probe $(, $arg: $ty)*) {
                probe.update_or(
                    #[inline(always)]
                    || event!(@about [$($field: $fty = $read),*]),
                    #[inline(always)]
                    |at| event!(@number at [$($fty = $read),*]),
                    #[inline(always)]
                    |at| event!(@words at [$($fty = $read),*]),
                    #[inline(always)]
                    || looking(probe $(, $arg)*),
                );
            }

            $crate::source::typed::Declaration {
                subsystem: stringify!($subsystem),
                name: $name,
                tracepoint: stringify!($tracepoint),
                fields: &[
                    $($crate::abi::schema::Field {
                        name: stringify!($field),
                        ty: <$fty as $crate::source::field::FieldValue>::TYPE,
                    },)*
                    $($crate::abi::schema::Field {
                        name: stringify!($tail),
                        ty: $crate::abi::schema::FieldType::String,
                    },)?
                ],
                default: $default,
                handlers: event!(@handlers $tracepoint $($arg)*),
                looking: event!(@handler looking $tracepoint $($arg)*),
                updating: event!(@handler updating $tracepoint $($arg)*),
            }
        };
    };
    // The size of the payload, and a function that writes it. Fields are read and written one by one, so that no values
    // have to be kept.
    (@payload [$($value:expr)?] [$($fty:ty = $read:expr),*]) => {{
        let tail = event!(@tail $($value)?);
        (
            FIXED.wrapping_add(tail.len() as u64),
            #[inline(always)]
            move |to: RecordWriter<'_>| to$(.put::<$fty>($read))*.put_tail(&tail),
        )
    }};
    // The id of the task that the event is about.
    (@about [$($field:ident: $fty:ty = $read:expr),*]) => {{
        let about: Option<i32> = None;
        $(
            let about = if const { $crate::source::field::is_about(stringify!($field)) } {
                about.or_else(|| <$fty as $crate::source::field::FieldValue>::task_id($read))
            } else {
                about
            };
        )*
        about
    }};
    // The number at an offset of the record, if a field is one.
    (@number $at:ident [$($fty:ty = $read:expr),*]) => {{
        let place = 0_usize;
        $(
            if $at == place {
                return $crate::record::memory::word::<$fty>($read);
            }
            let place = place.wrapping_add(::core::mem::size_of::<$fty>());
        )*
        let _ = (place, $at);
        None
    }};
    // The words of the field at an offset, for a map.
    (@words $at:ident [$($fty:ty = $read:expr),*]) => {{
        let place = 0_usize;
        $(
            if $at == place {
                return <$fty as $crate::source::field::FieldValue>::words($read);
            }
            let place = place.wrapping_add(::core::mem::size_of::<$fty>());
        )*
        let _ = (place, $at);
        None
    }};
    (@tail) => { () };
    (@tail $value:expr) => { $crate::record::memory::CutText($value) };
    (@handlers $tp:ident $($arg:ident)*) => {
        ::kernel::macros::paste! {
            $crate::probe::handlers::handlers!(
                [$($arg)*], probe, $crate::sys::bindings::[<__traceiter_ $tp>]
            )
        }
    };
    (@handler $handler:ident $tp:ident $($arg:ident)*) => {
        ::kernel::macros::paste! {
            $crate::probe::handlers::handler!(
                [$($arg)*], $handler, $crate::sys::bindings::[<__traceiter_ $tp>]
            )
        }
    };
}
