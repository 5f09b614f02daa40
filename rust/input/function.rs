// SPDX-License-Identifier: GPL-2.0

//! Selected functions: a word of the `set_ftrace_filter` file, in ftrace's syntax.
//!
//! ```text
//! [!]GLOB               functions of the kernel and of modules, by a shell pattern
//! [!][GLOB]:mod:MODULE  functions of a loaded module; all of them without a pattern
//! [!]0xADDRESS          the function that begins at the address
//! ```

use super::caret;
use core::fmt;

/// A word of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionWord<'a> {
    /// Whether the functions are removed from the set: `!` in front.
    pub removes: bool,
    /// The functions.
    pub functions: FunctionNames<'a>,
}

/// A set of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionNames<'a> {
    /// Functions whose names match a shell pattern.
    Named(&'a str),
    /// Functions of a module whose names match a shell pattern.
    OfModule {
        /// The module.
        module: &'a str,
        /// The pattern.
        name: &'a str,
    },
    /// The function that begins at an address.
    At(u64),
}

/// An error in a word.
pub type Error = caret::Error<FunctionReason>;

/// Description of an error in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionReason {
    /// The name is missing.
    NoName,
    /// After a colon, a word other than `mod`.
    NotMod,
    /// The name of the module is missing.
    NoModule,
    /// Not an address.
    NoAddress,
}

impl fmt::Display for FunctionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoName => "expected a function's name, or a pattern for names",
            Self::NotMod => "only :mod:MODULE may follow a function",
            Self::NoModule => "expected a module's name",
            Self::NoAddress => "an address is 0x and up to 16 hexadecimal digits",
        })
    }
}

impl<'a> FunctionWord<'a> {
    /// Parses a word.
    pub fn parse(word: &'a str) -> Result<Self, Error> {
        let (removes, rest) = match word.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, word),
        };
        let refuse = |behind: &str, reason| Error {
            at: word.len() - behind.len(),
            reason,
        };
        let functions = match rest.split_once(':') {
            Some((name, behind)) => {
                let module = behind.strip_prefix("mod:");
                let module = module.ok_or_else(|| refuse(behind, FunctionReason::NotMod))?;
                if module.is_empty() {
                    return Err(refuse(module, FunctionReason::NoModule));
                }
                let name = if name.is_empty() { "*" } else { name };
                FunctionNames::OfModule { module, name }
            }
            None if rest.is_empty() => return Err(refuse(rest, FunctionReason::NoName)),
            None => match rest.strip_prefix("0x") {
                Some(digits) => {
                    // The parse below would accept a sign.
                    let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                    let address = u64::from_str_radix(digits, 16).ok();
                    let address = address.filter(|_| is_number);
                    FunctionNames::At(
                        address.ok_or_else(|| refuse(digits, FunctionReason::NoAddress))?,
                    )
                }
                None => FunctionNames::Named(rest),
            },
        };
        Ok(Self { removes, functions })
    }
}
