// SPDX-License-Identifier: GPL-2.0

//! Updates of a map without a record: the few values that they need are read where the event fires.
//!
//! A probe reads the values, and ends in a function of the action. The most frequent updates need one value: their
//! probe ends in [`MapAtEvent::update_single`]. Where a value is not known without the record, or the probe looks at
//! more than tasks and one number, [`MapAtEvent::update`] takes the record.

use super::durations::Matched;
use super::program::{ColumnValue, KeyPart, MapNumber, MapProgram};
use super::tables::CpuTable;
use super::{MapAtEvent, Role};
use crate::arch::preempt::NoPreempt;
use crate::context::Context;
use crate::filter::program::Decision;
use crate::filter::value::{FixedPlace, Value};
use crate::map::bucket;
use crate::probe::captured::Look;
use crate::probe::{Probe, Sink};
use crate::sys::args::{Task, TaskWord};

/// A source of the two words of a text, or of a number and 0.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Two words that are 0.
    Zero,
    /// A field of the event, by its offset in the record.
    Field(usize),
    /// A number of the running task.
    Task(TaskWord),
    /// The name of the running task.
    Comm,
    /// This number.
    Constant(u64),
}

impl Source {
    /// The source of a value. [`None`]: there is none.
    fn of(value: &Value) -> Option<Self> {
        match value.fixed_place()? {
            FixedPlace::Number(at) | FixedPlace::Text(at) => Some(Self::Field(at)),
            FixedPlace::Context(id) => match *Context::ALL.get(usize::from(id))? {
                Context::Comm => Some(Self::Comm),
                context => context.field_of_task().map(Self::Task),
            },
        }
    }

    /// Reads the words. `field` returns those of the field at an offset.
    #[inline(always)]
    fn load(self, field: impl FnOnce(usize) -> Option<[u64; 2]>) -> Option<[u64; 2]> {
        match self {
            Self::Zero => Some([0; 2]),
            Self::Field(at) => field(at),
            Self::Task(word) => Some([i64::from(Task::current().word(word)) as u64, 0]),
            Self::Comm => Some(words_of(Task::current().comm())),
            Self::Constant(number) => Some([number, 0]),
        }
    }
}

/// The words of a text of 16 bytes.
#[inline(always)]
pub(crate) fn words_of(text: [u8; 16]) -> [u64; 2] {
    let text = u128::from_le_bytes(text);
    [text as u64, text.wrapping_shr(64) as u64]
}

/// The parts of a key, and thus the words that are used of the two that each source has.
#[derive(Clone, Copy)]
enum KeyForm {
    Number,
    Text,
    TwoNumbers,
    NumberAndText,
    TextAndNumber,
    Bucket,
    NumberAndBucket,
    TextAndBucket,
}

/// The action of an update without a record.
#[derive(Clone, Copy)]
enum QuickAction {
    /// Updates the key by the number.
    Update,
    /// Ends the duration of the number's begin, and updates the key by it.
    End,
    /// Begins a duration.
    Begin,
}

/// An update without a record.
pub(super) struct Quick {
    /// Sources of the key's two parts; and of the number of column and histogram, or of begin and end.
    sources: [Source; 3],
    form: KeyForm,
    action: QuickAction,
    /// Whether buckets are of a signed number.
    is_signed: bool,
    has_column: bool,
    /// See [`ColumnValue`].
    inverted: u64,
}

/// The words that the two parts of a key have.
type Parts = [[u64; 2]; 2];

impl Quick {
    /// The update of this role. [`None`]: it needs a record.
    pub(super) fn of(role: &Role) -> Option<Self> {
        match role {
            Role::Update { event, program } => Self::of_program(*event, program),
            // Keys are kept with the record.
            Role::Begin(_, keys) if !keys.is_empty() => None,
            Role::Begin(matched, _) => Some(Self {
                sources: [Source::Zero, Source::Zero, of_number(matched)?],
                form: KeyForm::Number,
                action: QuickAction::Begin,
                is_signed: false,
                has_column: false,
                inverted: 0,
            }),
        }
    }

