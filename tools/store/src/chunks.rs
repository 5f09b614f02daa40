// SPDX-License-Identifier: GPL-2.0

//! The chunks of a trace, in a directory without other contents. Each chunk is a trace of its own. In the order of
//! their numbers they are the whole trace.
//!
//! The name shows the state of a chunk: `.chunk-000001.new` is being written, or its writer was killed;
//! `chunk-000001` is complete; `.chunk-000001.old` is being removed.

use crate::beside;
use crate::folder::temporary;
use crate::output::Output;
use ctf::{StreamName, METADATA};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use system::{Error, Result};
use uuid::Uuid;

/// The state of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The chunk is complete.
    Whole,
    /// The chunk is being written, or its writer was killed.
    Unfinished,
    /// The chunk is being removed.
    Outdated,
}

impl Stage {
    /// The name of a chunk.
    fn name(self, number: u64) -> String {
        match self {
            Self::Whole => format!("chunk-{number:06}"),
            Self::Unfinished => format!(".chunk-{number:06}.new"),
            Self::Outdated => format!(".chunk-{number:06}.old"),
        }
    }

    /// Parses a name. [`None`]: it is not the name of a chunk.
    fn parse(name: &str) -> Option<(Self, u64)> {
        let (_, rest) = name.split_once("chunk-")?;
        let number = rest.split('.').next()?.parse().ok()?;
        let mut stages = [Self::Whole, Self::Unfinished, Self::Outdated].into_iter();
        let stage = stages.find(|stage| stage.name(number) == name)?;
        Some((stage, number))
    }
}

/// Calls `visit` for each chunk in the existing directory `dir`, in no order. Ignores other contents.
pub fn each(dir: &Path, mut visit: impl FnMut(Stage, u64) -> Result<()>) -> Result<()> {
    for entry in fs::read_dir(dir).map_err(Error::read(dir))? {
        let entry = entry.map_err(Error::read(dir))?;
        if !entry.file_type().map_err(Error::read(dir))?.is_dir() {
            continue;
        }
        let name = entry.file_name();
        if let Some((stage, number)) = name.to_str().and_then(Stage::parse) {
            visit(stage, number)?;
        }
    }
    Ok(())
}

/// The trace whose chunks `dir` holds. [`None`]: the directory is empty or missing. Other contents are an error,
/// because the new trace must be the only one.
pub fn held(dir: &Path) -> Result<Option<Uuid>> {
    if !dir.is_dir() || dir.join(METADATA).exists() {
        return match Output::held(dir)? {
            None => Ok(None),
            Some(_) => Err(taken(dir, "holds a trace that is not in chunks")),
        };
    }
    let (mut is_empty, mut held) = (true, None);
    each(dir, |stage, number| {
        is_empty = false;
        held = with_chunk(held, dir, stage, number)?;
        Ok(())
    })?;
    if is_empty {
        return Output::held(dir);
    }
    Ok(held)
}

/// The trace of a chunk, which must be that of the chunks `before`; theirs, if the chunk has no metadata.
fn with_chunk(before: Option<Uuid>, dir: &Path, stage: Stage, number: u64) -> Result<Option<Uuid>> {
    let path = dir.join(stage.name(number));
    let uuid = match stage {
        Stage::Outdated => return Ok(before),
        Stage::Whole | Stage::Unfinished => Output::held(&path)?,
    };
    match uuid {
        // A chunk may lack metadata.
        None if stage == Stage::Unfinished => Ok(before),
        // The chunk may be removed meanwhile.
        None if !path.exists() => Ok(before),
        None => Err(taken(&path, "is not a trace")),
        Some(uuid) if before.is_some_and(|before| before != uuid) => Err(taken(
            &path,
            "belongs to another trace than the other chunks",
        )),
        Some(uuid) => Ok(Some(uuid)),
    }
}

/// The numbers of the chunks in a directory, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunks {
    /// The complete chunks.
    pub whole: Vec<u64>,
    /// The chunks that are being written, or whose writer was killed.
    pub unfinished: Vec<u64>,
}

impl Chunks {
    /// The chunks in the existing directory `dir`.
    pub fn list(dir: &Path) -> Result<Self> {
        let mut chunks = Self::default();
        each(dir, |stage, number| {
            match stage {
                Stage::Whole => chunks.whole.push(number),
                Stage::Unfinished => chunks.unfinished.push(number),
                Stage::Outdated => {}
            }
            Ok(())
        })?;
        chunks.whole.sort_unstable();
        chunks.unfinished.sort_unstable();
        Ok(chunks)
    }

    /// The directories of all chunks that are traces, in their order.
    pub fn parts(&self, dir: &Path) -> Vec<PathBuf> {
        let whole = self.whole.iter().map(|&number| whole_path(dir, number));
        let unfinished = self.unfinished.iter();
        let unfinished = unfinished.map(|&number| unfinished_path(dir, number));
        // The writer may have been killed before it wrote the description.
        let unfinished = unfinished.filter(|path| path.join(METADATA).exists());
        whole.chain(unfinished).collect()
    }
}

fn taken(path: &Path, reason: &str) -> Error {
    Error::OutputTaken {
        path: path.to_owned(),
        reason: format!("{reason}: choose another directory"),
    }
}

/// The path in `dir` of chunk `number` when it is complete.
pub fn whole_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(Stage::Whole.name(number))
}

