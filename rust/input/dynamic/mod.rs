// SPDX-License-Identifier: GPL-2.0

//! Dynamic events: the lines of the `dynamic_events` file, in ftrace's syntax.
//!
//! ```text
//! p[:[SUBSYSTEM/]EVENT] PLACE [ARGUMENT]...        when the code at PLACE is reached
//! r[MAX][:[SUBSYSTEM/]EVENT] PLACE [ARGUMENT]...   when the function PLACE returns
//! t[:[SUBSYSTEM/]EVENT] TRACEPOINT [ARGUMENT]...   when the tracepoint is reached
//! -:[SUBSYSTEM/]EVENT                              deletes an event
//!
//! PLACE = SYMBOL[+OFFSET] | MODULE:SYMBOL[+OFFSET] | 0xADDRESS | /FILE:OFFSET[,RETURN]...
//! ```
//!
//! Each RETURN is the offset of a return instruction of the function at OFFSET.

pub mod argument;

pub use argument::{Argument, Base, Type};

use super::caret;
use super::rest::{is_of_name, Rest};
use core::fmt;

/// Default subsystem of an event in the kernel, as in ftrace.
pub const SUBSYSTEM: &str = "kprobes";

/// Default subsystem of an event in a program.
pub const FILE_SUBSYSTEM: &str = "uprobes";

/// Default subsystem of an event at a tracepoint.
pub const TRACEPOINT_SUBSYSTEM: &str = "tracepoints";

/// Maximum number of a tracepoint's arguments that are in registers. One register has the data of
/// the tracepoint's handler.
pub const TRACEPOINT_ARGUMENTS: usize = 5;

/// Maximum number of arguments of an event.
pub const ARGUMENTS_MAX: usize = 32;

/// Maximum number of return instructions of a program's function.
pub const RETURNS_MAX: usize = 64;

/// A line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition<'a> {
    /// Creates an event.
    Add(ProbeLine<'a>),
    /// Deletes an event.
    Remove(Name<'a>),
}

/// An event, and the place where it fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeLine<'a> {
    /// Whether it fires when the function returns.
    pub at_return: bool,
    /// Maximum number of calls in progress whose return can be probed; 0: the default.
    pub max_active: u32,
    /// Name of the event; [`None`]: the name is made from the place.
    pub name: Option<Name<'a>>,
    /// The place where it fires.
    pub place: ProbePlace<'a>,
    /// The place and the arguments, as written.
    pub text: &'a str,
    /// The arguments, and their position in the line.
    arguments: (&'a str, usize),
}

/// An event's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// The subsystem, if it is given.
    pub subsystem: Option<&'a str>,
    /// The name in the subsystem.
    pub event: &'a str,
}

/// The place where an event fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbePlace<'a> {
    /// Position in the line.
    pub at: usize,
    /// Base of the offset.
    pub base: PlaceBase<'a>,
    /// Offset in bytes from the base.
    pub offset: u64,
    /// The offsets of the return instructions, as written.
    returns: &'a str,
}

