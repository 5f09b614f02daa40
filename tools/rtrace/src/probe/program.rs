// SPDX-License-Identifier: GPL-2.0

//! Offsets of functions in the files of programs and libraries.

use anyhow::{anyhow, bail, Context};
use object::{Object, ObjectSegment, ObjectSymbol};
use std::fs;
use std::path::Path;

/// The offset in `file` of a function: of its symbol, plus `+OFFSET` if there is one.
pub fn offset(file: &Path, function: &str) -> anyhow::Result<u64> {
    let shown = file.display();
    let data = fs::read(file).with_context(|| format!("{shown}"))?;
    let object = object::File::parse(&*data)
        .map_err(|error| anyhow!("{shown} is not a program or library: {error}"))?;
    let (name, behind) = match function.split_once('+') {
        Some((name, behind)) => (name, number(behind)?),
        None => (function, 0),
    };
    if name.is_empty() {
        bail!("expected {shown}:FUNCTION");
    }
    let symbols = object.symbols().chain(object.dynamic_symbols());
    let mut defined = symbols.filter(|symbol| symbol.is_definition());
    let Some(symbol) = defined.find(|symbol| symbol.name() == Ok(name)) else {
        bail!("{shown} has no symbol `{name}`");
    };
    let address = symbol.address() + behind;
    let in_file = object.segments().find_map(|segment| {
        let (begin, size) = segment.file_range();
        let inside = address.checked_sub(segment.address())?;
        (inside < size).then_some(begin + inside)
    });
    in_file.with_context(|| format!("the address of `{function}` is outside the file {shown}"))
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
        let main = offset(&this, "main").expect("the beginning");
        assert_eq!(offset(&this, "main+0x10").expect("behind it"), main + 16);
        // (The selftest tool/probe checks that the offset is the right one.)
        assert!(main < fs::metadata(&this).expect("the file").len());
        for (file, function, what) in [
            (this.as_path(), "no_such_symbol", "has no symbol"),
            (this.as_path(), "", "expected"),
            (this.as_path(), "main+x", "is not an offset"),
            (
                Path::new("/etc/passwd"),
                "main",
                "is not a program or library",
            ),
            (Path::new("/no/such"), "main", "/no/such"),
        ] {
            let error = offset(file, function).expect_err(function);
            assert!(format!("{error:#}").contains(what), "{error:#}");
        }
    }
}
