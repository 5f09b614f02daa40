// SPDX-License-Identifier: GPL-2.0

//! A directory to which one process writes traces, and no other.

use crate::folder::Folder;
use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use system::access::Access;
use system::{Error, Result};

/// A claimed directory. Dropping the claim, or the end of the process, releases it; a directory that the claim
/// made and that is still empty is removed.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    /// Holds the lock.
    _folder: Folder,
    made: bool,
}

impl Claim {
    /// Claims `path`, and makes the directory if it is missing. Fails with [`Error::OutputTaken`] if another claim
    /// holds it.
    pub fn take(path: &Path, access: Access) -> Result<Self> {
        loop {
            let (folder, made) = match Folder::make(path, access) {
                // The claim that made the directory has just removed it.
                Err(Error::Write { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
                    continue
                }
                made => made?,
            };
            match flock(folder.file(), FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => {
                    return Err(Error::OutputTaken {
                        path: path.to_owned(),
                        reason: "is in use by another rtrace or rtraced: choose another directory"
                            .to_owned(),
                    })
                }
                locked => locked.map_err(|errno| Error::write(path)(errno.into()))?,
            }
            if folder.is_at_path() {
                return Ok(Self {
                    path: path.to_owned(),
                    _folder: folder,
                    made,
                });
            }
        }
    }

    /// Claims a directory without another trace: `path`, else `path-2`, `path-3` and so on.
    pub fn take_new(path: &Path, access: Access) -> Result<Self> {
        let mut next = path.to_owned();
        for number in 2_u64.. {
            match Self::take(&next, access) {
                Ok(claim) if claim.made => return Ok(claim),
                Ok(_) | Err(Error::OutputTaken { .. }) => {}
                Err(error) => return Err(error),
            }
            let mut name = OsString::from(path);
            name.push(format!("-{number}"));
            next = name.into();
        }
        unreachable!("the numbers do not end")
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.made {
            // Fails, as intended, if a trace is in it.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(path: &Path) -> Result<Claim> {
        Claim::take(path, Access::default())
    }

    #[test]
    fn one_claim_holds_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace");
        let claim = take(&path).unwrap();
        let error = take(&path).unwrap_err();
        assert!(
            error.to_string().contains("is in use by another"),
            "{error}"
        );
        drop(claim);
        // The claim made the directory, and it is empty.
        assert!(!path.exists());
        let claim = take(&path).unwrap();
        fs::write(path.join("file"), "").unwrap();
        drop(claim);
        assert!(path.join("file").exists());
        take(dir.path()).unwrap();
        assert!(dir.path().exists(), "a directory that was there stays");
    }

    #[test]
    fn names_get_a_number() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace");
        let new = || Claim::take_new(&path, Access::default()).unwrap();
        let claims: Vec<_> = (0..3).map(|_| new()).collect();
        let names = claims.iter().map(|claim| claim.path().file_name().unwrap());
        let names: Vec<_> = names.collect();
        assert_eq!(names, ["trace", "trace-2", "trace-3"]);
    }

    #[test]
    fn a_replaced_directory_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace");
        fs::create_dir(&path).unwrap();
        let folder = Folder::unchecked(&path).unwrap();
        assert!(folder.is_at_path());
        fs::remove_dir(&path).unwrap();
        assert!(!folder.is_at_path());
        fs::create_dir(&path).unwrap();
        assert!(!folder.is_at_path());
    }
}
