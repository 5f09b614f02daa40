// SPDX-License-Identifier: GPL-2.0

//! Filter expressions: an expression, a NUL, a record.
//!
//! A refusal names a place of the expression. The program of an accepted expression selects the right records,
//! even if a record is cut short.

use rtrace_abi::schema::{Field, FieldType, Integer, Shown};
use rtrace_filter::compile::{compile, FilterContext, FilterNames, ProgramMemory};
use rtrace_filter::evaluate::Contexts;
use rtrace_filter::program::{Step, MAX_STEPS, MAX_TEXTS};
use rtrace_input::cpulist::CpuList;
use rtrace_input::filter::error::{Error, FilterReason};
use rtrace_input::filter::parse::Parser;
use rtrace_input::filter::{self, Element, Predicate};
use simple::{Comparison, Expression, Operand, World};
use std::iter::Peekable;

#[path = "../../../../rust/filter/tests/filter/simple.rs"]
mod simple;

const CPUS: u32 = 12;

const FIELDS: [Field<'static>; 12] = [
    field("prio", FieldType::signed(32)),
    field("flags", FieldType::hex(64)),
    field("comm", FieldType::text(4)),
    field("level", FieldType::unsigned(8)),
    field("low", FieldType::unsigned(8)),
    field("high", FieldType::signed(64)),
    field("mask", FieldType::Array(Integer::unsigned(16), 1)),
    field("length", FieldType::unsigned(8)),
    field("name", FieldType::String),
    field("data", FieldType::Sequence(Integer::TEXT, "length")),
    field("set", FieldType::Sequence(Integer::unsigned(8), "length")),
    field("last", FieldType::signed(16)),
];

const fn field(name: &'static str, ty: FieldType<'static>) -> Field<'static> {
    Field { name, ty }
}

const CONTEXTS: [(&str, u8, FieldType<'static>); 3] = [
    ("cpu", 0, FieldType::unsigned(32)),
    ("tid", 1, FieldType::signed(32)),
    ("comm", 2, FieldType::text(16)),
];

struct Moment;

impl Contexts for Moment {
    type Text = &'static [u8];

    fn number(&self, id: u8) -> Option<u64> {
        [Some(3), None][usize::from(id)]
    }

    fn text(&self, id: u8) -> Option<&'static [u8]> {
        assert_eq!(id, 2);
        Some(b"bash\0\0")
    }
}

pub fn check(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == 0);
    let (text, record) = data.split_at(end.unwrap_or(data.len()));
    let (Ok(text), record) = (std::str::from_utf8(text), record.get(1..).unwrap_or(&[])) else {
        return;
    };

    let elements: Result<Vec<Element<'_>>, Error> = Parser::new(text).collect();
    let contexts = CONTEXTS.map(|(name, id, ty)| FilterContext { name, id, ty });
    let (mut steps, mut texts) = ([Step::NONE; MAX_STEPS], [0; MAX_TEXTS]);
    let memory = ProgramMemory {
        steps: &mut steps,
        texts: &mut texts,
    };
    let names = FilterNames {
        fields: FIELDS.iter().copied(),
        contexts: &contexts,
        cpus: CPUS,
        hides_addresses: false,
    };
    let program = compile(text, names, memory);
    if let Err(error) = program {
        assert!(text.is_char_boundary(error.at), "{error:?}");
        let shown = error.shown(text).to_string();
        assert_eq!(shown.lines().count(), 3, "{shown}");
    }

    let elements = match elements {
        Ok(elements) => elements,
        // The compiler must refuse it, too.
        Err(_) => return assert!(program.is_err()),
    };
    let world = World {
        fields: &FIELDS,
        contexts: &CONTEXTS,
        values: &Moment,
        cpus: CPUS,
    };
    let expression = either(&mut elements.into_iter().peekable());
    let steps = world.steps(&expression);
    let program = match program {
        Ok(program) => program,
        Err(error) => {
            let is_long =
                [FilterReason::LongProgram, FilterReason::LongTexts].contains(&error.reason);
            return assert!(is_long || steps.is_none(), "{}", error.shown(text));
        }
    };
    assert_eq!(Some(program.steps().len()), steps);
    for len in 0..=record.len().min(64) {
        let record = &record[..len];
        let expected = world.wants(&expression, record).unwrap_or(false);
        assert_eq!(program.wants(record, &Moment), expected);
    }
}

// The elements as a tree. Their order is valid.

fn either<'a>(elements: &mut Peekable<impl Iterator<Item = Element<'a>>>) -> Expression {
    let mut left = both(elements);
    while elements.next_if_eq(&Element::Or).is_some() {
        left = Expression::Or(Box::new(left), Box::new(both(elements)));
    }
    left
}

fn both<'a>(elements: &mut Peekable<impl Iterator<Item = Element<'a>>>) -> Expression {
    let mut left = one(elements);
    while elements.next_if_eq(&Element::And).is_some() {
        left = Expression::And(Box::new(left), Box::new(one(elements)));
    }
    left
}

fn one<'a>(elements: &mut Peekable<impl Iterator<Item = Element<'a>>>) -> Expression {
    let mut is_inverted = false;
    while elements.next_if_eq(&Element::Not).is_some() {
        is_inverted = !is_inverted;
    }
    let inner = match elements.next() {
        Some(Element::Open) => {
            let inner = either(elements);
            assert_eq!(elements.next(), Some(Element::Close));
            inner
        }
        Some(Element::Predicate(predicate)) => Expression::Compare(comparison(&predicate)),
        other => panic!("{other:?}"),
    };
    if is_inverted {
        Expression::Not(Box::new(inner))
    } else {
        inner
    }
}

fn comparison(predicate: &Predicate<'_>) -> Comparison {
    Comparison {
        name: predicate.name.to_owned(),
        is_ustring: predicate.is_ustring,
        operator: predicate.operator,
        operand: match predicate.operand {
            filter::Operand::Number(number) => Operand::Number(number),
            filter::Operand::Text(text) => Operand::Text(text.to_owned()),
            filter::Operand::Cpus(list) => Operand::Cpus(cpus(list)),
        },
    }
}

/// The CPUs of a list, in order; empty if the text is not a list.
fn cpus(list: &str) -> Vec<u32> {
    let mut found = [false; CPUS as usize];
    for item in CpuList::new(list, CPUS) {
        let Ok(item) = item else {
            return Vec::new();
        };
        for cpu in item.cpus() {
            found[cpu as usize] = true;
        }
    }
    (0..CPUS).filter(|cpu| found[*cpu as usize]).collect()
}
