// SPDX-License-Identifier: GPL-2.0

//! Reasons why a connection failed or ended.

use std::fmt;
use std::io;

/// Reason why a connection failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Whether another attempt would fail for the same reason.
    pub lasting: bool,
    /// The reason, as text for the user.
    pub what: String,
}

impl Trouble {
    /// A permanent reason.
    pub fn lasting(what: impl Into<String>) -> Self {
        Self {
            lasting: true,
            what: what.into(),
        }
    }

    /// A reason that may be gone at the next attempt.
    pub fn passing(what: impl Into<String>) -> Self {
        Self {
            lasting: false,
            what: what.into(),
        }
    }

    /// A reason found before the greeting. Invalid data then is permanent: the peer speaks another protocol.
    pub fn of_greeting(error: io::Error) -> Self {
        Self {
            lasting: error.kind() == io::ErrorKind::InvalidData,
            ..error.into()
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::passing(match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                "the connection was closed".to_owned()
            }
            io::ErrorKind::TimedOut => "no answer".to_owned(),
            _ => error.to_string(),
        })
    }
}

impl From<Trouble> for io::Error {
    fn from(trouble: Trouble) -> Self {
        Self::other(trouble)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Trouble {}
