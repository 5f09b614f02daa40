// SPDX-License-Identifier: GPL-2.0

//! The header of every event: its number and its time.
//!
//! There are two layouts, LTTng's, byte-packed and little endian. A trace uses one of them, chosen
//! when it starts: [`COMPACT`](Layout::Compact) if the ids of all enabled events fit, else
//! [`LARGE`](Layout::Large). Both can hold any id and any time: if the short form cannot, the
//! extended form follows an escape id.

/// Layout of the event headers of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `u32`: id in bits 0-4, the clock's low 27 bits in bits 5-31. Escape id 31: one byte,
    /// then `u32` id, `u64` clock.
    Compact,
    /// `u16` id, the clock's low 32 bits. Escape id 65535: then `u32` id, `u64` clock.
    Large,
}

/// Bits of the id in the compact form.
pub const COMPACT_ID_BITS: u32 = 5;
/// Bits of the clock in the compact form.
pub const COMPACT_TIME_BITS: u32 = 27;
/// The id that announces the extended form of a compact header; ids below it fit.
pub const COMPACT_ESCAPE: u32 = 31;
/// Bytes of the compact form.
pub const COMPACT_SIZE: usize = 4;
/// Bytes of the compact header's extended form: `u8` escape, `u32` id, `u64` clock.
pub const COMPACT_EXTENDED_SIZE: usize = 13;

/// Bits of the clock in the large form.
pub const LARGE_TIME_BITS: u32 = 32;
/// The id that announces the extended form of a large header; ids below it fit.
pub const LARGE_ESCAPE: u32 = 65535;
/// The id of the marker event in every stream: the last one that fits the short large form.
pub const MARKER_ID: u32 = LARGE_ESCAPE - 1;
/// The id of the stack event in every stream. Selectable events have ids below it.
pub const STACK_ID: u32 = MARKER_ID - 1;
/// Bytes of the large form.
pub const LARGE_SIZE: usize = 6;
/// Bytes of the large header's extended form: `u16` escape, `u32` id, `u64` clock.
pub const LARGE_EXTENDED_SIZE: usize = 14;
