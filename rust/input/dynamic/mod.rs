// SPDX-License-Identifier: GPL-2.0

//! Dynamic events: the lines of the `dynamic_events` file, in ftrace's syntax.
//!
//! ```text
//! p[:[SUBSYSTEM/]EVENT] PLACE [ARGUMENT]...        when the code at PLACE is reached
//! r[MAX][:[SUBSYSTEM/]EVENT] PLACE [ARGUMENT]...   when the function PLACE returns
//! t[:[SUBSYSTEM/]EVENT] TRACEPOINT [ARGUMENT]...   when the tracepoint is reached
//! -:[SUBSYSTEM/]EVENT                              deletes an event
//!
//! PLACE = SYMBOL[+OFFSET] | MODULE:SYMBOL[+OFFSET] | 0xADDRESS | /FILE:OFFSET[(COUNTER)][,RETURN]...
//! ```
//!
//! Each RETURN is the offset of a return instruction of the function at OFFSET. COUNTER is the offset of a 16-bit number,
//! which the kernel increments in each process while the place is probed there.
//!
//! An event in a program can have more places in the file. The word `:OFFSET[(COUNTER)]` begins another one, and the
//! arguments after it are the values to record there. They have the names of the first place's.

pub mod argument;
mod place;
mod site;

pub use argument::{Argument, Base, Type};
pub use place::{PlaceBase, ProbePlace};
pub use site::Site;

use super::caret;
use super::rest::{is_of_name, Rest};
use core::fmt;
use site::SiteText;

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

/// Maximum number of an event's places in a program.
pub const SITES_MAX: usize = 256;

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
    /// The place where it fires; the first one, if there are several.
    pub place: ProbePlace<'a>,
    /// The places and the arguments, as written.
    pub text: &'a str,
    /// The arguments at the first place, the other places with their arguments, and the position of all in the line.
    arguments: (&'a str, usize),
}

/// The type of each argument of a probe in the record. It holds the values of all places.
pub struct RecordedTypes([Option<Type>; ARGUMENTS_MAX]);

impl RecordedTypes {
    /// The type of this argument of the probe.
    pub fn of(&self, argument: &Argument<'_>) -> Option<Type> {
        let index = (argument.number as usize).wrapping_sub(1);
        self.0.get(index).copied().flatten()
    }
}

/// An event's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// The subsystem, if it is given.
    pub subsystem: Option<&'a str>,
    /// The name in the subsystem.
    pub event: &'a str,
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
    /// Several places, of which not all are calls or places in a program.
    NotSeveral,
    /// Too many places.
    TooManySites,
    /// A counter at a place that has none.
    NoCounter,
    /// Arguments that are not those of the first place.
    OtherArguments,
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
            Self::NotSeveral => "only 'p' in a program has several places",
            Self::TooManySites => "more than 256 places",
            Self::NoCounter => "only 'p' in a program has a counter",
            Self::OtherArguments => "the arguments have other names or types than those of the first place",
            Self::NoTracepoint => "expected a tracepoint: letters, digits and '_'",
            Self::ReturnInside => "a function's return has no offset",
            Self::NoReturns => "expected /FILE:OFFSET,RETURN,...: the offsets of the function and of all of its return instructions",
            Self::ReturnsAtEntry => "return instructions are for 'r' only",
            Self::TooManyReturns => "more than 64 return instructions",
            Self::TooMuch => "expected the end",
            Self::TooManyArguments => "more than 32 arguments",
            Self::NoArgumentName => "expected a name of at most 31 letters, digits and '_'",
            Self::NoValue => {
                "expected %REGISTER, %REGISTER+%REGISTER*SCALE, $argN, $retval, $duration, $stack, $stackN, $comm, @ADDRESS, \\NUMBER or OFFSET(VALUE)"
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
            ProbePlace::parse_tracepoint(&mut rest)?
        } else {
            ProbePlace::parse(&mut rest)?
        };
        let returns = place.returns().count();
        let wrong = match (place.is_in_file(), at_return) {
            (false, true) if place.offset != 0 => Some(ProbeReason::ReturnInside),
            (true, true) if returns == 0 => Some(ProbeReason::NoReturns),
            (true, false) if returns != 0 => Some(ProbeReason::ReturnsAtEntry),
            (_, true) if place.counter != 0 => Some(ProbeReason::NoCounter),
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
        probe.joined_types()?;
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

    /// Iterates over the arguments at the first place; it ends at the first error.
    pub fn arguments(&self) -> impl Iterator<Item = Result<Argument<'a>, Error>> {
        self.first().0.arguments()
    }

    /// The types of the arguments in the record.
    pub fn recorded_types(&self) -> RecordedTypes {
        // They were joined before.
        let types = self.joined_types();
        RecordedTypes(types.unwrap_or([None; ARGUMENTS_MAX]))
    }

    /// Iterates over the places, each with its arguments; it ends at the first error.
    pub fn sites(&self) -> impl Iterator<Item = Result<Site<'a>, Error>> {
        let (first, mut others) = self.first();
        let mut next = Some(first);
        core::iter::from_fn(move || {
            if let Some(site) = next.take() {
                return Some(Ok(site));
            }
            match first.next(others?) {
                Ok((site, left)) => {
                    others = left;
                    Some(Ok(site))
                }
                Err(error) => {
                    others = None;
                    Some(Err(error))
                }
            }
        })
    }

    /// The first place, and the text of the others.
    fn first(&self) -> (Site<'a>, Option<SiteText<'a>>) {
        let (text, at) = self.arguments;
        Site::new(self.place, self.at_return, SiteText { text, at })
    }

    /// The type of each argument in the record. An error: the places or their arguments are wrong.
    fn joined_types(&self) -> Result<[Option<Type>; ARGUMENTS_MAX], Error> {
        let error = |at, reason| Err(Error { at, reason });
        let mut types = [None; ARGUMENTS_MAX];
        for (number, site) in self.sites().enumerate() {
            let site = site?;
            let is_first = number == 0;
            let at = site.place.at;
            if !is_first && (self.at_return || !self.place.is_in_file()) {
                return error(at, ProbeReason::NotSeveral);
            }
            if number >= SITES_MAX {
                return error(at, ProbeReason::TooManySites);
            }
            let mut types = types.iter_mut();
            let mut first = self.arguments().filter_map(Result::ok);
            for argument in site.arguments() {
                let argument = argument?;
                let Some(ty) = types.next() else {
                    return error(argument.at, ProbeReason::TooManyArguments);
                };
                let known = first.next().filter(|known| known.is_like(&argument));
                let joined = match known {
                    Some(_) if is_first => Some(argument.ty),
                    Some(_) => Type::joined(*ty, argument.ty),
                    None => None,
                };
                match joined {
                    Some(joined) => *ty = joined,
                    None => return error(argument.at, ProbeReason::OtherArguments),
                }
            }
            if first.next().is_some() {
                return error(at, ProbeReason::OtherArguments);
            }
        }
        Ok(types)
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
