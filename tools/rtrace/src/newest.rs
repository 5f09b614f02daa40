// SPDX-License-Identifier: GPL-2.0

//! The trace that a command reads if the command line names none.

use std::fs;
use std::path::{Path, PathBuf};
use store::is_trace;
use terminal::tell;

/// Returns `dir`. Without `dir`: the current directory if that is a trace, or the newest trace in it, which a message
/// names. The error is a text for the user.
pub fn or_newest(dir: Option<PathBuf>) -> Result<PathBuf, String> {
    if let Some(dir) = dir {
        return Ok(dir);
    }
    let here = Path::new(".");
    let found = match is_trace(here) {
        true => Some(here.to_owned()),
        false => {
            newest(here).map_err(|error| format!("cannot read the current directory: {error}"))?
        }
    };
    let found = found.ok_or(
        "the current directory has no trace: give the DIR of a trace, or record one with `rtrace record`",
    )?;
    tell(format_args!("reading {}", found.display()));
    Ok(found)
}

/// The trace in the directory `dir` that was changed last.
fn newest(dir: &Path) -> std::io::Result<Option<PathBuf>> {
    let mut newest = None;
    for entry in fs::read_dir(dir)? {
        let name = PathBuf::from(entry?.file_name());
        let path = dir.join(&name);
        // An entry may disappear meanwhile.
        let Ok(changed) = fs::metadata(&path).and_then(|entry| entry.modified()) else {
            continue;
        };
        if is_trace(&path) {
            newest = newest.max(Some((changed, name)));
        }
    }
    Ok(newest.map(|(_, name)| name))
}
