// SPDX-License-Identifier: GPL-2.0

//! Programs and their debug information from servers, if this machine does not have them.
//!
//! elfutils' `debuginfod-find` sends the requests. It keeps fetched files. Its variables name the servers, and the
//! time limit (debuginfod-find(1)).

use super::mappings::MappedFile;
use anyhow::{bail, Context};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use terminal::say;

const PROGRAM: &str = "debuginfod-find";

/// The variable that names the servers.
const URLS: &str = "DEBUGINFOD_URLS";

/// The servers to ask.
#[derive(Clone, Copy, Debug)]
pub struct Servers(());

impl Servers {
    /// The servers of this machine's settings.
    ///
    /// # Errors
    ///
    /// No server is set, or `debuginfod-find` is missing.
    pub fn new() -> anyhow::Result<Self> {
        if std::env::var_os(URLS).is_none_or(|urls| urls.is_empty()) {
            bail!("--debuginfod: the variable {URLS} names no server");
        }
        let mut version = Command::new(PROGRAM);
        version.arg("--version");
        version.stdout(Stdio::null()).stderr(Stdio::null());
        version.status().with_context(|| {
            format!("--debuginfod: {PROGRAM} (Debian's package debuginfod) cannot be run")
        })?;
        Ok(Self(()))
    }

    /// The file itself.
    pub(super) fn executable(self, file: &MappedFile) -> Option<PathBuf> {
        find("executable", file)
    }

    /// Its debug information.
    pub(super) fn debug_information(self, file: &MappedFile) -> Option<PathBuf> {
        find("debuginfo", file)
    }
}

/// A file that the servers' client has fetched earlier, if it is in its cache. `id` is a build id in hexadecimal.
pub(super) fn fetched(id: &str, what: &str) -> Option<PathBuf> {
    let dir = |name: &str| {
        let dir = std::env::var_os(name).filter(|dir| !dir.is_empty());
        dir.map(PathBuf::from)
    };
    let caches = || Some(dir("XDG_CACHE_HOME").unwrap_or(dir("HOME")?.join(".cache")));
    let cache = dir("DEBUGINFOD_CACHE_PATH");
    let cache = cache.or_else(|| Some(caches()?.join("debuginfod_client")))?;
    Some(cache.join(id).join(what)).filter(|path| path.is_file())
}

fn find(what: &str, file: &MappedFile) -> Option<PathBuf> {
    let id = file.build_id()?;
    // Other characters could look like an option or a path.
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    say(format_args!("asking for the {what} of {}", file.shown()));
    let mut command = Command::new(PROGRAM);
    let output = command.args([what, id]).stdin(Stdio::null()).output();
    let output = output
        .inspect_err(|error| say(format_args!("{PROGRAM}: {error}")))
        .ok()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or("it has failed");
        say(format_args!("{}: {last}", file.shown()));
        return None;
    }
    let mut path = output.stdout;
    while path.last() == Some(&b'\n') {
        path.pop();
    }
    Some(OsString::from_vec(path).into())
}
