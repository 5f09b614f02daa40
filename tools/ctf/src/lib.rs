// SPDX-License-Identifier: GPL-2.0

//! Reads a trace: CTF 1.8, in the subset that rtrace writes.
//!
//! [`Metadata`] is the description of a trace. [`StreamReader`] reads one stream packet by packet, [`Events`] a
//! packet event by event, [`Merge`] all streams by time, and [`Feed`] passes packets to it that arrive while the trace is
//! recorded. For any bytes the result is a value or an [`Error`] with file and offset. Reader and merge
//! continue after a damaged place ([`Damage`]).
//!
//! [`WINDOW`] bytes of each stream are in memory, and of one stream at a time up to [`LONGEST_EVENT`], whatever sizes
//! the files claim.
//!
//! [`Error`]: system::Error

#![forbid(unsafe_code)]

mod areas;
mod arrived;
mod batch;
mod bytes;
mod damage;
mod event;
mod feed;
mod field;
mod foreign;
mod found;
mod header;
mod item;
mod latency;
mod layouts;
mod lexer;
mod link;
mod merge;
mod metadata;
mod pool;
mod prefix;
mod selection;
mod source;
mod stream;
mod stream_name;
pub mod tree;
mod value_name;

pub use areas::{Area, Areas};
pub use damage::Damage;
pub use event::{Event, Events};
pub use feed::Feed;
pub use field::{Integers, Value};
pub use foreign::{Foreign, Packets};
pub use found::FoundEvent;
pub use header::{decode, encode, PacketAt, PacketHeaders};
pub use item::Item;
pub use latency::LatencyKind;
pub use layouts::{EventLayout, EventLayouts, FieldLayout, Label, Type};
pub use merge::Merge;
pub use metadata::{is_own, Clock, Metadata, StreamClass};
pub use prefix::Prefix;
pub use selection::Wanted;
pub use stream::{last_time, Packet, StreamReader, LONGEST_EVENT, WINDOW};
pub use stream_name::{name_of, StreamName};

/// The file that describes the trace.
pub const METADATA: &str = "metadata";
