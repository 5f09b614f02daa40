// SPDX-License-Identifier: GPL-2.0

//! Loads the tables of the files whose code programs execute: first of those that are mapped now, then of those that the
//! module wants, until it is dropped.
//!
//! The module asks for a table when a stack meets the file. That stack is cut there, and says so.

use crate::{compile, empty};
use control::{Session, Tracer, Unwind, WantedTable};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::pipe::{pipe_with, PipeFlags};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use system::{regular_file, Error};

/// The time between two answers. A file that could not be opened may be wanted in each stack.
const INTERVAL: Duration = Duration::from_millis(50);

/// The largest file for which a table is made, in bytes. The largest programs of Debian have some 300 MiB.
const LARGEST: u64 = 2 << 30;

/// The thread that loads tables.
pub struct Loader {
    /// Hangs up when the loader is dropped.
    over: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Loader {
    /// If a session takes stacks of programs, for events or for a map, begins as [`begin`](Self::begin) does.
    pub fn of_session(session: &Session, also: &[PathBuf]) -> system::Result<Option<Self>> {
        let mut is_needed = session.has_map_of_user_stacks()?;
        for channel in session.channels()? {
            let contexts = channel.contexts()?;
            is_needed |= contexts.iter().any(|name| name == "callstack-user");
        }
        match is_needed {
            true => Self::begin(session.tracer(), also).map(Some),
            false => Ok(None),
        }
    }

    /// Loads the tables of all files that are mapped now, and of the programs in `also`; and begins to load those that are
    /// wanted.
    pub fn begin(tracer: &Tracer, also: &[PathBuf]) -> system::Result<Self> {
        let begun = Self::start(Unwind::open(tracer)?, also);
        begun.map_err(Error::system("cannot load unwind tables"))
    }

    fn start(unwind: Unwind, also: &[PathBuf]) -> io::Result<Self> {
        let mut known = HashSet::new();
        for path in also {
            if let Ok(file) = regular_file::open(path) {
                load_new(&unwind, &file, &mut known);
            }
        }
        load_all(&unwind, &mut known);
        let (there, over) = pipe_with(PipeFlags::CLOEXEC)?;
        let thread = thread::Builder::new().name("rtrace-unwind".to_owned());
        let thread = thread.spawn(move || serve(&unwind, &there))?;
        Ok(Self {
            over: Some(over),
            thread: Some(thread),
        })
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            // Only its tables are lost if it panicked.
            let _ = thread.join();
        }
    }
}

