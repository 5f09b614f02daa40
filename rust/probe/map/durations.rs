// SPDX-License-Identifier: GPL-2.0

//! Durations of a map: the begins that wait for their ends, and the values that both have.

use super::program::{find_integer, WrongPart};
use super::stacks::{KeyStacks, StackNames};
use crate::abi::schema::Field;
use crate::arch::word::SharedWord;
use crate::filter::compile::FilterNames;
use crate::filter::value::Value;
use crate::input::map::{LinePart, MapDefinition, MAX_MATCHED};
use crate::map::begins::{NumberBegins, BEGIN_LIMIT, BEGIN_WORDS};
use crate::map::pairs::{BeginResult, EndResult, Pairs, PAIR_WORDS};
use crate::probe::filter::Now;
use crate::probe::stopwatch::Stopwatch;
use crate::sys::args::Task;
use crate::sys::page_words::PageWords;
use kernel::prelude::*;

/// Begins that wait for their ends.
///
/// A key that is one number, such as a thread, has its begin in `begins`. Other keys, and large numbers, have it in
/// `pairs`.
pub(crate) struct Durations {
    begins: Option<NumberBegins<SharedWord, PageWords<SharedWord>>>,
    /// [`None`]: all keys are in `begins`.
    pairs: Option<Pairs<SharedWord, PageWords<SharedWord>>>,
    /// Whether the keys are ids of threads.
    is_of_threads: bool,
    stopwatch: Stopwatch,
}

/// Number of slots of `pairs`.
const BEGINS: usize = 1 << 14;

/// The words that `pairs` keeps with a begin for its end.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    /// The names of these call stacks, see [`StackNames`].
    pub(crate) stacks: KeyStacks,
    /// This many words of keys that are values of the begin. The names of call stacks precede them.
    pub(crate) keys: usize,
}

impl Kept {
    fn any(self) -> bool {
        self.stacks.any() || self.keys != 0
    }

    /// Number of the words.
    fn words(self) -> usize {
        match (self.keys, self.stacks.user) {
            (0, false) => 1,
            (0, true) => StackNames::WORDS,
            (keys, _) => StackNames::WORDS + keys,
        }
    }

    /// Number of words of `pairs`.
    fn pairs_words(self) -> usize {
        Pairs::<SharedWord, PageWords<SharedWord>>::words(BEGINS, self.words())
    }
}

const _: () = assert!(MAX_MATCHED == PAIR_WORDS);

/// The tables that a map's durations need.
struct Needed {
    begins: bool,
    pairs: bool,
    /// Whether the keys are ids of threads.
    is_of_threads: bool,
}

impl Needed {
    /// [`None`]: the map measures no durations.
    fn of(definition: &MapDefinition<'_>, kept: Kept) -> Option<Self> {
        definition.begins?;
        let names = definition
            .matched
            .into_iter()
            .flat_map(|(begin, end)| [begin, end]);
        let is_alone = names.clone().all(|side| side.items().count() == 1);
        let is_thread =
            |side: LinePart<'_>| side.text.ends_with("tid") || side.text.ends_with("pid");
        let is_of_threads = is_alone && names.clone().all(is_thread);
        Some(Self {
            begins: is_alone && !kept.any(),
            pairs: !is_of_threads || kept.any(),
            is_of_threads,
        })
    }
}

/// The values that are the same at a begin and at its end.
pub(crate) struct Matched(KVec<Value>);