    fn of_program(event: u64, program: &MapProgram) -> Option<Self> {
        if program.has_begun() {
            return None;
        }
        let (parts, bucket) = match program.keys() {
            [parts @ .., KeyPart::Bucket(number)] => (parts, Some(number)),
            parts => (parts, None),
        };
        let (column, inverted) = match program.columns() {
            [] => (None, 0),
            [ColumnValue { number, inverted }] => (Some(number), *inverted),
            _ => return None,
        };
        let source = |part: &KeyPart| match part {
            KeyPart::Event => Some((Source::Constant(event), false)),
            KeyPart::Number(value, _) => Some((Source::of(value)?, false)),
            KeyPart::Text(value, words) => (*words == 2).then_some((Source::of(value)?, true)),
            KeyPart::Bucket(_) | KeyPart::Stack | KeyPart::UserStack => None,
        };
        let (first, second, form) = match (parts, bucket) {
            ([], None) => (Source::Zero, Source::Zero, KeyForm::Number),
            ([], Some(_)) => (Source::Zero, Source::Zero, KeyForm::Bucket),
            ([one], bucket) => {
                let (one, is_text) = source(one)?;
                let form = match (is_text, bucket.is_some()) {
                    (false, false) => KeyForm::Number,
                    (true, false) => KeyForm::Text,
                    (false, true) => KeyForm::NumberAndBucket,
                    (true, true) => KeyForm::TextAndBucket,
                };
                (one, Source::Zero, form)
            }
            ([one, two], None) => {
                let ((one, is_text), (two, then_text)) = (source(one)?, source(two)?);
                let form = match (is_text, then_text) {
                    (false, false) => KeyForm::TwoNumbers,
                    (false, true) => KeyForm::NumberAndText,
                    (true, false) => KeyForm::TextAndNumber,
                    (true, true) => return None,
                };
                (one, two, form)
            }
            _ => return None,
        };
        let number = |number: &MapNumber| match number {
            MapNumber::Value(value, _) => Source::of(value).map(Some),
            MapNumber::Duration => Some(None),
        };
        let mut numbers = Iterator::chain(bucket.into_iter(), column).map(number);
        // [`None`] is the duration.
        let value = match (numbers.next(), numbers.next()) {
            (None, _) => None,
            (Some(one), None) => Some(one?),
            (Some(one), Some(other)) if one == other => Some(one?),
            _ => return None,
        };
        let (third, action) = match (&program.matched, value) {
            (None, None) => (Source::Zero, QuickAction::Update),
            (None, Some(value)) => (value?, QuickAction::Update),
            (Some(matched), None | Some(None)) => (of_number(matched)?, QuickAction::End),
            (Some(_), Some(Some(_))) => return None,
        };
        Some(Self {
            sources: [first, second, third],
            form,
            action,
            is_signed: bucket.is_some_and(MapNumber::is_signed),
            has_column: column.is_some(),
            inverted,
        })
    }

    /// Updates a known key. Returns whether it did.
    #[inline(always)]
    fn update(&self, table: &CpuTable, [[a, b], [c, d]]: Parts, number: u64) -> bool {
        let column = self.column(number);
        let bucket = || self.bucket(number);
        match self.form {
            KeyForm::Number => table.update_known(&[a], column),
            KeyForm::Text => table.update_known(&[a, b], column),
            KeyForm::Bucket => table.update_known(&[bucket()], column),
            KeyForm::TwoNumbers => table.update_known(&[a, c], column),
            KeyForm::NumberAndBucket => table.update_known(&[a, bucket()], column),
            KeyForm::NumberAndText => table.update_known(&[a, c, d], column),
            KeyForm::TextAndNumber => table.update_known(&[a, b, c], column),
            KeyForm::TextAndBucket => table.update_known(&[a, b, bucket()], column),
        }
    }

