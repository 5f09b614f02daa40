// SPDX-License-Identifier: GPL-2.0

//! Writers of event headers; [`abi::header`](super::abi::header) has the layouts.

use super::abi::header as abi;
use super::memory::{payload, Payload, RecordWriter};

/// A layout of event headers.
pub trait EventHeader {
    /// Size of the short form in bytes.
    const SHORT: u64;
    /// Size of the extended form in bytes.
    const EXTENDED: u64;

    /// Limit of the time since the previous record, below which an event may have the short form. 0
    /// if the short form has no room for `id`.
    fn span(id: u32) -> u64;

    /// Writes the short form.
    fn write_short(to: RecordWriter<'_>, id: u32, time: u64) -> RecordWriter<'_>;

    /// Writes the extended form.
    fn write_extended(to: RecordWriter<'_>, id: u32, time: u64) -> RecordWriter<'_>;
}

/// The part of an event that its header contains.
#[derive(Clone, Copy)]
pub struct RecordLabel {
    /// The event's number in the trace.
    pub id: u32,
    /// [`EventHeader::span`] of `id`.
    span: u64,
}

impl RecordLabel {
    /// Makes the label of event `id` in a trace with headers `H`.
    #[inline(always)]
    pub fn new<H: EventHeader>(id: u32) -> Self {
        Self {
            id,
            span: H::span(id),
        }
    }

    /// Makes the label of event `id` in a trace with headers of `layout`.
    pub fn in_layout(id: u32, layout: abi::Layout) -> Self {
        match layout {
            abi::Layout::Compact => Self::new::<Compact>(id),
            abi::Layout::Large => Self::new::<Large>(id),
        }
    }

    /// Returns whether the short form is enough for an event this long after the previous record.
    #[inline(always)]
    pub(super) fn is_short(&self, since_last: u64) -> bool {
        since_last < self.span
    }
}

/// [`Layout::Compact`](abi::Layout::Compact).
pub struct Compact;

/// [`Layout::Large`](abi::Layout::Large).
pub struct Large;

payload! {
    struct CompactExtended { escape: u8, id: u32, time: u64 }
}

payload! {
    struct LargeShort { id: u16, time: u32 }
}

payload! {
    struct LargeExtended { escape: u16, id: u32, time: u64 }
}

impl EventHeader for Compact {
    const SHORT: u64 = abi::COMPACT_SIZE as u64;
    const EXTENDED: u64 = abi::COMPACT_EXTENDED_SIZE as u64;

    #[inline(always)]
    fn span(id: u32) -> u64 {
        if id < abi::COMPACT_ESCAPE {
            1 << abi::COMPACT_TIME_BITS
        } else {
            0
        }
    }

    #[inline(always)]
    fn write_short(to: RecordWriter<'_>, id: u32, time: u64) -> RecordWriter<'_> {
        to.put(((time as u32) << abi::COMPACT_ID_BITS) | id)
    }

    fn write_extended(to: RecordWriter<'_>, id: u32, time: u64) -> RecordWriter<'_> {
        let escape = abi::COMPACT_ESCAPE as u8;
        to.put(CompactExtended { escape, id, time })
    }
}

impl EventHeader for Large {
    const SHORT: u64 = abi::LARGE_SIZE as u64;
    const EXTENDED: u64 = abi::LARGE_EXTENDED_SIZE as u64;

    #[inline(always)]
    fn span(id: u32) -> u64 {
        if id < abi::LARGE_ESCAPE {
            1 << abi::LARGE_TIME_BITS
        } else {
            0
        }
    }

    #[inline(always)]
    fn write_short(to: RecordWriter<'_>, id: u32, time: u64) -> RecordWriter<'_> {
        let (id, time) = (id as u16, time as u32);
        to.put(LargeShort { id, time })
    }

    fn write_extended(to: RecordWriter<'_>, id: u32, time: u64) -> RecordWriter<'_> {
        let escape = abi::LARGE_ESCAPE as u16;
        to.put(LargeExtended { escape, id, time })
    }
}
