// SPDX-License-Identifier: GPL-2.0

//! The reader of a ring: what it copies, and which bytes of the copy are records.
//!
//! The program may change the ring's memory at any time. So the reader copies each byte once, and only looks at the
//! copy. After bytes that are no record there is no way to find the next one, except at `head`. So the reader drops all
//! bytes up to there.

use super::merge::Bound;
use super::position::{Position, RingPiece};
use super::record::{NoRecord, Record};
use super::shape::{self, ShapePart};

/// The reader of a ring, without its memory.
#[derive(Clone, Debug)]
pub struct RingReader {
    position: Position,
    /// The unread bytes of the copy.
    at: usize,
    end: usize,
    /// Time of the last record that was read.
    last: u64,
    /// The clock after the copy was made.
    now: u64,
    /// See [`Bound`].
    horizon: u64,
    is_cut: bool,
    /// Number of bytes that are no records.
    garbage: u64,
    /// Number of bad heads.
    bad_heads: u64,
    /// Number of records whose time was outside of the bounds.
    late: u64,
}

/// The facts by which records are checked.
pub trait Checks {
    /// The parts of the event's fields. [`None`]: the program has no such event.
    fn shape(&mut self, event: u32) -> Option<&[ShapePart]>;
    /// Whether the machine can have this CPU.
    fn is_cpu(&self, cpu: u32) -> bool;
}

/// A valid record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Valid<'a> {
    /// The time. It is not before that of the ring's previous record, and not in the future.
    pub time: u64,
    /// Index of an event that the program has.
    pub event: u32,
    /// Number of the thread that the program claims.
    pub thread: u32,
    /// A CPU that the machine can have.
    pub cpu: u32,
    /// The fields, which have the event's shape.
    pub fields: &'a [u8],
    /// The time in the ring.
    claimed: u64,
    len: usize,
}

impl RingReader {
    /// The reader of an empty ring of `size` bytes. [`None`]: no ring has this size.
    pub fn new(size: usize) -> Option<Self> {
        Some(Self {
            position: Position::new(size)?,
            at: 0,
            end: 0,
            last: 0,
            now: 0,
            horizon: 0,
            is_cut: false,
            garbage: 0,
            bad_heads: 0,
            late: 0,
        })
    }

    /// Whether all records of the copy were read.
    pub fn is_used_up(&self) -> bool {
        self.at >= self.end
    }

    /// Returns the bytes to copy, at most `room`. The copy before must be used up. `head` was read after the clock
    /// showed `horizon`. The caller then calls [`copied`](Self::copied).
    pub fn take(&mut self, head: u64, horizon: u64, room: usize) -> Option<RingPiece> {
        (self.at, self.end, self.is_cut) = (0, 0, false);
        self.horizon = self.horizon.max(horizon);
        match self.position.written(head, room) {
            Ok(piece) => (piece.len != 0).then_some(piece),
            Err(_) => {
                self.bad_heads = self.bad_heads.wrapping_add(1);
                None
            }
        }
    }

    /// Finds the records in the copy of a piece that [`take`](Self::take) has returned for `head`, and frees the bytes
    /// in the ring. The last record of a cut piece may be incomplete; it stays in the ring. `now` is the clock after the
    /// copy was made.
    pub fn copied(&mut self, copy: &[u8], piece: RingPiece, head: u64, now: u64) {
        self.now = now;
        let mut end = 0_usize;
        loop {
            let rest = copy.get(end..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            match Record::first(rest) {
                Ok((_, len)) => end = end.wrapping_add(len),
                Err(NoRecord::Cut) if piece.is_cut && end != 0 => break,
                Err(_) => {
                    self.end = end;
                    self.position.free(end);
                    let dropped = self.position.free_to(head);
                    self.garbage = self.garbage.wrapping_add(dropped);
                    return;
                }
            }
        }
        self.end = end;
        self.is_cut = piece.is_cut;
        self.position.free(end);
    }

    /// The position up to which the program may write.
    pub fn limit(&self) -> u64 {
        self.position.limit()
    }

    /// The position at which the program should wake the reader.
    pub fn half(&self) -> u64 {
        self.position.half()
    }

    /// Returns the next valid record of the copy, without advancing.
    #[inline(always)]
    pub fn peek<'a>(&mut self, copy: &'a [u8], checks: &mut impl Checks) -> Option<Valid<'a>> {
        let bytes = copy.get(self.at..self.end)?;
        if bytes.is_empty() {
            return None;
        }
        let valid = match Record::first(bytes) {
            Ok((record, len)) => check(record, len, checks),
            Err(_) => None,
        };
        let Some(mut valid) = valid else {
            let dropped = self.end.wrapping_sub(self.at) as u64;
            self.garbage = self.garbage.wrapping_add(dropped);
            self.at = self.end;
            return None;
        };
        valid.time = valid.time.min(self.now).max(self.last);
        Some(valid)
    }

    /// Advances past a record that [`peek`](Self::peek) has returned.
    #[inline(always)]
    pub fn advance(&mut self, valid: &Valid<'_>) {
        self.late = self
            .late
            .wrapping_add(u64::from(valid.time != valid.claimed));
        self.last = valid.time;
        self.at = self.at.wrapping_add(valid.len);
    }

    /// The bound of a ring whose copy is used up.
    pub fn bound(&self) -> Bound {
        Bound(match self.is_cut {
            true => self.last,
            false => self.horizon,
        })
    }

    /// Whether bytes that the program had written did not fit into the copy.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Number of bytes that were no records.
    pub fn garbage(&self) -> u64 {
        self.garbage
    }

    /// Number of heads that no program stores which follows the rules.
    pub fn bad_heads(&self) -> u64 {
        self.bad_heads
    }

    /// Number of records whose time was changed.
    pub fn late(&self) -> u64 {
        self.late
    }
}

/// The record, if it is valid except for its time.
#[inline(always)]
fn check<'a>(record: Record<'a>, len: usize, checks: &mut impl Checks) -> Option<Valid<'a>> {
    if !checks.is_cpu(record.cpu) {
        return None;
    }
    let parts = checks.shape(record.event)?;
    let used = shape::measure(parts, record.padded)?;
    // Only the padding to a whole word may follow.
    if record.padded.len().wrapping_sub(used) >= 8 {
        return None;
    }
    Some(Valid {
        time: record.time,
        event: record.event,
        thread: record.thread,
        cpu: record.cpu,
        fields: record.padded.get(..used)?,
        claimed: record.time,
        len,
    })
}
