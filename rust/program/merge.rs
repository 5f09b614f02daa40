// SPDX-License-Identifier: GPL-2.0

//! The merge of several rings by time.
//!
//! The records of one ring are in order of time. A record may be passed on if no earlier record can come any more:
//!
//! - The copy of a ring has a next record: all later ones of the ring are not before it.
//! - The copy is used up, and had all that the ring had: records that are not in the copy were committed after the load
//!   of `head`, so they are not before the *horizon*, which is a reading of the clock before that load.
//! - The copy is used up, and was cut: later records are not before the last record of the copy.
//!
//! The time of a record is read a moment before the record is committed. A program can be interrupted in between, and
//! continue only then if it runs on a virtual CPU that its host stopped. So the caller subtracts a margin from the
//! horizon; a record that is even later gets the time of the last record that was passed on.

/// Records up to this time may be passed on, as far as one ring is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bound(pub u64);

/// A ring in a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The next record has this time.
    Next(u64),
    /// The copy is used up.
    UsedUp(Bound),
}

/// The next record of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It is that of this source.
    Pass(usize),
    /// None may be passed on before new copies were made. Every record up to this bound was passed on.
    Wait(Bound),
}

/// Chooses the source whose record is passed on next. `until` is a bound for all of them.
#[inline(always)]
pub fn choose(sources: impl Iterator<Item = Source>, until: Bound) -> Choice {
    let mut bound = until;
    let mut first: Option<(u64, usize)> = None;
    for (index, source) in sources.enumerate() {
        match source {
            Source::Next(time) if first.is_none_or(|(known, _)| time < known) => {
                first = Some((time, index));
            }
            Source::Next(_) => {}
            Source::UsedUp(limit) => bound = bound.min(limit),
        }
    }
    match first {
        Some((time, index)) if time <= bound.0 => Choice::Pass(index),
        _ => Choice::Wait(bound),
    }
}
