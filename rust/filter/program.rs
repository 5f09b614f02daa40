// SPDX-License-Identifier: GPL-2.0

//! The compiled form of a filter.

/// Maximum number of steps: one for each comparison, and one for each field of variable size that
/// lies before a compared one.
pub const MAX_STEPS: usize = 64;

/// Maximum size of the texts and CPU lists of an expression in bytes.
pub const MAX_TEXTS: usize = 4096;

/// A filter's program: steps, and the texts that they refer to. With any steps, it ends and reads
/// only inside the record. A program without steps accepts every record.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    pub(super) steps: &'a [Step],
    pub(super) texts: &'a [u8],
}

/// A step of a program.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub(super) test: Test,
    /// Number of steps to skip after this one if the test is true. After the last step the record
    /// is accepted; one step further it is refused.
    pub(super) if_true: u8,
    /// Number of steps to skip if the test is false.
    pub(super) if_false: u8,
}

/// The decision of a program's first step, if that compares a number of whole bytes at a fixed
/// place. Mostly this is the only step, or it refuses the record.
#[derive(Clone, Copy, Debug)]
pub struct First {
    /// Offset of the number.
    pub(super) at: usize,
    pub(super) range: Range,
    /// The decision if the number is not in the range, and if it is.
    pub(super) decisions: [Decision; 2],
}

/// The decision on a record, as far as it is known. (As a number, so that it is compared by one instruction.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Decision {
    /// The record is not wanted.
    Refused,
    /// The record is wanted.
    Accepted,
    /// The rest of the record decides.
    Undecided,
}

impl First {
    /// A step that decides nothing: no record has a number there.
    const NOTHING: Self = Self {
        at: usize::MAX,
        range: Range {
            low: 0,
            mask: 0,
            span: 0,
        },
        decisions: [Decision::Undecided; 2],
    };
}

/// Test of a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    /// Whether a number is in a range. Each comparison of numbers is this test or its negation.
    Range { from: NumberAt, range: Range },
    /// Whether a number, cut to the bits of the mask, is in a set.
    Member {
        from: NumberAt,
        mask: u64,
        set: ProgramText,
    },
    /// Whether a text equals the given one.
    Equal { from: TextAt, text: ProgramText },
    /// Whether a text matches a pattern.
    Glob { from: TextAt, pattern: ProgramText },
    /// Whether two sets are the same.
    SameSet { from: BytesAt, set: ProgramText },
    /// Whether two sets have a common member.
    Intersects { from: BytesAt, set: ProgramText },
    /// No test. From now on, far values are counted from the end of this field.
    Pass(BytesAt),
}

/// The numbers whose difference to `low`, cut to the bits of the mask, is at most `span`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) low: u64,
    pub(super) mask: u64,
    pub(super) span: u64,
}

/// Bytes among the program's texts. A set has a bit for each number, from the lowest one.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramText {
    pub(super) start: u16,
    pub(super) len: u16,
}

/// Location of a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberAt {
    pub(super) source: NumberSource,
    /// Offset of the first byte, or id of the context.
    pub(super) at: u32,
}

/// Kind of access to a number.
#[derive(Clone, Copy, Debug)]
pub(super) enum NumberSource {
    /// A number of this many bits, counted from the record's beginning.
    U8,
    U16,
    U32,
    U64,
    /// A context.
    Context,
    /// A number of this many bytes, counted from the end of the last passed field.
    Far(u8),
}

/// Location of a text.
#[derive(Clone, Copy, Debug)]
pub(super) enum TextAt {
    Record(BytesAt),
    Context(u8),
}

/// Location of bytes of the record.
#[derive(Clone, Copy, Debug)]
pub(super) struct BytesAt {
    /// Whether they are counted from the end of the last passed field; else from the record's
    /// beginning.
    pub(super) is_far: bool,
    pub(super) at: u32,
    pub(super) extent: Extent,
}

/// Number of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Extent {
    /// This many bytes.
    Fixed(u32),
    /// All bytes up to a NUL.
    Terminated,
    /// The number's value times this element size.
    Counted(NumberAt, u8),
}

impl<'a> Program<'a> {
    /// Makes a program of the steps and texts of another program.
    pub const fn new(steps: &'a [Step], texts: &'a [u8]) -> Self {
        Self { steps, texts }
    }

    /// The steps, for the caller to store.
    pub const fn steps(&self) -> &'a [Step] {
        self.steps
    }

    /// The decision of its first step.
    pub fn first(&self) -> First {
        let Some(step) = self.steps.first() else {
            return First::NOTHING;
        };
        let Test::Range { from, range } = step.test else {
            return First::NOTHING;
        };
        let (NumberSource::U8 | NumberSource::U16 | NumberSource::U32 | NumberSource::U64) =
            from.source
        else {
            return First::NOTHING;
        };
        // After the last step the record is accepted; one step further it is refused.
        let end = self.steps.len();
        let decisions = [step.if_false, step.if_true].map(|skipped| match usize::from(skipped) {
            skipped if skipped >= end => Decision::Refused,
            skipped if skipped == end - 1 => Decision::Accepted,
            _ => Decision::Undecided,
        });
        First {
            at: from.at as usize,
            range,
            decisions,
        }
    }

    /// The ids of the contexts that its steps compare.
    pub fn contexts(&self) -> impl Iterator<Item = u8> + 'a {
        self.steps.iter().filter_map(|step| match step.test {
            Test::Range { from, .. } | Test::Member { from, .. } => match from.source {
                NumberSource::Context => Some(from.at as u8),
                _ => None,
            },
            Test::Equal { from, .. } | Test::Glob { from, .. } => match from {
                TextAt::Context(id) => Some(id),
                TextAt::Record(_) => None,
            },
            Test::SameSet { .. } | Test::Intersects { .. } | Test::Pass(_) => None,
        })
    }

    /// The texts, for the caller to store.
    pub const fn texts(&self) -> &'a [u8] {
        self.texts
    }
}

impl Step {
    /// A step that passes no bytes, for unused memory.
    pub const NONE: Self = Self {
        test: Test::Pass(BytesAt {
            is_far: false,
            at: 0,
            extent: Extent::Fixed(0),
        }),
        if_true: 0,
        if_false: 0,
    };

    /// Number of steps to skip after it if it is true, and if it is false.
    pub const fn skips(&self) -> [u8; 2] {
        [self.if_true, self.if_false]
    }
}
