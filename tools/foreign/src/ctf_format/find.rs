// SPDX-License-Identifier: GPL-2.0

//! Finds the traces in a directory: one, or those of an LTTng session in its subfolders.

use super::Described;
use ctf::METADATA;
use std::fs;
use std::path::{Path, PathBuf};
use system::{regular_file, Error, Result};

/// The maximum depth of subfolders.
const DEPTH: usize = 8;

/// A trace. Its chunks are in a directory each.
#[derive(Debug)]
pub(super) struct Found {
    /// Its directories, in order.
    pub dirs: Vec<PathBuf>,
    /// Its description: that of the last chunk, which contains the others.
    pub described: Described,
}

/// The traces in `dir` and its subfolders.
pub(super) fn traces(dir: &Path) -> Result<Vec<Found>> {
    let mut dirs = Vec::new();
    if dir.is_dir() {
        collect(dir, 0, &mut dirs)?;
    }
    dirs.sort();
    let mut traces: Vec<Found> = Vec::new();
    for dir in dirs {
        let path = dir.join(METADATA);
        let bytes = regular_file::read(&path).map_err(Error::read(&path))?;
        // A directory of traces of rtrace is no trace.
        if ctf::is_own(&bytes) {
            continue;
        }
        let described = super::describe(&dir, &bytes)?;
        let uuid = described.description.uuid;
        let is_same =
            |found: &&mut Found| uuid.is_some() && found.described.description.uuid == uuid;
        let same = traces.iter_mut().find(is_same);
        match same {
            Some(found) => {
                found.dirs.push(dir);
                found.described = described;
            }
            None => traces.push(Found {
                dirs: vec![dir],
                described,
            }),
        }
    }
    Ok(traces)
}

/// Whether `dir` or one of its subfolders has a description that another tracer wrote.
pub(super) fn any(dir: &Path) -> bool {
    let mut dirs = Vec::new();
    let is_read = dir.is_dir() && collect(dir, 0, &mut dirs).is_ok();
    let is_foreign = |dir: &PathBuf| {
        let bytes = regular_file::read(&dir.join(METADATA));
        bytes.is_ok_and(|bytes| !ctf::is_own(&bytes))
    };
    is_read && dirs.iter().any(is_foreign)
}

fn collect(dir: &Path, depth: usize, dirs: &mut Vec<PathBuf>) -> Result<()> {
    if dir.join(METADATA).is_file() {
        dirs.push(dir.to_owned());
        return Ok(());
    }
    if depth == DEPTH {
        return Ok(());
    }
    for entry in fs::read_dir(dir).map_err(Error::read(dir))? {
        let entry = entry.map_err(Error::read(dir))?;
        let kind = entry.file_type().map_err(Error::read(dir))?;
        if kind.is_dir() {
            collect(&entry.path(), depth + 1, dirs)?;
        }
    }
    Ok(())
}

/// The stream files of a directory.
pub fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::read(dir))? {
        let entry = entry.map_err(Error::read(dir))?;
        let (path, name) = (entry.path(), entry.file_name());
        let kind = fs::metadata(&path).map_err(Error::read(&path))?;
        if kind.is_file() && name != METADATA && !name.to_string_lossy().starts_with('.') {
            files.push(path);
        }
    }
    Ok(files)
}

/// The channel of a file `CHANNEL_CPU`, or `CHANNEL_CPU_NUMBER` if the stream has several files.
pub fn channel(file: &str) -> &str {
    let mut channel = file;
    while let Some((before, number)) = channel.rsplit_once('_') {
        if before.is_empty()
            || number.is_empty()
            || !number.bytes().all(|byte| byte.is_ascii_digit())
        {
            break;
        }
        channel = before;
    }
    channel
}
