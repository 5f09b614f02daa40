// SPDX-License-Identifier: GPL-2.0

//! Choice of the tasks whose events are recorded.

use crate::session::cgroup;
use crate::session::given::Given;
use crate::session::maker::Maker;
use anyhow::{ensure, Context};
use control::Session;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{pidfd_open, Pid, PidfdFlags};
use rustix::thread::gettid;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread;
use system::files;

/// Choice of the user. The default is all tasks.
#[derive(Debug, Default)]
pub struct Tasks {
    /// Processes: all their threads, and the processes that they start.
    pub pids: Option<Given<Vec<u32>>>,
    /// Cgroups, as the user named them.
    pub cgroups: Option<Given<Vec<String>>>,
    /// Set if the command and the processes that it starts are chosen.
    pub only_command: Option<Given<()>>,
}

impl Tasks {
    /// Processes from the command line, or only the command. Without either: all tasks.
    pub fn new(pids: &[u32], is_only_command: bool) -> Self {
        Self {
            pids: (!pids.is_empty()).then(|| pids.to_vec().into()),
            cgroups: None,
            only_command: is_only_command.then(|| ().into()),
        }
    }

    /// Whether the session's sets of tasks stay as they are.
    pub fn is_none(&self) -> bool {
        self.pids.is_none() && self.cgroups.is_none() && self.only_command.is_none()
    }

    /// Replaces the choice by the one in `typed`.
    pub fn override_with(&mut self, typed: Self) {
        self.pids = typed.pids.or(self.pids.take());
        self.cgroups = typed.cgroups.or(self.cgroups.take());
        self.only_command = typed.only_command.or(self.only_command.take());
    }

    /// Applies the choice to the session.
    pub fn apply(&self, session: &Session) -> anyhow::Result<()> {
        if let Some(given) = &self.cgroups {
            let paths = given.used(cgroup::paths(&given.value))?;
            given.used(session.set_cgroups(&paths))?;
        }
        if self.pids.is_some() || self.only_command.is_some() {
            check_namespace()?;
        }
        let mut tasks = Vec::new();
        for (given, pid) in self.pids() {
            let threads = threads(pid);
            tasks.extend(
                given.used(threads.with_context(|| format!("process {pid} does not exist")))?,
            );
        }
        if self.only_command.is_some() {
            // Placeholder until the command starts.
            tasks.push(idle_thread().context("cannot start a thread")?);
        }
        if !tasks.is_empty() {
            session.follow_tasks(true)?;
            session.set_tasks(&tasks)?;
        }
        Ok(())
    }

    fn pids(&self) -> impl Iterator<Item = (&Given<Vec<u32>>, u32)> {
        let given = self.pids.iter();
        given.flat_map(|given| given.value.iter().map(move |pid| (given, *pid)))
    }

    /// The ends of the chosen processes; none if no process was chosen.
    pub fn ends(&self) -> anyhow::Result<Option<Ends>> {
        let chosen = self.pids.as_ref();
        chosen.map(|given| Ends::of(&given.value)).transpose()
    }

    /// Runs a command. If only the command is recorded, its events and those of its children are recorded.
    pub fn spawn(&self, session: &Session, mut command: Command) -> io::Result<Child> {
        if self.only_command.is_none() {
            return run(command);
        }
        let mut tasks = Vec::new();
        for (_, pid) in self.pids() {
            tasks.extend(threads(pid).unwrap_or_default());
        }
        // A thread of its own: the process that it forks is recorded, and then the thread ends. Calls that change the
        // limit are not in the trace, because another thread makes them.
        files::with_usual_limit(|| {
            thread::scope(|scope| {
                let spawning = scope.spawn(|| {
                    tasks.push(own_thread());
                    session.set_tasks(&tasks).map_err(io::Error::other)?;
                    command.spawn()
                });
                spawning
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
            })
        })
    }
}

/// Fails outside the first PID namespace. The kernel's events have the ids of the first one, and they are
/// unknown in other namespaces.
pub fn check_namespace() -> anyhow::Result<()> {
    ensure!(
        Maker::me()?.is_in_first_namespace(),
        "rtrace runs in a PID namespace and cannot find the kernel's ids of its processes: run rtrace outside the namespace, or record all processes"
    );
    Ok(())
}

/// File descriptors that show the ends of some processes.
#[derive(Debug)]
pub struct Ends(Vec<OwnedFd>);

impl Ends {
    /// Opens descriptors of the processes with these ids. A process that does not exist has ended.
    pub fn of(pids: &[u32]) -> anyhow::Result<Self> {
        let pids = pids
            .iter()
            .filter_map(|pid| Pid::from_raw((*pid).try_into().ok()?));
        let ends = pids.map(|pid| pidfd_open(pid, PidfdFlags::empty()));
        let ends = ends.filter(|opened| !matches!(opened, Err(Errno::SRCH)));
        let ends: Result<_, Errno> = ends.collect();
        Ok(Self(ends.context("cannot wait for the end of a process")?))
    }

    /// Readable when one of the processes may have ended.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().map(AsFd::as_fd)
    }

    /// Whether all of the processes have ended.
    pub fn are_over(&mut self) -> bool {
        let has_ended = |process: &OwnedFd| {
            let mut ended = [PollFd::new(process, PollFlags::IN)];
            matches!(poll(&mut ended, Some(&Timespec::default())), Ok(1..))
        };
        self.0.retain(|process| !has_ended(process));
        self.0.is_empty()
    }
}

/// Runs a command with the usual limits.
pub fn run(mut command: Command) -> io::Result<Child> {
    files::with_usual_limit(|| command.spawn())
}

/// The id of a thread that does nothing while this process runs. The set of tasks has this id if no task is chosen,
/// because an empty set stands for all tasks.
fn idle_thread() -> io::Result<u32> {
    let (say, said) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        let _ = say.send(own_thread());
        loop {
            thread::park();
        }
    })?;
    said.recv().map_err(io::Error::other)
}

fn own_thread() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}

/// The threads that a process has now.
pub fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(names.collect())
}
