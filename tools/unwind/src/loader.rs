// SPDX-License-Identifier: GPL-2.0

//! Loads the tables of the files whose code programs execute: first of those that are mapped now, and of those that given
//! programs start with; then of those that the module wants, until it is dropped.
//!
//! The module asks for a table when a stack meets the file. That stack is cut there, and says so.

use crate::{compile, empty, startup};
use control::{Session, Tracer, Unwind, WantedTable};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::pipe::{pipe_with, PipeFlags};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use system::code::{file_at, mapped_code, maps, MappedCode, VDSO};
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

    /// Loads the tables of all files that are mapped now, and of the programs in `also` with their libraries; and begins to
    /// load those that are wanted.
    pub fn begin(tracer: &Tracer, also: &[PathBuf]) -> system::Result<Self> {
        let begun = Self::start(Unwind::open(tracer)?, also);
        begun.map_err(Error::system("cannot load unwind tables"))
    }

    fn start(unwind: Unwind, also: &[PathBuf]) -> io::Result<Self> {
        let also = startup::files(also);
        let mut known: HashSet<_> = also.iter().filter_map(identity).collect();
        load_all(&unwind, &mut known);
        // Last, because the module drops the oldest tables if there are too many.
        for file in &also {
            // Without memory for it, it is wanted later.
            let _ = load(&unwind, file);
        }
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
    let mut files = HashSet::new();
    for pid in pids {
        let maps = maps(&pid.to_string()).unwrap_or_default();
        for code in mapped_code(&maps).filter(|code| code.path.starts_with('/')) {
            let file = (code.device.to_owned(), code.inode, code.path.to_owned());
            if !files.insert(file) {
                continue;
            }
            if let Some(file) = open(pid, &code) {
                load_new(unwind, &file, known);
            }
        }
    }
}

/// The device and the inode of a file.
fn identity(file: &File) -> Option<(u64, u64)> {
    let status = file.metadata().ok()?;
    Some((status.dev(), status.ino()))
}

fn load_new(unwind: &Unwind, file: &File, known: &mut HashSet<(u64, u64)>) {
    if identity(file).is_some_and(|id| known.insert(id)) {
        // Without memory for it, it is wanted later.
        let _ = load(unwind, file);
    }
}

fn load_wanted(unwind: &Unwind, wanted: WantedTable) -> io::Result<()> {
    let WantedTable { pid, begin, .. } = wanted;
    let maps = maps(&pid.to_string())?;
    let Some(code) = mapped_code(&maps).find(|code| code.begin == begin) else {
        return Ok(());
    };
    if code.path == VDSO {
        return load_vdso(unwind);
    }
    match open(pid, &code) {
        Some(file) => load(unwind, &file),
        None => Ok(()),
    }
}

/// Loads the table of a file. If it cannot have one, the module is told so.
fn load(unwind: &Unwind, file: &File) -> io::Result<()> {
    let mut bytes = Vec::new();
    if file.metadata()?.len() <= LARGEST {
        let mut from = file;
        // Its headers may have been read.
        from.rewind()?;
        from.read_to_end(&mut bytes)?;
    }
    unwind.load(
        Some(file.as_fd()),
        &compile(&bytes).unwrap_or_else(|_| empty()),
    )
}

/// Loads the table of the vDSO, which all processes have.
fn load_vdso(unwind: &Unwind) -> io::Result<()> {
    let maps = maps("self")?;
    let Some(vdso) = mapped_code(&maps).find(|code| code.path == VDSO) else {
        return Ok(());
    };
    let mut bytes = vec![0; (vdso.end - vdso.begin) as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut bytes, vdso.begin)?;
    unwind.load(None, &compile(&bytes).unwrap_or_else(|_| empty()))
}

/// Opens a mapped file, also a removed one, and one of a container. Without the right to do that, the file with its path,
/// if that has the same inode.
fn open(pid: u32, code: &MappedCode<'_>) -> Option<File> {
    if let Ok(file) = regular_file::open(&file_at(pid.into(), code.begin, code.end)) {
        return Some(file);
    }
    let root = Path::new("/proc").join(pid.to_string()).join("root");
    let file = regular_file::open(&root.join(code.path.trim_start_matches('/'))).ok()?;
    let is_same = file
        .metadata()
        .is_ok_and(|status| status.ino() == code.inode);
    is_same.then_some(file)
}
