// SPDX-License-Identifier: GPL-2.0

//! Folder that an export creates.

use anyhow::Context;
use rustix::fs::{renameat_with, RenameFlags, CWD};
use rustix::io::Errno;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use tempfile::{Builder, TempDir};

/// A folder that gets its name when it is complete. If it is dropped before, it is deleted.
pub struct NewFolder {
    to: PathBuf,
    temporary: TempDir,
    path: PathBuf,
}

impl NewFolder {
    /// Creates the temporary folder for `to`, which must not exist.
    pub fn new(to: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("cannot make {}", to.display());
        if fs::symlink_metadata(to).is_ok() {
            return Err(io::Error::from(Errno::EXIST)).with_context(cannot);
        }
        let parent = to.parent().filter(|dir| !dir.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let temporary = Builder::new().prefix(".export-").tempdir_in(parent);
        let temporary = temporary.with_context(cannot)?;
        let path = temporary.path().join("folder");
        make(&path).with_context(cannot)?;
        Ok(Self {
            to: to.to_owned(),
            temporary,
            path,
        })
    }

    /// Temporary path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the folder its name.
    pub fn finish(self) -> anyhow::Result<()> {
        let renamed = renameat_with(CWD, &self.path, CWD, &self.to, RenameFlags::NOREPLACE);
        renamed.with_context(|| format!("cannot make {}", self.to.display()))?;
        // The temporary directory is empty now.
        let _ = self.temporary.close();
        Ok(())
    }
}

/// Creates a directory that only its owner may read, like a trace.
pub fn make(dir: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().mode(0o700).create(dir);
    made.with_context(|| format!("cannot make {}", dir.display()))
}
