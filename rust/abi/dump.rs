// SPDX-License-Identifier: GPL-2.0

//! What the module keeps for who reads a dump of the kernel's memory: where the buffers are.
//!
//! ```text
//!   Root, in the module's data at a multiple of 64; found by its magic and by its own address behind it
//!    '-> Entry -> Entry -> ...         one for each buffer that there is
//!          |-> Trace -> Text           whose it is; what describes its packets
//!          |-> slots                   what a slot's words say is for the ring to say (ring/image.rs)
//!          '-> sub-buffers             those of the slots and the reader's, one behind the other; or two such
//! ```
//!
//! An arrow is an address of the kernel; 0 is none. All is in the machine's byte order, which is little
//! endian. Each change is the store of one word, so that at any moment all that can be reached is whole. Who
//! reads a dump trusts nothing of it.

use super::packet::Uuid;
#[cfg(not(MODULE))]
use super::region::take;
use super::region::NAME_MAX;

/// What a [`Root`] begins with.
pub const MAGIC: [u8; 16] = *b"rtrace buffers\x1a\n";

/// The version of this layout, and of that of the slots.
pub const VERSION: u64 = 2;

/// Where all begins. `W` is a word that changes. It is in one page, because who looks for it goes through pages.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Root<W> {
    /// [`MAGIC`].
    pub magic: [u8; 16],
    /// Where this is: elsewhere it is a copy.
    pub address: W,
    /// [`VERSION`].
    pub version: u64,
    /// The first [`Entry`].
    pub first: W,
}

/// A buffer.
#[repr(C)]
#[derive(Debug)]
pub struct Entry<W> {
    /// The next.
    pub next: W,
    /// Its [`Trace`].
    pub trace: u64,
    /// Its slots.
    pub slots: W,
    /// The sub-buffers of its two banks of memory; it has the second for a snapshot, and afterwards one of
    /// them.
    pub subbufs: [W; 2],
    /// Bytes of a sub-buffer.
    pub subbuf_size: u64,
    /// Sub-buffers, without the reader's.
    pub subbuf_count: u64,
    /// The CPU.
    pub cpu: u32,
    /// The channel's stream class in the metadata.
    pub stream_id: u32,
    /// The channel's name; zeros follow.
    pub name: [u8; NAME_MAX],
}

/// The trace that buffers are of.
#[repr(C)]
#[derive(Debug)]
pub struct Trace<W> {
    /// What identifies it.
    pub uuid: Uuid,
    /// Its [`Text`].
    pub text: W,
}

/// A trace's metadata.
#[repr(C)]
#[derive(Debug)]
pub struct Text {
    /// The first byte.
    pub bytes: u64,
    /// How many.
    pub len: u64,
    /// Their [checksum](super::region::checksum).
    pub sum: u64,
}

#[cfg(not(MODULE))]
impl Root<u64> {
    /// Bytes of it.
    pub const SIZE: usize = size_of::<Self>();

    /// What its address is a multiple of.
    pub const ALIGN: usize = align_of::<Self>();

    /// That which these bytes begin with. [`None`]: none.
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
impl Entry<u64> {
    /// Bytes of it.
    pub const SIZE: usize = size_of::<Self>();

    /// That which these bytes begin with.
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
impl Trace<u64> {
    /// Bytes of it.
    pub const SIZE: usize = size_of::<Self>();

    /// That which these bytes begin with.
    pub fn parse(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        Some(Self {
            uuid: take(rest)?,
            text: word(rest)?,
        })
    }
}

#[cfg(not(MODULE))]
impl Text {
    /// Bytes of it.
    pub const SIZE: usize = size_of::<Self>();

    /// That which these bytes begin with.
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