impl Matched {
    /// Finds the values of one side in the records with these fields. Without values: the thread. May sleep.
    pub(crate) fn new<'a>(
        names: FilterNames<'_, impl Iterator<Item = Field<'a>> + Clone>,
        side: Option<LinePart<'_>>,
    ) -> Result<Self, WrongPart> {
        // A field of an event may be called `tid`; this is always the context.
        let thread = LinePart {
            text: "common_pid",
            at: 0,
        };
        let mut values = KVec::new();
        for part in side.unwrap_or(thread).items() {
            let (value, _) = find_integer(names.clone(), part)?;
            values.push(value, GFP_KERNEL)?;
        }
        Ok(Self(values))
    }

    /// The value, if there is only one.
    pub(super) fn number(&self) -> Option<&Value> {
        match &self.0[..] {
            [number] => Some(number),
            _ => None,
        }
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
    /// Makes empty tables for the durations of this map, if it has any. A begin is noted with `kept`. May sleep.
    pub(crate) fn of(definition: &MapDefinition<'_>, kept: Kept) -> Result<Option<Self>> {
        let Some(needed) = Needed::of(definition, kept) else {
            return Ok(None);
        };
        let words = |count| PageWords::new(count, Task::current().cpu() as u32);
        let begins = match needed.begins {
            true => Some(NumberBegins::new(words(BEGIN_WORDS)?)),
            false => None,
        };
        let pairs = match needed.pairs {
            true => {
                let words = words(kept.pairs_words())?;
                Some(Pairs::new(words, BEGINS, kept.words()))
            }
            false => None,
        };
        Ok(Some(Self {
            begins,
            pairs,
            is_of_threads: needed.is_of_threads,
            stopwatch: Stopwatch::best(),
        }))
    }

    /// Number of bytes of the tables that [`of`](Self::of) makes.
    pub(super) fn bytes(definition: &MapDefinition<'_>, kept: Kept) -> usize {
        Needed::of(definition, kept).map_or(0, |needed| {
            let bytes = |needed, count| match needed {
                true => PageWords::<SharedWord>::bytes(count),
                false => 0,
            };
            bytes(needed.begins, BEGIN_WORDS) + bytes(needed.pairs, kept.pairs_words())
        })
    }

    /// The name of a number in the tables: the idle threads have the same id.
    #[inline(always)]
    fn name_of(&self, number: u64) -> u64 {
        match number {
            0 if self.is_of_threads => BEGIN_LIMIT
                .wrapping_sub(1)
                .wrapping_sub(Task::current().cpu() as u64),
            number => number,
        }
    }

    /// The table for a number, and the number's name in it.
    #[inline(always)]
    fn begins_of(
        &self,
        number: u64,
    ) -> Option<(&NumberBegins<SharedWord, PageWords<SharedWord>>, u64)> {
        let number = self.name_of(number);
        match &self.begins {
            Some(begins) if number < BEGIN_LIMIT => Some((begins, number)),
            _ => None,
        }
    }

    // Functions of their own, because only these have a LOCK prefix.

    /// Notes the begin of a key that is one number. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(super) fn begin_number(&self, number: u64) -> BeginResult {
        match self.begins_of(number) {
            Some((begins, number)) => begins.begin(number, self.stopwatch.read()),
            None => self.begin_pair(&[number, 0]),
        }
    }

    /// As [`end`](Self::end), for a key that is one number.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(super) fn end_number(&self, number: u64) -> (Option<u64>, u64) {
        let Some((begins, number)) = self.begins_of(number) else {
            return self.end_pair(&[number, 0]);
        };
        let end = begins.end(number, self.stopwatch.read());
        let took = end.passed.map(|passed| self.stopwatch.ns(passed));
        (took, end.repeated)
    }

    /// Notes the begin of a number, if that takes few instructions. Returns whether it did; else nothing has changed. Any
    /// context, NMI included.
    #[inline(always)]
    pub(super) fn begin_at_once(&self, number: u64) -> bool {
        match (self.begins_of(number), self.stopwatch) {
            (Some((begins, number)), Stopwatch::Tsc(_)) => {
                begins.begin_at_once(number, self.stopwatch.read())
            }
            _ => false,
        }
    }

    /// Ends the begin of a number, if that takes few instructions. Returns the nanoseconds since then; else nothing has
    /// changed. Any context, NMI included.
    #[inline(always)]
    pub(super) fn end_at_once(&self, number: u64) -> Option<u64> {
        match (self.begins_of(number), self.stopwatch) {
            (Some((begins, number)), Stopwatch::Tsc(_)) => {
                let passed = begins.end_at_once(number, self.stopwatch.read())?;
                Some(self.stopwatch.ns(passed))
            }
            _ => None,
        }
    }

    /// Notes the begin of a key. Any context, NMI included.
    #[inline(always)]
    pub(super) fn begin(&self, key: &[u64; PAIR_WORDS]) -> BeginResult {
        let [number, other] = *key;
        match self.begins {
            Some(_) => self.begin_number(number),
            None => self.begin_pair(&[self.name_of(number), other]),
        }
    }

    /// The current time, for [`begin_with`](Self::begin_with). Any context, NMI included.
    #[inline(always)]
    pub(super) fn now(&self) -> u64 {
        self.stopwatch.read()
    }

    /// Notes the begin of a key at this [time](Self::now), with the words that it keeps. Any context, NMI included.
    #[inline(always)]
    pub(super) fn begin_with(
        &self,
        key: &[u64; PAIR_WORDS],
        since: u64,
        kept: &[u64],
    ) -> BeginResult {
        let [number, other] = *key;
        self.begin_pair_with(&[self.name_of(number), other], since, kept)
    }

    /// Ends the latest begin of a key. Returns the nanoseconds since then, if there is one, and the number of earlier
    /// begins of the key. `kept` gets the words that the begin kept. Any context, NMI included.
    #[inline(always)]
    pub(super) fn end(&self, key: &[u64; PAIR_WORDS], kept: &mut [u64]) -> (Option<u64>, u64) {
        let [number, other] = *key;
        match self.begins {
            Some(_) => self.end_number(number),
            None if kept.is_empty() => self.end_pair(&[self.name_of(number), other]),
            None => self.end_pair_with(&[self.name_of(number), other], kept),
        }
    }

    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn begin_pair(&self, key: &[u64; PAIR_WORDS]) -> BeginResult {
        match &self.pairs {
            Some(pairs) => pairs.begin(key, self.stopwatch.read()),
            None => BeginResult::Busy,
        }
    }

    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn begin_pair_with(&self, key: &[u64; PAIR_WORDS], since: u64, kept: &[u64]) -> BeginResult {
        match &self.pairs {
            Some(pairs) => pairs.begin_with(key, since, |words| {
                for (word, value) in words.iter().zip(kept) {
                    word.store(*value);
                }
            }),
            None => BeginResult::Busy,
        }
    }

    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn end_pair(&self, key: &[u64; PAIR_WORDS]) -> (Option<u64>, u64) {
        self.ended(
            #[inline(always)]
            |pairs| pairs.end(key),
        )
    }

    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn end_pair_with(&self, key: &[u64; PAIR_WORDS], kept: &mut [u64]) -> (Option<u64>, u64) {
        self.ended(
            #[inline(always)]
            |pairs| {
                pairs.end_with(key, |words| {
                    for (value, word) in kept.iter_mut().zip(words) {
                        *value = word.load();
                    }
                })
            },
        )
    }

    /// The nanoseconds since the begin that `end` takes, and the number of earlier begins.
    #[inline(always)]
    fn ended(
        &self,
        end: impl FnOnce(&Pairs<SharedWord, PageWords<SharedWord>>) -> EndResult,
    ) -> (Option<u64>, u64) {
        let now = self.stopwatch.read();
        let Some(pairs) = &self.pairs else {
            return (None, 0);
        };
        let end = end(pairs);
        let took = end.since.map(|since| self.stopwatch.ns_between(since, now));
        (took, end.repeated)
    }
}
