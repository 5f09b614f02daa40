// SPDX-License-Identifier: GPL-2.0

//! A file that is replaced by another when that is whole.

use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// What shall be in the file. Dropped before it is finished, it leaves no trace. It is for its owner
/// alone.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    file: NamedTempFile,
}

impl Draft {
    /// For the file at this path, which is a regular one if it is there.
    pub fn of(path: &Path) -> io::Result<Self> {
        match fs::symlink_metadata(path) {
            Ok(status) if status.is_file() => {}
            Ok(_) => {
                let what = "it is there, and not a regular file";
                return Err(io::Error::new(ErrorKind::AlreadyExists, what));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new("."));
        Ok(Self {
            path: path.to_owned(),
            file: Builder::new().prefix(".rtrace-page-").tempfile_in(folder)?,
        })
    }

    /// Writes it, and puts it in its place; how many bytes it has.
    pub fn write(
        self,
        write: impl FnOnce(&mut BufWriter<&fs::File>) -> io::Result<()>,
    ) -> io::Result<u64> {
        let mut out = BufWriter::new(self.file.as_file());
        write(&mut out)?;
        out.flush()?;
        drop(out);
        let file = self.file.persist(&self.path)?;
        Ok(file.metadata()?.len())
    }
}
