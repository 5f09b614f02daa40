// SPDX-License-Identifier: GPL-2.0

//! Maps: sums by key, which probes update instead of recording their event.

use super::filter::{names, Filter, Now};
use super::stopwatch::Stopwatch;
use crate::abi::schema::{Field, Integer, Shown};
use crate::arch::preempt::NoPreempt;
use crate::arch::word::{compiler_barrier, LocalWord, SharedWord};
use crate::context::Moment;
use crate::filter::compile;
use crate::filter::value::Value;
use crate::input::filter::error::FilterReason;
use crate::input::map::{ColumnKind, LinePart, MapDefinition, DURATION, MAX_MATCHED};
use crate::map::bucket;
use crate::map::pairs::{BeginResult, Pairs, PAIR_WORDS};
use crate::map::table::{Column, MapEntry, MapShape, Table, MAX_COLUMNS, MAX_KEY};
use crate::map::word::{MapWord, SharedMapWord};
use crate::record::gate::Place;
use crate::sys::cpu;
use crate::sys::errno::enodata;
use crate::sys::percpu::{OnceArc, PerCpu};
use crate::sys::rcu::RcuArc;
use crate::sys::sort::sort_by;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Name of the key that is the event itself.
const EVENT: &str = "event";

/// The word whose bit distinguishes signs. With this bit inverted, signed numbers have the order of unsigned ones.
const SIGN: u64 = 1 << 63;

/// A map of a session: the tables that its probes update.
pub(crate) struct Map {
    shape: MapShape,
    /// Replaced when the map is cleared.
    tables: RcuArc<Tables>,
    /// The begins without an end so far, if the map measures durations.
    durations: Option<Durations>,
}

/// Begins that wait for their ends.
struct Durations {
    pairs: Pairs<SharedWord, SharedWords>,
    stopwatch: Stopwatch,
}

/// Number of slots for begins.
const BEGINS: usize = 1 << 14;

const _: () = assert!(MAX_MATCHED == PAIR_WORDS);

/// The tables of all CPUs.
struct Tables(PerCpu<OnceArc<CpuTable>>);

/// The table of one CPU, and the numbers of events that are not in it.
struct CpuTable {
    table: Table<LocalWord, Words>,
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
}

impl MissedUpdate {
    /// Number of reasons.
    const COUNT: usize = 4;
}

impl CpuTable {
    #[inline(always)]
    fn count(&self, missed: MissedUpdate) {
        self.add(missed, 1);
    }

    #[inline(always)]
    fn add(&self, missed: MissedUpdate, number: u64) {
        if let Some(word) = self.missed.get(missed as usize) {
            word.add(number);
        }
    }
}

impl MapWord for LocalWord {
    #[inline(always)]
    fn load(&self) -> u64 {
        self.load()
    }

    #[inline(always)]
    fn load_acquire(&self) -> u64 {
        let value = self.load();
        // Only for the compiler: on x86 a later load stays after an earlier one.
        compiler_barrier();
        value
    }

    #[inline(always)]
    fn store(&self, value: u64) {
        self.store(value)
    }

    #[inline(always)]
    fn store_release(&self, value: u64) {
        // Only for the compiler: on x86 a later store stays after an earlier one.
        compiler_barrier();
        self.store(value)
    }

    #[inline(always)]
    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        self.compare_exchange(old, new)
    }

    #[inline(always)]
    fn add(&self, value: u64) {
        self.add(value)
    }
}

/// The memory of a table.
struct Words(VVec<LocalWord>);

impl AsRef<[LocalWord]> for Words {
    #[inline(always)]
    fn as_ref(&self) -> &[LocalWord] {
        &self.0
    }
}

impl SharedMapWord for SharedWord {
    #[inline(always)]
    fn load(&self) -> u64 {
        self.load()
    }

    #[inline(always)]
    fn load_acquire(&self) -> u64 {
        self.load_acquire()
    }

    #[inline(always)]
    fn store(&self, value: u64) {
        self.store(value)
    }

    #[inline(always)]
    fn store_release(&self, value: u64) {
        self.store_release(value)
    }

