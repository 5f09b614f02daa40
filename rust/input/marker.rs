// SPDX-License-Identifier: GPL-2.0

//! Texts of markers.

use core::fmt;

/// Maximum size of a text in bytes.
pub const LONGEST: usize = 1023;

/// Reason for which a text cannot be a marker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerRefusal {
    /// The text has this many bytes, more than [`LONGEST`].
    TooLong(usize),
    /// The text contains a NUL.
    Nul,
}

impl fmt::Display for MarkerRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(bytes) => write!(f, "the text has {bytes} bytes, more than {LONGEST}"),
            Self::Nul => f.write_str("the text contains a NUL"),
        }
    }
}

/// Checks a text: it may have at most [`LONGEST`] bytes, and no NUL.
pub fn check(text: &str) -> Result<(), MarkerRefusal> {
    if text.len() > LONGEST {
        return Err(MarkerRefusal::TooLong(text.len()));
    }
    if text.contains('\0') {
        return Err(MarkerRefusal::Nul);
    }
    Ok(())
}
