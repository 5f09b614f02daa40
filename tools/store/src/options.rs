// SPDX-License-Identifier: GPL-2.0

//! The way in which a trace is written.

use crate::rotate::Rotate;
use crate::writing::Writing;
use system::access::Access;

/// The way in which a trace is written to its directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputOptions {
    /// Whether the page cache is used.
    pub writing: Writing,
    /// The permissions.
    pub access: Access,
    /// The sizes of chunks; if [`None`], the directory is the trace.
    pub rotate: Option<Rotate>,
}
