// SPDX-License-Identifier: GPL-2.0

//! Reads a trace: CTF 1.8, in the subset that rtrace writes.
//!
//! [`Trace`] is the directory, [`Metadata`] its description, [`StreamReader`] goes through
//! one stream packet by packet, [`Events`] through a packet event by event, [`Merge`] through
//! all streams by time. One packet of a stream is in memory at a time. [`Feed`] is as `Merge`, for packets
//! that come while the trace is recorded. Whatever the bytes are, the
//! answer is a value or an [`Error`] with file and offset.
//!
//! [`Error`]: crate::Error

mod areas;
mod event;
mod feed;
mod field;
mod header;
mod item;
mod lexer;
mod link;
mod merge;
mod metadata;
mod prefix;
mod stream;
mod trace;
mod tree;
mod value_name;

pub use areas::{Area, Areas};
pub use event::{Event, Events};
pub use feed::Feed;
pub use field::{Integers, Value};
pub(crate) use header::{decode, encode};
pub use header::{PacketAt, PacketHeaders};
pub use item::Item;
pub use merge::Merge;
pub use metadata::{Clock, EventLayout, FieldLayout, Label, Metadata, StreamClass, Type};
pub use prefix::Prefix;
pub use stream::{Packet, StreamReader};
pub use trace::{name_of, Trace};
