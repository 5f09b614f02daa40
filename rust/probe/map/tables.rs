// SPDX-License-Identifier: GPL-2.0

//! The tables of a map: one for each CPU that was ever online, and the call stacks that are keys in them.

use super::durations::{Durations, Matched};
use super::program::{KeptKeys, MapProgram};
use super::stacks::{KeyStacks, MapStacks, StackNames};
use super::Map;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::LocalWord;
use crate::map::pairs::{BeginResult, PAIR_WORDS};
use crate::map::stacks::NamedStack;
use crate::map::table::{MapEntry, MapShape, Table, MAX_COLUMNS, MAX_KEY};
use crate::probe::filter::Now;
use crate::sys::cpu::{self, NoHotplug};
use crate::sys::page_vec::PageVec;
use crate::sys::page_words::PageWords;
use crate::sys::percpu::PerCpu;
use crate::sys::signal;
use crate::sys::sort::sort_unless_killed;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The tables of all CPUs.
pub(super) struct Tables {
    cpus: PerCpu<CpuTable>,
    /// The call stacks that are keys.
    stacks: Option<MapStacks>,
}

/// The table of one CPU, and the numbers of events that are not in it. The table has memory before its CPU comes online.
pub(super) struct CpuTable {
    table: Table<LocalWord, PageWords<LocalWord>>,
    /// 1 while a context of the CPU takes a call stack.
    takes_stack: LocalWord,
    missed: [LocalWord; MissedUpdate::COUNT],
}

/// Maximum number of words that a begin keeps for its end: the names of call stacks, and keys.
const KEPT: usize = StackNames::WORDS + MAX_KEY;

/// Reason why an event is not in a table, or a begin has no end.
#[derive(Clone, Copy)]
pub(crate) enum MissedUpdate {
    /// The record lacked a value, or the CPU has no table.
    Lacking,
    /// The end had no begin.
    Unmatched,
    /// A begin replaced one with the same values.
    Repeated,
    /// There was no room for a begin.
    Dropped,
    /// There was no room for the call stack, the event happened while one was taken, or the map was cleared after the
    /// begin.
    Stackless,
}

impl MissedUpdate {
    /// Number of reasons.
    const COUNT: usize = 5;
}

/// The sums of all CPUs.
pub(crate) struct Sums {
    /// An entry for each key, the largest count first.
    pub(crate) entries: PageVec<MapEntry>,
    /// The sums of the updates that found no slot.
    pub(crate) overflow: MapEntry,
    missed: [u64; MissedUpdate::COUNT],
    /// The tables, which have the call stacks.
    tables: Arc<Tables>,
}

impl Sums {
    /// The addresses of the kernel's call stack with a name, the innermost first.
    pub(crate) fn stack(&self, name: u64) -> impl Iterator<Item = u64> + use<'_> {
        let stacks = self.tables.stacks.as_ref();
        let found = stacks.and_then(|stacks| stacks.kernel(name));
        found.into_iter().flat_map(|found| found.addresses)
    }

    /// The user's call stack with a name, the innermost address first. Its end is a
    /// [`StackEnd`](crate::unwind::end::StackEnd).
    pub(crate) fn user_stack(
        &self,
        name: u64,
    ) -> Option<NamedStack<impl Iterator<Item = u64> + use<'_>>> {
        self.tables.stacks.as_ref()?.user(name)
    }

    /// Number of events that were missed for this reason.
    pub(crate) fn missed(&self, missed: MissedUpdate) -> u64 {
        self.missed.get(missed as usize).copied().unwrap_or(0)
    }
}

impl Tables {
    /// Makes empty tables for the CPUs that are online, `cpus`. `stacks`: the call stacks that are keys. `ENOMEM`: there
    /// is not enough memory. May sleep.
    pub(super) fn new(shape: MapShape, stacks: KeyStacks, cpus: &NoHotplug) -> Result<Arc<Self>> {
        let stacks = match stacks.any() {
            true => Some(MapStacks::new(stacks, shape.slots())?),
            false => None,
        };
        let tables = Self {
            cpus: PerCpu::new(|| CpuTable::new(shape))?,
            stacks,
        };
        for cpu in cpus.online() {
            signal::go_on()?;
            if !tables.equip(cpu, &shape) {
                return Err(ENOMEM);
            }
        }
        Ok(Arc::new(tables, GFP_KERNEL)?)
    }

    /// Number of bytes of the tables that [`new`](Self::new) makes for so many CPUs.
    pub(super) fn bytes(shape: &MapShape, stacks: KeyStacks, cpus: usize) -> usize {
        let stacks = MapStacks::bytes(stacks, shape.slots());
        let tables = PageWords::<LocalWord>::bytes(shape.words()).saturating_mul(cpus);
        tables.saturating_add(stacks)
    }

    /// Gives a CPU its table, if it has none. Returns whether it has one. One caller at a time. May sleep.
    pub(super) fn equip(&self, cpu: u32, shape: &MapShape) -> bool {
        let this = self.cpus.of(cpu);
        this.is_some_and(|this| this.table.words().fill(shape.words(), cpu))
    }

