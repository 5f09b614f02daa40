// SPDX-License-Identifier: GPL-2.0

//! Random expressions on random events, compared with `simple`.

use super::simple::{Comparison, Expression, Operand, World};
use super::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use rtrace_abi::schema::{LabelPlace, Labels};
use rtrace_input::filter::{Number, Operator};
use std::fmt::{Display, Formatter};

const NAMES: [&str; 8] = ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"];

const LABELS: Labels<'static> = Labels::new(
    b"one",
    &[LabelPlace {
        first: 1,
        last: 1,
        name: (0, 3),
    }],
);

/// An expression as text, with as few parentheses as possible.
struct Written<'a>(&'a Expression);

/// An expression in parentheses, if it needs them.
struct Grouped<'a>(&'a Expression, bool);

impl Display for Grouped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self(inner, needs_it) = self;
        if *needs_it {
            write!(f, "( {})", Written(inner))
        } else {
            write!(f, "{}", Written(inner))
        }
    }
}

impl Display for Written<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        use Expression::{And, Compare, Not, Or};
        match self.0 {
            Compare(comparison) => {
                let suffix = if comparison.is_ustring {
                    ".ustring"
                } else {
                    ""
                };
                let operator = match comparison.operator {
                    Operator::Equal => "==",
                    Operator::NotEqual => "!=",
                    Operator::Less => "<",
                    Operator::LessOrEqual => "<=",
                    Operator::Greater => ">",
                    Operator::GreaterOrEqual => ">=",
                    Operator::And => "&",
                    Operator::Glob => "~",
                };
                write!(f, "{}{suffix} {operator}", comparison.name)?;
                match &comparison.operand {
                    Operand::Number(number) => {
                        let minus = if number.is_negative { "-" } else { "" };
                        match (number.is_decimal, number.magnitude) {
                            (true, magnitude) => write!(f, "{minus}{magnitude}"),
                            (false, magnitude @ 1..=99) => write!(f, "{minus}0{magnitude:o}"),
                            (false, magnitude) => write!(f, "{minus}{magnitude:#x}"),
                        }
                    }
                    Operand::Text(text) => write!(f, " \"{text}\""),
                    Operand::Cpus(cpus) => {
                        let words: Vec<String> = cpus.iter().map(u32::to_string).collect();
                        write!(f, " CPUS{{{}}}", words.join(","))
                    }
                }
            }
            Not(inner) => write!(
                f,
                "!{}",
                Grouped(inner, matches!(**inner, And(..) | Or(..)))
            ),
            And(left, right) => {
                let left = Grouped(left, matches!(**left, Or(..)));
                let right = Grouped(right, matches!(**right, And(..) | Or(..)));
                write!(f, "{left} && {right}")
            }
            Or(left, right) => {
                let (left, right) = (Written(left), Grouped(right, matches!(**right, Or(..))));
                write!(f, "{left}||{right}")
            }
        }
    }
}

fn integer() -> impl Strategy<Value = Integer> {
    let shown = |bits: u8, how: u8| match how {
        0 => Integer::unsigned(bits),
        1 => Integer::hex(bits),
        _ => Integer::signed(bits),
    };
    (select(&[8, 16, 32, 64][..]), 0..4_u8).prop_map(move |(bits, how)| shown(bits, how))
}

/// A field's type; for a sequence, the type of its elements and a number that selects its length
/// field.
fn ty() -> impl Strategy<Value = (FieldType<'static>, Option<usize>)> {
    let fixed = prop_oneof![
        6 => integer().prop_map(FieldType::Integer),
        1 => integer().prop_map(|integer| FieldType::Enumeration(integer, LABELS)),
        2 => (0..6_u32).prop_map(FieldType::text),
        1 => (integer(), 0..3_u32).prop_map(|(element, count)| FieldType::Array(element, count)),
        2 => Just(FieldType::String),
    ];
    let element = prop_oneof![integer(), Just(Integer::TEXT)];
    prop_oneof![
        4 => fixed.prop_map(|ty| (ty, None)),
        1 => (element, 0..8_usize).prop_map(|(element, pick)| (FieldType::Integer(element), Some(pick))),
    ]
}

