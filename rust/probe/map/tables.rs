// SPDX-License-Identifier: GPL-2.0

//! The tables of a map, one for each CPU, and the numbers of events that are not in them.

use super::durations::Matched;
use super::program::MapProgram;
use super::Map;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::LocalWord;
use crate::map::pairs::BeginResult;
use crate::map::table::{MapEntry, MapShape, Table, MAX_COLUMNS, MAX_KEY};
use crate::probe::filter::Now;
use crate::sys::cpu;
use crate::sys::percpu::PerCpu;
use crate::sys::sort::sort_by;
use core::cell::Cell;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The tables of all CPUs.
pub(super) struct Tables(PerCpu<CpuTable>);

/// The table of one CPU, and the numbers of events that are not in it.
pub(super) struct CpuTable {
    table: Table<LocalWord, Words>,
    /// 1 while a context of the CPU takes a call stack.
    takes_stack: LocalWord,
    missed: [LocalWord; MissedUpdate::COUNT],
}

/// Reason why an event is not in a table, or a begin has no end.
#[derive(Clone, Copy)]
pub(crate) enum MissedUpdate {
    /// The record lacked a value.
    Lacking,
    /// The end had no begin.
    Unmatched,
    /// A begin replaced one with the same values.
    Repeated,
    /// There was no room for a begin.
    Dropped,
    /// There was no room for the call stack, or the event happened while one was taken.
    Stackless,
}

impl MissedUpdate {
    /// Number of reasons.
    const COUNT: usize = 5;
}

/// The memory of a table.
struct Words(VVec<LocalWord>);

impl Words {
    /// Makes words that are 0. May sleep.
    fn new(count: usize) -> Result<Self> {
        let mut words = VVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            words.push(LocalWord::new(0), GFP_KERNEL)?;
        }
        Ok(Self(words))
    }
}

impl AsRef<[LocalWord]> for Words {
    #[inline(always)]
    fn as_ref(&self) -> &[LocalWord] {
        &self.0
    }
}

/// The sums of all CPUs.
pub(crate) struct Sums {
    /// An entry for each key, the largest count first.
    pub(crate) entries: KVVec<MapEntry>,
    /// The sums of the updates that found no slot.
    pub(crate) overflow: MapEntry,
    missed: [u64; MissedUpdate::COUNT],
}

impl Sums {
    /// Number of events that were missed for this reason.
    pub(crate) fn missed(&self, missed: MissedUpdate) -> u64 {
        self.missed.get(missed as usize).copied().unwrap_or(0)
    }
}

impl Tables {
    /// Makes empty tables. May sleep.
    pub(super) fn new(shape: MapShape) -> Result<Arc<Self>> {
        let memory = Cell::new(Ok(()));
        let tables = PerCpu::new(|| {
            let words = Words::new(shape.words()).unwrap_or_else(|error| {
                memory.set(Err(error));
                Words(VVec::new())
            });
            CpuTable {
                table: Table::new(words, shape),
                takes_stack: LocalWord::new(0),
                missed: [const { LocalWord::new(0) }; MissedUpdate::COUNT],
            }
        })?;
        memory.get()?;
        Ok(Arc::new(Self(tables), GFP_KERNEL)?)
    }

    /// The table of the current CPU.
    #[inline(always)]
    pub(super) fn this_cpu<'a>(&'a self, guard: &'a NoPreempt) -> &'a CpuTable {
        self.0.this_cpu(guard)
    }

    /// Adds up the tables of all CPUs. May sleep.
    pub(super) fn sums(&self, shape: &MapShape) -> Result<Sums> {
        let mut entries: KVVec<MapEntry> = KVVec::new();
        let mut overflow = MapEntry::empty(shape);
        let mut missed = [0_u64; MissedUpdate::COUNT];
        for cpu in cpu::possible() {
            let Some(table) = self.0.of(cpu) else {
                continue;
            };
            table
                .table
                .for_each(|entry| Ok::<_, Error>(entries.push(entry, GFP_KERNEL)?))?;
            overflow.merge(&table.table.overflow(), shape);
            for (sum, word) in missed.iter_mut().zip(&table.missed) {
                *sum = sum.wrapping_add(word.load());
            }
        }
        sort_by(&mut entries, |one, other| one.key.cmp(&other.key));
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
        sort_by(&mut entries, |one, other| other.count.cmp(&one.count));
        Ok(Sums {
            entries,
            overflow,
            missed,
        })
    }
}

impl CpuTable {
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
        self.table.update(key, number.as_slice());
    }

    #[inline(always)]
    pub(super) fn update(
        &self,
        map: &Map,
        event: u64,
        program: &MapProgram,
        record: &[u8],
        now: &Now<'_>,
    ) {
        let mut measured = (0, 0);
        if let (Some(durations), Some(matched)) = (&map.durations, &program.matched) {
            let Some(key) = matched.load(record, now) else {
                return self.count(MissedUpdate::Lacking);
            };
            let (end, stack) = durations.end(&key);
            measured = match self.ended(end) {
                Some(duration) => (duration, stack),
                None => return,
            };
        } else if let Some(stacks) = &map.stacks {
            measured.1 = match stacks.take(&self.takes_stack, now.0) {
                Some(name) => name,
                None => return self.count(MissedUpdate::Stackless),
            };
        }
        let (mut key, mut numbers) = ([0; MAX_KEY], [0; MAX_COLUMNS]);
        match program.load(event, record, now, measured, &mut key, &mut numbers) {
            Some(()) => self.table.update(&key, &numbers),
            None => self.count(MissedUpdate::Lacking),
        }
    }

    #[inline(always)]
    pub(super) fn begin(&self, map: &Map, matched: &Matched, record: &[u8], now: &Now<'_>) {
        let Some(durations) = &map.durations else {
            return;
        };
        let Some(key) = matched.load(record, now) else {
            return self.count(MissedUpdate::Lacking);
        };
        let stack = match &map.stacks {
            Some(stacks) => stacks.take(&self.takes_stack, now.0),
            None => Some(0),
        };
        match stack {
            Some(stack) => self.begun(durations.begin(&key, stack)),
            None => self.count(MissedUpdate::Stackless),
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
