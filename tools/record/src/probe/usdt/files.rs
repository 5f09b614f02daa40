// SPDX-License-Identifier: GPL-2.0

//! The files in which probes are looked for.

use anyhow::{bail, Context};
use std::collections::BTreeSet;
use std::env;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{self, Path, PathBuf};
use system::code::{file_at, mapped_code, maps};

/// Whether a target is the path of a file.
pub fn is_path(target: &str) -> bool {
    target.contains('/')
}

/// The files that a target stands for: a path; the files that the process with this number executes; or the files with
/// this name that are executed now, or are in `$PATH`. If there are none, the file with this name in the current folder.
pub fn of(target: &str) -> anyhow::Result<Vec<PathBuf>> {
    if is_path(target) {
        // The file need not be one of this mount namespace, so links are not resolved here.
        return Ok(vec![path::absolute(target)?]);
    }
    if target.is_empty() {
        bail!("expected a file or a PID, and the name of a probe: FILE:NAME");
    }
    let mut files = Files::default();
    if target.bytes().all(|byte| byte.is_ascii_digit()) {
        files
            .add_process(target, |_| true)
            .with_context(|| format!("process {target}"))?;
        return Ok(files.found);
    }
    let is_named = |path: &Path| path.file_name().is_some_and(|name| name == target);
    files.add_all(is_named);
    let path = env::var_os("PATH").unwrap_or_default();
    for folder in env::split_paths(&path) {
        let file = folder.join(target);
        let target = fs::metadata(&file).ok().filter(Metadata::is_file);
        if let Some(target) = target {
            files.add(file, &target);
        }
    }
    if files.found.is_empty() && Path::new(target).is_file() {
        return Ok(vec![path::absolute(target)?]);
    }
    Ok(files.found)
}

/// All files that processes execute now.
pub fn of_all() -> Vec<PathBuf> {
    let mut files = Files::default();
    files.add_all(|_| true);
    files.found
}

/// Files, each once.
#[derive(Default)]
struct Files {
    found: Vec<PathBuf>,
    /// Device and inode.
    known: BTreeSet<(u64, u64)>,
}

impl Files {
    fn add(&mut self, path: PathBuf, file: &Metadata) {
        if self.known.insert((file.dev(), file.ino())) {
            self.found.push(path);
        }
    }

    fn add_all(&mut self, picks: impl Fn(&Path) -> bool) {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        for process in processes {
            let name = process.file_name();
            let pid = name.to_str().filter(|name| name.parse::<u32>().is_ok());
            if let Some(pid) = pid {
                // The process may have ended.
                let _ = self.add_process(pid, &picks);
            }
        }
    }

    /// Adds the picked files that a process executes.
    fn add_process(&mut self, pid: &str, picks: impl Fn(&Path) -> bool) -> anyhow::Result<()> {
        let number = pid.parse()?;
        let maps = maps(pid)?;
        for code in mapped_code(&maps) {
            let path = Path::new(code.path.trim_end_matches(" (deleted)"));
            if code.inode == 0 || !path.is_absolute() || !picks(path) {
                continue;
            }
            let mapped = file_at(number, code.begin, code.end);
            let Ok(file) = fs::metadata(&mapped) else {
                continue;
            };
            let is_same = |other: &PathBuf| {
                fs::metadata(other)
                    .is_ok_and(|other| (other.dev(), other.ino()) == (file.dev(), file.ino()))
            };
            // The file may be that of a container, or be removed.
            let inside = Path::new("/proc").join(pid).join("root");
            let inside = inside.join(path.strip_prefix("/").unwrap_or(path));
            let path = [path.to_owned(), inside].into_iter().find(is_same);
            self.add(path.unwrap_or(mapped), &file);
        }
        Ok(())
    }
}
