// SPDX-License-Identifier: GPL-2.0

//! Reference semantics of a filter, too simple to be wrong. All fields are decoded, bit by bit, and
//! the expression is a tree. The fuzzer uses this file, too.

use super::{Contexts, Field, FieldType, Integer, Shown};
use rtrace_input::filter::{Number, Operator};
use rtrace_input::glob;

/// An expression, as a tree.
#[derive(Clone, Debug)]
pub enum Expression {
    Compare(Comparison),
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
}

#[derive(Clone, Debug)]
pub struct Comparison {
    pub name: String,
    pub is_ustring: bool,
    pub operator: Operator,
    pub operand: Operand,
}

#[derive(Clone, Debug)]
pub enum Operand {
    Number(Number),
    Text(String),
    /// The CPUs in order; none if the list is invalid.
    Cpus(Vec<u32>),
}

#[derive(Clone, Debug)]
pub enum Value {
    Number(i128),
    Text(Vec<u8>),
    Set(Vec<bool>),
}

/// Event and environment of a record.
pub struct World<'a, C> {
    pub fields: &'a [Field<'a>],
    /// Names, ids and types of the contexts.
    pub contexts: &'a [(&'a str, u8, FieldType<'a>)],
    pub values: &'a C,
    pub cpus: u32,
}

enum Named<'a> {
    Field(usize, FieldType<'a>),
    Context(u8, FieldType<'a>),
}

impl<'a, C: Contexts> World<'a, C> {
    fn named(&self, name: &str) -> Option<Named<'a>> {
        if let Some(index) = self.fields.iter().position(|field| field.name == name) {
            return Some(Named::Field(index, self.fields[index].ty));
        }
        let ours = match name {
            "CPU" | "common_cpu" => "cpu",
            "COMM" => "comm",
            "common_pid" => "tid",
            other => other,
        };
        let mut contexts = self.contexts.iter();
        let (_, id, ty) = contexts.find(|context| context.0 == ours)?;
        Some(Named::Context(*id, *ty))
    }

    /// Number of steps for an expression; none if it is refused for another reason.
    pub fn steps(&self, expression: &Expression) -> Option<usize> {
        match expression {
            Expression::Compare(comparison) => {
                let is_variable = |field: &&Field<'_>| field.ty.bits().is_none();
                let (ty, passed) = match self.named(&comparison.name)? {
                    Named::Field(index, ty) => {
                        let passed = self.fields[..index].iter().filter(is_variable).count();
                        (self.comparable(index).then_some(ty)?, passed)
                    }
                    Named::Context(_, ty) => (ty, 0),
                };
                let is_sound = is_sound(comparison, ty) && fits(comparison, ty);
                is_sound.then_some(1 + passed)
            }
            Expression::Not(inner) => self.steps(inner),
            Expression::And(left, right) | Expression::Or(left, right) => {
                Some(self.steps(left)? + self.steps(right)?)
            }
        }
    }

    /// Returns whether a field can be located and its type compared.
    fn comparable(&self, index: usize) -> bool {
        let passed = |index: usize| {
            let before = self.fields[..index].iter();
            before.filter(|field| field.ty.bits().is_none()).count()
        };
        (0..=index).all(|at| match self.fields[at].ty {
            FieldType::Sequence(_, length) => {
                let length = self.fields.iter().position(|field| field.name == length);
                let length = length.expect("a length");
                let is_integer = matches!(self.fields[length].ty, FieldType::Integer(_));
                let is_near = [0, passed(at)].contains(&passed(length));
                length < at && is_integer && is_near
            }
            _ => true,
        })
    }

    /// Returns whether the record is accepted; [`None`] if it ends too early.
    pub fn wants(&self, expression: &Expression, record: &[u8]) -> Option<bool> {
        match expression {
            Expression::Compare(comparison) => {
                let (value, ty) = match self.named(&comparison.name)? {
                    Named::Field(index, ty) => (decode(self.fields, record)[index].clone()?, ty),
                    Named::Context(id, ty) => (self.context(id, ty)?, ty),
                };
                Some(holds(comparison, value, ty, self.cpus))
            }
            Expression::Not(inner) => Some(!self.wants(inner, record)?),
            Expression::And(left, right) => {
                Some(self.wants(left, record)? && self.wants(right, record)?)
            }
            Expression::Or(left, right) => {
                Some(self.wants(left, record)? || self.wants(right, record)?)
            }
        }
    }

    fn context(&self, id: u8, ty: FieldType<'_>) -> Option<Value> {
        Some(match ty {
            FieldType::Integer(integer) => {
                let number = self.values.number(id)?;
                let bits = (0..integer.bits).map(|bit| (number >> bit) & 1 != 0);
                Value::Number(integer_of(integer, &bits.collect::<Vec<_>>()))
            }
            _ => Value::Text(up_to_nul(self.values.text(id)?.as_ref())),
        })
    }
}