    #[inline(always)]
    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        self.compare_exchange(old, new)
    }
}

/// The memory of begins.
struct SharedWords(VVec<SharedWord>);

impl AsRef<[SharedWord]> for SharedWords {
    #[inline(always)]
    fn as_ref(&self) -> &[SharedWord] {
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

/// A number of an event.
pub(crate) enum MapNumber {
    /// A value of the record or of the moment.
    Value(Value, Integer),
    /// The time since the begin.
    Duration,
}

impl MapNumber {
    #[inline(always)]
    fn load(&self, record: &[u8], now: &Now<'_>, duration: u64) -> Option<u64> {
        match self {
            Self::Value(value, _) => value.number(record, now),
            Self::Duration => Some(duration),
        }
    }

    /// Whether it can be negative.
    #[inline(always)]
    pub(crate) fn is_signed(&self) -> bool {
        match self {
            Self::Value(_, integer) => integer.shown == Shown::Signed,
            Self::Duration => false,
        }
    }
}

/// A word, or the words, of a map's key.
pub(crate) enum KeyPart {
    /// The event, by its place among the map's events.
    Event,
    /// A number.
    Number(Value, Integer),
    /// A text of this many words.
    Text(Value, usize),
    /// The bucket of a number.
    Bucket(MapNumber),
}

impl KeyPart {
    /// Number of its words.
    pub(crate) fn words(&self) -> usize {
        match self {
            Self::Text(_, words) => *words,
            Self::Event | Self::Number(..) | Self::Bucket(..) => 1,
        }
    }

    /// Whether both parts have the same form, so that the words of both can be compared.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Event, Self::Event) => true,
            (Self::Text(_, one), Self::Text(_, other)) => one == other,
            (Self::Number(_, one), Self::Number(_, other)) => one.shown == other.shown,
            (Self::Bucket(one), Self::Bucket(other)) => one.is_signed() == other.is_signed(),
            _ => false,
        }
    }
}

/// The value of a column.
struct ColumnValue {
    number: MapNumber,
    /// Inverted bits of the number: [`SIGN`] if numbers are compared as signed ones.
    inverted: u64,
}

/// The program of a map at one event: the places of keys and values in the event's records.
pub(crate) struct MapProgram {
    keys: KVec<KeyPart>,
    columns: KVec<ColumnValue>,
    /// If the map measures durations: the values that are the same at the begin.
    matched: Option<Matched>,
}

/// The values that are the same at a begin and at its end.
pub(crate) struct Matched(KVec<Value>);

impl Matched {
    #[inline(always)]
    fn load(&self, record: &[u8], now: &Now<'_>) -> Option<[u64; PAIR_WORDS]> {
        let mut key = [0; PAIR_WORDS];
        for (to, value) in key.iter_mut().zip(&self.0) {
            *to = value.number(record, now)?;
        }
        Some(key)
    }
}

/// The reason why a map cannot have an event.
pub(crate) struct WrongPart {
    /// Position in the line.
    pub(crate) at: usize,
    /// The reason.
    pub(crate) reason: PartReason,
}

/// See [`WrongPart`].
pub(crate) enum PartReason {
    /// The event lacks the value, or has another one of that name.
    Value(FilterReason),
    /// The value is a text.
    Text,
    /// The value is an address of the kernel.
    Address,
    /// There is no memory.
    Memory,
}

impl From<kernel::alloc::AllocError> for WrongPart {
    fn from(_: kernel::alloc::AllocError) -> Self {
        let (at, reason) = (0, PartReason::Memory);
        Self { at, reason }
    }
}

impl core::fmt::Display for PartReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Value(reason) => write!(f, "{reason}"),
            Self::Text => f.write_str("a text is not a number"),
            Self::Address => f.write_str("an address of the kernel cannot be in a map"),
            Self::Memory => f.write_str("there is no memory"),
        }
    }
}

