// SPDX-License-Identifier: GPL-2.0

//! The errors of all crates, in the words that the user reads.

use crate::session::session_option;
use std::io;
use std::path::{Path, PathBuf};

/// The result of a function that returns such an error.
pub type Result<T> = std::result::Result<T, Error>;

/// An error and its object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The tracer's tree of files cannot be used.
    #[error("{}: rtrace is not available: {reason} (`rtrace doctor` shows how to fix it)", path.display())]
    NoTracer {
        /// Where the tree was expected.
        path: PathBuf,
        /// The missing part.
        reason: String,
    },
    /// The tree is closed to this user.
    #[error("{}: permission denied: run as root (try sudo), or as a member of the group that may use rtrace (gid=, mode= of the module or of the mount)", path.display())]
    NotAllowed {
        /// The directory that could not be read.
        path: PathBuf,
    },
    /// No session has that name.
    #[error("session `{session}` does not exist (existing sessions: {})", there.join(", "))]
    NoSession {
        /// The name.
        session: String,
        /// The names of the existing sessions.
        there: Vec<String>,
    },
    /// A control file could not be read.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A control file refused what was written to it.
    #[error("{}: `{value}` was refused: {}", path.display(), refusal(cause, detail))]
    Refused {
        /// The file.
        path: PathBuf,
        /// The text that was written.
        value: String,
        /// The kernel's reason, from `error_log`; may be empty.
        detail: String,
        /// The error number.
        cause: io::Error,
    },
    /// The session has had no trace yet.
    #[error(
        "session `{session}` has no trace yet: start one with `rtrace{} start`",
        session_option(session)
    )]
    NoTrace {
        /// The session.
        session: String,
    },
    /// Another reader has the stream.
    #[error("{}: another reader has opened this stream (is an rtraced running?)", path.display())]
    StreamBusy {
        /// The stream file.
        path: PathBuf,
    },
    /// A stream failed while a packet was taken from it.
    #[error("{stream}: {action} failed: {cause}")]
    Stream {
        /// The stream.
        stream: String,
        /// The operation.
        action: &'static str,
        /// Why.
        cause: io::Error,
    },
    /// A file of a trace could not be written.
    #[error("cannot write {}: {cause}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A trace is no longer where it is being written.
    #[error("{}: {reason}", path.display())]
    Removed {
        /// The directory or file.
        path: PathBuf,
        /// The change, and the part of the trace that is left.
        reason: String,
    },
    /// The output directory has other contents.
    #[error("{}: {reason}", path.display())]
    OutputTaken {
        /// The directory.
        path: PathBuf,
        /// Its contents, and the remedy.
        reason: String,
    },
    /// A trace on disk violates its format.
    #[error("{}: at byte {offset}: {what}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The place in the file.
        offset: u64,
        /// The fault.
        what: String,
    },
    /// A text beside a trace violates its format.
    #[error("{}: line {line}: {what}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The fault.
        what: String,
    },
    /// The metadata text cannot be parsed.
    #[error("metadata, line {line}: {what}")]
    Metadata {
        /// Line, from 1.
        line: usize,
        /// The fault.
        what: String,
    },
    /// The remains of a crashed kernel cannot be read.
    #[error("{what}")]
    Unrecoverable {
        /// The reason.
        what: String,
    },
    /// Any other error of the system.
    #[error("{what}: {cause}")]
    System {
        /// The operation.
        what: String,
        /// Why.
        cause: io::Error,
    },
}

/// The kernel's own text if it gave one, else that of the error number.
fn refusal(cause: &io::Error, detail: &str) -> String {
    match detail.trim() {
        "" => cause.to_string(),
        text => text.to_owned(),
    }
}

impl Error {
    /// The error number, if the cause has one.
    pub fn os_error(&self) -> Option<i32> {
        match self {
            Self::Read { cause, .. }
            | Self::Refused { cause, .. }
            | Self::Stream { cause, .. }
            | Self::Write { cause, .. }
            | Self::System { cause, .. } => cause.raw_os_error(),
            _ => None,
        }
    }

    /// For `map_err`: reading `path` failed.
    pub fn read(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |cause| Self::Read {
            path: path.to_owned(),
            cause,
        }
    }

    /// For `map_err`: writing `path` failed.
    pub fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |cause| Self::Write {
            path: path.to_owned(),
            cause,
        }
    }

    /// For `map_err`: the operation `what` failed.
    pub fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        |cause| Self::System {
            what: what.into(),
            cause: cause.into(),
        }
    }
}
