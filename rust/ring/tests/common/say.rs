// SPDX-License-Identifier: GPL-2.0

//! Report of a search.

use std::io::Write;

/// Prints how much was searched. It is part of the result, so cargo must not capture it. Prints
/// nothing in a search for a seeded fault, which ends when it finds the fault.
pub fn say(text: &str) {
    if cfg!(not(fault)) {
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}