    /// The table of the current CPU.
    #[inline(always)]
    pub(super) fn this_cpu<'a>(&'a self, guard: &'a NoPreempt) -> &'a CpuTable {
        self.cpus.this_cpu(guard)
    }

    /// The call stacks that are keys.
    #[inline(always)]
    pub(super) fn stacks(&self) -> Option<&MapStacks> {
        self.stacks.as_ref()
    }

    /// Adds up the tables of all CPUs. Errors: `ENOMEM`, `EINTR`. May sleep.
    pub(super) fn sums(self: Arc<Self>, shape: &MapShape) -> Result<Sums> {
        let mut entries = PageVec::new();
        let mut overflow = MapEntry::empty(shape);
        let mut missed = [0_u64; MissedUpdate::COUNT];
        for this in cpu::possible().filter_map(|cpu| self.cpus.of(cpu)) {
            signal::go_on()?;
            for (sum, word) in missed.iter_mut().zip(&this.missed) {
                *sum = sum.wrapping_add(word.load());
            }
            if this.has_table() {
                this.table.for_each(|entry| entries.push(entry))?;
                overflow.merge(&this.table.overflow(), shape);
            }
        }
        sort_unless_killed(&mut entries, |one, other| one.key.cmp(&other.key))?;
        let mut kept = 0_usize;
        for at in 0..entries.len() {
            let Some(entry) = entries.get(at).copied() else {
                break;
            };
            let last = kept
                .checked_sub(1)
                .and_then(|last: usize| entries.get_mut(last));
            match last {
                Some(last) if last.key == entry.key => last.merge(&entry, shape),
                _ => {
                    if let Some(to) = entries.get_mut(kept) {
                        *to = entry;
                    }
                    kept += 1;
                }
            }
        }
        entries.truncate(kept);
        sort_unless_killed(&mut entries, |one, other| other.count.cmp(&one.count))?;
        Ok(Sums {
            entries,
            overflow,
            missed,
            tables: self,
        })
    }
}

impl CpuTable {
    /// Without memory for the table.
    fn new(shape: MapShape) -> Self {
        Self {
            table: Table::new(PageWords::empty(), shape),
            takes_stack: LocalWord::new(0),
            missed: [const { LocalWord::new(0) }; MissedUpdate::COUNT],
        }
    }

    #[inline(always)]
    fn has_table(&self) -> bool {
        !self.table.words().as_ref().is_empty()
    }

    #[inline(always)]
    pub(super) fn count(&self, missed: MissedUpdate) {
        self.add(missed, 1);
    }

    #[inline(always)]
    fn add(&self, missed: MissedUpdate, number: u64) {
        if let Some(word) = self.missed.get(missed as usize) {
            word.add(number);
        }
    }

    /// Updates a key of `K` words, which is the size of the table's keys, by the number of its column, if it has one.
    /// Returns whether it did: the key is known, and in the first of its slots.
    #[inline(always)]
    pub(super) fn update_known<const K: usize>(&self, key: &[u64; K], number: Option<u64>) -> bool {
        self.table.update_known(key, number)
    }

    /// Updates any key.
    #[inline(always)]
    pub(super) fn update_any(&self, key: &[u64], number: Option<u64>) {
        self.update_table(key, number.as_slice());
    }

    /// Updates any key by these numbers, or counts that the CPU has no table.
    #[inline(always)]
    fn update_table(&self, key: &[u64], numbers: &[u64]) {
        if self.has_table() {
            self.table.update(key, numbers);
        } else {
            self.count(MissedUpdate::Lacking);
        }
    }

    #[inline(always)]
    pub(super) fn update(
        &self,
        map: &Map,
        stacks: Option<&MapStacks>,
        event: u64,
        program: &MapProgram,
        record: &[u8],
        now: &Now<'_>,
    ) {
        if program.has_begun() {
            return self.update_begun(map, stacks, event, program, record, now);
        }
        let (mut measured, mut names) = (0, StackNames::default());
        if let (Some(durations), Some(matched)) = (&map.durations, &program.matched) {
            let Some(key) = matched.load(record, now) else {
                return self.count(MissedUpdate::Lacking);
            };
            let ended = match stacks {
                Some(_) => durations.end(&key, &mut names.0),
                None => durations.end(&key, &mut []),
            };
            measured = match self.ended(ended) {
                Some(duration) => duration,
                None => return,
            };
            // The stack of a begin is gone if the map was cleared since.
            if stacks.is_some_and(
                #[inline(always)]
                |stacks| !stacks.has(&names),
            ) {
                return self.count(MissedUpdate::Stackless);
            }
        } else if let Some(stacks) = stacks {
            names = match stacks.take(&self.takes_stack, map.user_stacks.as_ref(), now.0) {
                Some(names) => names,
                None => return self.count(MissedUpdate::Stackless),
            };
        }
        self.update_by::<false>(event, program, record, now, (measured, &names, &[]));
    }