    /// Updates any key.
    #[inline(always)]
    fn update_any(&self, table: &CpuTable, [[a, b], [c, d]]: Parts, number: u64) {
        let bucket = self.bucket(number);
        // The table takes the words that its keys have.
        let key = match self.form {
            KeyForm::Number | KeyForm::Text => [a, b, 0],
            KeyForm::Bucket => [bucket, 0, 0],
            KeyForm::TwoNumbers | KeyForm::NumberAndText => [a, c, d],
            KeyForm::NumberAndBucket => [a, bucket, 0],
            KeyForm::TextAndNumber => [a, b, c],
            KeyForm::TextAndBucket => [a, b, bucket],
        };
        table.update_any(&key, self.column(number));
    }

    #[inline(always)]
    fn column(&self, number: u64) -> Option<u64> {
        self.has_column.then_some(number ^ self.inverted)
    }

    #[inline(always)]
    fn bucket(&self, number: u64) -> u64 {
        match self.is_signed {
            true => bucket::of_signed(number),
            false => bucket::of(number),
        }
    }
}

/// The source of the number of begin and end. [`None`]: they have another form.
fn of_number(matched: &Matched) -> Option<Source> {
    Source::of(matched.number()?)
}

/// An update that needs one value: the most frequent ones.
pub(super) struct Single {
    from: Source,
    action: SingleAction,
}

#[derive(Clone, Copy)]
enum SingleAction {
    /// The map needs several values, or the record.
    Nothing,
    CountNumber,
    CountText,
    Begin,
}

impl Single {
    /// The same update, if it needs one value only.
    pub(super) fn of(quick: Option<&Quick>) -> Self {
        let (from, action) = match quick {
            Some(Quick {
                sources: [from, _, number],
                form,
                action,
                has_column,
                ..
            }) => match (action, form, has_column) {
                (QuickAction::Begin, _, _) => (*number, SingleAction::Begin),
                (QuickAction::Update, KeyForm::Number, false) => (*from, SingleAction::CountNumber),
                (QuickAction::Update, KeyForm::Text, false) => (*from, SingleAction::CountText),
                _ => (Source::Zero, SingleAction::Nothing),
            },
            None => (Source::Zero, SingleAction::Nothing),
        };
        Self { from, action }
    }
}

