// SPDX-License-Identifier: GPL-2.0

//! An argument of a dynamic event: `[NAME=]VALUE[:TYPE]`.
//!
//! ```text
//! VALUE = %REGISTER | $argN | $retval | $stack | $stackN | $comm | @ADDRESS | \NUMBER
//!       | (+|-)[u]OFFSET(VALUE)     what is there in memory, with `u` in that of user space
//! TYPE = u8 ... u64 | s8 ... s64 | x8 ... x64 | symbol | string | ustring | bWIDTH@SHIFT/SIZE
//! ```

use super::super::rest::{is_of_name, Rest};
use super::{number, Error, Reason};

/// How many pointers are followed at most.
const STEPS_MAX: usize = 8;

/// An argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument<'a> {
    /// Where in the line it stands.
    pub at: usize,
    /// Its name; [`None`] has it called `arg` and its number.
    pub name: Option<&'a str>,
    /// Its place among the arguments, from 1 on.
    pub number: u32,
    /// Where its value begins.
    pub base: Base<'a>,
    /// From there to the value; those that are there come first.
    steps: [Option<Step>; STEPS_MAX],
    /// What it is recorded as; [`None`] if that was not said: 64 bits, which may be an address.
    pub ty: Option<Type>,
}

/// Where a value begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base<'a> {
    /// A register, by its name.
    Register(&'a str),
    /// An argument of the function, from 1 on.
    Argument(u8),
    /// The function's result.
    Result,
    /// The address of the stack.
    Stack,
    /// So many words from there.
    StackWord(u16),
    /// The name of the task that runs.
    Comm,
    /// What is at an address.
    Memory(u64),
    /// A number.
    Constant(u64),
}

/// From a pointer to what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// So many bytes behind what the pointer points to.
    pub offset: i64,
    /// Whether it is memory of user space.
    pub is_user: bool,
}

/// What a value is recorded as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A number of so many bits, shown in decimal.
    Unsigned(u8),
    /// The same, signed.
    Signed(u8),
    /// The same, shown in hexadecimal.
    Hex(u8),
    /// Of a number of `size` bits the `bits` from `shift` on.
    BitField {
        /// How many.
        bits: u8,
        /// From the lowest on.
        shift: u8,
        /// Bits of the number: 8, 16, 32 or 64.
        size: u8,
    },
    /// An address of the kernel.
    Symbol,
    /// The text at this address, up to its NUL.
    Text {
        /// Whether it is in user space.
        is_user: bool,
    },
}

impl<'a> Argument<'a> {
    /// The steps, from the base on.
    pub fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        self.steps.iter().flatten().copied()
    }

    /// Parses the word at `at`, argument `number`.
    pub(super) fn parse(word: &'a str, at: usize, number: u32) -> Result<Self, Error> {
        // Places are those of the line.
        let place = |error: Error| Error {
            at: error.at.wrapping_add(at),
            ..error
        };
        Self::parse_word(word, number)
            .map_err(place)
            .map(|argument| Self { at, ..argument })
    }

    fn parse_word(word: &'a str, number: u32) -> Result<Self, Error> {
        let mut rest = Rest::new(word);
        let mut name = None;
        if let Some((before, _)) = word.split_once('=') {
            let begins_well = !before.starts_with(|c: char| c.is_ascii_digit());
            if !begins_well
                || before.is_empty()
                || before.len() > 31
                || !before.chars().all(is_of_name)
            {
                return rest.error(Reason::NoArgumentName);
            }
            name = Some(before);
            rest.at = before.len().wrapping_add(1);
        }
        let mut steps = [None; STEPS_MAX];
        let mut depth = 0_usize;
        while rest.left().starts_with(['+', '-']) {
            let before = rest;
            let is_negative = rest.take("-") || !rest.take("+");
            let is_user = rest.take("u");
            let offset = super::number(&mut rest).and_then(|number| i64::try_from(number).ok());
            let Some(offset) = offset else {
                return rest.error(Reason::NoNumber);
            };
            if !rest.take("(") {
                return rest.error(Reason::NoParenthesis);
            }
            let offset = if is_negative {
                offset.wrapping_neg()
            } else {
                offset
            };
            match steps.get_mut(depth) {
                Some(step) => *step = Some(Step { offset, is_user }),
                None => return before.error(Reason::TooManySteps),
            }
            depth = depth.wrapping_add(1);
        }
        // The outermost is the last one.
        if let Some(steps) = steps.get_mut(..depth) {
            steps.reverse();
        }
        let base = base(&mut rest)?;
        for _ in 0..depth {
            if !rest.take(")") {
                return rest.error(Reason::NoParenthesis);
            }
        }
        let before = rest;
        let ty = if rest.take(":") {
            Some(ty(&mut rest)?)
        } else {
            None
        };
        if base == Base::Comm
            && (depth != 0 || !matches!(ty, None | Some(Type::Text { is_user: false })))
        {
            return before.error(Reason::WrongType);
        }
        if !rest.left().is_empty() {
            return rest.error(Reason::NoType);
        }
        Ok(Self {
            at: 0,
            name,
            number,
            base,
            steps,
            ty,
        })
    }
}