/// Base of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceBase<'a> {
    /// A symbol, optionally with its module in front.
    Symbol(&'a str),
    /// An address.
    Address(u64),
    /// The beginning of a file that programs execute.
    File(&'a str),
    /// A tracepoint.
    Tracepoint(&'a str),
}

/// An error in a line.
pub type Error = caret::Error<ProbeReason>;

/// Description of an error in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeReason {
    /// The line begins with none of `p`, `r`, `t` and `-`.
    NoKind,
    /// Not a number of calls.
    NoMax,
    /// Not the name of an event.
    NoName,
    /// The place is missing.
    NoPlace,
    /// Not an offset.
    NoOffset,
    /// Not a place in a file.
    NoFilePlace,
    /// Not the name of a tracepoint.
    NoTracepoint,
    /// A return at an offset inside a function.
    ReturnInside,
    /// A return of a program's function, without its return instructions.
    NoReturns,
    /// Return instructions, where the call is probed.
    ReturnsAtEntry,
    /// Too many return instructions.
    TooManyReturns,
    /// More text after the name of the event to delete.
    TooMuch,
    /// Too many arguments.
    TooManyArguments,
    /// Not the name of an argument.
    NoArgumentName,
    /// Not the value of an argument.
    NoValue,
    /// Not the name of a register.
    NoRegister,
    /// Not the number of an argument in a register.
    NoArgument,
    /// An argument of the function, at a place inside the function, where the register may have another value.
    ArgumentInside,
    /// The function's result, at a place where it does not exist yet.
    ResultAtEntry,
    /// The duration of the call, at a place where the call has not ended.
    DurationAtEntry,
    /// At a tracepoint, a value that exists only in probed code.
    NotAtTracepoint,
    /// Too many steps from pointer to pointer.
    TooManySteps,
    /// A parenthesis is missing.
    NoParenthesis,
    /// Not a number.
    NoNumber,
    /// Not a type.
    NoType,
    /// A type that does not fit the value.
    WrongType,
    /// A duration used as an address, or with a type that is not that of a number.
    DurationIsNumber,
}

impl fmt::Display for ProbeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoKind => "expected 'p' (code is reached), 'r' (a function returns), 't' (a tracepoint) or '-' (delete)",
            Self::NoMax => "expected the maximum number of calls in progress: a number from 1 to 4096",
            Self::NoName => "expected [SUBSYSTEM/]EVENT: letters, digits and '_'",
            Self::NoPlace => "expected a function, SYMBOL+OFFSET, 0xADDRESS or /FILE:OFFSET",
            Self::NoOffset => "expected an offset in bytes",
            Self::NoFilePlace => "expected /FILE:OFFSET, the offset in bytes from the file's beginning",
            Self::NoTracepoint => "expected a tracepoint: letters, digits and '_'",
            Self::ReturnInside => "a function's return has no offset",
            Self::NoReturns => "expected /FILE:OFFSET,RETURN,...: the offsets of the function and of all of its return instructions",
            Self::ReturnsAtEntry => "return instructions are for 'r' only",
            Self::TooManyReturns => "more than 64 return instructions",
            Self::TooMuch => "expected the end",
            Self::TooManyArguments => "more than 32 arguments",
            Self::NoArgumentName => "expected a name of at most 31 letters, digits and '_'",
            Self::NoValue => {
                "expected %REGISTER, $argN, $retval, $duration, $stack, $stackN, $comm, @ADDRESS, \\NUMBER or OFFSET(VALUE)"
            }
            Self::NoRegister => "unknown register",
            Self::NoArgument => "arguments 1 to 6 are in registers",
            Self::ArgumentInside => "$argN is known only at the function's beginning",
            Self::ResultAtEntry => "$retval is known only at the function's return",
            Self::DurationAtEntry => "$duration is known only at the function's return",
            Self::NotAtTracepoint => {
                "at a tracepoint only $arg1 to $arg5, $comm, @ADDRESS and \\NUMBER are known"
            }
            Self::TooManySteps => "more than 8 pointers",
            Self::NoParenthesis => "expected a parenthesis",
            Self::NoNumber => "expected a number",
            Self::NoType => {
                "expected u8 to u64, s8 to s64, x8 to x64, be16 to be64, symbol, string, ustring or bWIDTH@SHIFT/SIZE"
            }
            Self::WrongType => "$comm is a string",
            Self::DurationIsNumber => "$duration is a number of nanoseconds: u8 to u64, s8 to s64 or x8 to x64",
        })
    }
}

