// SPDX-License-Identifier: GPL-2.0

//! A directory to which a trace is written, and the files in it.
//!
//! Another user may change the names on a path at any moment, and may put files there first. So the directory is
//! opened once. Its owner and mode are checked on the descriptor, and files are created below the descriptor.

use rustix::fs::{openat, renameat, unlinkat, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use system::access::Access;
use system::{regular_file, Error, Result};

/// An open directory.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    file: File,
    /// The owner of the files that this process creates in it.
    user: u32,
}

impl Folder {
    /// Opens a directory that only this user may write, or a group to which the user gives it by `access`.
    pub fn open(path: &Path, access: Access) -> Result<Self> {
        let opened = Self::unchecked(path).and_then(|mut folder| {
            let status = folder.file.metadata()?;
            if !folder.is_ours(&status) {
                folder.user = folder.owner_of_new().unwrap_or(folder.user);
            }
            let refused = folder.refusal(&status, access);
            Ok((folder, refused))
        });
        match opened.map_err(Error::write(path))? {
            (folder, None) => Ok(folder),
            (_, Some(why)) => Err(Error::OutputTaken {
                path: path.to_owned(),
                reason: format!("{why}: choose another directory"),
            }),
        }
    }

    /// Opens a directory, and makes it if it is missing. Returns whether it made it. Makes directories above it as
    /// mkdir(1) does.
    pub fn make(path: &Path, access: Access) -> Result<(Self, bool)> {
        let made = make(path).map_err(Error::write(path))?;
        // Between the two calls, another user may have replaced it in a directory that all may write.
        let folder = Self::open(path, access)?;
        if made {
            let set = access.set_directory(&folder.file);
            set.map_err(Error::write(path))?;
        }
        Ok((folder, made))
    }

    /// Opens a directory, whoever may write it.
    pub(crate) fn unchecked(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true);
        options.custom_flags(OFlags::DIRECTORY.bits() as i32);
        Ok(Self {
            path: path.to_owned(),
            file: options.open(path)?,
            user: geteuid().as_raw(),
        })
    }

    /// The path by which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory itself.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Where the directory is now. [`None`]: it was removed, or its file system was unmounted.
    pub fn place(&self) -> Option<PathBuf> {
        if self.is_at_path() {
            return Some(self.path.clone());
        }
        let now = fs::read_link(self.link()).ok();
        now.filter(|now| self.is_at(now))
    }

    /// Whether its path still leads to it, and it was not removed or replaced.
    pub fn is_at_path(&self) -> bool {
        self.is_at(&self.path)
    }

    /// Whether the path leads to it.
    fn is_at(&self, path: &Path) -> bool {
        let identity = |of: Metadata| (of.dev(), of.ino());
        let there = fs::metadata(path).map(identity);
        let own = self.file.metadata().map(identity);
        matches!((there, own), (Ok(there), Ok(own)) if there == own)
    }

    /// The name of the open directory in /proc.
    fn link(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }

    /// Creates a file with these permissions. Fails if the name exists, even as a link.
    pub fn create(&self, name: &str, access: Access) -> Result<File> {
        let path = self.path.join(name);
        let created = self.create_new(name).map_err(|error| match error {
            Errno::EXIST => io::Error::new(
                io::ErrorKind::AlreadyExists,
                "it exists already, and is not of this trace: choose another directory",
            ),
            error => error.into(),
        });
        let file = created.map_err(Error::write(&path))?;
        access.set_file(&file).map_err(Error::write(&path))?;
        Ok(file)
    }

    /// Opens a file of a trace that continues, or creates it as [`Self::create`] does. Refuses what this user did not
    /// create: a link, or the file of another user.
    pub fn open_or_create(&self, name: &str, access: Access) -> Result<File> {
        let path = self.path.join(name);
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = match openat(&self.file, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return self.create(name, access),
            Err(Errno::LOOP) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is a symbolic link, not a regular file",
            )),
            // A FIFO without a reader, or a socket.
            opened => opened.map(File::from).map_err(io::Error::from),
        };
        let checked = file.and_then(|file| {
            let status = file.metadata()?;
            regular_file::check(status.file_type())?;
            let why = match () {
                () if status.nlink() > 1 => "it has another name, too",
                () if !self.is_ours(&status) => "it belongs to another user",
                () => {
                    access.set_file(&file)?;
                    return Ok(file);
                }
            };
            Err(io::Error::new(io::ErrorKind::InvalidInput, why))
        });
        checked.map_err(Error::write(&path))
    }

    /// Replaces a file. At each moment, also after a crash of the machine, it has its complete old or its complete new
    /// contents. Meanwhile the new contents have the name `NAME.new`, with a dot before it.
    pub fn replace(
        &self,
        name: &str,
        access: Access,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let new = temporary(name);
        // A killed process may have left it.
        match unlinkat(&self.file, &*new, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let written = self
            .create_new(&new)
            .map_err(io::Error::from)
            .and_then(|file| {
                access.set_file(&file)?;
                let mut out = BufWriter::new(file);
                write(&mut out)?;
                out.into_inner()?.sync_all()?;
                Ok(renameat(&self.file, &*new, &self.file, name)?)
            });
        match written {
            Ok(()) => self.file.sync_all(),
            Err(error) => {
                let _ = unlinkat(&self.file, &*new, AtFlags::empty());
                Err(error)
            }
        }
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) -> Result<()> {
        unlinkat(&self.file, name, AtFlags::empty())
            .map_err(|error| Error::write(&self.path.join(name))(error.into()))
    }

    /// Syncs the names of its files to the disk.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(Error::write(&self.path))
    }

    /// The reason not to write a trace to it.
    fn refusal(&self, status: &Metadata, access: Access) -> Option<String> {
        if !self.is_ours(status) {
            return Some(format!("it belongs to user {}", status.uid()));
        }
        let group = status.gid();
        let is_own = group == getegid().as_raw() || sudo("SUDO_GID") == Some(group);
        match status.mode() & 0o022 & !access.directory_mode() {
            0 => None,
            0o020 if is_own => None,
            0o020 => Some(format!(
                "group {group} may write to it, and --mode does not say so"
            )),
            _ => Some("other users may write to it".to_owned()),
        }
    }

    /// Whether an object belongs to this user; or to the user that called sudo; or to root, who may write anywhere.
    fn is_ours(&self, status: &Metadata) -> bool {
        let owner = status.uid();
        owner == self.user || owner == 0 || sudo("SUDO_UID") == Some(owner)
    }

    /// The owner of a new file. A network's file system may give root's files to another user.
    fn owner_of_new(&self) -> io::Result<u32> {
        Ok(tempfile::tempfile_in(self.link())?.metadata()?.uid())
    }

    fn create_new(&self, name: &str) -> rustix::io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        openat(&self.file, name, flags, Mode::RUSR | Mode::WUSR).map(File::from)
    }
}

/// The temporary name of a file that is being replaced.
pub fn temporary(name: &str) -> String {
    format!(".{}.new", name.strip_prefix('.').unwrap_or(name))
}

/// Makes a directory for its owner alone, unless it exists. Returns whether it made it.
fn make(path: &Path) -> io::Result<bool> {
    if let Some(above) = path.parent() {
        fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(false),
        Err(e) => Err(e),
    }
}

/// The user or group that called sudo, if this process is root.
fn sudo(name: &str) -> Option<u32> {
    let id = std::env::var(name).ok()?.parse().ok()?;
    geteuid().is_root().then_some(id)
}
