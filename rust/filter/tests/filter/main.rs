// SPDX-License-Identifier: GPL-2.0

//! Filters: errors with their positions, and accepted records.

mod directed;
mod random;
mod simple;
mod value;

use rtrace_abi::schema::{Field, FieldType, Integer, Shown};
use rtrace_filter::compile::{compile, FilterContext, FilterNames, ProgramMemory};
use rtrace_filter::evaluate::Contexts;
use rtrace_filter::program::{Decision, Program, Step, MAX_STEPS, MAX_TEXTS};
use rtrace_input::filter::error::{Error, FilterReason};

/// The machine has CPUs 0 to 11.
const CPUS: u32 = 12;

const CONTEXTS: [(&str, u8, FieldType<'static>); 5] = [
    ("cpu", 0, FieldType::unsigned(32)),
    ("comm", 1, FieldType::text(16)),
    ("tid", 2, FieldType::signed(32)),
    ("nice", 3, FieldType::signed(8)),
    ("host", 4, FieldType::String),
];

/// The values of the contexts at a moment.
#[derive(Clone, Debug, Default)]
struct Moment {
    numbers: [Option<u64>; 4],
    text: Option<Vec<u8>>,
}

impl Contexts for Moment {
    type Text = Vec<u8>;

    fn number(&self, id: u8) -> Option<u64> {
        self.numbers[usize::from(id)]
    }

    fn text(&self, id: u8) -> Option<Vec<u8>> {
        assert!([1, 4].contains(&id));
        self.text.clone()
    }
}

/// Returns whether the program accepts a record that has all of its fields. The decision of the
/// first step must be the same, whatever bytes are after the record.
fn wants_whole(program: Program<'_>, record: &[u8], moment: &Moment) -> bool {
    let wanted = program.wants(record, moment);
    for behind in [0, 0xa5, 0xff] {
        let decided = program
            .first()
            .decides(number_at(&[record, &[behind; 8]].concat()));
        let otherwise = match wanted {
            true => Decision::Refused,
            false => Decision::Accepted,
        };
        assert_ne!(decided, otherwise);
    }
    wanted
}

/// Returns a function that reads a word at an offset of the record.
fn number_at(record: &[u8]) -> impl Fn(usize) -> Option<u64> + '_ {
    |at| {
        let word = record.get(at..)?.first_chunk()?;
        Some(u64::from_le_bytes(*word))
    }
}

/// Compiles an expression, and passes the program to a function.
fn compiled<T>(
    expression: &str,
    fields: &[Field<'_>],
    then: impl FnOnce(Program<'_>) -> T,
) -> Result<T, Error> {
    let contexts = CONTEXTS.map(|(name, id, ty)| FilterContext { name, id, ty });
    let names = FilterNames {
        fields: fields.iter().copied(),
        contexts: &contexts,
        cpus: CPUS,
        hides_addresses: false,
    };
    let (mut steps, mut texts) = ([Step::NONE; MAX_STEPS], [0; MAX_TEXTS]);
    let memory = ProgramMemory {
        steps: &mut steps,
        texts: &mut texts,
    };
    compile(expression, names, memory).map(then)
}
