// SPDX-License-Identifier: GPL-2.0

//! What a search says of itself.

use std::io::Write;

/// Says how much was searched: it belongs to the result, so it is not captured. Not where a fault is
/// looked for: the search ends with it.
pub fn say(text: &str) {
    if cfg!(not(fault)) {
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}
