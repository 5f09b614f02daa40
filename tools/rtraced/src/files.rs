// SPDX-License-Identifier: GPL-2.0

//! How many files this process may have open.

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

/// Allows itself as many as the system lets it: there are some for each stream, and streams of many
/// machines. The usual limit is for the sake of select(2), which nothing here uses.
pub fn open_many() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // With the usual limit fewer streams can be open, and the error then says so.
    let _ = setrlimit(Resource::Nofile, raised);
}
