// SPDX-License-Identifier: GPL-2.0

//! Why a connection was not made, or ended.

use std::fmt;
use std::io;

/// What is wrong with a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Whether it will be wrong the next time, too.
    pub lasting: bool,
    /// What, for people.
    pub what: String,
}

impl Trouble {
    /// One that another attempt would find again.
    pub fn lasting(what: impl Into<String>) -> Self {
        Self {
            lasting: true,
            what: what.into(),
        }
    }

    /// One that may be over the next time.
    pub fn passing(what: impl Into<String>) -> Self {
        Self {
            lasting: false,
            what: what.into(),
        }
    }

    /// The same from a peer that was not greeted yet: what makes no sense now will make none later.
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