fn fields() -> impl Strategy<Value = Vec<Field<'static>>> {
    vec(ty(), 1..=NAMES.len()).prop_map(|types| {
        let mut fields: Vec<Field<'static>> = Vec::new();
        for (name, (ty, pick)) in NAMES.into_iter().zip(types) {
            let lengths: Vec<&str> = fields
                .iter()
                .filter(|field| match field.ty {
                    FieldType::Integer(integer) => integer.shown != Shown::Signed,
                    _ => false,
                })
                .map(|field| field.name)
                .collect();
            let ty = match (ty, pick) {
                (FieldType::Integer(element), Some(pick)) if !lengths.is_empty() => {
                    FieldType::Sequence(element, lengths[pick % lengths.len()])
                }
                (ty, _) => ty,
            };
            fields.push(Field { name, ty });
        }
        fields
    })
}

/// Mostly bytes that end texts, make short sequences and equal the operands.
fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![6 => 0..4_u8, 4 => select(b"abx".as_slice()), 1 => Just(0xff), 1 => any::<u8>()]
}

fn number() -> impl Strategy<Value = Number> {
    let magnitude = prop_oneof![
        4 => byte().prop_map(u64::from),
        1 => (0..=64_u32).prop_map(|bits| 1_u64.checked_shl(bits).unwrap_or(0).wrapping_sub(1)),
        1 => (0..64_u32).prop_map(|bit| 1 << bit),
        1 => any::<u64>(),
    ];
    (magnitude, any::<bool>(), prop::bool::weighted(0.2)).prop_map(
        |(magnitude, is_decimal, is_negative)| Number {
            is_negative,
            magnitude,
            // A single 0 is decimal.
            is_decimal: is_decimal || magnitude == 0,
        },
    )
}

/// The first operator is for texts only.
const OPERATORS: [Operator; 8] = [
    Operator::Glob,
    Operator::Equal,
    Operator::NotEqual,
    Operator::And,
    Operator::Less,
    Operator::LessOrEqual,
    Operator::Greater,
    Operator::GreaterOrEqual,
];

fn comparison() -> impl Strategy<Value = Comparison> {
    use Operator::{And, Equal, Glob, NotEqual};
    let name = prop_oneof![
        4 => select(&NAMES[..]),
        2 => select(&["cpu", "CPU", "common_cpu", "comm", "COMM", "common_pid", "tid", "nice", "host"][..]),
    ];
    let for_numbers = select(&OPERATORS[1..]);
    let cpus = subsequence((0..CPUS).collect::<Vec<_>>(), 1..=4);
    let what = prop_oneof![
        8 => (for_numbers, number()).prop_map(|(by, number)| (by, Operand::Number(number))),
        4 => (select(&[Equal, NotEqual, Glob][..]), "!?[abx?*]{0,4}")
            .prop_map(|(by, text)| (by, Operand::Text(text))),
        2 => (select(&[Equal, NotEqual, And][..]), cpus)
            .prop_map(|(by, cpus)| (by, Operand::Cpus(cpus))),
        1 => (select(&OPERATORS[..]), number()).prop_map(|(by, number)| (by, Operand::Number(number))),
        1 => (select(&OPERATORS[..]), "[ab]").prop_map(|(by, text)| (by, Operand::Text(text))),
        1 => select(&OPERATORS[..]).prop_map(|by| (by, Operand::Cpus(vec![1, 3]))),
    ];
    (name, what, prop::bool::weighted(0.05)).prop_map(|(name, (operator, operand), is_ustring)| {
        Comparison {
            name: name.to_owned(),
            is_ustring,
            operator,
            operand,
        }
    })
}

