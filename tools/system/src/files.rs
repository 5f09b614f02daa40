// SPDX-License-Identifier: GPL-2.0

//! Limit of open files of this process, and of the commands that it runs.

use rustix::process::{getrlimit, prlimit, setrlimit, Pid, Resource, Rlimit};
use std::fs;
use std::io;
use std::process::Child;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Raises the limit to the maximum of the system. A large machine's trace has more than a thousand streams, and each
/// needs an open file. The usual limit protects users of select(2), which this program does not use. A command that
/// is traced gets the usual limit back.
pub fn open_many() {
    let limit = getrlimit(Resource::Nofile);
    let _ = USUAL.set(limit.current);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // With the usual limit fewer streams can be open, and a later error says so.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// The limit: how many files this process can have open at once.
pub fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The limit as it was before [`open_many`].
static USUAL: OnceLock<Option<u64>> = OnceLock::new();

/// Calls `spawn` so that its command gets the limit that this process had before [`open_many`].
///
/// The limit is a property of all threads, and a new process inherits it. While the process is made, the limit is
/// the usual one, if this process has at most half as many files open: another thread can open files meanwhile. With
/// more open files, the command gets its limit just after it has begun, and can see the raised one until then.
pub fn with_usual_limit(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    /// Held while the limit is lowered.
    static LOWERED: Mutex<()> = Mutex::new(());

    let Some(usual) = USUAL.get() else {
        return spawn();
    };
    let _alone = LOWERED.lock().unwrap_or_else(PoisonError::into_inner);
    let raised = getrlimit(Resource::Nofile);
    let lowered = Rlimit {
        current: *usual,
        ..raised
    };
    let open = fs::read_dir("/proc/self/fd").map_or(u64::MAX, |files| files.count() as u64);
    if usual.is_some_and(|usual| open > usual / 2) {
        let child = spawn()?;
        let _ = prlimit(Some(Pid::from_child(&child)), Resource::Nofile, lowered);
        return Ok(child);
    }
    let _ = setrlimit(Resource::Nofile, lowered);
    let child = spawn();
    let _ = setrlimit(Resource::Nofile, raised);
    child
}