/// Finds a value in the records with these fields.
fn find<'a>(
    fields: impl Iterator<Item = Field<'a>> + Clone,
    part: LinePart<'_>,
) -> Result<(Value, Option<Integer>), WrongPart> {
    let wrong = |reason| {
        let at = part.at;
        WrongPart { at, reason }
    };
    let found = compile::find(part.text, names(fields));
    let value = found.map_err(|reason| wrong(PartReason::Value(reason)))?;
    match value.integer() {
        Some(integer) if integer.shown == Shown::Address => Err(wrong(PartReason::Address)),
        integer => Ok((value, integer)),
    }
}

/// As [`find`], for a number.
fn find_number<'a>(
    fields: impl Iterator<Item = Field<'a>> + Clone,
    part: LinePart<'_>,
) -> Result<MapNumber, WrongPart> {
    if part.text == DURATION {
        return Ok(MapNumber::Duration);
    }
    let (value, integer) = find(fields, part)?;
    let (at, reason) = (part.at, PartReason::Text);
    let integer = integer.ok_or(WrongPart { at, reason })?;
    Ok(MapNumber::Value(value, integer))
}

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
            if let MapNumber::Value(value, _) = find_number(fields.clone(), part)? {
                values.push(value, GFP_KERNEL)?;
            }
        }
        Ok(Self(values))
    }
}

impl MapProgram {
    /// Finds the keys and values of a map in the records with these fields. May sleep.
    pub(crate) fn new<'a>(
        fields: impl Iterator<Item = Field<'a>> + Clone,
        definition: &MapDefinition<'_>,
    ) -> Result<Self, WrongPart> {
        let mut keys = KVec::new();
        for key in definition.keys.into_iter().flat_map(LinePart::items) {
            let part = match key.text {
                EVENT => KeyPart::Event,
                _ => match find(fields.clone(), key)? {
                    (value, Some(integer)) => KeyPart::Number(value, integer),
                    (value, None) => KeyPart::Text(value, value.words()),
                },
            };
            keys.push(part, GFP_KERNEL)?;
        }
        if let Some(part) = definition.hist {
            let number = find_number(fields.clone(), part)?;
            keys.push(KeyPart::Bucket(number), GFP_KERNEL)?;
        }
        let mut columns = KVec::new();
        for (kind, part) in definition.columns.iter().flatten() {
            let number = find_number(fields.clone(), *part)?;
            let is_compared = !matches!(kind, ColumnKind::Sum);
            let inverted = match number.is_signed() && is_compared {
                true => SIGN,
                false => 0,
            };
            columns.push(ColumnValue { number, inverted }, GFP_KERNEL)?;
        }
        let matched = match definition.begins {
            Some(_) => {
                let end = definition.matched.map(|(_, end)| end);
                Some(Matched::new(fields, end)?)
            }
            None => None,
        };
        Ok(Self {
            keys,
            columns,
            matched,
        })
    }

    /// The keys.
    pub(crate) fn keys(&self) -> &[KeyPart] {
        &self.keys
    }

    /// Whether the columns of the map's tables have the form that this event's values need.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.keys.len() == other.keys.len()
            && Iterator::zip(self.keys.iter(), other.keys.iter())
                .all(|(one, other)| one.is_like(other))
            && Iterator::zip(self.columns.iter(), other.columns.iter())
                .all(|(one, other)| one.number.is_signed() == other.number.is_signed())
    }

    /// The form of the map's tables. [`None`]: the key is too long.
    pub(crate) fn shape(&self, definition: &MapDefinition<'_>) -> Option<MapShape> {
        let words = self.keys.iter().map(KeyPart::words).sum::<usize>().max(1);
        let mut columns = [Column::Sum; MAX_COLUMNS];
        let kinds = definition.columns.iter().flatten().map(|(kind, _)| *kind);
        for (column, kind) in columns.iter_mut().zip(kinds) {
            *column = match kind {
                ColumnKind::Sum => Column::Sum,
                ColumnKind::Min => Column::Min,
                ColumnKind::Max => Column::Max,
            };
        }
        let columns = columns.get(..self.columns.len())?;
        MapShape::new(words, columns, definition.size as usize)
    }

    /// The number of a column, as its value is; and whether it is signed.
    pub(crate) fn number(&self, column: usize, stored: u64) -> (u64, bool) {
        match self.columns.get(column) {
            Some(ColumnValue { number, inverted }) => (stored ^ inverted, number.is_signed()),
            None => (stored, false),
        }
    }

    /// Writes the key of a record, and the numbers of its columns. [`None`]: the record lacks one.
    #[inline(always)]
    fn load(
        &self,
        event: u64,
        record: &[u8],
        now: &Now<'_>,
        duration: u64,
        key: &mut [u64; MAX_KEY],
        numbers: &mut [u64; MAX_COLUMNS],
    ) -> Option<()> {
        let mut rest = &mut key[..];
        for part in &self.keys {
            if let KeyPart::Text(value, words) = part {
                let (to, after) = rest.split_at_mut_checked(*words)?;
                value.text(record, now, to)?;
                rest = after;
                continue;
            }
            let (to, after) = rest.split_first_mut()?;
            *to = match part {
                KeyPart::Number(value, _) => value.number(record, now)?,
                KeyPart::Bucket(number) => {
                    let loaded = number.load(record, now, duration)?;
                    match number.is_signed() {
                        true => bucket::of_signed(loaded),
                        false => bucket::of(loaded),
                    }
                }
                KeyPart::Event | KeyPart::Text(..) => event,
            };
            rest = after;
        }
        for (to, ColumnValue { number, inverted }) in numbers.iter_mut().zip(&self.columns) {
            *to = number.load(record, now, duration)? ^ inverted;
        }
        Some(())
    }
}

