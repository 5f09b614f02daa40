// SPDX-License-Identifier: GPL-2.0

//! Conversion of a specification to a line of `dynamic_events`: finds the place of each value in registers and memory.

use super::program::{self, Parameters};
use super::spec::{error, Error, From, Member, Spec, Value};
use super::types::{FoundMember, Pointee, Prototype, Types, ValueKind, STUB};
use super::usdt;
use btf_rs::Type;
use std::fmt::Write;
use std::path::Path;

/// The name of a result.
const RESULT: &str = "ret";

/// The name of the field with a call's duration.
const DURATION: &str = "duration_ns";

/// The reason why a specification has no line.
#[derive(Debug)]
pub enum Refusal {
    /// The specification is wrong.
    Wrong(Error),
    /// The kernel's types cannot be read, or lack the function.
    Types(anyhow::Error),
}

impl std::convert::From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Wrong(error)
    }
}

impl std::convert::From<anyhow::Error> for Refusal {
    fn from(error: anyhow::Error) -> Self {
        Self::Types(error)
    }
}

/// Place of a value, while the members of a path are followed.
enum Located {
    /// The value itself, as `dynamic_events` takes it.
    Value(String),
    /// The value is `bit` bits after the address in `pointer`. `bit_field` is its number of bits, if it is a bit field.
    Memory {
        pointer: String,
        bit: u64,
        bit_field: Option<u32>,
    },
}

/// The line that defines the event in `subsystem`. The types are those in `folder`, if the specification needs types.
pub fn line(spec: &Spec<'_>, subsystem: &str, folder: &Path) -> Result<String, Refusal> {
    if let Some(usdt) = spec.usdt() {
        return usdt::line(spec, &usdt, subsystem, &event_name(spec));
    }
    let kind = match spec.tracepoint() {
        Some(_) if spec.results.is_some() => {
            return Ok(error(spec.at, "a tracepoint has no result")?);
        }
        Some(_) => "t",
        None if spec.results.is_some() => "r",
        None => "p",
    };
    let name = event_name(spec);
    let values = || {
        let results = spec.results.iter().flatten().map(|value| (value, true));
        let arguments = spec.arguments.iter().map(|value| (value, false));
        arguments.chain(results)
    };
    let needs_types = values().any(|(value, is_result)| {
        let is_of_program = is_result && spec.in_file().is_some();
        !is_of_program && matches!(value.from, From::Path(..))
    });
    let (place, parameters) = place(spec, needs_types)?;
    let needs_types = needs_types && spec.in_file().is_none();
    let mut line = format!("{kind}:{subsystem}/{name} {place}");
    let function = match spec.tracepoint() {
        Some(name) => format!("{STUB}{name}"),
        None => spec.function().to_owned(),
    };
    let types = needs_types
        .then(|| Types::of(folder, &function))
        .transpose()?;
    let prototype = match &types {
        Some(types) => Some(types.prototype(&function)?),
        None => None,
    };
    let finder = types.as_ref().zip(prototype.as_ref());
    let finder = finder.map(|(types, prototype)| Finder {
        types,
        prototype,
        handlers_own: spec.tracepoint().map_or(0, |_| 1),
    });
    for (value, is_result) in values() {
        line.push(' ');
        if let Some(name) = value.name.or_else(|| own_name(value)) {
            write!(line, "{name}=").expect("a string grows");
        }
        let found = match (&value.from, &finder) {
            (From::Raw(raw), _) => with_type(raw, value.ty),
            (From::Path(first, members), Some(finder)) => {
                finder.find(value, first, members, is_result)?
            }
            (From::Path(first, members), None) if !is_result && parameters.is_some() => {
                let found = match (&parameters, members.first()) {
                    (Some(parameters), None) => parameters.value(first, value.ty),
                    (_, member) => {
                        let at = member.map_or(value.at, |member| member.at);
                        let what = "rtrace does not follow the members of a program's structures: use +OFFSET(VALUE)";
                        return Ok(error(at, what)?);
                    }
                };
                match found {
                    Ok(found) => found,
                    Err(what) => return Ok(error(value.at, what.to_string())?),
                }
            }
            // The type of a program's result is not looked up.
            (From::Path(RESULT, members), None) if is_result && members.is_empty() => {
                with_type("$retval", value.ty.or(Some("x64")))
            }
            (From::Path(..), None) => {
                let what = "rtrace does not know the types of a program without debug information: use registers (%di), $arg1 to $arg6, or `ret`";
                return Ok(error(value.at, what)?);
            }
        };
        line.push_str(&found);
    }
    let is_named =
        |name| values().any(|(value, _)| value.name.or_else(|| own_name(value)) == Some(name));
    if spec.results.is_some() && !is_named(DURATION) {
        write!(line, " {DURATION}=$duration").expect("a string grows");
    }
    Ok(line)
}

