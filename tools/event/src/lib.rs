// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Events of a Rust program, for rtrace.
//!
//! ```
//! use rtrace_event::event;
//!
//! let (status, path) = (200, "/cart");
//! event!(shop:request, status: u32 = status, path: string = path);
//! ```
//!
//! [`event!`] declares an event and records it, as `user.shop:request`. While nobody records it, it tests a word, and does
//! not evaluate the values. The program registers its events before `main()`; without rtrace it works, and records
//! nothing. It needs no thread and no allocation, also in the handler of a signal.
//!
//! A record goes into a ring in memory that the program and rtrace's module share, without a call. It is written in one
//! restartable sequence (rseq), which ends with the store of the ring's head. So it exists completely or not at all.
//! write(2) records the event where there is no ring: on other processors than x86-64 and arm64, without rseq in the C
//! library (glibc before 2.35, musl), or if the recording needs more than a ring has, such as call stacks.
//!
//! With the feature `tracing`, `layer()` records the events and spans of the crate `tracing`.
//!
//! # Limits
//!
//! - A text has at most 511 bytes, and ends at its first NUL. The fields of a record have at most 1008 bytes; a record with
//!   more is counted as [`lost`].
//! - A child of vfork(2) may only call exec or _exit, as POSIX says. It must not record.
//! - A library that is unloaded by dlclose(3) must not be recording, also not at the end of the process.
//! - A debugger that steps through the restartable sequence does not get to its end; after 100 attempts write(2) records
//!   the event.

mod emit;
mod event;
mod process;
mod record;
mod ring;

#[cfg(feature = "tracing")]
mod callsites;
#[cfg(feature = "tracing")]
mod layer;
#[cfg(feature = "tracing")]
mod names;
#[cfg(feature = "tracing")]
mod shapes;

pub use emit::lost;
pub use event::Event;
pub use record::Record;

#[cfg(feature = "tracing")]
pub use layer::{layer, Layer, Listening};

/// Declares an event, and records it: `event!(PROVIDER:NAME, FIELD: TYPE = VALUE, ...)`.
///
/// The types are `u8` to `u64`, `s8` to `s64`, `x8` to `x64` (unsigned, shown in hexadecimal) and `string`, whose value is
/// anything that is `AsRef<[u8]>`: `&str`, `String`, `&[u8]`. An event has at most 32 fields. The values are evaluated only
/// while the event is recorded.
///
/// The same event may be recorded in several places, with the same fields.
///
/// ```
/// # use rtrace_event::event;
/// # fn expensive() -> u64 { 1 }
/// event!(shop:start);
/// event!(shop:stock, items: u64 = expensive(), temperature: s32 = -4, flags: x8 = 0x1f);
/// ```
///
/// A name that is too long for rtrace is refused when the program is compiled:
///
/// ```compile_fail
/// rtrace_event::event!(shop:a_name_that_has_more_than_the_sixty_three_bytes_that_rtrace_lets_a_name_have);
/// ```
#[macro_export]
macro_rules! event {
    ($provider:ident : $name:ident $(, $field:ident : $type:ident = $value:expr)* $(,)?) => {{
        static EVENT: $crate::Event = $crate::Event::new($crate::__text!($provider $name $($type $field)*));
        const _: () = {
            extern "C" fn register() {
                EVENT.register();
            }
            #[used]
            #[link_section = ".init_array"]
            static REGISTER: extern "C" fn() = register;
        };
        if EVENT.is_recorded() {
            #[allow(unused_mut)]
            let mut record = $crate::Record::new();
            $($crate::__put!(record $type $value);)*
            EVENT.record(&mut record);
        }
    }};
}

/// The text that registers an event.
#[doc(hidden)]
#[macro_export]
macro_rules! __text {
    ($provider:ident $name:ident) => {
        $crate::__text!(@ $provider $name "")
    };
    ($provider:ident $name:ident $first_type:ident $first:ident $($type:ident $field:ident)*) => {{
        $crate::__text!(# $first $($field)*);
        $crate::__text!(@ $provider $name concat!(
            " ", stringify!($first_type), " ", stringify!($first)
            $(, "; ", stringify!($type), " ", stringify!($field))*
        ))
    }};
    (# $($field:ident)*) => {
        $(const _: () = {
            assert!(stringify!($field).len() <= 31, "the field's name has more than 31 bytes");
            assert!(stringify!($field).as_bytes()[0] != b'_', "the field's name begins with `_`");
        };)*
    };
    (@ $provider:ident $name:ident $fields:expr) => {{
        const _: () = {
            assert!(stringify!($provider).len() <= 58, "the provider's name has more than 58 bytes");
            assert!(stringify!($name).len() <= 63, "the event's name has more than 63 bytes");
        };
        concat!(stringify!($provider), ":", stringify!($name), $fields, "\0")
    }};
}

/// Appends a field to a record.
#[doc(hidden)]
#[macro_export]
macro_rules! __put {
    ($record:ident u8 $value:expr) => { $crate::__put!(@ $record u8 $value) };
    ($record:ident u16 $value:expr) => { $crate::__put!(@ $record u16 $value) };
    ($record:ident u32 $value:expr) => { $crate::__put!(@ $record u32 $value) };
    ($record:ident u64 $value:expr) => { $crate::__put!(@ $record u64 $value) };
    ($record:ident s8 $value:expr) => { $crate::__put!(@ $record i8 $value) };
    ($record:ident s16 $value:expr) => { $crate::__put!(@ $record i16 $value) };
    ($record:ident s32 $value:expr) => { $crate::__put!(@ $record i32 $value) };
    ($record:ident s64 $value:expr) => { $crate::__put!(@ $record i64 $value) };
    ($record:ident x8 $value:expr) => { $crate::__put!(@ $record u8 $value) };
    ($record:ident x16 $value:expr) => { $crate::__put!(@ $record u16 $value) };
    ($record:ident x32 $value:expr) => { $crate::__put!(@ $record u32 $value) };
    ($record:ident x64 $value:expr) => { $crate::__put!(@ $record u64 $value) };
    ($record:ident string $value:expr) => {
        $record.put_text(AsRef::<[u8]>::as_ref(&$value))
    };
    ($record:ident $other:ident $value:expr) => {
        compile_error!(concat!(
            "`", stringify!($other), "` is no type of a field: u8 to u64, s8 to s64, x8 to x64, string"
        ))
    };
    (@ $record:ident $type:ident $value:expr) => { $record.put(&$type::to_ne_bytes($value)) };
}