impl<'a> Definition<'a> {
    /// Parses a line without a newline. May run in any context.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let mut rest = Rest::new(text);
        rest.skip_space();
        if rest.take("-") {
            rest.take(":");
            let name = name(&mut rest)?;
            rest.skip_space();
            return match rest.left() {
                "" => Ok(Self::Remove(name)),
                _ => rest.error(ProbeReason::TooMuch),
            };
        }
        let at_return = rest.take("r");
        let at_tracepoint = !at_return && rest.take("t");
        if !at_return && !at_tracepoint && !rest.take("p") {
            return rest.error(ProbeReason::NoKind);
        }
        let mut max_active = 0;
        let before = rest;
        let digits = rest.take_while(|c| c.is_ascii_digit());
        if !digits.is_empty() {
            max_active = match digits.parse() {
                Ok(max @ 1..=4096) if at_return => max,
                _ => return before.error(ProbeReason::NoMax),
            };
        }
        let name = if rest.take(":") {
            Some(name(&mut rest)?)
        } else {
            None
        };
        if !rest.left().starts_with(|c: char| c.is_ascii_whitespace()) {
            return rest.error(match rest.left() {
                "" if at_tracepoint => ProbeReason::NoTracepoint,
                "" => ProbeReason::NoPlace,
                _ => ProbeReason::NoKind,
            });
        }
        rest.skip_space();
        let behind = rest;
        let place = if at_tracepoint {
            tracepoint(&mut rest)?
        } else {
            place(&mut rest)?
        };
        let returns = place.returns().count();
        let wrong = match (place.is_in_file(), at_return) {
            (false, true) if place.offset != 0 => Some(ProbeReason::ReturnInside),
            (true, true) if returns == 0 => Some(ProbeReason::NoReturns),
            (true, false) if returns != 0 => Some(ProbeReason::ReturnsAtEntry),
            _ if returns > RETURNS_MAX => Some(ProbeReason::TooManyReturns),
            _ => None,
        };
        if let Some(reason) = wrong {
            return behind.error(reason);
        }
        let probe = ProbeLine {
            at_return,
            max_active,
            name,
            place,
            text: behind.left().trim_ascii_end(),
            arguments: (rest.left(), rest.at),
        };
        let mut count = 0_usize;
        for argument in probe.arguments() {
            let at = argument?.at;
            count = count.wrapping_add(1);
            if count > ARGUMENTS_MAX {
                let reason = ProbeReason::TooManyArguments;
                return Err(Error { at, reason });
            }
        }
        Ok(Self::Add(probe))
    }
}

impl<'a> ProbeLine<'a> {
    /// Subsystem of the event if its name has none.
    pub fn own_subsystem(&self) -> &'static str {
        match self.place.base {
            PlaceBase::File(_) => FILE_SUBSYSTEM,
            PlaceBase::Tracepoint(_) => TRACEPOINT_SUBSYSTEM,
            PlaceBase::Symbol(_) | PlaceBase::Address(_) => SUBSYSTEM,
        }
    }

    /// Iterates over the arguments; it ends at the first error.
    pub fn arguments(&self) -> impl Iterator<Item = Result<Argument<'a>, Error>> {
        let (text, begin) = self.arguments;
        let is_inside = match self.place.base {
            PlaceBase::Symbol(_) => self.place.offset != 0,
            PlaceBase::Address(_) => true,
            PlaceBase::File(_) | PlaceBase::Tracepoint(_) => false,
        };
        let at_tracepoint = self.place.is_tracepoint();
        let at_return = self.at_return;
        let mut at = 0_usize;
        let mut number = 0_u32;
        core::iter::from_fn(move || {
            let left = text.get(at..)?;
            let blanks = left.len().wrapping_sub(left.trim_ascii_start().len());
            at = at.wrapping_add(blanks);
            let word = text.get(at..)?.split_ascii_whitespace().next()?;
            let from = begin.wrapping_add(at);
            at = at.wrapping_add(word.len());
            number = number.wrapping_add(1);
            let mut argument = Argument::parse(word, from, number);
            if let Ok(Argument { base, at, .. }) = argument {
                let reason = match base {
                    Base::Argument(number) if at_tracepoint => {
                        let is_known = usize::from(number) <= TRACEPOINT_ARGUMENTS;
                        (!is_known).then_some(ProbeReason::NotAtTracepoint)
                    }
                    Base::Register(_)
                    | Base::Stack
                    | Base::StackWord(_)
                    | Base::Result
                    | Base::Duration
                        if at_tracepoint =>
                    {
                        Some(ProbeReason::NotAtTracepoint)
                    }
                    Base::Argument(_) if is_inside => Some(ProbeReason::ArgumentInside),
                    Base::Result if !at_return => Some(ProbeReason::ResultAtEntry),
                    Base::Duration if !at_return => Some(ProbeReason::DurationAtEntry),
                    _ => None,
                };
                if let Some(reason) = reason {
                    argument = Err(Error { at, reason });
                }
            }
            if argument.is_err() {
                at = text.len();
            }
            Some(argument)
        })
    }
}

impl<'a> ProbePlace<'a> {
    /// Returns whether the place is code of a program.
    pub fn is_in_file(&self) -> bool {
        matches!(self.base, PlaceBase::File(_))
    }

