// SPDX-License-Identifier: GPL-2.0

//! What is recorded: a command, or the time until a signal.

use rustix::event::{poll, PollFd, PollFlags};
use rustix::process::{getpgrp, kill_process, pidfd_open, Pid, PidfdFlags, Signal};
use rustix::termios::tcgetpgrp;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
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

/// Runs a command to its end. Signals go on to it; at the second one it is left alone and
/// the recording ends.
pub fn run(program: &OsString, arguments: &[OsString], signals: &mut Signals) -> io::Result<Code> {
    let mut child = Command::new(program).args(arguments).spawn()?;
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
            // Ctrl-C has reached the command already: it is in the terminal's foreground too.
            if signal == Signal::TERM || !in_foreground() {
                kill_process(pid, signal)?;
            }
        }
    }
}

/// What a failure to run the command is, as a shell would put it.
pub fn spawn_code(error: &io::Error) -> Code {
    match error.kind() {
        io::ErrorKind::NotFound => 127,
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
