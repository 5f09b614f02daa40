// SPDX-License-Identifier: GPL-2.0

//! The names that a process gives to code that it makes at run time: `/tmp/perf-PID.map`, in the process's own root and
//! with its id there. A line is `ADDRESS LENGTH NAME`, in hexadecimal.
//!
//! Any user may put a file there. So only a regular file counts that belongs to the process's user, or to root, and has
//! no other name. No link is followed.

use super::demangle::NAME_MAX;
use super::elf::Function;
use super::mappings::MappedFile;
use super::processes::{map, Area, Memory};
use rustix::fs::{fstat, major, minor, openat, openat2, FileType, Mode, OFlags, ResolveFlags, CWD};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use system::regular_file::LARGEST;
use terminal::printable;

/// Opens the names of a running process. [`None`]: it has none that count.
pub fn open(pid: u32) -> Option<(MappedFile, File)> {
    try_open(pid).ok().flatten()
}

fn try_open(pid: u32) -> io::Result<Option<(MappedFile, File)>> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    // All files are found below it, so that they are of one process.
    let process = openat(
        CWD,
        format!("/proc/{pid}"),
        flags | OFlags::DIRECTORY,
        Mode::empty(),
    )?;
    let status = openat(
        &process,
        "status",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let status = io::read_to_string(File::from(status))?;
    let Some((user, id)) = user_and_id(&status) else {
        return Ok(None);
    };
    let root = openat(&process, "root", flags | OFlags::DIRECTORY, Mode::empty())?;
    let path = format!("tmp/perf-{id}.map");
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let found = openat2(
        &root,
        &path,
        flags | OFlags::NOFOLLOW,
        Mode::empty(),
        resolve,
    )?;
    let Some(id) = identity(&found, user)? else {
        return Ok(None);
    };
    let file = File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))?;
    let map = MappedFile {
        path: format!("/{path}"),
        id: Some(id),
    };
    Ok(Some((map, file)))
}

/// The effective user of a process, and its id in its own name space.
fn user_and_id(status: &str) -> Option<(u32, u32)> {
    let words = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::split_whitespace)
    };
    let user = words("Uid:")?.nth(1)?.parse().ok()?;
    let id = words("NSpid:")?.next_back()?.parse().ok()?;
    Some((user, id))
}

/// The device and number of a file that counts.
fn identity(file: &OwnedFd, user: u32) -> io::Result<Option<String>> {
    let status = fstat(file)?;
    let is_regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    let is_own = [0, user].contains(&status.st_uid) && status.st_nlink <= 1;
    let (major, minor) = (major(status.st_dev), minor(status.st_dev));
    let id = || format!("{major:02x}:{minor:02x}:{}", status.st_ino);
    Ok((is_regular && is_own).then(id))
}

/// The functions in the file, sorted. The offset of a function is its address. Of several functions at an address the
/// last one counts. The error is a text for the user.
pub fn functions(file: &File) -> io::Result<Vec<Function>> {
    let mut text = Vec::new();
    // Its end is where the process last wrote.
    let len = file.metadata()?.len();
    if len > LARGEST {
        let what = format!("it has more than {} MiB", LARGEST >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    text.resize(len as usize, 0);
    file.read_exact_at(&mut text, 0)?;
    Ok(parse(&String::from_utf8_lossy(&text)))
}

fn parse(text: &str) -> Vec<Function> {
    let (mut memory, mut names) = (Memory::new(), Vec::new());
    for line in text.lines() {
        let mut words = line.splitn(3, ' ');
        let mut number = || {
            let word = words.next()?;
            u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
        };
        let (Some(begin), Some(len)) = (number(), number()) else {
            continue;
        };
        let name = words.next().filter(|name| name.len() <= NAME_MAX);
        let end = begin.checked_add(len).filter(|end| *end > begin);
        // The writer may have been killed within a line.
        if let (Some(name), Some(end)) = (name, end) {
            let area = Area {
                end,
                offset: begin,
                file: names.len(),
            };
            map(&mut memory, begin, area);
            names.push(name);
        }
    }
    let function = |(begin, area): (u64, Area)| Function {
        offset: begin,
        size: area.end - begin,
        name: printable(names[area.file]),
    };
    memory.into_iter().map(function).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_last_name_of_an_address_counts() {
        let text = "1000 100 first one\n2000 0x20 py::f:/a b.py\n1080 10 second\nx 1 y\n3000 10\n\
                    4000 0 empty\nffffffffffffffff 10 beyond\n5000 8 in\x1b[2J";
        let functions = parse(text);
        let functions: Vec<_> = functions
            .iter()
            .map(|f| (f.offset, f.size, f.name.as_str()))
            .collect();
        assert_eq!(
            functions,
            [
                (0x1000, 0x80, "first one"),
                (0x1080, 0x10, "second"),
                (0x1090, 0x70, "first one"),
                (0x2000, 0x20, "py::f:/a b.py"),
                (0x5000, 8, "in\\x1b[2J"),
            ]
        );
    }

    #[test]
    fn the_process_is_known_by_its_own_id() {
        let status = "Name:\tx\nUid:\t1000\t1001\t1002\t1003\nNSpid:\t77\t3\t1\n";
        assert_eq!(user_and_id(status), Some((1001, 1)));
        assert_eq!(user_and_id("Uid:\t1\n"), None);
    }

    #[test]
    fn only_a_file_of_the_processs_user_counts() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("file"), "").unwrap();
        fs::write(path("two"), "").unwrap();
        fs::hard_link(path("two"), path("names")).unwrap();
        symlink(path("file"), path("link")).unwrap();
        let status = fs::metadata(path("file")).unwrap();
        let user = std::os::unix::fs::MetadataExt::uid(&status);
        let counts = |name: &str, user| {
            let flags = OFlags::PATH | OFlags::NOFOLLOW;
            let file = openat(CWD, path(name), flags, Mode::empty()).unwrap();
            identity(&file, user).unwrap().is_some()
        };
        assert!(counts("file", user));
        assert_eq!(counts("file", user + 1), user == 0);
        assert!(!counts("two", user), "it has another name");
        assert!(!counts("link", user) && !counts("", user));
        // A hole is not read.
        let hole = File::create(path("hole")).unwrap();
        hole.set_len(LARGEST + 1).unwrap();
        assert!(functions(&hole).is_err());
    }
}