    /// Iterates over the offsets of the return instructions.
    pub fn returns(&self) -> impl Iterator<Item = u64> + 'a {
        // They were parsed before.
        let returns = self.returns.split(',');
        returns.filter_map(|offset| number(&mut Rest::new(offset)))
    }

    /// Returns whether the place is a tracepoint.
    pub fn is_tracepoint(&self) -> bool {
        matches!(self.base, PlaceBase::Tracepoint(_))
    }
}

/// Parses a number: decimal, or hexadecimal after `0x`.
fn number(rest: &mut Rest<'_>) -> Option<u64> {
    if rest.take("0x") {
        let digits = rest.take_while(|c| c.is_ascii_hexdigit());
        return u64::from_str_radix(digits, 16).ok();
    }
    rest.take_while(|c| c.is_ascii_digit()).parse().ok()
}

fn name<'a>(rest: &mut Rest<'a>) -> Result<Name<'a>, Error> {
    let before = *rest;
    let mut event = rest.take_while(is_of_name);
    let mut subsystem = None;
    if rest.take("/") {
        subsystem = Some(event);
        event = rest.take_while(is_of_name);
    }
    let is_name = |name: &str, longest| {
        name.len() <= longest && !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())
    };
    if !is_name(event, 63) || !subsystem.is_none_or(|name| is_name(name, 31)) {
        return before.error(ProbeReason::NoName);
    }
    Ok(Name { subsystem, event })
}

fn place<'a>(rest: &mut Rest<'a>) -> Result<ProbePlace<'a>, Error> {
    let before = *rest;
    let at = rest.at;
    if rest.left().starts_with(|c: char| c.is_ascii_digit()) {
        let address = number(rest).filter(|_| before.left().starts_with("0x"));
        return match address {
            Some(address) if is_at_end_of_word(rest) => Ok(ProbePlace {
                at,
                base: PlaceBase::Address(address),
                offset: 0,
                returns: "",
            }),
            _ => before.error(ProbeReason::NoPlace),
        };
    }
    if rest.left().starts_with('/') {
        let word = rest.take_while(|c| !c.is_ascii_whitespace());
        let parts = word.rsplit_once(':').and_then(|(file, offsets)| {
            let is_number = |text| {
                let mut rest = Rest::new(text);
                number(&mut rest).is_some() && rest.left().is_empty()
            };
            let (offset, returns) = offsets.split_once(',').unwrap_or((offsets, ""));
            let is_valid = offsets.split(',').all(is_number);
            let offset = number(&mut Rest::new(offset)).filter(|_| is_valid)?;
            Some((file, offset, returns))
        });
        return match parts {
            Some((file, offset, returns)) => Ok(ProbePlace {
                at,
                base: PlaceBase::File(file),
                offset,
                returns,
            }),
            None => before.error(ProbeReason::NoFilePlace),
        };
    }
    let symbol = rest.take_while(|c| is_of_name(c) || matches!(c, '.' | '$' | ':' | '-'));
    if symbol.is_empty() {
        return before.error(ProbeReason::NoPlace);
    }
    let mut offset = 0;
    if rest.take("+") {
        let before = *rest;
        offset = match number(rest).map(u32::try_from) {
            Some(Ok(offset)) => offset.into(),
            _ => return before.error(ProbeReason::NoOffset),
        };
    }
    if !is_at_end_of_word(rest) {
        return before.error(ProbeReason::NoPlace);
    }
    let base = PlaceBase::Symbol(symbol);
    Ok(ProbePlace {
        at,
        base,
        offset,
        returns: "",
    })
}

fn tracepoint<'a>(rest: &mut Rest<'a>) -> Result<ProbePlace<'a>, Error> {
    let before = *rest;
    let name = rest.take_while(is_of_name);
    if name.is_empty() || !is_at_end_of_word(rest) {
        return before.error(ProbeReason::NoTracepoint);
    }
    Ok(ProbePlace {
        at: before.at,
        base: PlaceBase::Tracepoint(name),
        offset: 0,
        returns: "",
    })
}

fn is_at_end_of_word(rest: &Rest<'_>) -> bool {
    rest.peek().is_none_or(|c| c.is_ascii_whitespace())
}
