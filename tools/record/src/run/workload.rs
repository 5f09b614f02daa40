// SPDX-License-Identifier: GPL-2.0

//! The recorded workload: a command, or the time until a signal, with the conditions meanwhile.

use crate::exit::Code;
use crate::run::condition::{Conditions, Happened};
use crate::run::watch::Watch;
use crate::session::tasks::Ends;
use anyhow::Context;
use rustix::event::{eventfd, poll, EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::fs::{accessat, Access, AtFlags, CWD};
use rustix::io::Errno;
use rustix::process::{getpgrp, kill_process, pidfd_open, Pid, PidfdFlags, Signal};
use rustix::termios::tcgetpgrp;
use std::collections::VecDeque;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::Instant;
use system::signals::Signals;
use terminal::tell;

/// A running command, or the passing time, with the conditions that may occur meanwhile.
#[derive(Debug)]
pub struct Run<'a> {
    command: Option<Running>,
    /// Whether the user asked the command to end, by a signal.
    is_interrupted: bool,
    signals: Signals,
    /// Received signals that are not handled yet.
    pending: VecDeque<i32>,
    /// Whether a condition was reported after the end became due. The end is reported next.
    is_ending: bool,
    conditions: &'a Conditions,
    watch: Watch,
    /// The processes whose ends are the end of the run, without a command.
    ends: Option<Ends>,
    /// Time at which the recording ends. `None` once it is reported.
    deadline: Option<Instant>,
}

/// A command that runs.
#[derive(Debug)]
struct Running {
    child: Child,
    pid: Pid,
    /// Readable when the command has ended.
    ended: OwnedFd,
}

/// Makes a descriptor that never becomes readable, because no code writes to it.
pub fn never() -> anyhow::Result<OwnedFd> {
    eventfd(0, EventfdFlags::CLOEXEC).context("eventfd")
}

/// Event of a run.
#[derive(Debug)]
pub enum RunEvent {
    /// The run is over: the command has ended or is left alone, or the user ended the run.
    Ended(Code),
    /// A condition occurred. The run continues.
    Happened(Happened),
}

impl<'a> Run<'a> {
    /// Begins a run, with a command if there is one. Without a command, the run ends with the processes of `ends`.
    pub fn new(
        child: Option<Child>,
        signals: Signals,
        conditions: &'a Conditions,
        watch: Watch,
        ends: Option<Ends>,
    ) -> anyhow::Result<Self> {
        let ends = ends.filter(|_| child.is_none());
        let command = child.map(Running::new).transpose();
        Ok(Self {
            command: command.context("cannot wait for the command")?,
            is_interrupted: false,
            signals,
            pending: VecDeque::new(),
            is_ending: false,
            conditions,
            watch,
            ends,
            deadline: conditions
                .duration
                .and_then(|time| Instant::now().checked_add(time)),
        })
    }

    /// The condition for a command that ended with `code`, if there is one. A command that the user interrupted has not
    /// failed.
    pub fn failure(&self, code: Code) -> Option<Happened> {
        self.conditions
            .failure(code)
            .filter(|_| !self.is_interrupted)
    }

    /// Waits for the command's end, whatever the conditions, unless it has `ended`. Returns the exit code: 0 if there is
    /// no command.
    pub fn code(&mut self, ended: Option<Code>) -> anyhow::Result<Code> {
        if let Some(code) = ended {
            return Ok(code);
        }
        self.watch.end();
        self.deadline = None;
        let Some(command) = &mut self.command else {
            return Ok(0);
        };
        let ended = command.child.try_wait();
        if let Some(status) = ended.context("cannot wait for the command")? {
            return Ok(code(status));
        }
        tell("waiting for the command");
        let never = never()?;
        loop {
            if let RunEvent::Ended(code) = self.next(&never)? {
                return Ok(code);
            }
        }
    }

