// SPDX-License-Identifier: GPL-2.0

//! The parameters of a program's function, by their names in its debug information.

use super::functions::Function;
use anyhow::bail;
use object::{Architecture, Object};
use std::path::Path;
use symbols::{Parameter, ParameterType, Prototype};

/// Number of the first arguments that `dynamic_events` knows as `$argN`.
const ARGUMENTS: usize = 6;

/// Registers of x86-64 by their numbers in DWARF, with the kernel's names.
const X86: [&str; 16] = [
    "ax", "dx", "cx", "bx", "si", "di", "bp", "sp", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];

/// Registers of the first arguments.
const X86_ARGUMENTS: [&str; ARGUMENTS] = ["di", "si", "dx", "cx", "r8", "r9"];
const ARM64_ARGUMENTS: [&str; ARGUMENTS] = ["x0", "x1", "x2", "x3", "x4", "x5"];

/// The parameters of a function, at its first instruction or at another one.
pub struct Parameters {
    prototype: Prototype,
    architecture: Architecture,
    /// Whether the compiler may have changed the parameters: the function is one that it made from another.
    is_made: bool,
    at: At,
}

/// The place where the parameters are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The first instruction.
    Call,
    /// The first instruction, for the event at the return.
    Return,
    /// Another instruction.
    Inside,
}

impl Parameters {
    /// The parameters of `function` at `address`. [`None`]: there is no debug information about the function.
    pub(super) fn find(
        file: &Path,
        object: &object::File<'_>,
        function: &Function,
        at: At,
    ) -> Option<Self> {
        Some(Self {
            prototype: symbols::prototype(file, function.address)?,
            architecture: object.architecture(),
            is_made: function.name.contains('.'),
            at,
        })
    }

    /// `VALUE:TYPE` of the parameter `name`, as `dynamic_events` takes it. `ty` is the type to record, if given.
    pub fn value(&self, name: &str, ty: Option<&str>) -> anyhow::Result<String> {
        let parameters = &self.prototype.parameters;
        let Some(index) = parameters.iter().position(|known| known.name == name) else {
            let known: Vec<_> = parameters.iter().map(|known| &*known.name).collect();
            match known.is_empty() {
                true => bail!("the function has no parameter `{name}`: it has none"),
                false => bail!(
                    "the function has no parameter `{name}`: it has {}",
                    known.join(", ")
                ),
            }
        };
        let parameter = &parameters[index];
        let value = match parameter.register {
            Some(register) => self.in_register(name, register)?,
            None => self.by_position(name, index)?,
        };
        Ok(match (ty, parameter.ty) {
            (Some(ty @ ("string" | "ustring")), _) => format!("+0({value}):{ty}"),
            (Some(ty), _) => format!("{value}:{ty}"),
            (None, ParameterType::Text) => format!("+0({value}):ustring"),
            (None, ParameterType::Pointer) => format!("{value}:x64"),
            (None, ParameterType::Number { bytes, is_signed })
                if matches!(bytes, 1 | 2 | 4 | 8) =>
            {
                let sign = if is_signed { 's' } else { 'u' };
                format!("{value}:{sign}{}", bytes * 8)
            }
            (None, ParameterType::Float) => {
                bail!("`{name}` is a floating-point number, which probes cannot read")
            }
            (None, ParameterType::Number { .. } | ParameterType::Other) => {
                bail!("`{name}` has a type that is no number and no address: give it one (`:x64`)")
            }
        })
    }

    /// The register with this number in DWARF.
    fn in_register(&self, name: &str, number: u16) -> anyhow::Result<String> {
        let (register, arguments) = match self.architecture {
            Architecture::X86_64 => (
                X86.get(usize::from(number)).map(ToString::to_string),
                X86_ARGUMENTS,
            ),
            Architecture::Aarch64 if number < 31 => (Some(format!("x{number}")), ARM64_ARGUMENTS),
            _ => (None, ARM64_ARGUMENTS),
        };
        let Some(register) = register else {
            bail!("`{name}` is in a register that probes cannot read");
        };
        let argument = arguments.iter().position(|known| *known == register);
        match (self.at, argument) {
            (At::Call | At::Return, Some(index)) => Ok(format!("$arg{}", index + 1)),
            (At::Return, None) => {
                bail!("`{name}` is in the register {register}, which is not kept until the return")
            }
            _ => Ok(format!("%{register}")),
        }
    }

