// SPDX-License-Identifier: GPL-2.0

//! The state before a recording, from /proc: the code that processes have mapped, and their threads.

use super::elf;
use super::kept::ANONYMOUS;
use super::mappings::MappedFile;
use super::perf::Change;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use system::code::{file_at, mapped_code, maps, MappedCode};
use system::regular_file;

/// Build ids of files, by inode and path. A path alone does not identify a file, because a container has its own files.
type BuildIds = HashMap<(Option<String>, String), Option<String>>;

/// Passes on the mappings of all processes, and their threads.
pub fn processes(mut change: impl FnMut(Change) -> io::Result<()>) -> io::Result<()> {
    let mut ids = BuildIds::new();
    for process in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // The process may end meanwhile.
        for found in one_process(pid, &process.path(), &mut ids).unwrap_or_default() {
            change(found)?;
        }
    }
    Ok(())
}

fn one_process(pid: u32, dir: &Path, ids: &mut BuildIds) -> io::Result<Vec<Change>> {
    let maps = fs::read(dir.join("maps"))?;
    let maps = String::from_utf8_lossy(&maps);
    let mut found = Vec::new();
    for code in mapped_code(&maps) {
        let MappedCode {
            begin, end, offset, ..
        } = code;
        let path = match code.path {
            "" => ANONYMOUS,
            path => path,
        };
        let inode = inode(&code);
        let build_id = ids.entry((inode.clone(), path.to_owned()));
        let build_id = build_id.or_insert_with(|| {
            let own = dir.join("root").join(path.trim_start_matches('/'));
            elf::build_id(&file_at(pid.into(), begin, end)).or_else(|| elf::build_id(&own))
        });
        found.push(Change::Map {
            ns: 0,
            pid,
            begin,
            len: end - begin,
            // As the kernel reports it.
            offset: if path == ANONYMOUS { begin } else { offset },
            id: build_id.clone().or(inode),
            path: path.to_owned(),
        });
    }
    if found.is_empty() {
        return Ok(found);
    }
    for thread in fs::read_dir(dir.join("task"))?.flatten() {
        let tid = thread.file_name();
        let Some(tid) = tid.to_str().and_then(|tid| tid.parse().ok()) else {
            continue;
        };
        found.push(Change::Fork {
            ns: 0,
            pid,
            tid,
            parent: pid,
        });
    }
    Ok(found)
}

/// Opens the file that a process has mapped at these addresses, even if the file was removed. [`None`]: the process has
/// ended, or has executed another program.
pub fn open_mapped(pid: u32, begin: u64, end: u64, file: &MappedFile) -> Option<File> {
    let opened = regular_file::open(&file_at(pid.into(), begin, end)).ok()?;
    if file.build_id().is_some() {
        // `elf::program` compares the build id with that of the opened file.
        return Some(opened);
    }
    let maps = maps(&pid.to_string()).ok()?;
    let is_still = mapped_code(&maps).any(|code| code.begin == begin && inode(&code) == file.id);
    is_still.then_some(opened)
}

/// The addresses of code that this program has mapped with this path.
pub fn own(path: &str) -> io::Result<Option<(u64, u64)>> {
    let maps = maps("self")?;
    let found = mapped_code(&maps).find(|code| code.path == path);
    Ok(found.map(|code| (code.begin, code.end)))
}

/// The device and the inode of a mapped file, as `MAJOR:MINOR:INODE`.
fn inode(code: &MappedCode<'_>) -> Option<String> {
    let MappedCode { device, inode, .. } = code;
    (*inode != 0).then(|| format!("{device}:{inode}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_path_is_another_file_in_another_container() {
        let this = std::env::current_exe().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut ids = BuildIds::new();
        let mut id_of = |name: &str, device, has_program| {
            let process = dir.path().join(name);
            fs::create_dir_all(process.join("root/bin")).unwrap();
            fs::create_dir_all(process.join("task")).unwrap();
            let maps = format!("1000-2000 r-xp 00000000 {device} 7      /bin/program\n");
            fs::write(process.join("maps"), maps).unwrap();
            if has_program {
                std::os::unix::fs::symlink(&this, process.join("root/bin/program")).unwrap();
            }
            let found = one_process(1 << 30, &process, &mut ids).unwrap();
            match &found[0] {
                Change::Map { id, .. } => id.clone().unwrap(),
                other => panic!("{other:?}"),
            }
        };
        let id = elf::build_id(&this).unwrap();
        assert_eq!(id_of("one", "00:1e", true), id);
        assert_eq!(id_of("other", "00:1f", false), "00:1f:7");
        assert_eq!(id_of("like-one", "00:1e", false), id);
    }

    #[test]
    fn this_process_is_written() {
        let pid = std::process::id();
        let found = one_process(pid, Path::new("/proc/self"), &mut BuildIds::new()).unwrap();
        let this = std::env::current_exe().unwrap();
        let own = elf::build_id(&this).unwrap();
        let is_own = |change: &Change| match change {
            Change::Map {
                pid,
                begin,
                len,
                id,
                path,
                ..
            } if *path == this.to_str().unwrap() => {
                // Of a file without build id the place must still have it.
                let opened = |id: &str| {
                    let file = MappedFile {
                        path: path.clone(),
                        id: Some(id.to_owned()),
                    };
                    open_mapped(*pid, *begin, *begin + *len, &file)
                };
                let inode = fs::metadata(&this).unwrap().ino();
                let found = opened(&own).map(|file| file.metadata().unwrap().ino());
                // Only a capable process may open them.
                assert!(found.is_none() || found == Some(inode));
                assert!(opened("08:01:1").is_none());
                *id == Some(own.clone())
            }
            _ => false,
        };
        assert!(found.iter().any(is_own), "{found:?}");
        let is_first = |change: &Change| matches!(change, Change::Fork { tid, .. } if *tid == pid);
        assert!(found.iter().any(is_first), "{found:?}");
    }
}