    /// Waits for the next event. A run without a command ends by a signal, with the chosen processes, or when `over`
    /// hangs up. A run with a command forwards signals to the command, and leaves it alone at the second signal.
    pub fn next(&mut self, over: impl AsFd) -> anyhow::Result<RunEvent> {
        loop {
            // No descriptor shows the end of a process that ended before the recording began.
            let are_over = self.ends.as_mut().is_some_and(Ends::are_over);
            let end = match &self.command {
                Some(command) => command.ended.as_fd(),
                None => over.as_fd(),
            };
            let fds = [end, self.signals.as_fd()].into_iter();
            let fds = fds.chain(self.watch.fds());
            let fds = fds.chain(self.ends.iter().flat_map(Ends::fds));
            let mut fds: Vec<_> = fds
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                .collect();
            if self.pending.is_empty() && !are_over {
                let left = self
                    .deadline
                    .map(|end| end.saturating_duration_since(Instant::now()));
                // A time that does not fit into a timespec never ends.
                let left = left.and_then(|left| Timespec::try_from(left).ok());
                rustix::io::retry_on_intr(|| poll(&mut fds, left.as_ref()))
                    .context("cannot wait for the end of the recording")?;
            }
            let is_over =
                !fds[0].revents().is_empty() || self.ends.as_mut().is_some_and(Ends::are_over);
            self.pending.extend(self.signals.pending());
            let is_end_due = is_over || !self.pending.is_empty();
            // Conditions first: they occurred before the end. But only once, because a condition may occur all the
            // time.
            let is_told = is_end_due && self.is_ending;
            self.is_ending = is_end_due && !is_told;
            if !is_told {
                if let Some(happened) = self.watch.look(self.conditions, is_over)? {
                    return Ok(RunEvent::Happened(happened));
                }
            }
            if !is_end_due && self.deadline.is_some_and(|end| end <= Instant::now()) {
                self.deadline = None;
                return Ok(RunEvent::Happened(Happened::End(
                    "the time of --duration has passed".to_owned(),
                )));
            }
            while let Some(number) = self.pending.pop_front() {
                if let Some(happened) = self.conditions.signal(number) {
                    return Ok(RunEvent::Happened(happened));
                }
                match &mut self.command {
                    None => return Ok(RunEvent::Ended(0)),
                    Some(_) if self.is_interrupted => {
                        self.command = None;
                        return Ok(RunEvent::Ended(128 + number as u8));
                    }
                    Some(command) => {
                        self.is_interrupted = true;
                        command.ask(number).context("cannot send a signal")?;
                    }
                }
            }
            if is_over {
                let status = self.command.take().map(|mut command| command.child.wait());
                let status = status.transpose().context("cannot wait for the command")?;
                return Ok(RunEvent::Ended(status.map_or(0, code)));
            }
        }
    }
}

impl Running {
    fn new(child: Child) -> io::Result<Self> {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(Errno::SRCH)?;
        Ok(Self {
            child,
            pid,
            ended: pidfd_open(pid, PidfdFlags::empty())?,
        })
    }

    /// Forwards a signal to the command.
    fn ask(&self, number: i32) -> io::Result<()> {
        let Some(signal) = Signal::from_named_raw(number) else {
            return Ok(());
        };
        // The terminal sends its signals to all processes in its foreground. The command has received them too.
        let of_terminal = matches!(signal, Signal::INT | Signal::QUIT | Signal::HUP);
        if of_terminal && in_foreground() {
            return Ok(());
        }
        match kill_process(self.pid, signal) {
            // The command has ended meanwhile.
            Err(Errno::SRCH) => Ok(()),
            sent => Ok(sent?),
        }
    }
}

/// Looks for a program where execvp(3) would, without running it.
pub fn find(program: &OsStr) -> io::Result<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return can_run(program.into());
    }
    let mut error = io::Error::from(Errno::NOENT);
    if program.is_empty() {
        return Err(error);
    }
    let dirs = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    for dir in env::split_paths(&dirs) {
        match can_run(dir.join(program)) {
            Ok(program) => return Ok(program),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => error = e,
            Err(_) => {}
        }
    }
    Err(error)
}

fn can_run(path: PathBuf) -> io::Result<PathBuf> {
    if fs::metadata(&path)?.is_dir() {
        return Err(Errno::ACCESS.into());
    }
    accessat(CWD, &path, Access::EXEC_OK, AtFlags::EACCESS)?;
    Ok(path)
}

/// The exit code for a failure to run the command, as in a shell.
pub fn spawn_code(error: &io::Error) -> Code {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => 127,
        _ => 126,
    }
}

fn code(status: ExitStatus) -> Code {
    let code = status.code();
    let code = code.or(status.signal().map(|signal| 128 + signal));
    code.unwrap_or(1) as u8
}

/// Whether the terminal sends its signals to this process group.
fn in_foreground() -> bool {
    File::open("/dev/tty").is_ok_and(|tty| tcgetpgrp(&tty).is_ok_and(|group| group == getpgrp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_execvp_finds_them() {
        let code = |program: &str| find(OsStr::new(program)).map_err(|error| spawn_code(&error));
        assert_eq!(
            (code("true").is_ok(), code("/bin/sh").is_ok()),
            (true, true)
        );
        for missing in ["", "no such command", "/nonexistent", "/dev/null/sh"] {
            assert_eq!(code(missing), Err(127), "{missing}");
        }
        // A directory, and a file that no user may execute.
        for bad in ["/", "/proc/self/status"] {
            assert_eq!(code(bad), Err(126), "{bad}");
        }
    }
}