/// Makes a tree of the comparisons, in order.
fn tree(comparisons: &[Comparison], shape: &[u8]) -> Expression {
    use Expression::{And, Compare, Not, Or};
    let (how, shape) = shape.split_first().unwrap_or((&0, &[]));
    let inner = if comparisons.len() == 1 {
        Compare(comparisons[0].clone())
    } else {
        // Each side has a part of the shape.
        let at = 1 + usize::from(*how) % (comparisons.len() - 1);
        let (left, right) = comparisons.split_at(at);
        let (of_left, of_right) = shape.split_at(shape.len() / 2);
        let sides = (
            Box::new(tree(left, of_left)),
            Box::new(tree(right, of_right)),
        );
        if how & 0x40 == 0 {
            And(sides.0, sides.1)
        } else {
            Or(sides.0, sides.1)
        }
    };
    if how & 0x80 == 0 {
        inner
    } else {
        Not(Box::new(inner))
    }
}

fn moment() -> impl Strategy<Value = Moment> {
    let number = prop_oneof![4 => 0..5_u64, 1 => Just(u64::MAX), 1 => any::<u64>()];
    let numbers = prop::array::uniform4(option::weighted(0.9, number));
    let text = option::weighted(0.9, vec(byte(), 0..5));
    (numbers, text).prop_map(|(numbers, text)| Moment { numbers, text })
}

/// Makes names and operands fit the event more often than random ones do.
fn sound(comparisons: Vec<Comparison>, world: &World<'_, Moment>) -> Vec<Comparison> {
    let is_sound = |one: &Comparison| world.steps(&Expression::Compare(one.clone())).is_some();
    let sound: Vec<_> = comparisons
        .iter()
        .filter(|one| is_sound(one))
        .cloned()
        .collect();
    if sound.is_empty() {
        comparisons
    } else {
        sound
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn programs_want_what_expressions_mean(
        fields in fields(),
        comparisons in vec(comparison(), 1..16),
        may_be_unsound in prop::bool::weighted(0.1),
        shape in vec(any::<u8>(), 64),
        record in vec(byte(), 0..64),
        moment in moment(),
    ) {
        let world = World { fields: &fields, contexts: &CONTEXTS, values: &moment, cpus: CPUS };
        let comparisons = if may_be_unsound { comparisons } else { sound(comparisons, &world) };
        let expression = tree(&comparisons, &shape);
        let text = Written(&expression).to_string();
        let wanted = |program: Program<'_>| {
            let steps = program.steps();
            // Later than the step, and not beyond the end.
            for (at, step) in steps.iter().enumerate() {
                for skipped in step.skips() {
                    assert!(at + usize::from(skipped) <= steps.len(), "{text}");
                }
            }
            // Long enough for all fields of fixed size.
            wants_whole(program, &[&record[..], &[0x5a; 256]].concat(), &moment);
            let wanted = (0..=record.len()).map(|len| program.wants(&record[..len], &moment));
            (steps.len(), wanted.collect::<Vec<_>>())
        };
        match (compiled(&text, &fields, wanted), world.steps(&expression)) {
            (Ok((steps, wanted)), Some(expected)) => {
                prop_assert_eq!(steps, expected, "{}", text);
                for (len, wanted) in wanted.into_iter().enumerate() {
                    let expected = world.wants(&expression, &record[..len]);
                    prop_assert_eq!(wanted, expected.unwrap_or(false), "{} of {} bytes", text, len);
                }
            }
            (Err(error), expected) => prop_assert_eq!(
                error.reason == FilterReason::LongProgram,
                expected.is_some_and(|steps| steps > MAX_STEPS),
                "{}", error.shown(&text)
            ),
            (Ok(_), None) => prop_assert!(false, "{} is compiled", text),
        }
    }

    /// Random steps, in any order, end and read only inside the record.
    #[test]
    fn any_steps_end(
        fields in fields(),
        comparisons in vec(comparison(), 1..16),
        order in vec(any::<usize>(), 0..80),
        texts in 0..40_usize,
        record in vec(byte(), 0..32),
        moment in moment(),
    ) {
        let mut steps = Vec::new();
        for one in comparisons {
            let text = Written(&Expression::Compare(one)).to_string();
            let _ = compiled(&text, &fields, |program| steps.extend_from_slice(program.steps()));
        }
        let steps: Vec<Step> = match steps.len() {
            0 => Vec::new(),
            count => order.iter().map(|at| steps[at % count]).collect(),
        };
        Program::new(&steps, &vec![b'a'; texts]).wants(&record, &moment);
    }
}
