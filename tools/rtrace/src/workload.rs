// SPDX-License-Identifier: GPL-2.0

//! What is recorded: a command, or the time until a signal.

use rustix::event::{poll, PollFd, PollFlags};
use rustix::fs::{accessat, Access, AtFlags, CWD};
use rustix::io::Errno;
use rustix::process::{getpgrp, kill_process, pidfd_open, Pid, PidfdFlags, Signal};
use rustix::termios::tcgetpgrp;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use trace::signals::Signals;

/// How a command ended, as a shell would put it.
pub type Code = u8;

/// Waits for a signal that asks to end, or until `over` hangs up.
pub fn until_signal(signals: &mut Signals, over: impl AsFd) -> io::Result<()> {
    loop {
        let mut fds = [
            PollFd::new(&*signals, PollFlags::IN),
            PollFd::new(&over, PollFlags::IN),
        ];
        rustix::io::retry_on_intr(|| poll(&mut fds, None))?;
        let is_over = !fds[1].revents().is_empty();
        if is_over || !signals.pending().is_empty() {
            return Ok(());
        }
    }
}

/// Looks for a program where execvp(3) would, without running it.
pub fn find(program: &OsStr) -> io::Result<()> {
    if program.as_bytes().contains(&b'/') {
        return can_run(Path::new(program));
    }
    let mut error = io::Error::from(Errno::NOENT);
    if program.is_empty() {
        return Err(error);
    }
    let dirs = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    for dir in env::split_paths(&dirs) {
        match can_run(&dir.join(program)) {
            Ok(()) => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => error = e,
            Err(_) => {}
        }
    }
    Err(error)
}

fn can_run(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_dir() {
        return Err(Errno::ACCESS.into());
    }
    Ok(accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)?)
}

/// Waits for a command's end. Signals go on to it; at the second one it is left alone and
/// the recording ends.
pub fn until_end(mut child: Child, signals: &mut Signals) -> io::Result<Code> {
    let mut seen = 0;
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return wait(&mut child);
    };
    let ended = pidfd_open(pid, PidfdFlags::empty())?;
    loop {
        let mut fds = [
            PollFd::new(&ended, PollFlags::IN),
            PollFd::new(&*signals, PollFlags::IN),
        ];
        rustix::io::retry_on_intr(|| poll(&mut fds, None))?;
        if !fds[0].revents().is_empty() {
            return wait(&mut child);
        }
        for number in signals.pending() {
            seen += 1;
            if seen > 1 {
                return Ok(128 + number as u8);
            }
            let Some(signal) = Signal::from_named_raw(number) else {
                continue;
            };
            // What comes from the terminal has reached the command too, in its foreground.
            let of_terminal = matches!(signal, Signal::INT | Signal::QUIT | Signal::HUP);
            if !(of_terminal && in_foreground()) {
                kill_process(pid, signal)?;
            }
        }
    }
}

/// What a failure to run the command is, as a shell would put it.
pub fn spawn_code(error: &io::Error) -> Code {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => 127,
        _ => 126,
    }
}

fn wait(child: &mut Child) -> io::Result<Code> {
    let status = child.wait()?;
    let code = status
        .code()
        .or(status.signal().map(|signal| 128 + signal))
        .unwrap_or(1);
    Ok(code as u8)
}

/// Whether this process group is the one that the terminal sends its signals to.
fn in_foreground() -> bool {
    File::open("/dev/tty").is_ok_and(|tty| tcgetpgrp(&tty).is_ok_and(|group| group == getpgrp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_execvp_finds_them() {
        let code = |program: &str| find(OsStr::new(program)).map_err(|error| spawn_code(&error));
        assert_eq!((code("true"), code("/bin/sh")), (Ok(()), Ok(())));
        for missing in ["", "no such command", "/nonexistent", "/dev/null/sh"] {
            assert_eq!(code(missing), Err(127), "{missing}");
        }
        // A directory, and a file that nobody may execute.
        for bad in ["/", "/proc/self/status"] {
            assert_eq!(code(bad), Err(126), "{bad}");
        }
    }
}
