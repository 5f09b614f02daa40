// SPDX-License-Identifier: GPL-2.0

//! Output files of commands: for their owner alone, new unless the user asked to replace, never through a link.

use rustix::fs::{linkat, openat, AtFlags, Mode, OFlags, CWD};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// A file that gets its name when it is complete. Before that it has no name, so that no file is left if the program
/// is killed. File systems without unnamed files get a hidden name instead.
#[derive(Debug)]
pub struct NewFile {
    file: Unnamed,
    path: PathBuf,
    force: bool,
}

#[derive(Debug)]
enum Unnamed {
    /// A file without a name.
    Nameless(File),
    /// A file with a hidden name. Dropping this removes the file.
    Hidden(NamedTempFile),
}

impl NewFile {
    /// Begins the file of this path. With `force` it replaces a regular file.
    pub fn create(path: &Path, force: bool) -> io::Result<Self> {
        check(path, force)?;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = match openat(CWD, folder(path), flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Unnamed::Nameless(file.into()),
            // Kernels that do not know the flag for that file system return EISDIR.
            Err(Errno::OPNOTSUPP | Errno::ISDIR) => Unnamed::Hidden(hidden(path)?),
            Err(e) => return Err(e.into()),
        };
        Ok(Self {
            file,
            path: path.to_owned(),
            force,
        })
    }

    /// The file to write to.
    pub fn file(&self) -> &File {
        match &self.file {
            Unnamed::Nameless(file) => file,
            Unnamed::Hidden(file) => file.as_file(),
        }
    }

    /// Names the file.
    pub fn commit(self) -> io::Result<()> {
        let hidden = match self.file {
            Unnamed::Nameless(file) if !self.force => return link(&file, &self.path),
            Unnamed::Nameless(file) => {
                // A link cannot replace a file. So link to another name, and rename that.
                let linked = builder().make_in(folder(&self.path), |name| link(&file, name));
                linked?.into_temp_path()
            }
            Unnamed::Hidden(file) => file.into_temp_path(),
        };
        let persisted = match self.force {
            true => hidden.persist(&self.path),
            false => hidden.persist_noclobber(&self.path),
        };
        persisted.map_err(|error| error.error)
    }
}

/// Creates a file that can be read while it is written.
pub fn create(path: &Path, force: bool) -> io::Result<File> {
    check(path, force)?;
    if force {
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path)
}

/// Opens a pipe, a device or a terminal, by its own name or by a link. [`None`]: the caller creates a file.
pub fn special(path: &Path) -> io::Result<Option<File>> {
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => {
            let why = "it exists and is not a regular file: it is a directory";
            Err(io::Error::new(ErrorKind::IsADirectory, why))
        }
        Ok(there) if !there.is_file() => File::options().write(true).open(path).map(Some),
        _ => Ok(None),
    }
}

/// Refuses an existing file, unless it may be replaced.
fn check(path: &Path, force: bool) -> io::Result<()> {
    let why = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(there) if !there.is_file() => "it exists and is not a regular file",
        Ok(_) if force => return Ok(()),
        Ok(_) => "it already exists (--force replaces it)",
    };
    Err(io::Error::new(ErrorKind::AlreadyExists, why))
}

fn link(file: &File, path: &Path) -> io::Result<()> {
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

fn hidden(path: &Path) -> io::Result<NamedTempFile> {
    builder().tempfile_in(folder(path))
}

fn builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(OsStr::new(".rtrace-"));
    builder
}

/// The directory of a file.
fn folder(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    folder.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{symlink, PermissionsExt};

    fn names(dir: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn a_file_has_no_name_before_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let new = NewFile::create(&path, false).unwrap();
        if matches!(new.file, Unnamed::Nameless(_)) {
            assert_eq!(names(dir.path()), [] as [PathBuf; 0]);
        }
        new.file().write_all(b"text").unwrap();
        new.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"text");
        assert_eq!(names(dir.path()), [path]);
    }

    #[test]
    fn with_and_without_unnamed_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let new = |force, is_hidden: bool| {
            let mut new = NewFile::create(&path, force)?;
            if is_hidden {
                new.file = Unnamed::Hidden(hidden(&path)?);
            }
            new.file().write_all(if is_hidden { b"2" } else { b"1" })?;
            new.commit()
        };
        for (is_hidden, text) in [(false, "1"), (true, "2")] {
            new(false, is_hidden).unwrap();
            assert!(new(false, is_hidden).is_err());
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            new(true, is_hidden).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            assert_eq!(names(dir.path()), [path.clone()]);
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("file"), dir.path().join("other"));
        fs::write(&other, "old").unwrap();
        for to in [&other, &dir.path().join("nowhere")] {
            symlink(to, &path).unwrap();
            for force in [false, true] {
                assert!(NewFile::create(&path, force).is_err());
                assert!(create(&path, force).is_err());
            }
            fs::remove_file(&path).unwrap();
        }
        // Another name of the same file.
        fs::hard_link(&other, &path).unwrap();
        create(&path, true).unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "old");
        assert_eq!(names(dir.path()).len(), 2);
    }
}
