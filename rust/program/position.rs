// SPDX-License-Identifier: GPL-2.0

//! Positions in a ring: which bytes the program has written, and how far it may write.
//!
//! A position is the number of bytes since the ring began, modulo 2^64. `head` is the program's position. The program
//! may store anything there. `tail` is the reader's position, which the program cannot change. `limit` is the position
//! up to which the program may write.

/// The reader's position in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    tail: u64,
    size: u64,
}

/// Bytes of a ring, which its memory has in one row or in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPiece {
    /// Offset of the first byte in the ring's memory, a multiple of 8.
    pub from: usize,
    /// Number of bytes, a multiple of 8, at most the size of the ring.
    pub len: usize,
    /// Whether the program has written more bytes after these.
    pub is_cut: bool,
}

/// A `head` that no program stores which follows the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadHead;

impl Position {
    /// The first position of a ring of `size` bytes. [`None`]: the size is not a power of two of at least 16 bytes.
    pub fn new(size: usize) -> Option<Self> {
        let size = size as u64;
        (size.is_power_of_two() && size >= 16).then_some(Self { tail: 0, size })
    }

    /// The bytes that the program has written up to `head`, but at most `room` bytes, which must be a multiple of 8.
    /// After a [`BadHead`], the ring is empty at that head.
    pub fn written(&mut self, head: u64, room: usize) -> Result<RingPiece, BadHead> {
        let len = head.wrapping_sub(self.tail);
        if len > self.size || len % 8 != 0 {
            self.tail = head & !7;
            return Err(BadHead);
        }
        let room = room as u64;
        Ok(RingPiece {
            from: (self.tail & self.size.wrapping_sub(1)) as usize,
            len: len.min(room) as usize,
            is_cut: len > room,
        })
    }

    /// Frees the next `bytes`, which are written.
    pub fn free(&mut self, bytes: usize) {
        self.tail = self.tail.wrapping_add(bytes as u64);
    }

    /// Frees all bytes up to `head`, which [`written`](Self::written) has accepted, and returns their number.
    pub fn free_to(&mut self, head: u64) -> u64 {
        let freed = head.wrapping_sub(self.tail);
        self.tail = head;
        freed
    }

    /// The position up to which the program may write.
    pub fn limit(&self) -> u64 {
        self.tail.wrapping_add(self.size)
    }

    /// The position at which the program should wake the reader.
    pub fn half(&self) -> u64 {
        self.tail.wrapping_add(self.size / 2)
    }
}