/// The name of the event: the given one, or one made from the function's name, as perf probe does.
pub(super) fn event_name(spec: &Spec<'_>) -> String {
    if let Some(name) = spec.event {
        return name.to_owned();
    }
    let in_file = spec.usdt().map(|usdt| usdt.name);
    let in_file = in_file.or_else(|| Some(spec.in_file()?.1));
    let function = match in_file {
        Some(function) => function.split(['+', '@']).next().unwrap_or(function),
        None => spec.function(),
    };
    let function = function.rsplit(':').next().unwrap_or_default();
    let letters = function.chars();
    let name: String = letters
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if spec.results.is_some() {
        name + "__return"
    } else {
        name
    }
}

/// The place of the probe, as `dynamic_events` takes it, and the parameters of a program's function, if they are needed
/// and known.
fn place(spec: &Spec<'_>, needs_parameters: bool) -> Result<(String, Option<Parameters>), Refusal> {
    let Some((file, function)) = spec.in_file() else {
        return Ok((spec.tracepoint().unwrap_or(spec.place).to_owned(), None));
    };
    let (file, at_return) = (Path::new(file), spec.results.is_some());
    match program::place(file, function, at_return, needs_parameters) {
        Ok(place) => {
            let returns = place.returns.iter().map(|offset| format!(",{offset:#x}"));
            let returns: String = returns.collect();
            let text = format!("{}:{:#x}{returns}", file.display(), place.offset);
            Ok((text, place.parameters))
        }
        Err(what) => Ok(error(spec.at, format!("{what:#}"))?),
    }
}

fn with_type(value: &str, ty: Option<&str>) -> String {
    match ty {
        Some(ty) => format!("{value}:{ty}"),
        None => value.to_owned(),
    }
}

/// The name of a value without a given name: its last member, or the parameter.
fn own_name<'a>(value: &Value<'a>) -> Option<&'a str> {
    match &value.from {
        From::Raw(_) => None,
        From::Path(first, members) => members.last().map_or(Some(*first), |last| Some(last.name)),
    }
}

/// Finds values by their types.
struct Finder<'t> {
    types: &'t Types,
    prototype: &'t Prototype<'t>,
    /// Number of first parameters that only handlers of tracepoints have.
    handlers_own: usize,
}

