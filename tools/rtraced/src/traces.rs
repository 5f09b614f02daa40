// SPDX-License-Identifier: GPL-2.0

//! `--keep-traces`: a directory with a directory for each trace, named by the time (UTC) at which rtraced began to
//! write it. The oldest are removed.

use network::Directory;
use std::fs;
use std::path::{Path, PathBuf};
use store::{Claim, Output};
use system::{time, Error, Result};
use uuid::Uuid;

/// A claimed directory of traces.
pub struct Traces<'a> {
    directory: &'a Directory,
    /// Maximum number of traces; 0: all are kept.
    keep: usize,
    _claim: Claim,
}

impl<'a> Traces<'a> {
    /// Claims the directory, and makes it if it is missing. Fails if no trace can be written there.
    pub fn claim(directory: &'a Directory, keep: usize) -> Result<Self> {
        let Directory { path, options } = directory;
        Output::try_writing(path, *options)?;
        Ok(Self {
            directory,
            keep,
            _claim: Claim::take(path, options.access)?,
        })
    }

    /// The newest trace, if it is a part of the trace `uuid`.
    pub fn part_of(&self, uuid: Uuid) -> Result<Option<PathBuf>> {
        let Some(newest) = list(&self.directory.path)?.pop() else {
            return Ok(None);
        };
        match self.directory.options.held(&newest) {
            Ok(held) => Ok(Some(newest).filter(|_| held == Some(uuid))),
            // Other files, or a trace that was written with other options.
            Err(Error::OutputTaken { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Claims the directory of the trace `uuid`: the newest if it has a part of that trace, else a new one. Before it
    /// makes a new one, it removes the oldest, so that at most `keep` remain.
    pub fn begin(&self, uuid: Uuid) -> Result<(Directory, Claim)> {
        let Directory { path, options } = self.directory;
        let claim = match self.part_of(uuid)? {
            Some(part) => Claim::take(&part, options.access)?,
            None => {
                self.make_room()?;
                Claim::take_new(&path.join(time::name_of_now()), options.access)?
            }
        };
        let directory = Directory {
            path: claim.path().to_owned(),
            options: *options,
        };
        Ok((directory, claim))
    }

    fn make_room(&self) -> Result<()> {
        let Some(others) = self.keep.checked_sub(1) else {
            return Ok(());
        };
        let traces = list(&self.directory.path)?;
        for oldest in &traces[..traces.len().saturating_sub(others)] {
            fs::remove_dir_all(oldest).map_err(Error::write(oldest))?;
        }
        Ok(())
    }
}

/// The directories in `dir` that are named by a time, the oldest first.
fn list(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::read(dir))? {
        let entry = entry.map_err(Error::read(dir))?;
        let is_dir = entry.file_type().map_err(Error::read(dir))?.is_dir();
        if let Some(key) = entry.file_name().to_str().filter(|_| is_dir).and_then(key) {
            found.push((key, entry.path()));
        }
    }
    found.sort_unstable();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// The date, time and number in a name `YYYYMMDD-HHMMSS` or `YYYYMMDD-HHMMSS-N`.
fn key(name: &str) -> Option<[u64; 3]> {
    let number = |digits: &str, length: Option<usize>| {
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_it = is_number && length.is_none_or(|length| digits.len() == length);
        digits.parse().ok().filter(|_| is_it)
    };
    let mut parts = name.splitn(3, '-');
    let date = number(parts.next()?, Some(8))?;
    let time = number(parts.next()?, Some(6))?;
    let which = parts.next().map_or(Some(1), |part| number(part, None))?;
    Some([date, time, which])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_named_by_the_time() {
        let dir = tempfile::tempdir().unwrap();
        let names = [
            "20261129-101112-10",
            "20261129-101112-2",
            "20261129-101112",
            "20261128-235959",
        ];
        for name in names {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        for other in [
            "web-0d6e",
            "20261129",
            "20261129-1011",
            "20261129-+01112",
            "20261129-101112-",
            "20261129-101112-old",
        ] {
            fs::create_dir(dir.path().join(other)).unwrap();
        }
        fs::write(dir.path().join("20261127-000000"), "a file").unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("20261126-000000")).unwrap();
        let found = list(dir.path()).unwrap();
        let found: Vec<_> = found.iter().map(|path| path.file_name().unwrap()).collect();
        let mut expected = names;
        expected.reverse();
        assert_eq!(found, expected);
        assert!(key(&time::name_of_now()).is_some());
    }
}