fn base<'a>(rest: &mut Rest<'a>) -> Result<Base<'a>, Error> {
    let before = *rest;
    let base = if rest.take("%") {
        Some(Base::Register(rest.take_while(is_of_name)))
    } else if rest.take("@") {
        number(rest).map(Base::Memory)
    } else if rest.take("\\") {
        let is_negative = rest.take("-");
        let number = number(rest);
        number.map(|number| {
            Base::Constant(if is_negative {
                number.wrapping_neg()
            } else {
                number
            })
        })
    } else if rest.take("$") {
        match rest.take_while(is_of_name) {
            "retval" => Some(Base::Result),
            "comm" => Some(Base::Comm),
            "stack" => Some(Base::Stack),
            word => {
                if let Some(number) = word.strip_prefix("arg") {
                    match number.parse() {
                        Ok(number @ 1..=6) => Some(Base::Argument(number)),
                        _ => return before.error(Reason::NoArgument),
                    }
                } else {
                    let number = word.strip_prefix("stack").map(str::parse);
                    number.and_then(Result::ok).map(Base::StackWord)
                }
            }
        }
    } else {
        None
    };
    match base {
        Some(base) => Ok(base),
        None => before.error(Reason::NoValue),
    }
}

fn ty(rest: &mut Rest<'_>) -> Result<Type, Error> {
    let before = *rest;
    match ty_of_word(rest) {
        Some(ty) => Ok(ty),
        None => before.error(Reason::NoType),
    }
}

fn ty_of_word(rest: &mut Rest<'_>) -> Option<Type> {
    for (word, ty) in [
        ("symbol", Type::Symbol),
        ("string", Type::Text { is_user: false }),
        ("ustring", Type::Text { is_user: true }),
    ] {
        if rest.left() == word {
            rest.take(word);
            return Some(ty);
        }
    }
    let kind = rest.peek()?;
    let kinds = ["u", "s", "x", "b"];
    kinds.into_iter().find(|word| rest.take(word))?;
    let bits = u8::try_from(number(rest)?).ok()?;
    if kind == 'b' {
        let shift = rest.take("@").then(|| number(rest)).flatten()?;
        let size = rest.take("/").then(|| number(rest)).flatten()?;
        let (shift, size) = (u8::try_from(shift).ok()?, u8::try_from(size).ok()?);
        let fits = bits != 0 && bits.checked_add(shift)? <= size;
        return (fits && is_size(size)).then_some(Type::BitField { bits, shift, size });
    }
    is_size(bits).then_some(match kind {
        'u' => Type::Unsigned(bits),
        's' => Type::Signed(bits),
        _ => Type::Hex(bits),
    })
}

fn is_size(bits: u8) -> bool {
    matches!(bits, 8 | 16 | 32 | 64)
}
