// SPDX-License-Identifier: GPL-2.0

//! Reasons why the program ends early, and their exit codes.

use std::fmt;
use std::process::ExitCode;

/// Reason of an early end.
#[derive(Debug)]
pub enum Failure {
    /// An error of the tracer or of its files.
    Trace(system::Error),
    /// Another rtraced is running.
    Busy(String),
    /// Any other error.
    Other(anyhow::Error),
}

impl Failure {
    /// The exit code, as `--help` lists them.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Trace(system::Error::OutputTaken { .. }) => 3,
            Self::Trace(system::Error::Write { .. } | system::Error::Removed { .. }) => 4,
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
