// SPDX-License-Identifier: GPL-2.0

//! A filter as a tree. One part can be checked at the begin of a system call and another part at its end.

use rtrace_input::filter::error::Error;
use rtrace_input::filter::parse::Parser;
use rtrace_input::filter::{Element, Operand, Operator, Predicate};
use std::collections::BTreeSet;
use std::fmt;
use std::iter::Peekable;

/// An expression in the language of filters. Only comparisons are negated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// All of these are true.
    All(Vec<Expression>),
    /// One of these is true.
    Any(Vec<Expression>),
    /// A comparison.
    Comparison {
        /// The name of the field or context.
        name: String,
        /// The comparison, or its negation, as text.
        text: String,
    },
}

impl Expression {
    /// Parses a text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let elements: Vec<_> = Parser::new(text).collect::<Result<_, _>>()?;
        Ok(any(&mut elements.into_iter().peekable(), false))
    }

    /// The names in the expression.
    pub fn names(&self) -> BTreeSet<&str> {
        match self {
            Self::All(terms) | Self::Any(terms) => terms.iter().flat_map(Self::names).collect(),
            Self::Comparison { name, .. } => [name.as_str()].into(),
        }
    }

    /// The strongest condition that follows from the expression and has only names for which `is_known` is true. `None`
    /// if no condition follows.
    pub fn of_known(&self, is_known: &impl Fn(&str) -> bool) -> Option<Self> {
        match self {
            Self::All(terms) => {
                let terms = terms.iter().filter_map(|term| term.of_known(is_known));
                let mut terms: Vec<_> = terms.collect();
                match terms.len() {
                    0 | 1 => terms.pop(),
                    _ => Some(Self::All(terms)),
                }
            }
            Self::Any(terms) => {
                let terms = terms.iter().map(|term| term.of_known(is_known));
                terms.collect::<Option<_>>().map(Self::Any)
            }
            Self::Comparison { name, .. } => is_known(name).then(|| self.clone()),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (terms, between) = match self {
            Self::Comparison { text, .. } => return f.write_str(text),
            Self::All(terms) => (terms, " && "),
            Self::Any(terms) => (terms, " || "),
        };
        for (place, term) in terms.iter().enumerate() {
            if place > 0 {
                f.write_str(between)?;
            }
            match term {
                Self::Comparison { text, .. } => f.write_str(text)?,
                term => write!(f, "({term})")?,
            }
        }
        Ok(())
    }
}

/// Parses terms and the `||` between them. The parser of elements has checked their order.
fn any<'a>(
    elements: &mut Peekable<impl Iterator<Item = Element<'a>>>,
    is_negated: bool,
) -> Expression {
    let mut terms = vec![all(elements, is_negated)];
    while elements.next_if_eq(&Element::Or).is_some() {
        terms.push(all(elements, is_negated));
    }
    join(terms, !is_negated)
}

/// Parses terms and the `&&` between them.
fn all<'a>(
    elements: &mut Peekable<impl Iterator<Item = Element<'a>>>,
    is_negated: bool,
) -> Expression {
    let mut terms = vec![term(elements, is_negated)];
    while elements.next_if_eq(&Element::And).is_some() {
        terms.push(term(elements, is_negated));
    }
    join(terms, is_negated)
}

fn term<'a>(
    elements: &mut Peekable<impl Iterator<Item = Element<'a>>>,
    mut is_negated: bool,
) -> Expression {
    loop {
        match elements.next() {
            Some(Element::Not) => is_negated = !is_negated,
            Some(Element::Open) => {
                let inner = any(elements, is_negated);
                elements.next_if_eq(&Element::Close);
                return inner;
            }
            Some(Element::Predicate(predicate)) => {
                let text = text(&predicate);
                return Expression::Comparison {
                    name: predicate.name.to_owned(),
                    text: match is_negated {
                        true => format!("!({text})"),
                        false => text,
                    },
                };
            }
            // A valid expression has no such element. The result is true.
            _ => return Expression::All(Vec::new()),
        }
    }
}

fn join(mut terms: Vec<Expression>, is_any: bool) -> Expression {
    match (terms.len(), is_any) {
        (1, _) => terms.remove(0),
        (_, true) => Expression::Any(terms),
        (_, false) => Expression::All(terms),
    }
}

fn text(predicate: &Predicate<'_>) -> String {
    let Predicate {
        name,
        is_ustring,
        operator,
        operand,
        ..
    } = predicate;
    let suffix = if *is_ustring { ".ustring" } else { "" };
    let operator = match operator {
        Operator::Equal => "==",
        Operator::NotEqual => "!=",
        Operator::Less => "<",
        Operator::LessOrEqual => "<=",
        Operator::Greater => ">",
        Operator::GreaterOrEqual => ">=",
        Operator::And => "&",
        Operator::Glob => "~",
    };
    let operand = match operand {
        Operand::Number(number) => {
            let sign = if number.is_negative { "-" } else { "" };
            let magnitude = number.magnitude;
            match number.is_decimal {
                true => format!("{sign}{magnitude}"),
                false => format!("{sign}{magnitude:#x}"),
            }
        }
        Operand::Text(text) if text.contains('"') => format!("'{text}'"),
        Operand::Text(text) => format!("\"{text}\""),
        Operand::Cpus(list) => format!("CPUS{{{list}}}"),
    };
    format!("{name}{suffix} {operator} {operand}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negations_stand_at_comparisons() {
        for (text, expected) in [
            ("ret<0", "ret < 0"),
            ("!!(a == 0x1F)", "a == 0x1f"),
            (
                "!(a == 1 || b ~ 'x\"*') && c & 010",
                "(!(a == 1) && !(b ~ 'x\"*')) && c & 0x8",
            ),
            (
                "!(a == 1 && (b == -2 || CPU & CPUS{0-3}))",
                "!(a == 1) || (!(b == -2) && !(CPU & CPUS{0-3}))",
            ),
            ("a.ustring == 'x'", "a.ustring == \"x\""),
        ] {
            let parsed = Expression::parse(text).unwrap();
            assert_eq!(parsed.to_string(), expected);
            assert_eq!(Expression::parse(expected).unwrap().to_string(), expected);
        }
        assert!(Expression::parse("a ==").is_err());
    }

    #[test]
    fn a_part_follows_from_the_expression() {
        for (text, of_ret, of_others) in [
            ("ret < 0", Some("ret < 0"), None),
            (
                "ret < 0 && a == 1 && b == 2",
                Some("ret < 0"),
                Some("a == 1 && b == 2"),
            ),
            ("ret < 0 || a == 1", None, None),
            (
                "!(ret < 0 || a == 1)",
                Some("!(ret < 0)"),
                Some("!(a == 1)"),
            ),
            (
                "(ret == 1 || ret == 2 && a == 1) && b == 2",
                Some("ret == 1 || ret == 2"),
                Some("b == 2"),
            ),
        ] {
            let parsed = Expression::parse(text).unwrap();
            let part = |is_ret: bool| {
                let part = parsed.of_known(&|name| (name == "ret") == is_ret);
                part.map(|part| part.to_string())
            };
            assert_eq!(part(true).as_deref(), of_ret, "{text}");
            assert_eq!(part(false).as_deref(), of_others, "{text}");
        }
    }
}