impl Finder<'_> {
    /// Returns `VALUE:TYPE` for the value at the end of a path.
    fn find(
        &self,
        value: &Value<'_>,
        first: &str,
        members: &[Member<'_>],
        is_result: bool,
    ) -> Result<String, Refusal> {
        let (mut at, mut ty) = if is_result {
            self.result(value, first)?
        } else {
            self.parameter(value, first)?
        };
        for member in members {
            (at, ty) = self.member(at, &ty, member)?;
        }
        self.recorded(value, at, &ty)
    }

    fn parameter(&self, value: &Value<'_>, name: &str) -> Result<(Located, Type), Refusal> {
        let found = self.prototype.parameter(name)?;
        let found = found.filter(|(place, _)| *place > self.handlers_own);
        let Some((place, ty)) = found else {
            let known = self.prototype.parameters()?;
            let known = known.get(self.handlers_own..).unwrap_or_default();
            let known = if known.is_empty() {
                "it has none".to_owned()
            } else {
                format!("it has {}", known.join(", "))
            };
            let whose = if self.handlers_own == 0 {
                "function"
            } else {
                "tracepoint"
            };
            let what = format!("the {whose} has no parameter `{name}`: {known}");
            return Ok(error(value.at, what)?);
        };
        let (place, most) = (place - self.handlers_own, 6 - self.handlers_own);
        if place > most {
            let what =
                format!("`{name}` is argument {place}: only the first {most} are in registers");
            return Ok(error(value.at, what)?);
        }
        Ok((Located::Value(format!("$arg{place}")), ty))
    }

    fn result(&self, value: &Value<'_>, name: &str) -> Result<(Located, Type), Refusal> {
        if name != RESULT {
            let what = format!(
                "the name of the result is `{RESULT}`: write NAME={RESULT} for another name"
            );
            return Ok(error(value.at, what)?);
        }
        let ty = self.prototype.result()?;
        if let ValueKind::Void = self.types.kind(&ty)? {
            return Ok(error(value.at, "the function returns nothing")?);
        }
        Ok((Located::Value("$retval".to_owned()), ty))
    }

    fn member(
        &self,
        at: Located,
        ty: &Type,
        member: &Member<'_>,
    ) -> Result<(Located, Type), Refusal> {
        let wrong = |what: &str| -> Refusal {
            Refusal::Wrong(Error {
                at: member.at,
                reason: what.to_owned(),
            })
        };
        let (structure, pointer, bit) = match (self.types.kind(ty)?, at, member.by_pointer) {
            (ValueKind::Pointer(Pointee::Struct(to)), at, true) => (to, at.read(), 0),
            (ValueKind::Struct(ty), Located::Memory { pointer, bit, .. }, false) => {
                (ty, pointer, bit)
            }
            (ValueKind::Pointer(_), _, false) => {
                return Err(wrong(
                    "the value before the member is a pointer: expected '->'",
                ))
            }
            (ValueKind::Struct(_), _, true) => {
                return Err(wrong(
                    "the value before the member is not a pointer: expected '.'",
                ))
            }
            _ => return Err(wrong("the value before the member has no members")),
        };
        let found = self.types.member(&structure, member.name)?;
        let Some(FoundMember {
            bit: more,
            bit_field,
            ty,
        }) = found
        else {
            let what = format!("there is no member `{}`", member.name);
            return Err(wrong(&what));
        };
        let bit = bit + u64::from(more);
        let at = Located::Memory {
            pointer,
            bit,
            bit_field,
        };
        Ok((at, ty))
    }

    fn recorded(&self, value: &Value<'_>, at: Located, ty: &Type) -> Result<String, Refusal> {
        let kind = self.types.kind(ty)?;
        if let Some(ty) = value.ty {
            // A text is at the address in the value. If the value is an array of characters, the text is in the value
            // itself.
            return Ok(match (ty, kind) {
                ("string" | "ustring", ValueKind::Text) => format!("{}:{ty}", at.place()),
                ("string" | "ustring", _) => format!("+0({}):{ty}", at.read()),
                _ => format!("{}:{ty}", at.read()),
            });
        }
        if let Located::Memory {
            pointer,
            bit,
            bit_field: Some(bits),
        } = &at
        {
            // Read the smallest number that contains all of the bit field.
            for size in [8, 16, 32, 64] {
                let shift = bit % size;
                if shift + u64::from(*bits) <= size {
                    let bytes = bit / size * (size / 8);
                    return Ok(format!("+{bytes}({pointer}):b{bits}@{shift}/{size}"));
                }
            }
        }
        Ok(match kind {
            ValueKind::Number {
                bits,
                is_big_endian: true,
                ..
            } => format!("{}:be{bits}", at.read()),
            ValueKind::Number {
                bits, is_signed, ..
            } => {
                let sign = if is_signed { 's' } else { 'u' };
                format!("{}:{sign}{bits}", at.read())
            }
            ValueKind::Pointer(Pointee::Text) => format!("+0({}):string", at.read()),
            ValueKind::Pointer(_) => format!("{}:symbol", at.read()),
            ValueKind::Text => format!("{}:string", at.place()),
            ValueKind::Struct(_) => {
                return Ok(error(value.at, "this is a structure: name a member")?);
            }
            ValueKind::Other(what) => {
                return Ok(error(
                    value.at,
                    format!("this is {what}: give it a type (`:x64`)"),
                )?);
            }
            ValueKind::Void => {
                return Ok(error(
                    value.at,
                    "this has the type void: there is no value to record",
                )?)
            }
        })
    }
}

impl Located {
    /// An expression for the value there.
    fn read(&self) -> String {
        match self {
            Self::Value(value) => value.clone(),
            Self::Memory { .. } => self.place(),
        }
    }

    /// An expression for the place in memory. A value that is not in memory is its own place.
    fn place(&self) -> String {
        match self {
            Self::Value(value) => value.clone(),
            Self::Memory { pointer, bit, .. } => format!("+{}({pointer})", bit / 8),
        }
    }
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
