// SPDX-License-Identifier: GPL-2.0

//! An argument of a dynamic event: `[NAME=]VALUE[:TYPE]`.
//!
//! ```text
//! VALUE = %REGISTER | %REGISTER+%REGISTER*(1|2|4|8) | $argN | $retval | $duration | $stack | $stackN | $comm | @ADDRESS | \NUMBER
//!       | (+|-)[u]OFFSET(VALUE)     value in memory at that address, with `u` in user space
//! TYPE = u8 ... u64 | s8 ... s64 | x8 ... x64 | be16 ... be64 | symbol | string | ustring | bWIDTH@SHIFT/SIZE
//! ```

use super::super::rest::{is_of_name, Rest};
use super::{number, Error, ProbeReason};

/// Maximum number of pointers to follow.
const STEPS_MAX: usize = 8;

/// An argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument<'a> {
    /// Position in the line.
    pub at: usize,
    /// Its name; [`None`]: the name is `arg` and the number.
    pub name: Option<&'a str>,
    /// Its index among the arguments, from 1.
    pub number: u32,
    /// Base of its value.
    pub base: Base<'a>,
    /// Steps from the base to the value; the existing ones come first.
    steps: [Option<PointerStep>; STEPS_MAX],
    /// Type in the record; [`None`] if none is given: 64 bits, which may be an address.
    pub ty: Option<Type>,
}

/// Base of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base<'a> {
    /// A register, by its name.
    Register(&'a str),
    /// The sum of two registers, the second one times `scale`.
    Sum {
        /// The first register.
        base: &'a str,
        /// The second register.
        index: &'a str,
        /// 1, 2, 4 or 8.
        scale: u8,
    },
    /// An argument of the function, from 1.
    Argument(u8),
    /// The function's result.
    Result,
    /// The nanoseconds from the function's call to its return.
    Duration,
    /// The stack pointer.
    Stack,
    /// A word of the stack, this many words from the stack pointer.
    StackWord(u16),
    /// The name of the running task.
    Comm,
    /// The value at an address.
    Memory(u64),
    /// A number.
    Constant(u64),
}

/// A step from a pointer to a value in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerStep {
    /// Offset in bytes from the address in the pointer.
    pub offset: i64,
    /// Whether the memory is in user space.
    pub is_user: bool,
}

/// Type of a value in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A number of this many bits, shown in decimal.
    Unsigned(u8),
    /// A signed number, shown in decimal.
    Signed(u8),
    /// A number shown in hexadecimal.
    Hex(u8),
    /// A number of this many bits whose highest byte comes first (network byte order), shown in decimal.
    BigEndian(u8),
    /// The `bits` bits from `shift` on, of a number of `size` bits.
    BitField {
        /// Number of bits.
        bits: u8,
        /// Index of the first bit.
        shift: u8,
        /// Size of the number: 8, 16, 32 or 64 bits.
        size: u8,
    },
    /// An address of the kernel.
    Symbol,
    /// The text at the address, up to its NUL.
    Text {
        /// Whether the address is in user space.
        is_user: bool,
    },
}

