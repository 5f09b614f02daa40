// SPDX-License-Identifier: GPL-2.0

//! `rtrace count -i`: the tables that the kernel's maps would have had, from the events of a recorded trace.

use super::place::{shown, Key, Number, Update};
use crate::condition::{is_picked, Values};
use crate::finder::{Finder, Source};
use analysis::loss::Loss;
use analysis::syscalls::edge;
use analysis::{bits, key, Analysis, Answer, Catalogue, EventKey, Moment, Nothing};
use anyhow::bail;
use ctf::{Clock, Event, EventLayout, Type, Value};
use rtrace_abi::schema::{Shown, CUT};
use rtrace_input::map::{ColumnKind, LinePart, MapLine, MAX_SIZE};
use rtrace_input::pattern::Pattern;
use rtrace_map::bucket;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use store::maps::{MapKey, MapRow, MapTable, UserStack, STACK, USER_STACK};
use symbols::{Side, Stacks, Symbols};
use system::printing::text;

/// Bytes of a text that is a key. The kernel cuts longer texts.
const LONGEST_TEXT: usize = 32;

/// Distance from the begin of a function up to which a place in it is shown without the distance, as the kernel shows it.
const NEAR: u64 = 16;

/// A map of a recorded trace's events.
pub struct Recorded<'a> {
    keys: Vec<EventKey>,
    /// The parts of these events in the map.
    at: Vec<AtEvent>,
    state: State,
    /// Destination of the complete table.
    out: &'a mut Vec<MapTable>,
}

/// The part of an event in the map.
#[derive(Default)]
struct AtEvent {
    /// If the event begins a duration: the values that are the same at the end.
    begins: Option<Vec<Source>>,
    /// The values of a begin that are keys.
    kept: Vec<(Source, Type)>,
    /// If the event ends one: the values that are the same at the begin.
    ends: Option<Vec<Source>>,
    /// The update, unless the event only begins a duration.
    update: Option<Update>,
    /// The call stacks that are keys: of the begin, if there is one.
    stacks: Vec<(Side, Stacks)>,
}

/// A column beside the count.
struct Column {
    kind: ColumnKind,
    is_signed: bool,
}

/// The begin of a duration.
#[derive(Default)]
struct Begin {
    time: u64,
    stacks: Vec<MapKey>,
    /// The values that are keys.
    kept: Vec<MapKey>,
}

struct State {
    /// The table, without its rows.
    table: MapTable,
    columns: Vec<Column>,
    /// Whether the value of the histogram can be negative.
    is_signed: bool,
    rows: HashMap<(Vec<MapKey>, Option<u64>), Vec<u64>>,
    overflow: Vec<u64>,
    /// Begins without an end so far, by the values of `match`.
    begun: HashMap<Vec<u64>, Begin>,
    /// Whether a single value is matched, the id of a thread. All idle threads have the same id.
    is_of_threads: bool,
    /// Events may be missing up to this time.
    lost_until: u64,
    clock: Clock,
    symbols: Option<Symbols>,
}

