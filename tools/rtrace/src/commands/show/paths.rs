// SPDX-License-Identifier: GPL-2.0

//! Files that descriptors stand for: from the events, and while a trace is recorded also from /proc.
//!
//! The tool reads an event after it happened, and /proc may then show a later file with the same descriptor. Therefore
//! a file from /proc is used for later events only, and only if no event between shows that the descriptor was closed
//! or replaced.

use analysis::descriptors::Descriptors;
use analysis::schedule::Schedule;
use analysis::schedule_events::Switch;
use analysis::uring::Posted;
use analysis::whose::Owner;
use analysis::{Catalogue, EventKey, Moment};
use ctf::{Clock, Event};
use record::session::maker::Maker;
use rustix::fs::OFlags;
use std::fs;
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum difference in nanoseconds between the trace's clock and the system's clock, from which the trace's clock was
/// set once.
const BEHIND: i128 = 100_000_000;

/// Sources of the files that descriptors stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sources {
    /// No source: some of the calls that matter are not recorded.
    None,
    /// The events.
    #[default]
    Events,
    /// The events and /proc: the trace is recorded at this moment on this machine.
    EventsAndProc,
}

/// The files of descriptors.
pub struct Paths {
    descriptors: Descriptors,
    /// The trace's clock, if /proc is a source too.
    live: Option<Clock>,
}

/// An open descriptor, from /proc.
struct Open {
    file: Arc<str>,
    /// Whether it is closed when another program is executed.
    closes: bool,
}

impl Paths {
    /// The files in a trace, from `sources`. `None` if the trace lacks events that are needed.
    pub fn new(catalogue: &Catalogue<'_>, sources: Sources) -> Option<Self> {
        if sources == Sources::None {
            return None;
        }
        let mut descriptors = Descriptors::sure(catalogue)?;
        // In another PID namespace, the events have other process numbers than /proc.
        let live = sources == Sources::EventsAndProc
            && Maker::me().is_ok_and(Maker::is_in_first_namespace);
        if live {
            let me = process::id();
            let numbers = numbers(me).into_iter();
            let open = numbers.filter_map(|fd| Some((fd, open(me.into(), fd)?)));
            // The descriptors that a command inherits. The others close on execve, and rtrace opens and closes them at
            // any time.
            for (fd, open) in open.filter(|(_, open)| !open.closes) {
                descriptors.found(Owner::Process(me.into()), fd, 0, open.file, open.closes);
            }
        }
        Some(Self {
            descriptors,
            live: live.then(|| catalogue.metadata().clock),
        })
    }

    /// The events that change descriptors. An event's place in this list identifies it.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.descriptors.events()
    }

    /// Handles event number `which` of this list.
    pub fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        self.descriptors.event(which, event, now);
    }

    /// Handles the result of a request of io_uring.
    pub fn posted(&mut self, posted: &Posted) {
        self.descriptors.posted(posted);
    }

    /// Handles a switch of a CPU.
    pub fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.descriptors.switch(switch, now);
    }

    /// Handles a loss: from now on, events of a CPU may be missing.
    pub fn lost(&mut self, schedule: &Schedule) {
        self.descriptors.lost(schedule);
    }

    /// The file of a descriptor at `time`, the time of the last event.
    pub fn file(&mut self, owner: Owner, fd: i32, time: u64) -> Option<Arc<str>> {
        let known = self.descriptors.file(owner, fd, time).cloned();
        if let (None, Some(clock), Some(pid)) = (&known, self.live, owner.pid()) {
            if fd >= 0 && self.descriptors.is_unknown(owner, fd) {
                if let Some(open) = open(pid, fd) {
                    let from = clock.value(now().saturating_add(BEHIND));
                    self.descriptors
                        .found(owner, fd, from, open.file, open.closes);
                }
            }
        }
        known
    }
}

/// Current time in nanoseconds since the epoch.
fn now() -> i128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| i128::try_from(now.as_nanos()).unwrap_or(i128::MAX))
}

/// The open descriptors of a process.
fn numbers(pid: u32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    let entries = entries.into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// A descriptor of a process, if both exist.
fn open(pid: i64, fd: i32) -> Option<Open> {
    let process = Path::new("/proc").join(pid.to_string());
    let info = fs::read_to_string(process.join("fdinfo").join(fd.to_string())).ok()?;
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
    let file = fs::read_link(process.join("fd").join(fd.to_string())).ok()?;
    Some(Open {
        file: file.to_string_lossy().into(),
        closes: flags & OFlags::CLOEXEC.bits() != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    #[test]
    fn what_proc_says() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let held = File::open(file.path()).unwrap();
        let me = process::id();
        let fd = held.as_raw_fd();
        assert!(numbers(me).contains(&fd));
        let found = open(me.into(), fd).unwrap();
        assert_eq!(*found.file, *file.path().to_string_lossy());
        assert!(found.closes);
        drop(held);
        assert!(open(me.into(), i32::MAX).is_none());
        assert!(open(i64::MAX, 0).is_none());
    }
}