fn up_to_nul(bytes: &[u8]) -> Vec<u8> {
    bytes.split(|byte| *byte == 0).next().unwrap().to_vec()
}

fn integer_of(integer: Integer, bits: &[bool]) -> i128 {
    let unsigned: i128 = (0..)
        .zip(bits)
        .map(|(at, bit)| i128::from(*bit) << at)
        .sum();
    let is_negative = integer.shown == Shown::Signed && bits[bits.len() - 1];
    unsigned - (i128::from(is_negative) << bits.len())
}

/// Decodes all fields; [`None`] for those that the record does not contain completely.
pub fn decode(fields: &[Field<'_>], record: &[u8]) -> Vec<Option<Value>> {
    let bits: Vec<bool> = record
        .iter()
        .flat_map(|byte| (0..8).map(move |bit| (byte >> bit) & 1 != 0))
        .collect();
    let mut values: Vec<Option<Value>> = Vec::new();
    let mut at = Some(0);
    for field in fields {
        let value = at.and_then(|from: usize| {
            let from = from.next_multiple_of(field.ty.align());
            let take = |len: usize| bits.get(from..from.checked_add(len)?);
            let (value, len) = match field.ty {
                FieldType::Integer(integer) | FieldType::Enumeration(integer, _) => {
                    let len = usize::from(integer.bits);
                    (Value::Number(integer_of(integer, take(len)?)), len)
                }
                FieldType::String => {
                    let text = record.get(from / 8..)?;
                    let len = text.iter().position(|byte| *byte == 0)?;
                    (Value::Text(text[..len].to_vec()), 8 * (len + 1))
                }
                FieldType::Array(element, count) => {
                    let len = usize::from(element.bits) * count as usize;
                    (several(element, take(len)?), len)
                }
                FieldType::Sequence(element, length) => {
                    let length = fields.iter().position(|field| field.name == length)?;
                    let Value::Number(count) = values.get(length)?.clone()? else {
                        panic!("a length that is no number");
                    };
                    let len = usize::try_from(count)
                        .ok()?
                        .checked_mul(element.bits.into())?;
                    (several(element, take(len)?), len)
                }
            };
            Some((value, from + len))
        });
        at = value.as_ref().map(|(_, end)| *end);
        values.push(value.map(|(value, _)| value));
    }
    values
}

fn several(element: Integer, bits: &[bool]) -> Value {
    if element.shown == Shown::Text {
        let bytes = bits.chunks(8).map(|bits| integer_of(element, bits) as u8);
        Value::Text(up_to_nul(&bytes.collect::<Vec<_>>()))
    } else {
        Value::Set(bits.to_vec())
    }
}

fn is_text(ty: FieldType<'_>) -> bool {
    match ty {
        FieldType::String => true,
        FieldType::Array(element, _) | FieldType::Sequence(element, _) => {
            element.shown == Shown::Text
        }
        _ => false,
    }
}

/// Returns a written number as a value of an integer; none if the integer has no such value.
fn operand_of(integer: Integer, number: Number) -> Option<i128> {
    let is_signed = integer.shown == Shown::Signed;
    let all = 1_i128 << integer.bits;
    let mut value = i128::from(number.magnitude);
    if number.is_negative {
        value = -value;
    } else if is_signed && !number.is_decimal && (all / 2..all).contains(&value) {
        value -= all;
    }
    let values = if is_signed { -all / 2..all / 2 } else { 0..all };
    values.contains(&value).then_some(value)
}

/// Returns whether a text of an array can be as long as the operand.
fn fits(comparison: &Comparison, ty: FieldType<'_>) -> bool {
    let (FieldType::Array(element, size), Operand::Text(text)) = (ty, &comparison.operand) else {
        return true;
    };
    let most = match (comparison.name.to_lowercase().ends_with("comm"), size) {
        (true, 16) => 15,
        (_, size) => size as usize,
    };
    match comparison.operator {
        _ if element.shown != Shown::Text => true,
        Operator::Glob => glob::shortest(text.strip_prefix('!').unwrap_or(text)) <= most,
        _ => text.len() <= most,
    }
}

fn is_sound(comparison: &Comparison, ty: FieldType<'_>) -> bool {
    use Operator::{And, Equal, Glob, NotEqual};
    let operator = comparison.operator;
    if comparison.is_ustring && !is_text(ty) {
        return false;
    }
    let is_for_cpus = [Equal, NotEqual, And].contains(&operator);
    match (ty, &comparison.operand) {
        (FieldType::Integer(integer) | FieldType::Enumeration(integer, _), operand) => {
            match operand {
                Operand::Number(number) => {
                    operator != Glob && operand_of(integer, *number).is_some()
                }
                Operand::Text(_) => false,
                Operand::Cpus(cpus) => {
                    let single = cpus.len() == 1;
                    let fits = |cpu: u32| operand_of(integer, decimal(cpu)).is_some();
                    is_for_cpus && !cpus.is_empty() && (!single || fits(cpus[0]))
                }
            }
        }
        (_, Operand::Text(_)) => is_text(ty) && [Equal, NotEqual, Glob].contains(&operator),
        (_, Operand::Cpus(cpus)) => !is_text(ty) && is_for_cpus && !cpus.is_empty(),
        (_, Operand::Number(_)) => false,
    }
}

fn decimal(number: u32) -> Number {
    Number {
        is_negative: false,
        magnitude: number.into(),
        is_decimal: true,
    }
}

fn holds(comparison: &Comparison, value: Value, ty: FieldType<'_>, all_cpus: u32) -> bool {
    let operator = comparison.operator;
    match (&comparison.operand, value, ty) {
        (
            Operand::Number(number),
            Value::Number(value),
            FieldType::Integer(integer) | FieldType::Enumeration(integer, _),
        ) => {
            let operand = operand_of(integer, *number).expect("checked before");
            match operator {
                Operator::Equal => value == operand,
                Operator::NotEqual => value != operand,
                Operator::Less => value < operand,
                Operator::LessOrEqual => value <= operand,
                Operator::Greater => value > operand,
                Operator::GreaterOrEqual => value >= operand,
                Operator::And => value & operand & ((1 << integer.bits) - 1) != 0,
                Operator::Glob => panic!("checked before"),
            }
        }
        (Operand::Text(operand), Value::Text(value), _) => match operator {
            Operator::Equal => value == operand.as_bytes(),
            Operator::NotEqual => value != operand.as_bytes(),
            Operator::Glob => match operand.strip_prefix('!') {
                Some(operand) => !glob::matches(operand, value),
                None => glob::matches(operand, value),
            },
            _ => panic!("checked before"),
        },
        (
            Operand::Cpus(cpus),
            Value::Number(value),
            FieldType::Integer(integer) | FieldType::Enumeration(integer, _),
        ) => {
            // The field's bits are the number of a CPU, whatever its sign.
            let value = value & ((1 << integer.bits) - 1);
            let is_in = cpus.iter().any(|cpu| i128::from(*cpu) == value);
            match (operator, cpus.len()) {
                (Operator::And | Operator::Equal, 1) => is_in,
                (Operator::And, _) => is_in,
                (Operator::NotEqual, 1) => !is_in,
                (Operator::NotEqual, _) => value < all_cpus.into(),
                _ => false,
            }
        }
        (Operand::Cpus(cpus), Value::Set(bits), _) => {
            let members = (0..).zip(bits).filter(|(_, bit)| *bit);
            let members: Vec<u32> = members.map(|(member, _)| member).collect();
            match operator {
                Operator::Equal => members == *cpus,
                Operator::NotEqual => members != *cpus,
                _ => members.iter().any(|member| cpus.contains(member)),
            }
        }
        other => panic!("{other:?}: checked before"),
    }
}