/// The last complete chunk in `dir` before `number`. Numbers may be missing.
pub fn whole_before(dir: &Path, number: u64) -> Result<Option<u64>> {
    let next = number.checked_sub(1);
    if next.is_some_and(|next| whole_path(dir, next).is_dir()) {
        return Ok(next);
    }
    let mut last = None;
    each(dir, |stage, other| {
        if stage == Stage::Whole && other < number {
            last = last.max(Some(other));
        }
        Ok(())
    })?;
    Ok(last)
}

/// The path in `dir` of chunk `number` while it is being written.
pub fn unfinished_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(Stage::Unfinished.name(number))
}

/// Gives chunk `number`, which is durable, the name of a complete chunk.
pub fn rename_whole(dir: &Path, number: u64) -> Result<()> {
    let path = whole_path(dir, number);
    fs::rename(unfinished_path(dir, number), &path)
        .and_then(|()| File::open(dir)?.sync_all())
        .map_err(Error::write(&path))
}

/// Removes all complete chunks in `dir` except the newest `keep`. Removes only chunks of the trace `uuid` that
/// contain no foreign file.
pub fn remove_oldest(dir: &Path, uuid: Uuid, keep: u64) -> Result<()> {
    let whole = Chunks::list(dir)?.whole;
    let keep = usize::try_from(keep).unwrap_or(usize::MAX);
    for &number in &whole[..whole.len().saturating_sub(keep)] {
        let path = whole_path(dir, number);
        if is_chunk(&path, uuid)? {
            let outdated = dir.join(Stage::Outdated.name(number));
            fs::rename(&path, &outdated).map_err(Error::write(&path))?;
            remove_outdated(dir, number)?;
        }
    }
    Ok(())
}

/// Removes a chunk whose removal has begun.
pub fn remove_outdated(dir: &Path, number: u64) -> Result<()> {
    remove(&dir.join(Stage::Outdated.name(number)))
}

/// Removes a chunk that could not be begun.
pub fn remove_unfinished(dir: &Path, number: u64) -> Result<()> {
    remove(&unfinished_path(dir, number))
}

/// Removes a chunk's files, and its directory if no other file is in it.
fn remove(path: &Path) -> Result<()> {
    for entry in fs::read_dir(path).map_err(Error::read(path))? {
        let entry = entry.map_err(Error::read(path))?;
        if is_part(&entry).map_err(Error::read(path))? {
            fs::remove_file(entry.path()).map_err(Error::write(&entry.path()))?;
        }
    }
    match fs::remove_dir(path) {
        // Another program has put a file there.
        Err(e) if Errno::from_io_error(&e) == Some(Errno::NOTEMPTY) => Ok(()),
        removed => removed.map_err(Error::write(path)),
    }
}

/// Whether the directory is a chunk of the trace `uuid`, without other files.
fn is_chunk(path: &Path, uuid: Uuid) -> Result<bool> {
    let entries = match fs::read_dir(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        entries => entries.map_err(Error::read(path))?,
    };
    for entry in entries {
        let entry = entry.map_err(Error::read(path))?;
        if !is_part(&entry).map_err(Error::read(path))? {
            return Ok(false);
        }
    }
    match Output::held(path) {
        Ok(held) => Ok(held == Some(uuid)),
        Err(Error::OutputTaken { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a file has the name of a part of a trace.
fn is_part(entry: &fs::DirEntry) -> io::Result<bool> {
    let name = entry.file_name();
    let is_stream = |name: &OsStr| {
        name.to_str()
            .is_some_and(|name| name.parse::<StreamName>().is_ok())
    };
    let is_text = beside::ALL.iter().any(|text| name == text.name);
    let is_known = is_text || name == METADATA || name == *temporary(METADATA);
    Ok(entry.file_type()?.is_file() && (is_known || is_stream(&name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_that_is_taken_away_is_no_other_trace() {
        let dir = tempfile::tempdir().unwrap();
        let mut uuids = [1, 2].map(|byte| Uuid::from_bytes([byte; 16]));
        let described = |number: u64, uuid: Uuid| {
            let chunk = whole_path(dir.path(), number);
            fs::create_dir(&chunk).unwrap();
            fs::write(
                chunk.join(METADATA),
                format!("trace {{ uuid = \"{uuid}\"; }};"),
            )
            .unwrap();
        };
        described(2, uuids[0]);
        let with_whole = |before, number| with_chunk(before, dir.path(), Stage::Whole, number);
        // The chunk existed when the directory was read.
        assert_eq!(with_whole(None, 1).unwrap(), None);
        assert_eq!(with_whole(None, 2).unwrap(), Some(uuids[0]));
        uuids.reverse();
        described(3, uuids[0]);
        let error = with_whole(Some(uuids[1]), 3).unwrap_err();
        assert!(error.to_string().contains("another trace"), "{error}");
        fs::create_dir(whole_path(dir.path(), 4)).unwrap();
        let error = with_whole(None, 4).unwrap_err();
        assert!(error.to_string().contains("is not a trace"), "{error}");
    }

    #[test]
    fn the_one_before_is_found_at_once_across_any_gap() {
        let dir = tempfile::tempdir().unwrap();
        let far = u64::MAX - 1;
        for number in [1, 2, far] {
            fs::create_dir(whole_path(dir.path(), number)).unwrap();
        }
        fs::create_dir(unfinished_path(dir.path(), 7)).unwrap();
        fs::create_dir(dir.path().join(Stage::Outdated.name(8))).unwrap();
        let before = |number| whole_before(dir.path(), number).unwrap();
        assert_eq!(before(u64::MAX), Some(far));
        assert_eq!(before(far), Some(2));
        assert_eq!(before(2), Some(1));
        assert_eq!(before(1), None);
        assert_eq!(before(0), None);
    }
}
