// SPDX-License-Identifier: GPL-2.0

//! Texts of markers.

use core::fmt;

/// The longest text, in bytes.
pub const LONGEST: usize = 1023;

/// Why a text is none of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has so many bytes, more than [`LONGEST`].
    TooLong(usize),
    /// There is a NUL in it.
    Nul,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(bytes) => write!(f, "the text has {bytes} bytes, more than {LONGEST}"),
            Self::Nul => f.write_str("there is a NUL in the text"),
        }
    }
}

/// Checks a text: it may have at most [`LONGEST`] bytes, and no NUL.
pub fn check(text: &str) -> Result<(), Refusal> {
    if text.len() > LONGEST {
        return Err(Refusal::TooLong(text.len()));
    }
    if text.contains('\0') {
        return Err(Refusal::Nul);
    }
    Ok(())
}