impl<'a> Recorded<'a> {
    /// The map that a line defines, for the trace in `dir`. Adds the complete table to `out`.
    pub fn new(
        line: &str,
        dir: &Path,
        catalogue: &Catalogue<'_>,
        out: &'a mut Vec<MapTable>,
    ) -> anyhow::Result<Self> {
        let map = match MapLine::parse(line) {
            Ok(MapLine::Define(map)) => map,
            Ok(MapLine::Delete(_)) => bail!("`{line}` defines no map"),
            Err(error) => bail!("{}", error.shown(line)),
        };
        let table = MapTable::empty(line, &map);
        let names = table.keys.iter().map(String::as_str);
        let stacks: Vec<_> = names
            .filter(|key| [STACK, USER_STACK].contains(key))
            .collect();
        let mut at: BTreeMap<EventKey, AtEvent> = BTreeMap::new();
        let begins = map.begins.map(|begins| picked(begins, catalogue));
        let begins = begins.transpose()?.unwrap_or_default();
        let begin = begins.first().map(|layout| Finder { layout, catalogue });
        let mut form = None;
        let mut begun = Vec::new();
        for layout in picked(map.events, catalogue)? {
            let finder = Finder { layout, catalogue };
            let at = at.entry(key(layout)).or_default();
            let update = finder.update(&map, &stacks, begin.as_ref())?;
            // As in the kernel: rows of all events can be compared.
            if form.is_none() {
                form = Some(update.form());
                begun.clone_from(&update.begun);
            }
            if form != Some(update.form()) || begun != update.begun {
                bail!("{} has keys or values of another type", layout.name);
            }
            at.update = Some(update);
            match map.begins {
                Some(_) => at.ends = Some(finder.matched(map.matched.map(|(_, end)| end))?),
                None => at.stacks = finder.stacks(&stacks)?,
            }
        }
        let form = form.unwrap_or_default();
        let kept: Vec<_> = match &begin {
            Some(begin) => {
                let kept = begun.iter().map(|name| Ok(begin.value(name)?.1));
                kept.collect::<anyhow::Result<_>>()?
            }
            None => Vec::new(),
        };
        let kinds = map.columns.iter().flatten().map(|(kind, _)| *kind);
        let columns = kinds.zip(form.columns);
        let columns = columns.map(|(kind, is_signed)| Column { kind, is_signed });
        for layout in &begins {
            let finder = Finder { layout, catalogue };
            let at = at.entry(key(layout)).or_default();
            at.begins = Some(finder.matched(map.matched.map(|(begin, _)| begin))?);
            at.stacks = finder.stacks(&stacks)?;
            for (name, first) in begun.iter().zip(&kept) {
                let (source, ty) = finder.value(name)?;
                if shown(&ty) != shown(first) {
                    bail!("`{name}` of {} has another type", layout.name);
                }
                at.kept.push((source, ty));
            }
        }
        let is_thread =
            |side: LinePart<'_>| side.text.ends_with("tid") || side.text.ends_with("pid");
        let mut sides = map
            .matched
            .into_iter()
            .flat_map(|(begin, end)| [begin, end]);
        let is_of_threads = sides.all(|side| side.items().count() == 1 && is_thread(side));
        let symbols = || Symbols::of(dir, catalogue.metadata());
        let has_places = at
            .values()
            .flat_map(|at| &at.update)
            .any(Update::has_places);
        let state = State {
            overflow: vec![0; table.columns.len()],
            columns: columns.collect(),
            is_signed: form.hist.unwrap_or(false),
            rows: HashMap::new(),
            begun: HashMap::new(),
            is_of_threads,
            lost_until: 0,
            clock: catalogue.metadata().clock,
            symbols: (has_places || !stacks.is_empty()).then(symbols),
            table,
        };
        let (keys, at) = at.into_iter().unzip();
        Ok(Self {
            keys,
            at,
            state,
            out,
        })
    }
}

/// The events that patterns pick. A pattern without an event is an error.
fn picked<'a>(
    patterns: LinePart<'_>,
    catalogue: &Catalogue<'a>,
) -> anyhow::Result<Vec<&'a EventLayout>> {
    let patterns = patterns.items().map(|part| Pattern::parse(part.text));
    let patterns: Vec<_> = patterns.collect();
    let picks = |pattern: &Pattern<'_>, layout: &EventLayout| {
        let is_call = edge(layout).is_some();
        let names = [&layout.name, decode::event_in_kernel(&layout.name)];
        names.iter().any(|name| is_picked(pattern, name, is_call))
    };
    for pattern in &patterns {
        if !catalogue.events().any(|layout| picks(pattern, layout)) {
            bail!("the trace has no event that matches `{pattern}`");
        }
    }
    let events = catalogue.events();
    let events = events.filter(|layout| patterns.iter().any(|pattern| picks(pattern, layout)));
    Ok(events.collect())
}

impl Analysis for Recorded<'_> {
    fn events(&self) -> Vec<EventKey> {
        self.keys.clone()
    }

    fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        let (at, state) = (&self.at[which], &mut self.state);
        // As in the kernel: an event ends a duration before it begins one.
        if let Some(update) = &at.update {
            state.update(at, update, event, now);
        }
        if let Some(begins) = &at.begins {
            state.begin(begins, at, event, now);
        }
    }

    fn loss(&mut self, loss: &Loss) {
        if loss.any() {
            self.state.begun.clear();
            self.state.lost_until = self.state.lost_until.max(loss.to);
        }
    }

    fn answer(self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        self.out.push(self.state.table());
        Box::new(Nothing)
    }
}

