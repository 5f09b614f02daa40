// SPDX-License-Identifier: GPL-2.0

//! Files that are kept open since they were mapped, because they may be removed or replaced before the recording ends.

use super::mappings::MappedFile;
use rustix::process::{getrlimit, Resource};
use std::collections::hash_map::{Entry, HashMap};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use system::regular_file;

/// The kept files.
#[derive(Debug)]
pub struct Kept {
    files: HashMap<MappedFile, Option<Program>>,
    maps: HashMap<MappedFile, File>,
    /// The number of files that may still be kept.
    left: u64,
}

#[derive(Debug)]
struct Program {
    file: File,
    /// When its contents were last changed.
    changed: (i64, i64),
}

impl Default for Kept {
    fn default() -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(1 << 16);
        Self {
            files: HashMap::new(),
            maps: HashMap::new(),
            // The rest is for the recording itself.
            left: limit / 2,
        }
    }
}

/// The kernel's name of memory without a file, in its records.
pub const ANONYMOUS: &str = "//anon";

/// Whether a process may itself have put code into the mapping with this path.
pub fn is_made(path: &str) -> bool {
    const NAMES: [&str; 5] = [
        ANONYMOUS,
        "/memfd:",
        "/dev/zero",
        "/anon_hugepage",
        "[heap]",
    ];
    NAMES.iter().any(|name| path.starts_with(name))
}

/// Whether a path is that of a program or library. `[vdso]` is no file, but a file of this name may exist.
pub fn is_file(path: &str) -> bool {
    path.starts_with('/') && !is_made(path)
}

impl Kept {
    /// Keeps a program or library that a process has just mapped, unless it is kept already. `mapped` opens the mapped
    /// file itself. If that is impossible, because the process has ended, the file with its path counts, if it did not
    /// change after `since`, in nanoseconds since the epoch.
    pub fn keep(&mut self, file: &MappedFile, mapped: impl FnOnce() -> Option<File>, since: i128) {
        if !is_file(&file.path) || self.left == 0 {
            return;
        }
        let Entry::Vacant(entry) = self.files.entry(file.clone()) else {
            return;
        };
        let opened = mapped().or_else(|| {
            let opened = regular_file::open(Path::new(&file.path)).ok()?;
            let is_same = file.build_id().is_some() || is_inode(&opened, file, since);
            is_same.then_some(opened)
        });
        let kept = opened.and_then(|file| {
            let changed = changed(&file)?;
            Some(Program { file, changed })
        });
        self.left -= u64::from(kept.is_some());
        entry.insert(kept);
    }

    /// Keeps the names that a process gives to its code.
    pub fn keep_map(&mut self, map: MappedFile, file: File) {
        self.maps.insert(map, file);
    }

    /// The kept program or library, if nothing has changed its contents.
    pub fn program(&self, file: &MappedFile) -> Option<File> {
        let program = self.files.get(file)?.as_ref()?;
        let is_same = changed(&program.file) == Some(program.changed);
        program.file.try_clone().ok().filter(|_| is_same)
    }

    /// The kept names of a process's code.
    pub fn map(&self, file: &MappedFile) -> Option<&File> {
        self.maps.get(file)
    }
}

fn changed(file: &File) -> Option<(i64, i64)> {
    let status = file.metadata().ok()?;
    Some((status.mtime(), status.mtime_nsec()))
}

/// Whether an open file is the mapped one, by its number, and neither it nor its name has changed since.
fn is_inode(opened: &File, file: &MappedFile, since: i128) -> bool {
    let inode = file.id.as_deref().and_then(|id| id.rsplit(':').next());
    let inode = inode.and_then(|inode| inode.parse().ok());
    opened.metadata().is_ok_and(|status| {
        let changed = i128::from(status.ctime()) * 1_000_000_000 + i128::from(status.ctime_nsec());
        Some(status.ino()) == inode && changed <= since
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;

    fn text(kept: &Kept, file: &MappedFile) -> Option<String> {
        let mut text = String::new();
        kept.program(file)?.read_to_string(&mut text).unwrap();
        Some(text)
    }

    #[test]
    fn a_removed_file_is_kept_and_a_replaced_one_is_not_taken_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        fs::write(&path, "one").unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        let file = |id: String| MappedFile {
            path: path.to_str().unwrap().to_owned(),
            id: Some(id),
        };
        let (this, other) = (file(format!("08:01:{inode}")), file("08:01:1".to_owned()));
        let gone = || None;
        let mut early = Kept::default();
        early.keep(&this, gone, 0);
        assert!(
            text(&early, &this).is_none(),
            "it changed after the mapping"
        );
        let mut kept = Kept::default();
        kept.keep(&this, gone, i128::MAX);
        kept.keep(&other, gone, i128::MAX);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "two").unwrap();
        assert_eq!(text(&kept, &this).as_deref(), Some("one"));
        assert!(text(&kept, &other).is_none());
        // The mapped file itself needs no proof.
        let mut mapped = Kept::default();
        mapped.keep(&other, || File::open(&path).ok(), 0);
        assert_eq!(text(&mapped, &other).as_deref(), Some("two"));
        let later = fs::File::options().write(true).open(&path).unwrap();
        later.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert!(text(&mapped, &other).is_none(), "it was written over");
    }

    #[test]
    fn no_more_files_are_kept_than_the_process_may_open() {
        let mut kept = Kept {
            left: 1,
            ..Kept::default()
        };
        for name in ["passwd", "group"] {
            let file = MappedFile {
                path: format!("/etc/{name}"),
                id: Some("ab".to_owned()),
            };
            kept.keep(&file, || File::open(&file.path).ok(), 0);
            assert_eq!(kept.program(&file).is_some(), name == "passwd");
        }
    }
}
