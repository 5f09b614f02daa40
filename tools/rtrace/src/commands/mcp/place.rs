// SPDX-License-Identifier: GPL-2.0

//! The directory that the tools cannot leave.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use store::is_trace;

/// Levels of directories below the root in which traces are searched.
const LEVELS: usize = 3;
/// Number of entries of a search, at most.
const MOST: usize = 10_000;
/// Levels of files of a trace: a trace in chunks has directories.
const TRACE_LEVELS: usize = 3;

/// The directory.
#[derive(Debug)]
pub struct Root {
    /// Its path, without symbolic links.
    pub path: PathBuf,
}

impl Root {
    /// Opens a directory.
    pub fn open(dir: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(dir)?;
        fs::read_dir(&path)?;
        Ok(Self { path })
    }

    /// Returns a path that exists, relative to the directory. The error is a text for the user.
    fn inside(&self, path: &Path) -> Result<PathBuf, String> {
        let found = fs::canonicalize(self.path.join(path));
        let found = found.map_err(|error| format!("{}: {error}", path.display()))?;
        match found.strip_prefix(&self.path) {
            Ok(rest) if rest.as_os_str().is_empty() => Ok(PathBuf::from(".")),
            Ok(rest) => Ok(rest.to_owned()),
            Err(_) => Err(outside(path)),
        }
    }

    /// Returns the path of a trace. None of its files is a link to the outside.
    pub fn trace(&self, path: &Path) -> Result<PathBuf, String> {
        let trace = self.inside(path)?;
        let dir = self.path.join(&trace);
        if !is_trace(&dir) {
            return Err(format!("{}: no trace", path.display()));
        }
        self.check(&dir, TRACE_LEVELS)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(trace)
    }

    fn check(&self, dir: &Path, levels: usize) -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let path = entry.path();
            if kind.is_symlink() && !fs::canonicalize(&path)?.starts_with(&self.path) {
                return Err(io::Error::other(outside(&path)));
            }
            if kind.is_dir() && levels > 1 {
                self.check(&path, levels - 1)?;
            }
        }
        Ok(())
    }

    /// Returns the path of a new file or directory.
    pub fn new_path(&self, path: &Path) -> Result<PathBuf, String> {
        let Some(Component::Normal(name)) = path.components().next_back() else {
            return Err(format!("{}: no name of a new file", path.display()));
        };
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => self.inside(parent)?,
            _ => PathBuf::from("."),
        };
        let new = parent.join(name);
        match fs::symlink_metadata(self.path.join(&new)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(new),
            Err(error) => Err(format!("{}: {error}", path.display())),
            Ok(_) => Err(format!("{} exists already", path.display())),
        }
    }

    /// Returns the traces in the directory, sorted, and whether there may be more.
    pub fn traces(&self) -> (Vec<PathBuf>, bool) {
        let (mut traces, mut left) = (Vec::new(), MOST);
        self.search(Path::new(""), LEVELS, &mut traces, &mut left);
        traces.sort();
        (traces, left == 0)
    }

    fn search(&self, dir: &Path, levels: usize, traces: &mut Vec<PathBuf>, left: &mut usize) {
        if is_trace(&self.path.join(dir)) {
            traces.push(match dir.as_os_str().is_empty() {
                true => PathBuf::from("."),
                false => dir.to_owned(),
            });
            return;
        }
        // A directory that cannot be read has no trace that could be.
        let entries = fs::read_dir(self.path.join(dir)).into_iter().flatten();
        for entry in entries.flatten() {
            if *left == 0 {
                return;
            }
            *left -= 1;
            if levels > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.search(&dir.join(entry.file_name()), levels - 1, traces, left);
            }
        }
    }
}

fn outside(path: &Path) -> String {
    format!("{} is outside of the server's directory", path.display())
}
