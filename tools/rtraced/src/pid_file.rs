// SPDX-License-Identifier: GPL-2.0

//! The file that contains the daemon's process id while it runs.

use crate::failure::Failure;
use anyhow::Context;
use rustix::fs::{fchmod, flock, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::{Duration, Instant};
use system::regular_file;

/// Time after which another process that writes the same pid file counts as running.
const PATIENCE: Duration = Duration::from_secs(10);

/// A pid file of this process. The drop removes the file.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
}

impl PidFile {
    /// Writes the file, unless it names a running rtraced.
    pub fn claim(path: &Path) -> Result<Self, Failure> {
        let context = || format!("cannot write pid file {}", path.display());
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let new = path.with_file_name(name);
        // The lock covers both the check and the write. Otherwise two processes could find the same stale file.
        let Some(mut file) = lock(&new).with_context(context)? else {
            let what = format!("{}: another process is writing it", path.display());
            return Err(Failure::Busy(what));
        };
        if let Some(pid) = running(path) {
            let _ = fs::remove_file(&new);
            let what = format!(
                "{}: rtraced is already running, as process {pid}",
                path.display()
            );
            return Err(Failure::Busy(what));
        }
        let text = format!("{}\n", process::id());
        file.set_len(0)
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&new, path))
            .with_context(context)?;
        let claimed = Self {
            path: path.to_owned(),
        };
        // Any user may read a pid file. But not before it has its name: then any user could lock it.
        fchmod(&file, Mode::from_raw_mode(0o644)).with_context(context)?;
        Ok(claimed)
    }
}

/// Opens and locks the file that becomes the pid file. [`None`]: another process keeps it locked.
///
/// Only this user can open the file, so no other user can lock it. (A lock on the directory would be open to all.)
fn lock(new: &Path) -> io::Result<Option<File>> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits() as i32)
            .open(new)?;
        let status = file.metadata()?;
        regular_file::check(status.file_type())?;
        if status.uid() != geteuid().as_raw() || status.mode() & 0o077 != 0 {
            let what = format!("{} is open to other users: remove it", new.display());
            return Err(io::Error::other(what));
        }
        let identity = |of: &fs::Metadata| (of.dev(), of.ino());
        let is_at_name = || fs::metadata(new).is_ok_and(|now| identity(&now) == identity(&status));
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // Otherwise another process has renamed or removed it meanwhile.
            Ok(()) if is_at_name() => return Ok(Some(file)),
            Ok(()) | Err(Errno::WOULDBLOCK) => thread::sleep(Duration::from_millis(10)),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(None)
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
    fn locks_of_other_users_do_not_matter() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        // Any user can open and lock a directory such as /run, and a pid file.
        let locked = File::open(dir.path()).unwrap();
        flock(&locked, FlockOperation::LockExclusive).unwrap();
        fs::write(&path, "4000000000\n").unwrap();
        let stale = File::open(&path).unwrap();
        flock(&stale, FlockOperation::LockExclusive).unwrap();
        let _claimed = PidFile::claim(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o644);
        let names = fs::read_dir(dir.path()).unwrap();
        assert_eq!(names.count(), 1);
    }

    #[test]
    fn a_file_that_others_can_lock_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let new = dir.path().join("pid.new");
        fs::write(&new, "").unwrap();
        fchmod(File::open(&new).unwrap(), Mode::from_raw_mode(0o644)).unwrap();
        let error = PidFile::claim(&dir.path().join("pid")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("pid.new is open to other users"), "{text}");
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
