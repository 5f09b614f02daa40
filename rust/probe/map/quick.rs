// SPDX-License-Identifier: GPL-2.0

//! Updates of a map without a record: the few values that they need are read where the event fires.
//!
//! A probe reads the values in a loop, and passes them to [`MapAtEvent::finish`]. The most frequent map counts by
//! one key: its probe has no loop, and ends in [`MapAtEvent::count_key`]. Where a value is not known without the
//! record, or the probe looks at more than tasks and one number, [`MapAtEvent::update`] takes the record.

use super::durations::Matched;
use super::program::{ColumnValue, KeyPart, MapNumber, MapProgram};
use super::{MapAtEvent, Role};
use crate::arch::preempt::NoPreempt;
use crate::arch::word::compiler_barrier;
use crate::context::Context;
use crate::filter::value::{FixedPlace, Value};
use crate::map::bucket;
use crate::probe::captured::Look;
use crate::probe::{Probe, Taker};
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

impl Quick {
    /// The update of this role. [`None`]: it needs a record.
    pub(super) fn of(role: &Role) -> Option<Self> {
        match role {
            Role::Update { event, program } => Self::of_program(*event, program),
            Role::Begin(matched) => Some(Self {
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
            KeyPart::Bucket(_) => None,
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

    /// The source of the key, if the update only counts by one key.
    pub(super) fn counted(&self) -> Option<Counted> {
        let [from, _, _] = self.sources;
        let words = match (self.form, self.action, self.has_column) {
            (KeyForm::Number, QuickAction::Update, false) => 1,
            (KeyForm::Text, QuickAction::Update, false) => 2,
            _ => return None,
        };
        Some(Counted { from, words })
    }
}

/// The source of the number of begin and end. [`None`]: they have another form.
fn of_number(matched: &Matched) -> Option<Source> {
    Source::of(matched.number()?)
}

/// Counting by one key.
#[derive(Clone, Copy)]
pub(super) struct Counted {
    from: Source,
    words: usize,
}

impl MapAtEvent {
    /// Updates the map without a record. Returns whether it did. `field` returns the words of the field at an
    /// offset. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn update_at_once(&self, field: impl Fn(usize) -> Option<[u64; 2]>) -> bool {
        let Some(quick) = &self.quick else {
            return false;
        };
        let mut words = [[0; 2]; 3];
        for (to, source) in words.iter_mut().zip(quick.sources) {
            match source.load(&field) {
                Some(loaded) => *to = loaded,
                None => return false,
            }
            // Prevents the compiler from unrolling the loop.
            compiler_barrier();
        }
        let [first, second, [number, _]] = words;
        self.finish(quick, first, second, number);
        true
    }

    /// Counts a key. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn count_key(&self, words: usize, first: u64, second: u64) {
        let guard = NoPreempt::new();
        let Some(table) = self.map.table(&guard) else {
            return;
        };
        match words {
            1 => table.update_exactly(&[first], &[]),
            _ => table.update_exactly(&[first, second], &[]),
        }
    }

    /// Updates the map by these values. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn finish(&self, quick: &Quick, first: [u64; 2], second: [u64; 2], mut number: u64) {
        let guard = NoPreempt::new();
        let Some(table) = self.map.table(&guard) else {
            return;
        };
        match quick.action {
            QuickAction::Update => {}
            QuickAction::Begin => return table.begin_number(&self.map, number),
            QuickAction::End => match table.end_number(&self.map, number) {
                Some(duration) => number = duration,
                None => return,
            },
        }
        let bucket = match quick.is_signed {
            true => bucket::of_signed(number),
            false => bucket::of(number),
        };
        let ([a, b], [c, d]) = (first, second);
        let (words, key) = match quick.form {
            KeyForm::Number => (1, [a, 0, 0]),
            KeyForm::Text => (2, [a, b, 0]),
            KeyForm::TwoNumbers => (2, [a, c, 0]),
            KeyForm::NumberAndText => (3, [a, c, d]),
            KeyForm::TextAndNumber => (3, [a, b, c]),
            KeyForm::Bucket => (1, [bucket, 0, 0]),
            KeyForm::NumberAndBucket => (2, [a, bucket, 0]),
            KeyForm::TextAndBucket => (3, [a, b, bucket]),
        };
        let number = [number ^ quick.inverted];
        let numbers = match quick.has_column {
            true => &number[..],
            false => &[],
        };
        let [a, b, _] = key;
        match words {
            1 => table.update_exactly(&[a], numbers),
            2 => table.update_exactly(&[a, b], numbers),
            _ => table.update_exactly(&key, numbers),
        }
    }
}

impl Probe {
    /// Counts a wanted event in a map by one key, if the probe looks at nothing else; else calls `otherwise`. Any
    /// context, NMI included.
    #[inline(always)]
    pub(crate) fn count_or(
        &self,
        field: impl FnOnce(usize) -> Option<[u64; 2]>,
        otherwise: impl FnOnce(),
    ) {
        if self.look.load() == Look::NO_RECORD {
            if let Taker::Map(map) = &self.taker {
                if let Some(Counted { from, words }) = map.counted {
                    if let Some([first, second]) = from.load(field) {
                        return map.count_key(words, first, second);
                    }
                }
            }
        }
        otherwise()
    }

    /// Updates the map of a wanted event without a record, if that is possible; else calls `otherwise`. The
    /// functions of the caller return what those of [`record_or`](Self::record_or) return; `field` returns the words
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
        if look & Look::TASKS != 0 && !self.is_of_wanted_task(about) {
            return;
        }
        let is_decided = match look & Look::FIELDS {
            0 => true,
            _ => match self.decides(number) {
                Some(false) => return,
                decided => decided.is_some(),
            },
        };
        match &self.taker {
            Taker::Map(map) if is_decided && map.update_at_once(&field) => {}
            _ => otherwise(),
        }
    }
}
