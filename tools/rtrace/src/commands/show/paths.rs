// SPDX-License-Identifier: GPL-2.0

//! Which files descriptors stand for: from the events, and while a trace is recorded also from /proc.
//!
//! An event is looked at after it happened: what /proc says then may be of a later file with the same
//! descriptor. So it is said of later events only, and only if none between shows that the descriptor was
//! closed or replaced.

use crate::session::maker::Maker;
use analysis::descriptors::Descriptors;
use analysis::schedule::Schedule;
use analysis::schedule_events::Switch;
use analysis::whose::Owner;
use analysis::{Catalogue, EventKey, Moment};
use ctf::{Clock, Event};
use rustix::fs::OFlags;
use std::fs;
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// By so much the trace's clock may be behind that of the system, by which it was set once: nanoseconds.
const BEHIND: i128 = 100_000_000;

/// What knows of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sources {
    /// Nothing: of the calls that matter some are left out.
    None,
    /// The events.
    #[default]
    Events,
    /// The events, and /proc: they happen meanwhile on this machine.
    EventsAndProc,
}

/// The files of descriptors.
pub struct Paths {
    descriptors: Descriptors,
    /// The trace's clock, if /proc can say what the events do not.
    live: Option<Clock>,
}

/// What /proc says of a descriptor.
struct Open {
    file: Arc<str>,
    /// Whether it is closed when another program is executed.
    closes: bool,
}

impl Paths {
    /// Of a trace, from there; none if it lacks what it takes.
    pub fn new(catalogue: &Catalogue<'_>, sources: Sources) -> Option<Self> {
        if sources == Sources::None {
            return None;
        }
        let mut descriptors = Descriptors::sure(catalogue)?;
        // Else the numbers of processes are others here.
        let live = sources == Sources::EventsAndProc
            && Maker::me().is_ok_and(Maker::is_in_first_namespace);
        if live {
            let me = process::id();
            let numbers = numbers(me).into_iter();
            let open = numbers.filter_map(|fd| Some((fd, open(me.into(), fd)?)));
            // What a command gets. (What is closed then, rtrace opens and closes at all times.)
            for (fd, open) in open.filter(|(_, open)| !open.closes) {
                descriptors.found(Owner::Process(me.into()), fd, 0, open.file, open.closes);
            }
        }
        Some(Self {
            descriptors,
            live: live.then(|| catalogue.metadata().clock),
        })
    }

    /// The events that they are made from. Each is known by its place in this list.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.descriptors.events()
    }

    /// One of these events.
    pub fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        self.descriptors.event(which, event, now);
    }

    /// A CPU has switched.
    pub fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.descriptors.switch(switch, now);
    }

    /// Events may be missing on a CPU from here on.
    pub fn lost(&mut self, schedule: &Schedule) {
        self.descriptors.lost(schedule);
    }

    /// The file of a descriptor at this time, that of the last event.
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

/// Nanoseconds since the epoch.
fn now() -> i128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| i128::try_from(now.as_nanos()).unwrap_or(i128::MAX))
}

/// The descriptors that a process has.
fn numbers(pid: u32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    let entries = entries.into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// A descriptor of a process, if both are there.
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
