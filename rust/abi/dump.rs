// SPDX-License-Identifier: GPL-2.0

//! The module's data for a reader of a memory dump of the kernel: the list of the buffers.
//!
//! ```text
//! Root                                in the module's data at a multiple of 64, found by its magic and its own address
//! '-> Entry -> Entry -> ...           one for each existing buffer
//!          |-> Trace -> Text           the buffer's trace; the description of its packets
//!          |-> slots                   the ring defines the words of a slot (ring/image.rs)
//!          '-> sub-buffers             those of the slots, then the reader's; or two such banks
//! ```
//!
//! An arrow is an address of the kernel; 0 is none. All numbers are in the machine's byte order,
//! which is little endian. Each change is the store of one word, so every reachable object is
//! complete at any moment. A reader of a dump must validate every value.

use super::packet::Uuid;
#[cfg(not(MODULE))]
use super::region::take;
use super::region::NAME_MAX;

/// The first bytes of a [`Root`].
pub const MAGIC: [u8; 16] = *b"rtrace buffers\x1a\n";

/// Version of this layout, and of the slots' layout.
pub const VERSION: u64 = 2;

/// Root of the list. `W` is a word that changes. It lies in one page, because a reader searches
/// page by page.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Root<W> {
    /// [`MAGIC`].
    pub magic: [u8; 16],
    /// Address of this root; at another address it is a copy.
    pub address: W,
    /// [`VERSION`].
    pub version: u64,
    /// Address of the first [`DumpEntry`].
    pub first: W,
}

/// A buffer.
#[repr(C)]
#[derive(Debug)]
pub struct DumpEntry<W> {
    /// Address of the next entry.
    pub next: W,
    /// Address of its [`DumpTrace`].
    pub trace: u64,
    /// Address of its slots.
    pub slots: W,
    /// Addresses of the sub-buffers of its two banks of memory. The buffer has the second bank for
    /// a snapshot, and afterwards one of the two.
    pub subbufs: [W; 2],
    /// Size of a sub-buffer in bytes.
    pub subbuf_size: u64,
    /// Number of sub-buffers, without the reader's.
    pub subbuf_count: u64,
    /// The CPU.
    pub cpu: u32,
    /// The channel's stream class in the metadata.
    pub stream_id: u32,
    /// The channel's name; zeros follow.
    pub name: [u8; NAME_MAX],
}

/// The trace that buffers belong to.
#[repr(C)]
#[derive(Debug)]
pub struct DumpTrace<W> {
    /// Identity of the trace.
    pub uuid: Uuid,
    /// Address of its [`DumpText`].
    pub text: W,
}

/// A trace's metadata.
#[repr(C)]
#[derive(Debug)]
pub struct DumpText {
    /// Address of the first byte.
    pub bytes: u64,
    /// Number of bytes.
    pub len: u64,
    /// [Checksum](super::region::checksum) of the bytes.
    pub sum: u64,
}

#[cfg(not(MODULE))]
impl Root<u64> {
    /// Size in bytes.
    pub const SIZE: usize = size_of::<Self>();

    /// Alignment of its address.
    pub const ALIGN: usize = align_of::<Self>();

    /// Parses the root that `bytes` begins with. [`None`]: there is none.
    pub fn parse(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        let root = Self {
            magic: take(rest)?,
            address: word(rest)?,
            version: word(rest)?,
            first: word(rest)?,
        };
        (root.magic == MAGIC).then_some(root)
    }
}

#[cfg(not(MODULE))]
impl DumpEntry<u64> {
    /// Size in bytes.
    pub const SIZE: usize = size_of::<Self>();

    /// Parses the entry that `bytes` begins with.
    pub fn parse(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        Some(Self {
            next: word(rest)?,
            trace: word(rest)?,
            slots: word(rest)?,
            subbufs: [word(rest)?, word(rest)?],
            subbuf_size: word(rest)?,
            subbuf_count: word(rest)?,
            cpu: u32::from_le_bytes(take(rest)?),
            stream_id: u32::from_le_bytes(take(rest)?),
            name: take(rest)?,
        })
    }
}

#[cfg(not(MODULE))]
impl DumpTrace<u64> {
    /// Size in bytes.
    pub const SIZE: usize = size_of::<Self>();

    /// Parses the trace that `bytes` begins with.
    pub fn parse(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        Some(Self {
            uuid: take(rest)?,
            text: word(rest)?,
        })
    }
}

#[cfg(not(MODULE))]
impl DumpText {
    /// Size in bytes.
    pub const SIZE: usize = size_of::<Self>();

    /// Parses the text that `bytes` begins with.
    pub fn parse(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        Some(Self {
            bytes: word(rest)?,
            len: word(rest)?,
            sum: word(rest)?,
        })
    }
}

#[cfg(not(MODULE))]
fn word(rest: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(take(rest)?))
}
