// SPDX-License-Identifier: GPL-2.0

//! Writing the header of an event; [`crate::abi::header`] has the layouts.

use super::memory::{payload, Memory};
use crate::abi::header as abi;

/// A layout of event headers. Probes are compiled for each, so that none asks which.
pub(crate) trait EventHeader {
    /// Bytes of the short form.
    const SHORT: u64;
    /// Bytes of the extended form.
    const EXTENDED: u64;

    /// Whether the short form can say that `id` happened this long after the record before.
    fn is_enough(id: u32, since_last: u64) -> bool;

    /// Writes the short form.
    fn write_short(memory: &Memory, at: u64, id: u32, time: u64);

    /// Writes the extended form.
    fn write_extended(memory: &Memory, at: u64, id: u32, time: u64);
}

/// [`Layout::Compact`](abi::Layout::Compact).
pub(crate) struct Compact;

/// [`Layout::Large`](abi::Layout::Large).
pub(crate) struct Large;

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
    fn is_enough(id: u32, since_last: u64) -> bool {
        since_last >> abi::COMPACT_TIME_BITS == 0 && id < abi::COMPACT_ESCAPE
    }

    #[inline(always)]
    fn write_short(memory: &Memory, at: u64, id: u32, time: u64) {
        memory.write(at, (time as u32) << abi::COMPACT_ID_BITS | id);
    }

    fn write_extended(memory: &Memory, at: u64, id: u32, time: u64) {
        let escape = abi::COMPACT_ESCAPE as u8;
        memory.write(at, CompactExtended { escape, id, time });
    }
}

impl EventHeader for Large {
    const SHORT: u64 = abi::LARGE_SIZE as u64;
    const EXTENDED: u64 = abi::LARGE_EXTENDED_SIZE as u64;

    #[inline(always)]
    fn is_enough(id: u32, since_last: u64) -> bool {
        since_last >> abi::LARGE_TIME_BITS == 0 && id < abi::LARGE_ESCAPE
    }

    #[inline(always)]
    fn write_short(memory: &Memory, at: u64, id: u32, time: u64) {
        let (id, time) = (id as u16, time as u32);
        memory.write(at, LargeShort { id, time });
    }

    fn write_extended(memory: &Memory, at: u64, id: u32, time: u64) {
        let escape = abi::LARGE_ESCAPE as u16;
        memory.write(at, LargeExtended { escape, id, time });
    }
}
