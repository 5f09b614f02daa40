// SPDX-License-Identifier: GPL-2.0

//! Places in the files of programs and libraries.

mod code;
mod functions;
mod parameters;
mod returns;

pub use parameters::Parameters;

use anyhow::{anyhow, bail, Context};
use code::Code;
use functions::Functions;
use object::{Object, ObjectSection};
use parameters::At;
use rtrace_input::dynamic::RETURNS_MAX;
use std::fs;
use std::path::Path;

/// A place in a file, as offsets from its beginning.
pub struct Place {
    /// The first instruction of a function, or another one.
    pub offset: u64,
    /// All return instructions of the function, if its return is probed.
    pub returns: Vec<u64>,
    /// The parameters of the function, if they are needed and the file has debug information.
    pub parameters: Option<Parameters>,
}

/// Finds a function in `file`, or an instruction of it: `NAME[@VERSION | @0xADDRESS][+OFFSET]`. With `at_return`, also
/// finds its return instructions. With `needs_parameters`, also looks for the parameters.
pub fn place(
    file: &Path,
    function: &str,
    at_return: bool,
    needs_parameters: bool,
) -> anyhow::Result<Place> {
    let shown = file.display();
    let data = fs::read(file).with_context(|| format!("{shown}"))?;
    let object = object::File::parse(&*data)
        .map_err(|error| anyhow!("{shown} is not a program or library: {error}"))?;
    if function.is_empty() {
        bail!("expected {shown}:FUNCTION");
    }
    let (function, offset) = match function.split_once('+') {
        Some((function, offset)) => (function, number(offset)?),
        None => (function, 0),
    };
    if at_return && offset != 0 {
        bail!("a function's return has no offset");
    }
    let place = || {
        if at_return && is_go(&object) {
            bail!("only calls can be probed, without `->`: a program in Go moves its stacks");
        }
        let code = Code::new(&object)?;
        let functions = Functions::new(&object);
        let found = functions.find(function, &code)?;
        let address = found.address.saturating_add(offset);
        let range = functions.range(&found);
        if !range.contains(&address) {
            let size = range.end - range.start;
            bail!("`{function}` has {size} bytes: {offset:#x} is outside");
        }
        if let Some((before, after)) = inside(code.beginnings(range), address) {
            let before = before - found.address;
            let after = after.map_or(String::new(), |after| {
                format!(" and {function}+{:#x}", after - found.address)
            });
            bail!("no instruction begins at {function}+{offset:#x}: the nearest ones begin at {function}+{before:#x}{after}");
        }
        let in_file = |address| {
            let offset = code.in_file(address);
            offset.with_context(|| format!("`{function}` has no code at {address:#x}"))
        };
        let returns = if at_return {
            let returns = returns::returns(&code, &functions, &found);
            returns.with_context(|| {
                format!("only calls of `{function}` can be probed, without `->`")
            })?
        } else {
            Vec::new()
        };
        if returns.len() > RETURNS_MAX {
            let count = returns.len();
            bail!(
                "`{function}` has {count} return instructions: at most {RETURNS_MAX} can be probed"
            );
        }
        let returns = returns.into_iter().map(in_file);
        let at = match offset {
            0 if at_return => At::Return,
            0 => At::Call,
            _ => At::Inside,
        };
        let parameters = needs_parameters.then(|| Parameters::find(file, &object, &found, at));
        Ok(Place {
            offset: in_file(address)?,
            returns: returns.collect::<anyhow::Result<_>>()?,
            parameters: parameters.flatten(),
        })
    };
    place().with_context(|| format!("{shown}"))
}

/// Whether the file has code of Go, whose runtime moves stacks.
fn is_go(object: &object::File<'_>) -> bool {
    let mut names = object
        .sections()
        .filter_map(|section| section.name().ok().map(str::to_owned));
    names.any(|name| name.ends_with(".gopclntab") || name == ".go.buildinfo")
}

/// If no instruction begins at `address`: the beginnings before and after it.
fn inside(beginnings: impl Iterator<Item = u64>, address: u64) -> Option<(u64, Option<u64>)> {
    let mut before = None;
    for at in beginnings {
        if at == address {
            return None;
        }
        if at > address {
            return before.map(|before| (before, Some(at)));
        }
        before = Some(at);
    }
    before.map(|before| (before, None))
}

/// Parses a decimal number, or a hexadecimal number after `0x`.
fn number(text: &str) -> anyhow::Result<u64> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| {
        anyhow!("`{text}` is not an offset: expected a number, decimal or hexadecimal after 0x")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_this_program_is_found() {
        let this = std::env::current_exe().expect("a path");
        let main = place(&this, "main", false, false).expect("the beginning");
        // (The selftest tool/probe-program checks that the offset is the right one.)
        assert!(main.offset < fs::metadata(&this).expect("the file").len());
        for (file, function, what) in [
            (this.as_path(), "no_such_symbol", "has no symbol"),
            (this.as_path(), "", "expected"),
            (this.as_path(), "main+x", "is not an offset"),
            (this.as_path(), "main+0xfffffff", "is outside"),
            (this.as_path(), "main@0x1", "is not at 0x1"),
            (this.as_path(), "main@V1", "has no version `V1`"),
            (
                Path::new("/etc/passwd"),
                "main",
                "is not a program or library",
            ),
            (Path::new("/no/such"), "main", "/no/such"),
        ] {
            let error = place(file, function, false, false).err().expect(function);
            assert!(format!("{error:#}").contains(what), "{error:#}");
        }
    }

    #[test]
    fn an_address_between_beginnings_is_inside() {
        let inside = |address| inside([10, 14, 15].into_iter(), address);
        for address in [10, 14, 15] {
            assert_eq!(inside(address), None);
        }
        assert_eq!(inside(12), Some((10, Some(14))));
        assert_eq!(inside(16), Some((15, None)));
    }
}
