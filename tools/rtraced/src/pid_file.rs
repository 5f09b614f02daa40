// SPDX-License-Identifier: GPL-2.0

//! The file that contains the daemon's process id while it runs.

use crate::failure::Failure;
use anyhow::Context;
use rustix::fs::{flock, FlockOperation};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process;
use store::replace;
use system::access::Access;

/// A pid file of this process. The drop removes the file.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
}

impl PidFile {
    /// Writes the file, unless it names a running rtraced.
    pub fn claim(path: &Path) -> Result<Self, Failure> {
        let dir = path.parent().unwrap_or(Path::new("/"));
        let context = || format!("cannot write pid file {}", path.display());
        // The lock covers both the check and the write. Otherwise two processes could find the same stale file.
        let lock = File::open(dir).with_context(context)?;
        flock(&lock, FlockOperation::LockExclusive).with_context(context)?;
        if let Some(pid) = running(path) {
            let what = format!(
                "{}: rtraced is already running, as process {pid}",
                path.display()
            );
            return Err(Failure::Busy(what));
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let text = format!("{}\n", process::id());
        let new = path.with_file_name(name);
        // Any user may read a pid file.
        let access = Access::new(Some(0o755), None);
        replace(path, &new, text.as_bytes(), access).with_context(context)?;
        Ok(Self {
            path: path.to_owned(),
        })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if read(&self.path) == Some(process::id()) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn read(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The process in the file, if it exists and is an rtraced. Process ids are reused, so the name is checked.
fn running(path: &Path) -> Option<u32> {
    let pid = read(path).filter(|&pid| pid != process::id())?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    (name.trim() == "rtraced").then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        for stale in ["", "rubbish", "1", "4000000000"] {
            fs::write(&path, stale).unwrap();
            let claimed = PidFile::claim(&path).unwrap();
            assert_eq!(read(&path), Some(process::id()));
            drop(claimed);
            assert!(!path.exists());
        }
    }

    #[test]
    fn another_ones_file_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        let claimed = PidFile::claim(&path).unwrap();
        fs::write(&path, "1\n").unwrap();
        drop(claimed);
        assert!(path.exists());
    }
}
