// SPDX-License-Identifier: GPL-2.0

//! From a text to the elements of a filter expression.

use super::error::{Error, Reason};
use super::{Element, Number, Operand, Operator, Predicate, MAX_DEPTH, MAX_TEXT};
use core::num::IntErrorKind;

/// Takes an expression apart: gives its elements in order, and ends behind the last one or the
/// first error. May run in any context.
#[derive(Clone, Debug)]
pub struct Parser<'a> {
    text: &'a str,
    /// How far it is.
    at: usize,
    /// Whether a predicate comes next, or what may stand before one.
    wants_predicate: bool,
    /// Where the parentheses stand that are open.
    open: [usize; MAX_DEPTH],
    depth: usize,
    is_done: bool,
}

impl<'a> Parser<'a> {
    /// Of an expression.
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            wants_predicate: true,
            open: [0; MAX_DEPTH],
            depth: 0,
            is_done: false,
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<u8> {
        self.rest().bytes().next()
    }

    fn advance(&mut self, bytes: usize) {
        self.at = self.at.wrapping_add(bytes);
    }

    /// Takes `word` if it is next.
    fn take(&mut self, word: &str) -> bool {
        let is_next = self.rest().starts_with(word);
        if is_next {
            self.advance(word.len());
        }
        is_next
    }

    /// Takes what comes before `end`, and that.
    fn take_until(&mut self, end: char) -> Option<&'a str> {
        let (taken, _) = self.rest().split_once(end)?;
        self.advance(taken.len().wrapping_add(end.len_utf8()));
        Some(taken)
    }

    fn take_while(&mut self, is_part: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.bytes().take_while(|byte| is_part(*byte)).count();
        self.advance(len);
        rest.get(..len).unwrap_or("")
    }

    fn take_word(&mut self) -> &'a str {
        self.take_while(is_word)
    }

    fn skip_space(&mut self) {
        self.take_while(|byte| byte.is_ascii_whitespace() || byte == b'\x0b');
    }

    fn error<T>(&self, reason: Reason) -> Result<T, Error> {
        Err(Error {
            at: self.at,
            reason,
        })
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
        match self.peek() {
            Some(b'!') => {
                self.advance(1);
                Ok(Element::Not)
            }
            Some(b'(') => {
                let Some(open) = self.open.get_mut(self.depth) else {
                    return self.error(Reason::TooDeep);
                };
                *open = self.at;
                self.depth = self.depth.wrapping_add(1);
                self.advance(1);
                Ok(Element::Open)
            }
            Some(byte) if is_word(byte) => {
                self.wants_predicate = false;
                self.predicate().map(Element::Predicate)
            }
            None if self.text.trim().is_empty() => self.error(Reason::Empty),
            _ => self.error(Reason::NoPredicate),
        }
    }

    fn behind_predicate(&mut self) -> Result<Option<Element<'a>>, Error> {
        if self.rest().is_empty() {
            let open = self.depth.checked_sub(1).and_then(|i| self.open.get(i));
            return match open {
                Some(&at) => Err(Error {
                    at,
                    reason: Reason::NotClosed,
                }),
                None => Ok(None),
            };
        }
        if self.peek() == Some(b')') {
            let Some(depth) = self.depth.checked_sub(1) else {
                return self.error(Reason::NotOpened);
            };
            self.depth = depth;
            self.advance(1);
            return Ok(Some(Element::Close));
        }
        let element = if self.take("&&") {
            Element::And
        } else if self.take("||") {
            Element::Or
        } else {
            return self.error(Reason::NoConnective);
        };
        self.wants_predicate = true;
        Ok(Some(element))
    }

    fn predicate(&mut self) -> Result<Predicate<'a>, Error> {
        let name_at = self.at;
        let name = self.take_word();
        if self.rest().starts_with(".function") {
            return self.error(Reason::Function);
        }
        let is_ustring = self.take(".ustring");
        self.skip_space();
        let operator_at = self.at;
        let operator = self.operator()?;
        self.skip_space();
        let operand_at = self.at;
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
            // Before those that they begin with.
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
            ("&", Operator::And),
            ("~", Operator::Glob),
        ];
        if !self.rest().starts_with("&&") {
            for (word, operator) in OPERATORS {
                if self.take(word) {
                    return Ok(operator);
                }
            }
        }
        self.error(Reason::NoOperator)
    }

    fn operand(&mut self) -> Result<Operand<'a>, Error> {
        let at = self.at;
        let error = |reason| Err(Error { at, reason });
        match self.peek() {
            Some(quote @ (b'"' | b'\'')) => {
                self.advance(1);
                match self.take_until(quote.into()) {
                    Some(text) if text.len() > MAX_TEXT => error(Reason::LongText),
                    Some(text) => Ok(Operand::Text(text)),
                    None => error(Reason::NotQuoted),
                }
            }
            Some(b'-' | b'0'..=b'9') => match self.number() {
                Ok(number) => Ok(Operand::Number(number)),
                Err(reason) => error(reason),
            },
            Some(_) if self.take("CPUS") => {
                if !self.take("{") {
                    return self.error(Reason::NoBrace);
                }
                match self.take_until('}') {
                    Some(list) => Ok(Operand::Cpus(list)),
                    None => error(Reason::NotBraced),
                }
            }
            Some(byte) if is_word(byte) => error(Reason::NoQuotes),
            _ => error(Reason::NoOperand),
        }
    }

    fn number(&mut self) -> Result<Number, Reason> {
        let is_negative = self.take("-");
        let word = self.take_word();
        let digits = word.strip_prefix('0').unwrap_or("");
        let (digits, radix) = if let Some(digits) = digits.strip_prefix(['x', 'X']) {
            (digits, 16)
        } else if !digits.is_empty() {
            (digits, 8)
        } else {
            (word, 10)
        };
        let magnitude = u64::from_str_radix(digits, radix).map_err(|error| match error.kind() {
            IntErrorKind::PosOverflow => Reason::LargeNumber,
            _ => Reason::NoNumber,
        })?;
        Ok(Number {
            is_negative,
            magnitude,
            is_decimal: radix == 10,
        })
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
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