// Each function does one thing, and ends in the next one. So none keeps values across a call.
impl MapAtEvent {
    /// Updates the map without a record. Returns whether it did. `field` returns the words of the field at an
    /// offset. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn update_at_once(&self, field: impl Fn(usize) -> Option<[u64; 2]>) -> bool {
        let Some(quick) = &self.quick else {
            return false;
        };
        let [first, second, third] = &quick.sources;
        let Some([a, b]) = first.load(&field) else {
            return false;
        };
        if let SingleAction::CountNumber | SingleAction::CountText = self.single.action {
            self.update_single(a, b);
            return true;
        }
        let Some([c, d]) = second.load(&field) else {
            return false;
        };
        let Some([number, _]) = third.load(&field) else {
            return false;
        };
        match quick.action {
            QuickAction::Update => self.update_by(a, b, c, d, number),
            QuickAction::End => self.end(a, b, c, d, number),
            QuickAction::Begin => self.begin(number),
        }
        true
    }

    /// Updates the map by its only value. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn update_single(&self, first: u64, second: u64) {
        if let SingleAction::Begin = self.single.action {
            return self.begin(first);
        }
        let guard = NoPreempt::new();
        let is_known = match (self.map.table(&guard), self.single.action) {
            (Some(table), SingleAction::CountNumber) => table.update_known(&[first], None),
            (Some(table), _) => table.update_known(&[first, second], None),
            (None, _) => true,
        };
        if !is_known {
            self.update_any([[first, second], [0; 2]], 0, guard);
        }
    }

    /// Updates the map by a number. The other words are those of the key's parts; all arguments are in registers. Any
    /// context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn update_by(&self, a: u64, b: u64, c: u64, d: u64, number: u64) {
        self.update_by_number([[a, b], [c, d]], number, NoPreempt::new());
    }

    #[inline(always)]
    fn update_by_number(&self, parts: Parts, number: u64, guard: NoPreempt) {
        let is_known = match (&self.quick, self.map.table(&guard)) {
            (Some(quick), Some(table)) => quick.update(table, parts, number),
            _ => true,
        };
        if !is_known {
            self.update_any(parts, number, guard);
        }
    }

    /// The same for a key that is not in the first of its slots, or not yet in the table.
    #[cold]
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn update_any(&self, parts: Parts, number: u64, guard: NoPreempt) {
        if let (Some(quick), Some(table)) = (&self.quick, self.map.table(&guard)) {
            quick.update_any(table, parts, number);
        }
    }

    /// Begins the duration of a number. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn begin(&self, number: u64) {
        let guard = NoPreempt::new();
        let is_begun = match &self.map.durations {
            Some(durations) => durations.begin_at_once(number),
            None => true,
        };
        if !is_begun {
            self.begin_any(number, guard);
        }
    }

    /// The same at any cost.
    #[cold]
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn begin_any(&self, number: u64, guard: NoPreempt) {
        if let Some(table) = self.map.table(&guard) {
            table.begin_number(&self.map, number);
        }
    }

    /// Ends the duration of a number, and updates the map by it. The other words are those of the key's parts. Any
    /// context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn end(&self, a: u64, b: u64, c: u64, d: u64, number: u64) {
        let parts = [[a, b], [c, d]];
        let guard = NoPreempt::new();
        let durations = self.map.durations.as_ref();
        match durations.and_then(
            #[inline(always)]
            |durations| durations.end_at_once(number),
        ) {
            Some(duration) => self.update_by_number(parts, duration, guard),
            None => self.end_any(parts, number, guard),
        }
    }

    /// The same at any cost.
    #[cold]
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn end_any(&self, parts: Parts, number: u64, guard: NoPreempt) {
        if let (Some(quick), Some(table)) = (&self.quick, self.map.table(&guard)) {
            if let Some(duration) = table.end_number(&self.map, number) {
                quick.update_any(table, parts, duration);
            }
        }
    }
}

impl Probe {
    /// Updates the map of a wanted event by one value, if the probe needs and looks at nothing else; else calls
    /// `otherwise`. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn update_single_or(
        &self,
        field: impl FnOnce(usize) -> Option<[u64; 2]>,
        otherwise: impl FnOnce(),
    ) {
        if self.look.load() == Look::NO_RECORD {
            if let Sink::Map(map) = &self.sink {
                if !matches!(map.single.action, SingleAction::Nothing) {
                    if let Some([first, second]) = map.single.from.load(field) {
                        return map.update_single(first, second);
                    }
                }
            }
        }
        otherwise()
    }

    /// Updates the map of a wanted event without a record, if that is possible; else calls `otherwise`. The
    /// functions of the caller return what those of [`handle_or`](Self::handle_or) return; `field` returns the words
    /// of the field at an offset. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn update_or(
        &self,
        about: impl FnOnce() -> Option<i32>,
        number: impl FnOnce(usize) -> Option<u64>,
        field: impl Fn(usize) -> Option<[u64; 2]>,
        otherwise: impl FnOnce(),
    ) {
        let look = self.look.load();
        if look & !(Look::NO_RECORD | Look::TASKS | Look::FIELDS) != 0 {
            return otherwise();
        }
        let wanted = self.wants(look & (Look::TASKS | Look::FIELDS), about, &[], number);
        match (wanted, &self.sink) {
            (Decision::Refused, _) => {}
            (Decision::Accepted, Sink::Map(map)) if map.update_at_once(&field) => {}
            _ => otherwise(),
        }
    }
}
