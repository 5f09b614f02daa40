// SPDX-License-Identifier: GPL-2.0

//! Parser of filter expressions.

use super::super::rest::{is_of_name, Rest};
use super::error::{Error, FilterReason};
use super::{Element, Number, Operand, Operator, Predicate, MAX_DEPTH, MAX_TEXT};
use core::num::IntErrorKind;

/// Iterator over the elements of an expression, in order. It ends after the last element or the
/// first error. May run in any context.
#[derive(Clone, Debug)]
pub struct Parser<'a> {
    rest: Rest<'a>,
    /// Whether the next element is a predicate, or one that may come before a predicate.
    wants_predicate: bool,
    /// Positions of the open parentheses.
    open: [usize; MAX_DEPTH],
    depth: usize,
    is_done: bool,
}

impl<'a> Parser<'a> {
    /// Makes a parser of an expression.
    pub fn new(text: &'a str) -> Self {
        Self {
            rest: Rest::new(text),
            wants_predicate: true,
            open: [0; MAX_DEPTH],
            depth: 0,
            is_done: false,
        }
    }

    /// Consumes the text up to `end`, and `end`. Returns the text.
    fn take_until(&mut self, end: char) -> Option<&'a str> {
        let (taken, _) = self.rest.left().split_once(end)?;
        self.rest.advance(taken.len().wrapping_add(end.len_utf8()));
        Some(taken)
    }

    fn skip_space(&mut self) {
        let is_space = |c: char| c.is_ascii_whitespace() || c == '\x0b';
        self.rest.take_while(is_space);
    }

    fn element(&mut self) -> Result<Option<Element<'a>>, Error> {
        self.skip_space();
        if self.wants_predicate {
            self.before_predicate().map(Some)
        } else {
            self.behind_predicate()
        }
    }

    fn before_predicate(&mut self) -> Result<Element<'a>, Error> {
        match self.rest.peek() {
            Some('!') => {
                self.rest.advance(1);
                Ok(Element::Not)
            }
            Some('(') => {
                let Some(open) = self.open.get_mut(self.depth) else {
                    return self.rest.error(FilterReason::TooDeep);
                };
                *open = self.rest.at;
                self.depth = self.depth.wrapping_add(1);
                self.rest.advance(1);
                Ok(Element::Open)
            }
            Some(c) if is_of_name(c) => {
                self.wants_predicate = false;
                self.predicate().map(Element::Predicate)
            }
            None if self.rest.text.trim().is_empty() => self.rest.error(FilterReason::Empty),
            _ => self.rest.error(FilterReason::NoPredicate),
        }
    }

    fn behind_predicate(&mut self) -> Result<Option<Element<'a>>, Error> {
        if self.rest.left().is_empty() {
            let open = self.depth.checked_sub(1).and_then(|i| self.open.get(i));
            return match open {
                Some(&at) => Err(Error {
                    at,
                    reason: FilterReason::NotClosed,
                }),
                None => Ok(None),
            };
        }
        if self.rest.peek() == Some(')') {
            let Some(depth) = self.depth.checked_sub(1) else {
                return self.rest.error(FilterReason::NotOpened);
            };
            self.depth = depth;
            self.rest.advance(1);
            return Ok(Some(Element::Close));
        }
        let element = if self.rest.take("&&") {
            Element::And
        } else if self.rest.take("||") {
            Element::Or
        } else {
            return self.rest.error(FilterReason::NoConnective);
        };
        self.wants_predicate = true;
        Ok(Some(element))
    }

    fn predicate(&mut self) -> Result<Predicate<'a>, Error> {
        let name_at = self.rest.at;
        let name = self.rest.take_while(is_of_name);
        if self.rest.left().starts_with(".function") {
            return self.rest.error(FilterReason::Function);
        }
        let is_ustring = self.rest.take(".ustring");
        self.skip_space();
        let operator_at = self.rest.at;
        let operator = self.operator()?;
        self.skip_space();
        let operand_at = self.rest.at;
        let operand = self.operand()?;
        Ok(Predicate {
            name,
            name_at,
            is_ustring,
            operator,
            operator_at,
            operand,
            operand_at,
        })
    }

    fn operator(&mut self) -> Result<Operator, Error> {
        const OPERATORS: [(&str, Operator); 8] = [
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            // Before the operators that these begin with.
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
            ("&", Operator::And),
            ("~", Operator::Glob),
        ];
        if !self.rest.left().starts_with("&&") {
            for (word, operator) in OPERATORS {
                if self.rest.take(word) {
                    return Ok(operator);
                }
            }
        }
        self.rest.error(FilterReason::NoOperator)
    }

    fn operand(&mut self) -> Result<Operand<'a>, Error> {
        let at = self.rest.at;
        let error = |reason| Err(Error { at, reason });
        match self.rest.peek() {
            Some(quote @ ('"' | '\'')) => {
                self.rest.advance(1);
                match self.take_until(quote) {
                    Some(text) if text.len() > MAX_TEXT => error(FilterReason::LongText),
                    Some(text) => Ok(Operand::Text(text)),
                    None => error(FilterReason::NotQuoted),
                }
            }
            Some('-' | '0'..='9') => match self.number() {
                Ok(number) => Ok(Operand::Number(number)),
                Err(reason) => error(reason),
            },
            Some(_) if self.rest.take("CPUS") => {
                if !self.rest.take("{") {
                    return self.rest.error(FilterReason::NoBrace);
                }
                match self.take_until('}') {
                    Some(list) => Ok(Operand::Cpus(list)),
                    None => error(FilterReason::NotBraced),
                }
            }
            Some(c) if is_of_name(c) => error(FilterReason::NoQuotes),
            _ => error(FilterReason::NoOperand),
        }
    }

    fn number(&mut self) -> Result<Number, FilterReason> {
        let is_negative = self.rest.take("-");
        let word = self.rest.take_while(is_of_name);
        let digits = word.strip_prefix('0').unwrap_or("");
        let (digits, radix) = if let Some(digits) = digits.strip_prefix(['x', 'X']) {
            (digits, 16)
        } else if !digits.is_empty() {
            (digits, 8)
        } else {
            (word, 10)
        };
        let magnitude = u64::from_str_radix(digits, radix).map_err(|error| match error.kind() {
            IntErrorKind::PosOverflow => FilterReason::LargeNumber,
            _ => FilterReason::NoNumber,
        })?;
        Ok(Number {
            is_negative,
            magnitude,
            is_decimal: radix == 10,
        })
    }
}

impl<'a> Iterator for Parser<'a> {
    type Item = Result<Element<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let element = self.element().transpose();
        self.is_done = !matches!(element, Some(Ok(_)));
        element
    }
}
