// SPDX-License-Identifier: GPL-2.0

//! Durations of a map: the begins that wait for their ends, and the values that both have.

use super::program::{find_integer, WrongPart};
use crate::abi::schema::Field;
use crate::arch::word::SharedWord;
use crate::filter::value::Value;
use crate::input::map::{LinePart, MAX_MATCHED};
use crate::map::pairs::{BeginResult, Pairs, PAIR_WORDS};
use crate::probe::filter::Now;
use crate::probe::stopwatch::Stopwatch;
use kernel::prelude::*;

/// Begins that wait for their ends.
pub(super) struct Durations {
    pairs: Pairs<SharedWord, SharedWords>,
    stopwatch: Stopwatch,
}

/// Number of slots for begins.
const BEGINS: usize = 1 << 14;

const _: () = assert!(MAX_MATCHED == PAIR_WORDS);

/// The memory of begins.
struct SharedWords(VVec<SharedWord>);

impl AsRef<[SharedWord]> for SharedWords {
    #[inline(always)]
    fn as_ref(&self) -> &[SharedWord] {
        &self.0
    }
}

/// The values that are the same at a begin and at its end.
pub(crate) struct Matched(KVec<Value>);

impl Matched {
    /// Finds the values of one side in the records with these fields. Without values: the thread. May sleep.
    pub(crate) fn new<'a>(
        fields: impl Iterator<Item = Field<'a>> + Clone,
        side: Option<LinePart<'_>>,
    ) -> Result<Self, WrongPart> {
        // A field of an event may be called `tid`; this is always the context.
        let thread = LinePart {
            text: "common_pid",
            at: 0,
        };
        let mut values = KVec::new();
        for part in side.unwrap_or(thread).items() {
            let (value, _) = find_integer(fields.clone(), part)?;
            values.push(value, GFP_KERNEL)?;
        }
        Ok(Self(values))
    }

    #[inline(always)]
    pub(super) fn load(&self, record: &[u8], now: &Now<'_>) -> Option<[u64; PAIR_WORDS]> {
        let mut key = [0; PAIR_WORDS];
        for (to, value) in key.iter_mut().zip(&self.0) {
            *to = value.number(record, now)?;
        }
        Some(key)
    }
}

impl Durations {
    /// Makes an empty table. May sleep.
    pub(super) fn new() -> Result<Self> {
        let count = Pairs::<SharedWord, SharedWords>::words(BEGINS);
        let mut words = VVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            words.push(SharedWord::new(0), GFP_KERNEL)?;
        }
        Ok(Self {
            pairs: Pairs::new(SharedWords(words), BEGINS),
            stopwatch: Stopwatch::best(),
        })
    }

    /// Notes the begin of a key. Functions of their own, because only these have a LOCK prefix. Any context, NMI
    /// included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(super) fn begin(&self, key: &[u64; PAIR_WORDS]) -> BeginResult {
        self.pairs.begin(key, self.stopwatch.read())
    }

    /// Ends the latest begin of a key. Returns the nanoseconds since then, if there is one, and the number of earlier
    /// begins of the key. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(super) fn end(&self, key: &[u64; PAIR_WORDS]) -> (Option<u64>, u64) {
        let now = self.stopwatch.read();
        let end = self.pairs.end(key);
        let took = end.since.map(|since| self.stopwatch.ns_between(since, now));
        (took, end.repeated)
    }
}