/// A map at one of its events: the data of a probe.
pub(crate) struct MapAtEvent {
    map: Arc<Map>,
    role: Role,
    filter: Option<Arc<Filter>>,
}

/// The part of an event in a map.
pub(crate) enum Role {
    /// The event updates the map.
    Update {
        /// Place of the event among the map's events.
        event: u64,
        program: Arc<MapProgram>,
    },
    /// The event begins a duration.
    Begin(Matched),
}

impl MapAtEvent {
    /// Makes it for an event that has this role.
    pub(crate) fn new(map: Arc<Map>, role: Role, filter: Option<Arc<Filter>>) -> Self {
        Self { map, role, filter }
    }

    /// The filter for the event's records.
    pub(super) fn filter(&self) -> Option<&Arc<Filter>> {
        self.filter.as_ref()
    }

    /// Whether both are of the same map, and have the same role.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        let is_begin = |at: &Self| matches!(at.role, Role::Begin(_));
        Arc::ptr_eq(&self.map, &other.map) && is_begin(self) == is_begin(other)
    }

    /// Updates the map by a wanted event with these fields, or notes the begin of a duration. Any context, NMI
    /// included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(super) fn update(&self, record: &[u8], now: Moment<'_>) {
        let Some(table) = self.map.table(now.guard) else {
            return;
        };
        match &self.role {
            Role::Update { event, program } => {
                table.update(&self.map, *event, program, record, &Now(now));
            }
            Role::Begin(matched) => table.begin(&self.map, matched, record, &Now(now)),
        }
    }

    /// Counts a record that is too long to look at. Any context, NMI included, of the current CPU.
    pub(super) fn count_lacking(&self, guard: &NoPreempt) {
        if let Some(table) = self.map.table(guard) {
            table.count(MissedUpdate::Lacking);
        }
    }
}

impl CpuTable {
    #[inline(always)]
    fn update(&self, map: &Map, event: u64, program: &MapProgram, record: &[u8], now: &Now<'_>) {
        let mut duration = 0;
        if let (Some(durations), Some(matched)) = (&map.durations, &program.matched) {
            let Some(key) = matched.load(record, now) else {
                return self.count(MissedUpdate::Lacking);
            };
            let (ended, repeated) = durations.end(&key);
            if repeated != 0 {
                self.add(MissedUpdate::Repeated, repeated);
            }
            duration = match ended {
                Some(duration) => duration,
                None => return self.count(MissedUpdate::Unmatched),
            };
        }
        let (mut key, mut numbers) = ([0; MAX_KEY], [0; MAX_COLUMNS]);
        match program.load(event, record, now, duration, &mut key, &mut numbers) {
            Some(()) => self.table.update(&key, &numbers),
            None => self.count(MissedUpdate::Lacking),
        }
    }

