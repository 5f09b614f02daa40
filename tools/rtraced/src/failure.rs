// SPDX-License-Identifier: GPL-2.0

//! Why the program ends early, and with which exit code.

use std::fmt;
use std::process::ExitCode;

/// An end before its time.
#[derive(Debug)]
pub enum Failure {
    /// The tracer or its files.
    Trace(system::Error),
    /// Another rtraced is at work.
    Busy(String),
    /// Anything else.
    Other(anyhow::Error),
}

impl Failure {
    /// As `--help` lists them.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Trace(system::Error::OutputTaken { .. }) => 3,
            Self::Trace(system::Error::Write { .. }) => 4,
            Self::Trace(system::Error::StreamBusy { .. }) | Self::Busy(_) => 5,
            Self::Trace(_) | Self::Other(_) => 1,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(error) => error.fmt(f),
            Self::Busy(what) => f.write_str(what),
            Self::Other(error) => write!(f, "{error:#}"),
        }
    }
}

impl From<system::Error> for Failure {
    fn from(error: system::Error) -> Self {
        Self::Trace(error)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}