    /// The place of a parameter at the first instruction by the calling convention.
    fn by_position(&self, name: &str, index: usize) -> anyhow::Result<String> {
        if self.at == At::Inside || self.is_made {
            bail!("`{name}` is in no register there");
        }
        let is_x86 = self.architecture == Architecture::X86_64;
        if !is_x86 && self.architecture != Architecture::Aarch64 {
            bail!("rtrace does not know where this processor has `{name}`");
        }
        if is_x86 && self.prototype.returns_structure {
            bail!("the function returns a structure, so the register of `{name}` is not known: use $argN");
        }
        let mut argument = 1;
        for Parameter {
            name: other, ty, ..
        } in &self.prototype.parameters[..index]
        {
            match ty {
                ParameterType::Number { bytes: 0..=8, .. }
                | ParameterType::Text
                | ParameterType::Pointer => argument += 1,
                ParameterType::Float => {}
                ParameterType::Number { .. } | ParameterType::Other => {
                    bail!("the register of `{name}` is not known, because of the type of `{other}` before it: use $argN");
                }
            }
        }
        if argument > ARGUMENTS {
            bail!("`{name}` is argument {argument}: only the first {ARGUMENTS} can be recorded");
        }
        Ok(format!("$arg{argument}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(architecture: Architecture, at: At) -> Parameters {
        let number = |bytes| ParameterType::Number {
            bytes,
            is_signed: true,
        };
        let parameter = |name: &str, ty, register| Parameter {
            name: name.to_owned(),
            ty,
            register,
        };
        Parameters {
            prototype: Prototype {
                parameters: vec![
                    parameter("short", number(2), None),
                    parameter("real", ParameterType::Float, None),
                    parameter("text", ParameterType::Text, None),
                    parameter("kept", ParameterType::Pointer, Some(3)),
                    parameter(
                        "second",
                        number(4),
                        Some(if architecture == Architecture::X86_64 {
                            4
                        } else {
                            1
                        }),
                    ),
                    parameter("pair", ParameterType::Other, None),
                    parameter("last", number(8), None),
                ],
                returns_structure: false,
            },
            architecture,
            is_made: false,
            at,
        }
    }

    #[test]
    fn values_come_from_registers_and_the_calling_convention() {
        for architecture in [Architecture::X86_64, Architecture::Aarch64] {
            let call = parameters(architecture, At::Call);
            let value = |name, ty| call.value(name, ty).map_err(|error| error.to_string());
            assert_eq!(value("short", None).unwrap(), "$arg1:s16");
            assert_eq!(value("text", None).unwrap(), "+0($arg2):ustring");
            assert_eq!(value("text", Some("x64")).unwrap(), "$arg2:x64");
            assert_eq!(value("second", Some("string")).unwrap(), "+0($arg2):string");
            let kept = if architecture == Architecture::X86_64 {
                "%bx:x64"
            } else {
                "$arg4:x64"
            };
            assert_eq!(value("kept", None).unwrap(), kept);
            assert!(value("real", None).unwrap_err().contains("floating-point"));
            assert!(value("pair", None).unwrap_err().contains("give it one"));
            assert!(value("last", None).unwrap_err().contains("type of `pair`"));
            assert!(value("none", None)
                .unwrap_err()
                .contains("it has short, real"));
            let inside = parameters(architecture, At::Inside);
            assert!(inside.value("short", None).is_err());
            assert!(inside.value("second", None).unwrap().starts_with('%'));
        }
        let at_return = parameters(Architecture::X86_64, At::Return);
        assert!(at_return.value("kept", None).is_err());
        let mut other = parameters(Architecture::X86_64, At::Call);
        other.prototype.returns_structure = true;
        assert!(other.value("short", None).is_err());
        other.is_made = true;
        other.prototype.returns_structure = false;
        assert!(other.value("short", None).is_err());
    }
}