impl<'a> Argument<'a> {
    /// The steps, from the base on.
    pub fn steps(&self) -> impl Iterator<Item = PointerStep> + '_ {
        self.steps.iter().flatten().copied()
    }

    /// Returns whether the argument has the name of this one, and both or none of them are the name of the task.
    pub(super) fn is_like(&self, other: &Argument<'_>) -> bool {
        self.name == other.name && (self.base == Base::Comm) == (other.base == Base::Comm)
    }

    /// Parses the word at `at`, argument `number`.
    pub(super) fn parse(word: &'a str, at: usize, number: u32) -> Result<Self, Error> {
        // Positions are those in the line.
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
                return rest.error(ProbeReason::NoArgumentName);
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
                return rest.error(ProbeReason::NoNumber);
            };
            if !rest.take("(") {
                return rest.error(ProbeReason::NoParenthesis);
            }
            let offset = if is_negative {
                offset.wrapping_neg()
            } else {
                offset
            };
            match steps.get_mut(depth) {
                Some(step) => *step = Some(PointerStep { offset, is_user }),
                None => return before.error(ProbeReason::TooManySteps),
            }
            depth = depth.wrapping_add(1);
        }
        // The outermost step is the last one.
        if let Some(steps) = steps.get_mut(..depth) {
            steps.reverse();
        }
        let base = base(&mut rest)?;
        for _ in 0..depth {
            if !rest.take(")") {
                return rest.error(ProbeReason::NoParenthesis);
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
            return before.error(ProbeReason::WrongType);
        }
        let ty = match (base, ty) {
            (Base::Duration, None) if depth == 0 => Some(Type::Unsigned(64)),
            (Base::Duration, Some(Type::Unsigned(_) | Type::Signed(_) | Type::Hex(_)))
                if depth == 0 =>
            {
                ty
            }
            (Base::Duration, _) => return before.error(ProbeReason::DurationIsNumber),
            _ => ty,
        };
        if !rest.left().is_empty() {
            return rest.error(ProbeReason::NoType);
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

impl Type {
    /// The type that holds the values of both types; for two numbers, one of the same kind. [`None`]: there is none.
    pub(super) fn joined(one: Option<Self>, other: Option<Self>) -> Option<Option<Self>> {
        if one == other {
            return Some(one);
        }
        let ((bits, is_signed), (other_bits, other_is_signed)) = (one?.number()?, other?.number()?);
        let most = bits.max(other_bits);
        if is_signed == other_is_signed {
            return Some(if bits == most { one } else { other });
        }
        // A signed number needs one more bit than an unsigned one.
        let unsigned = if is_signed { other_bits } else { bits };
        let most = most.max(unsigned.saturating_mul(2)).min(64);
        Some(Some(Self::Signed(most)))
    }

    /// The number of bits of a number in the machine's byte order, and whether it is signed.
    pub fn number(self) -> Option<(u8, bool)> {
        match self {
            Self::Unsigned(bits) | Self::Hex(bits) => Some((bits, false)),
            Self::Signed(bits) => Some((bits, true)),
            Self::BigEndian(_) | Self::BitField { .. } | Self::Symbol | Self::Text { .. } => None,
        }
    }
}

fn base<'a>(rest: &mut Rest<'a>) -> Result<Base<'a>, Error> {
    let before = *rest;
    let base = if rest.take("%") {
        let base = rest.take_while(is_of_name);
        match rest.take("+%") {
            true => sum(base, rest),
            false => Some(Base::Register(base)),
        }
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
            "duration" => Some(Base::Duration),
            "comm" => Some(Base::Comm),
            "stack" => Some(Base::Stack),
            word => {
                if let Some(number) = word.strip_prefix("arg") {
                    match number.parse() {
                        Ok(number @ 1..=6) => Some(Base::Argument(number)),
                        _ => return before.error(ProbeReason::NoArgument),
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
        None => before.error(ProbeReason::NoValue),
    }
}

/// The rest of the sum of two registers: `INDEX*SCALE`.
fn sum<'a>(base: &'a str, rest: &mut Rest<'a>) -> Option<Base<'a>> {
    let index = rest.take_while(is_of_name);
    let number = rest.take("*").then(|| number(rest)).flatten()?;
    let scale = u8::try_from(number).ok()?;
    matches!(scale, 1 | 2 | 4 | 8).then_some(Base::Sum { base, index, scale })
}

fn ty(rest: &mut Rest<'_>) -> Result<Type, Error> {
    let before = *rest;
    match ty_of_word(rest) {
        Some(ty) => Ok(ty),
        None => before.error(ProbeReason::NoType),
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
    if rest.take("be") {
        let bits = u8::try_from(number(rest)?).ok()?;
        return (is_size(bits) && bits != 8).then_some(Type::BigEndian(bits));
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
