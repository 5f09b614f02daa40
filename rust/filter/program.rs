// SPDX-License-Identifier: GPL-2.0

//! What a filter is made into.

/// So many steps has a program at most: one for each comparison, and one for each field of
/// variable size that lies before a compared one.
pub const MAX_STEPS: usize = 64;

/// Bytes that the texts and CPU lists of an expression take at most.
pub const MAX_TEXTS: usize = 4096;

/// A filter's program: steps, and the texts that these name. Whatever the steps are, it ends and
/// reads nothing outside of the record. A program without steps wants every record.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    pub(super) steps: &'a [Step],
    pub(super) texts: &'a [u8],
}

/// A step of a program.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub(super) test: Test,
    /// So many steps are skipped behind it if the test is true. Behind the last step, the record
    /// is wanted; one further it is not.
    pub(super) if_true: u8,
    /// The same if the test is false.
    pub(super) if_false: u8,
}

/// What the first step of a program decides alone, where it compares a number of whole bytes at a
/// fixed place: mostly that is all there is, or the record is refused.
#[derive(Clone, Copy, Debug)]
pub struct First {
    pub(super) at: usize,
    pub(super) range: Range,
    /// Whether the record is refused if the number is not in the range, and if it is.
    pub(super) refused: [bool; 2],
    /// Whether it is the only step.
    pub(super) is_all: bool,
}

impl First {
    /// It decides nothing.
    const NOTHING: Self = Self {
        at: 0,
        range: Range {
            low: 0,
            mask: 0,
            span: 0,
        },
        refused: [false; 2],
        is_all: false,
    };
}

/// What a step finds out.
#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    /// Whether a number is in a range. All comparisons of numbers are this or its contrary.
    Range { from: NumberAt, range: Range },
    /// Whether a number is in a set, after all bits but those of the mask are cut off.
    Member {
        from: NumberAt,
        mask: u64,
        set: Text,
    },
    /// Whether a text is the one given.
    Equal { from: TextAt, text: Text },
    /// Whether a text matches a pattern.
    Glob { from: TextAt, pattern: Text },
    /// Whether two sets are the same.
    SameSet { from: BytesAt, set: Text },
    /// Whether two sets have a member in common.
    Intersects { from: BytesAt, set: Text },
    /// Nothing. What is far counts from behind this field from now on.
    Pass(BytesAt),
}

/// The numbers of which the difference to `low`, cut to the bits of the mask, is at most `span`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) low: u64,
    pub(super) mask: u64,
    pub(super) span: u64,
}

/// Bytes among the program's texts. Those of a set have a bit for each number, from the lowest
/// one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    pub(super) start: u16,
    pub(super) len: u16,
}

/// Where a number is.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberAt {
    pub(super) source: Source,
    /// The first byte, or which context it is.
    pub(super) at: u32,
    /// The first bit of that byte, where the source is bits.
    pub(super) shift: u8,
    /// How many, where the source is bits.
    pub(super) bits: u8,
}

/// How a number is read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// So many bytes.
    U8,
    U16,
    U32,
    U64,
    /// A context.
    Context,
    /// Any bits.
    Bits,
    /// Any bits that are far.
    FarBits,
}

/// Where a text is.
#[derive(Clone, Copy, Debug)]
pub(super) enum TextAt {
    Record(BytesAt),
    Context(u8),
}

/// Where bytes of the record are.
#[derive(Clone, Copy, Debug)]
pub(super) struct BytesAt {
    /// Whether they are counted from behind the last field that was passed; else from the
    /// record's beginning.
    pub(super) is_far: bool,
    pub(super) at: u32,
    pub(super) extent: Extent,
}

/// How many bytes there are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Extent {
    /// So many.
    Fixed(u32),
    /// Up to a NUL.
    Terminated,
    /// As many elements as the number says, of so many bytes each.
    Counted(NumberAt, u8),
}

impl<'a> Program<'a> {
    /// Of steps and texts that were those of another program.
    pub const fn new(steps: &'a [Step], texts: &'a [u8]) -> Self {
        Self { steps, texts }
    }

    /// The steps, to be kept.
    pub const fn steps(&self) -> &'a [Step] {
        self.steps
    }

    /// What its first step decides.
    pub fn first(&self) -> First {
        let Some(step) = self.steps.first() else {
            return First::NOTHING;
        };
        let Test::Range { from, range } = step.test else {
            return First::NOTHING;
        };
        let (Source::U8 | Source::U16 | Source::U32 | Source::U64) = from.source else {
            return First::NOTHING;
        };
        // Behind the last step, the record is wanted; one further it is not.
        let end = self.steps.len();
        let refused = [step.if_false, step.if_true].map(|skipped| usize::from(skipped) >= end);
        First {
            at: from.at as usize,
            range,
            refused,
            is_all: end == 1,
        }
    }

    /// The texts, to be kept.
    pub const fn texts(&self) -> &'a [u8] {
        self.texts
    }
}

impl Step {
    /// One that passes no bytes, to fill memory with.
    pub const NONE: Self = Self {
        test: Test::Pass(BytesAt {
            is_far: false,
            at: 0,
            extent: Extent::Fixed(0),
        }),
        if_true: 0,
        if_false: 0,
    };

    /// How many steps are skipped behind it if it is true, and if it is false.
    pub const fn skips(&self) -> [u8; 2] {
        [self.if_true, self.if_false]
    }
}