    /// As [`update`](Self::update), for a program with keys that are values of the begin.
    #[cold]
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn update_begun(
        &self,
        map: &Map,
        stacks: Option<&MapStacks>,
        event: u64,
        program: &MapProgram,
        record: &[u8],
        now: &Now<'_>,
    ) {
        let (Some(durations), Some(matched)) = (&map.durations, &program.matched) else {
            return;
        };
        let Some(key) = matched.load(record, now) else {
            return self.count(MissedUpdate::Lacking);
        };
        let mut kept = [0; KEPT];
        let Some(measured) = self.ended(durations.end(&key, &mut kept)) else {
            return;
        };
        let (words, keys) = kept.split_at_checked(StackNames::WORDS).unwrap_or_default();
        let mut names = StackNames::default();
        for (name, word) in names.0.iter_mut().zip(words) {
            *name = *word;
        }
        // As in `update`.
        if stacks.is_some_and(|stacks| !stacks.has(&names)) {
            return self.count(MissedUpdate::Stackless);
        }
        self.update_by::<true>(event, program, record, now, (measured, &names, keys));
    }

    /// Updates the key of a record by its numbers. See [`MapProgram::load`].
    #[inline(always)]
    fn update_by<const BEGUN: bool>(
        &self,
        event: u64,
        program: &MapProgram,
        record: &[u8],
        now: &Now<'_>,
        of_begin: (u64, &StackNames, &[u64]),
    ) {
        let (mut key, mut numbers) = ([0; MAX_KEY], [0; MAX_COLUMNS]);
        match program.load::<BEGUN>(event, record, now, of_begin, &mut key, &mut numbers) {
            Some(()) => self.update_table(&key, &numbers),
            None => self.count(MissedUpdate::Lacking),
        }
    }

    #[inline(always)]
    pub(super) fn begin(
        &self,
        map: &Map,
        stacks: Option<&MapStacks>,
        (matched, keys): (&Matched, &KeptKeys),
        record: &[u8],
        now: &Now<'_>,
    ) {
        let Some(durations) = &map.durations else {
            return;
        };
        let Some(key) = matched.load(record, now) else {
            return self.count(MissedUpdate::Lacking);
        };
        if !keys.is_empty() {
            return self.begin_keeping(map, durations, stacks, (&key, keys), record, now);
        }
        let Some(stacks) = stacks else {
            return self.begun(durations.begin(&key));
        };
        // Taking the stacks is a part of the duration.
        let since = durations.now();
        match stacks.take(&self.takes_stack, map.user_stacks.as_ref(), now.0) {
            Some(names) => self.begun(durations.begin_with(&key, since, &names.0)),
            None => self.count(MissedUpdate::Stackless),
        }
    }

    /// As [`begin`](Self::begin), for a begin that keeps keys for its end.
    #[cold]
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn begin_keeping(
        &self,
        map: &Map,
        durations: &Durations,
        stacks: Option<&MapStacks>,
        (key, keys): (&[u64; PAIR_WORDS], &KeptKeys),
        record: &[u8],
        now: &Now<'_>,
    ) {
        let since = durations.now();
        let mut kept = [0; KEPT];
        let (words, rest) = kept
            .split_at_mut_checked(StackNames::WORDS)
            .unwrap_or_default();
        if let Some(stacks) = stacks {
            match stacks.take(&self.takes_stack, map.user_stacks.as_ref(), now.0) {
                Some(names) => {
                    for (word, name) in words.iter_mut().zip(names.0) {
                        *word = name;
                    }
                }
                None => return self.count(MissedUpdate::Stackless),
            }
        }
        match keys.load(record, now, rest) {
            Some(()) => self.begun(durations.begin_with(key, since, &kept)),
            None => self.count(MissedUpdate::Lacking),
        }
    }

    /// Begins the duration of a number. Any context, NMI included.
    #[inline(always)]
    pub(super) fn begin_number(&self, map: &Map, number: u64) {
        if let Some(durations) = &map.durations {
            self.begun(durations.begin_number(number));
        }
    }

    /// Ends the duration of a number. [`None`]: it has no begin. Any context, NMI included.
    #[inline(always)]
    pub(super) fn end_number(&self, map: &Map, number: u64) -> Option<u64> {
        self.ended(map.durations.as_ref()?.end_number(number))
    }

    #[inline(always)]
    fn begun(&self, result: BeginResult) {
        match result {
            BeginResult::New => {}
            BeginResult::Repeated => self.count(MissedUpdate::Repeated),
            BeginResult::Evicted | BeginResult::Busy => self.count(MissedUpdate::Dropped),
        }
    }

    #[inline(always)]
    fn ended(&self, (duration, repeated): (Option<u64>, u64)) -> Option<u64> {
        if repeated != 0 {
            self.add(MissedUpdate::Repeated, repeated);
        }
        if duration.is_none() {
            self.count(MissedUpdate::Unmatched);
        }
        duration
    }
}