impl State {
    fn update(&mut self, at: &AtEvent, update: &Update, event: &Event<'_>, now: &Moment<'_>) {
        if let Some((condition, sources)) = &update.filter {
            let values = sources.iter().map(|source| source.held(event, now));
            if !condition.wants(&Values(values.collect())) {
                return;
            }
        }
        let (duration, begun) = match &at.ends {
            None => {
                let stacks = self.stacks(&at.stacks, event, now);
                let begun = Begin {
                    stacks,
                    ..Begin::default()
                };
                (0, begun)
            }
            Some(ends) => {
                let Some(key) = self.matched(ends, event, now) else {
                    self.table.lacking += 1;
                    return;
                };
                let Some(begin) = self.begun.remove(&key) else {
                    if let Some(unpaired) = &mut self.table.unpaired {
                        unpaired.unmatched += 1;
                    }
                    return;
                };
                let since = self.clock.nanoseconds(begin.time);
                let duration = self.clock.nanoseconds(now.time).saturating_sub(since);
                (duration, begin)
            }
        };
        let number = |number: &Number| match number {
            Number::Value(source, _) => bits(source.value(event, now)),
            Number::Duration => Some(duration),
        };
        let numbers = update
            .columns
            .iter()
            .map(number)
            .collect::<Option<Vec<_>>>();
        let bucket = update.hist.as_ref().map(number);
        let keys = update.keys.iter().map(|key| match key {
            Key::Event(name) => Some(MapKey::Text(name.clone())),
            Key::Stack(place) => begun.stacks.get(*place).cloned(),
            Key::Begun(place, _) => begun.kept.get(*place).cloned(),
            Key::Value(source, ty) => self.key(source.value(event, now)?, ty, now),
        });
        let keys = keys.collect::<Option<Vec<_>>>();
        let (Some(numbers), Some(keys), None | Some(Some(_))) = (numbers, keys, bucket) else {
            self.table.lacking += 1;
            return;
        };
        let bucket = bucket.flatten().map(|number| match self.is_signed {
            true => bucket::of_signed(number),
            false => bucket::of(number),
        });
        let key = (keys, bucket);
        let has_room = self.rows.len() < MAX_SIZE as usize || self.rows.contains_key(&key);
        let row = match has_room {
            true => self
                .rows
                .entry(key)
                .or_insert_with(|| vec![0; 1 + numbers.len()]),
            false => &mut self.overflow,
        };
        add(row, &self.columns, &numbers);
    }

    fn begin(&mut self, begins: &[Source], at: &AtEvent, event: &Event<'_>, now: &Moment<'_>) {
        let key = self.matched(begins, event, now);
        let kept = at.kept.iter();
        let kept = kept.map(|(source, ty)| self.key(source.value(event, now)?, ty, now));
        let kept = kept.collect::<Option<Vec<_>>>();
        let (Some(key), Some(kept), Some(mut unpaired)) = (key, kept, self.table.unpaired) else {
            self.table.lacking += 1;
            return;
        };
        if now.time <= self.lost_until || self.begun.len() >= MAX_SIZE as usize {
            unpaired.dropped += 1;
        } else {
            let begin = Begin {
                time: now.time,
                stacks: self.stacks(&at.stacks, event, now),
                kept,
            };
            let before = self.begun.insert(key, begin);
            unpaired.repeated += u64::from(before.is_some());
        }
        self.table.unpaired = Some(unpaired);
    }

    /// The values that are the same at a begin and its end. The idle threads of different CPUs differ.
    fn matched(&self, sources: &[Source], event: &Event<'_>, now: &Moment<'_>) -> Option<Vec<u64>> {
        let values = sources.iter().map(|source| bits(source.value(event, now)));
        let mut values = values.collect::<Option<Vec<_>>>()?;
        if self.is_of_threads && values == [0] {
            values.push(now.cpu as u64);
        }
        Some(values)
    }

