// SPDX-License-Identifier: GPL-2.0

//! How many files this process may have open.

use rustix::process::{getrlimit, prlimit, setrlimit, Pid, Resource, Rlimit};
use std::sync::OnceLock;

/// Raises the limit to the most that the system allows: there is a file for each stream, and a trace has
/// more than a thousand streams on a large machine. The usual limit is for the sake of select(2), which nothing
/// here uses. A command that is traced gets the usual limit back.
pub fn open_many() {
    let limit = getrlimit(Resource::Nofile);
    let _ = USUAL.set(limit.current);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // With the usual limit fewer streams can be open, and the error then says so.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// The limit as it was before [`open_many`].
static USUAL: OnceLock<Option<u64>> = OnceLock::new();

/// Gives a process, which is to run a command of the user's, the limit that this one had.
pub fn open_as_usual(process: Pid) {
    let Some(usual) = USUAL.get() else { return };
    let _ = prlimit(
        Some(process),
        Resource::Nofile,
        Rlimit {
            current: *usual,
            ..getrlimit(Resource::Nofile)
        },
    );
}