/// Loads the tables that are wanted, until `over` hangs up.
fn serve(unwind: &Unwind, over: &OwnedFd) {
    loop {
        let mut fds = [
            PollFd::new(unwind, PollFlags::IN),
            PollFd::new(over, PollFlags::empty()),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        if !fds[1].revents().is_empty() {
            return;
        }
        for wanted in unwind.wanted().unwrap_or_default() {
            // The process may have ended. Then the file is wanted again when another one meets it.
            let _ = load_wanted(unwind, wanted);
        }
        let mut fds = [PollFd::new(over, PollFlags::empty())];
        let interval = Timespec::try_from(INTERVAL).ok();
        match poll(&mut fds, interval.as_ref()) {
            Ok(0) | Err(Errno::INTR) => {}
            _ => return,
        }
    }
}

/// Loads the tables of all files that are mapped, each once.
fn load_all(unwind: &Unwind, known: &mut HashSet<(u64, u64)>) {
    load_vdso(unwind).unwrap_or_default();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut paths = HashSet::new();
    for pid in pids {
        let Ok(maps) = fs::read(format!("/proc/{pid}/maps")) else {
            continue;
        };
        for line in String::from_utf8_lossy(&maps).lines() {
            let Some(mapping) = Mapping::parse(pid, line) else {
                continue;
            };
            // The device and the inode tell files apart.
            if !mapping.path.starts_with('/') || !paths.insert(mapping.file.to_owned()) {
                continue;
            }
            if let Some(file) = mapping.open() {
                load_new(unwind, &file, known);
            }
        }
    }
}

fn load_new(unwind: &Unwind, file: &File, known: &mut HashSet<(u64, u64)>) {
    let id = file.metadata().map(|status| (status.dev(), status.ino()));
    if id.is_ok_and(|id| known.insert(id)) {
        // Without memory for it, it is wanted later.
        let _ = load(unwind, file);
    }
}

fn load_wanted(unwind: &Unwind, wanted: WantedTable) -> io::Result<()> {
    let WantedTable { pid, begin, .. } = wanted;
    let maps = fs::read(format!("/proc/{pid}/maps"))?;
    let maps = String::from_utf8_lossy(&maps);
    let mut mappings = maps.lines().filter_map(|line| Mapping::parse(pid, line));
    let Some(mapping) = mappings.find(|mapping| mapping.begin == begin) else {
        return Ok(());
    };
    if mapping.path == "[vdso]" {
        return load_vdso(unwind);
    }
    match mapping.open() {
        Some(file) => load(unwind, &file),
        None => Ok(()),
    }
}

/// Loads the table of a file. If it cannot have one, the module is told so.
fn load(unwind: &Unwind, file: &File) -> io::Result<()> {
    let mut bytes = Vec::new();
    if file.metadata()?.len() <= LARGEST {
        let mut from = file;
        from.read_to_end(&mut bytes)?;
    }
    unwind.load(
        Some(file.as_fd()),
        &compile(&bytes).unwrap_or_else(|_| empty()),
    )
}

/// Loads the table of the vDSO, which all processes have.
fn load_vdso(unwind: &Unwind) -> io::Result<()> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let mut mappings = maps.lines().filter_map(|line| Mapping::parse(0, line));
    let Some(vdso) = mappings.find(|mapping| mapping.path == "[vdso]") else {
        return Ok(());
    };
    let mut bytes = vec![0; (vdso.end - vdso.begin) as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut bytes, vdso.begin)?;
    unwind.load(None, &compile(&bytes).unwrap_or_else(|_| empty()))
}

/// Mapped code of a process.
struct Mapping<'a> {
    pid: u32,
    begin: u64,
    end: u64,
    /// The device, the inode and the path of the file.
    file: &'a str,
    inode: u64,
    path: &'a str,
}

impl<'a> Mapping<'a> {
    /// The mapping of a line of `/proc/PID/maps`. [`None`]: it has no code.
    fn parse(pid: u32, line: &'a str) -> Option<Self> {
        let mut words = line.splitn(4, ' ');
        let (begin, end) = words.next()?.split_once('-')?;
        let is_code = words.next()?.contains('x');
        let _offset = words.next()?;
        let file = words.next()?;
        let (_device, rest) = file.split_once(' ')?;
        let (inode, path) = rest.split_once(' ')?;
        let mapping = Self {
            pid,
            begin: u64::from_str_radix(begin, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            file,
            inode: inode.parse().ok()?,
            path: path.trim_start(),
        };
        is_code.then_some(mapping)
    }

    /// Opens the mapped file, also a removed one, and one of a container. Without the right to do that, the file with its
    /// path, if that has the same inode.
    fn open(&self) -> Option<File> {
        let Self {
            pid, begin, end, ..
        } = self;
        let mapped = PathBuf::from(format!("/proc/{pid}/map_files/{begin:x}-{end:x}"));
        if let Ok(file) = regular_file::open(&mapped) {
            return Some(file);
        }
        let root = Path::new("/proc").join(pid.to_string()).join("root");
        let file = regular_file::open(&root.join(self.path.trim_start_matches('/'))).ok()?;
        let is_same = file
            .metadata()
            .is_ok_and(|status| status.ino() == self.inode);
        is_same.then_some(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_a_process_has_a_file_or_a_name() {
        let line =
            "7f12a000-7f12b000 r-xp 00002000 fe:01 1234                       /usr/lib/lib a.so";
        let mapping = Mapping::parse(7, line).unwrap();
        assert_eq!((mapping.begin, mapping.end), (0x7f12_a000, 0x7f12_b000));
        assert_eq!((mapping.inode, mapping.path), (1234, "/usr/lib/lib a.so"));
        let vdso = "7ffd0000-7ffd2000 r-xp 00000000 00:00 0                          [vdso]";
        assert_eq!(Mapping::parse(7, vdso).unwrap().path, "[vdso]");
        assert!(Mapping::parse(7, &line.replace("r-xp", "r--p")).is_none());
    }
}