    fn key(&self, value: Value<'_>, ty: &Type, now: &Moment<'_>) -> Option<MapKey> {
        Some(match (value, shown(ty)) {
            (Value::Text(bytes), _) if bytes.len() > LONGEST_TEXT => {
                let bytes = [&bytes[..LONGEST_TEXT - CUT.len()], &CUT].concat();
                MapKey::Text(text(&bytes).into_owned())
            }
            (Value::Text(bytes), _) => MapKey::Text(text(bytes).into_owned()),
            (Value::Signed(number), _) => MapKey::Number(number.into()),
            (Value::Unsigned(number), Shown::Hex) => MapKey::Text(format!("{number:#x}")),
            (Value::Unsigned(number), Shown::Address) => MapKey::Text(self.place(number, now)),
            (Value::Unsigned(number), _) => MapKey::Number(number.into()),
            (Value::Float(_) | Value::Integers(_), _) => return None,
        })
    }

    /// The place in the kernel's code that has an address, as the kernel shows it.
    fn place(&self, address: u64, now: &Moment<'_>) -> String {
        let ns = self.clock.nanoseconds(now.time);
        let symbols = self.symbols.as_ref();
        match symbols.and_then(|symbols| symbols.kernel(ns, address)) {
            Some(symbol) => match address.saturating_sub(symbol.address) {
                ..=NEAR => symbol.name.clone(),
                distance => format!("{}+{distance:#x}", symbol.name),
            },
            None => format!("{address:#x}"),
        }
    }

    /// The call stacks of an event.
    fn stacks(
        &self,
        stacks: &[(Side, Stacks)],
        event: &Event<'_>,
        now: &Moment<'_>,
    ) -> Vec<MapKey> {
        let keys = stacks.iter().map(|(side, stacks)| {
            let addresses = stacks.frames(event, *side).map(|frame| frame.address);
            let pid = now.owner().id().and_then(|pid| u32::try_from(pid).ok());
            match (side, pid) {
                (Side::User, Some(pid)) => {
                    let addresses: Vec<_> = addresses.collect();
                    match addresses.is_empty() {
                        true => MapKey::Text("-".to_owned()),
                        false => MapKey::UserStack(UserStack {
                            pid,
                            end: stacks.raw_end(event).unwrap_or(0),
                            addresses,
                        }),
                    }
                }
                (Side::User, None) => MapKey::Text("-".to_owned()),
                (Side::Kernel, _) => {
                    let places: Vec<_> = addresses.map(|at| self.place(at, now)).collect();
                    MapKey::Text(match places.is_empty() {
                        true => "-".to_owned(),
                        false => places.join(";"),
                    })
                }
            }
        });
        keys.collect()
    }

    /// The complete table.
    fn table(mut self) -> MapTable {
        let columns = &self.columns;
        let shown = |numbers: &[u64]| {
            let signs = columns.iter().map(|column| column.is_signed);
            let signs = [false].into_iter().chain(signs);
            let numbers = numbers.iter().zip(signs);
            numbers
                .map(|(number, is_signed)| signed(*number, is_signed))
                .collect()
        };
        let mut rows: Vec<_> = self
            .rows
            .iter()
            .map(|((keys, bucket), numbers)| MapRow {
                keys: keys.clone(),
                bucket: bucket.map(|first| {
                    let last = match self.is_signed {
                        true => bucket::last_signed(first),
                        false => bucket::last(first),
                    };
                    (signed(first, self.is_signed), signed(last, self.is_signed))
                }),
                numbers: shown(numbers),
            })
            .collect();
        rows.sort_by(|a, b| (&a.keys, a.bucket).cmp(&(&b.keys, b.bucket)));
        self.table.rows = rows;
        self.table.overflow = shown(&self.overflow);
        if let Some(symbols) = &mut self.symbols {
            symbols.name_maps(std::slice::from_mut(&mut self.table));
        }
        self.table
    }
}

fn signed(number: u64, is_signed: bool) -> i128 {
    match is_signed {
        true => (number as i64).into(),
        false => number.into(),
    }
}

/// Adds the values of an event to the numbers of a row, whose first is the count.
fn add(row: &mut [u64], columns: &[Column], values: &[u64]) {
    let Some((count, numbers)) = row.split_first_mut() else {
        return;
    };
    for ((number, Column { kind, is_signed }), value) in numbers.iter_mut().zip(columns).zip(values)
    {
        let is_less = signed(*value, *is_signed) < signed(*number, *is_signed);
        let is_new = match kind {
            ColumnKind::Sum => {
                *number = number.wrapping_add(*value);
                continue;
            }
            ColumnKind::Min => is_less,
            ColumnKind::Max => !is_less,
        };
        if is_new || *count == 0 {
            *number = *value;
        }
    }
    *count += 1;
}
