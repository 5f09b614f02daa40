// SPDX-License-Identifier: GPL-2.0

//! Writing the header of an event; [`abi::header`](super::abi::header) has the layouts.

use super::abi::header as abi;
use super::memory::{payload, Payload, RecordWriter};

/// A layout of event headers.
pub trait EventHeader {
    /// Bytes of the short form.
    const SHORT: u64;
    /// Bytes of the extended form.
    const EXTENDED: u64;

    /// How long after the record before it an event may come and still have the short form; 0
    /// if `id` does not fit it.
    fn span(id: u32) -> u64;

    /// Writes the short form.
    fn write_short(to: RecordWriter<'_>, id: u32, time: u64) -> RecordWriter<'_>;

    /// Writes the extended form.
    fn write_extended(to: RecordWriter<'_>, id: u32, time: u64) -> RecordWriter<'_>;
}

/// What of an event goes into its header.
#[derive(Clone, Copy)]
pub struct Label {
    /// The event's number in the trace.
    pub id: u32,
    /// [`EventHeader::span`] of it.
    span: u64,
}

impl Label {
    /// The label of the event that is `id` in a trace with these headers.
    #[inline(always)]
    pub fn new<H: EventHeader>(id: u32) -> Self {
        Self {
            id,
            span: H::span(id),
        }
    }

    /// The label in a trace with headers of `layout`.
    pub fn in_layout(id: u32, layout: abi::Layout) -> Self {
        match layout {
            abi::Layout::Compact => Self::new::<Compact>(id),
            abi::Layout::Large => Self::new::<Large>(id),
        }
    }

    /// Whether the short form is enough this long after the record before.
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