    #[inline(always)]
    fn begin(&self, map: &Map, matched: &Matched, record: &[u8], now: &Now<'_>) {
        let Some(durations) = &map.durations else {
            return;
        };
        let Some(key) = matched.load(record, now) else {
            return self.count(MissedUpdate::Lacking);
        };
        match durations.begin(&key) {
            BeginResult::New => {}
            BeginResult::Repeated => self.count(MissedUpdate::Repeated),
            BeginResult::Evicted | BeginResult::Busy => self.count(MissedUpdate::Dropped),
        }
    }
}

impl Tables {
    /// Makes empty tables. May sleep.
    fn new(shape: MapShape) -> Result<Arc<Self>> {
        let tables = PerCpu::new(OnceArc::<CpuTable>::new)?;
        for cpu in cpu::possible() {
            let mut words = VVec::with_capacity(shape.words(), GFP_KERNEL)?;
            for _ in 0..shape.words() {
                words.push(LocalWord::new(0), GFP_KERNEL)?;
            }
            let table = CpuTable {
                table: Table::new(Words(words), shape),
                missed: [const { LocalWord::new(0) }; MissedUpdate::COUNT],
            };
            if let Some(place) = tables.of(cpu) {
                place.set(Arc::new(table, GFP_KERNEL)?);
            }
        }
        Ok(Arc::new(Self(tables), GFP_KERNEL)?)
    }
}

impl Durations {
    /// Makes an empty table. May sleep.
    fn new() -> Result<Self> {
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
    fn begin(&self, key: &[u64; PAIR_WORDS]) -> BeginResult {
        self.pairs.begin(key, self.stopwatch.read())
    }

    /// Ends the latest begin of a key. Returns the nanoseconds since then, if there is one, and the number of earlier
    /// begins of the key. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn end(&self, key: &[u64; PAIR_WORDS]) -> (Option<u64>, u64) {
        let now = self.stopwatch.read();
        let end = self.pairs.end(key);
        let took = end.since.map(|since| self.stopwatch.ns_between(since, now));
        (took, end.repeated)
    }
}

impl Map {
    /// Makes an empty map, which measures durations or not. May sleep.
    pub(crate) fn new(shape: MapShape, measures: bool) -> Result<Arc<Self>> {
        let tables = RcuArc::new();
        tables.replace(Some(Tables::new(shape)?));
        let durations = match measures {
            true => Some(Durations::new()?),
            false => None,
        };
        let map = Self {
            shape,
            tables,
            durations,
        };
        Ok(Arc::new(map, GFP_KERNEL)?)
    }

    /// The table of the current CPU.
    #[inline(always)]
    fn table<'a>(&'a self, guard: &'a NoPreempt) -> Option<&'a CpuTable> {
        self.tables.get(guard)?.0.this_cpu(guard).get()
    }

    /// The form of its tables.
    pub(crate) fn shape(&self) -> &MapShape {
        &self.shape
    }

    /// Removes all entries. An update at the same time is in the entries before or after that. May sleep.
    pub(crate) fn clear(&self) -> Result {
        self.tables.replace(Some(Tables::new(self.shape)?));
        Ok(())
    }

    /// Adds up the tables of all CPUs. May sleep.
    pub(crate) fn sums(&self) -> Result<Sums> {
        let mut entries: KVVec<MapEntry> = KVVec::new();
        let mut overflow = MapEntry::empty(&self.shape);
        let mut missed = [0_u64; MissedUpdate::COUNT];
        let tables = self.tables.get_arc().ok_or_else(enodata)?;
        for cpu in cpu::possible() {
            let Some(table) = tables.0.of(cpu).and_then(OnceArc::get_arc) else {
                continue;
            };
            table
                .table
                .for_each(|entry| Ok::<_, Error>(entries.push(entry, GFP_KERNEL)?))?;
            overflow.merge(&table.table.overflow(), &self.shape);
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
                Some(last) if last.key == entry.key => last.merge(&entry, &self.shape),
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
