// SPDX-License-Identifier: GPL-2.0

//! The directory that the tools cannot leave.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use store::{is_readable, is_trace};

/// Levels of directories below the root in which traces are searched.
const LEVELS: usize = 3;
/// Number of entries of a search, at most.
const MOST: usize = 10_000;
/// Levels of files of a trace: a trace in chunks has directories, and so has a session of LTTng.
const TRACE_LEVELS: usize = 10;
/// Folders that a session of LTTng has.
const DOMAINS: [&str; 2] = ["kernel", "ust"];

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
        let full = self.path.join(&trace);
        if !is_readable(&full) {
            return Err(format!("{}: no trace", path.display()));
        }
        if full.is_dir() {
            let mut left = MOST;
            self.check(&full, TRACE_LEVELS, &mut left)
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(trace)
    }

    fn check(&self, dir: &Path, levels: usize, left: &mut usize) -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let more = left.checked_sub(1);
            *left = more.ok_or_else(|| io::Error::other("too many files for a trace"))?;
            let kind = entry.file_type()?;
            let path = entry.path();
            if kind.is_symlink() && !fs::canonicalize(&path)?.starts_with(&self.path) {
                return Err(io::Error::other(outside(&path)));
            }
            if kind.is_dir() && levels > 1 {
                self.check(&path, levels - 1, left)?;
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
        let full = self.path.join(dir);
        let is_session = DOMAINS.iter().any(|domain| full.join(domain).is_dir());
        if is_trace(&full) || is_session && is_readable(&full) {
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
            let path = dir.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && levels > 0 => {
                    self.search(&path, levels - 1, traces, left);
                }
                Ok(kind) if kind.is_file() && is_readable(&entry.path()) => traces.push(path),
                _ => {}
            }
        }
    }
}

fn outside(path: &Path) -> String {
    format!("{} is outside of the server's directory", path.display())
}
