// SPDX-License-Identifier: GPL-2.0

//! Signals as file descriptors, so that a program can finish a trace properly.

use crate::error::{Error, Result};
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::low_level::pipe;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

/// The signals that ask a program to end, caught from now on.
#[derive(Debug)]
pub struct Signals {
    pipes: Vec<(i32, UnixStream)>,
    wake: UnixStream,
}

impl Signals {
    /// Catches SIGINT, SIGTERM, SIGHUP (which nohup may have switched off) and the other signals that would end the
    /// process in the middle of its work. Makes a file-size limit (SIGXFSZ) an error like a full disk.
    pub fn catch() -> Result<Self> {
        Self::try_catch().map_err(Error::system("cannot catch signals"))
    }

    fn try_catch() -> io::Result<Self> {
        signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let mut pipes = Vec::new();
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2] {
            if signal == SIGHUP && is_ignored(signal) {
                continue;
            }
            let (reader, writer) = UnixStream::pair()?;
            reader.set_nonblocking(true)?;
            // Writes to the signal's own pipe first: a woken thread finds the signal there.
            pipe::register(signal, writer)?;
            pipe::register(signal, waker.try_clone()?)?;
            pipes.push((signal, reader));
        }
        Ok(Self { pipes, wake })
    }

    /// The signals that came since the last call.
    pub fn pending(&mut self) -> Vec<i32> {
        drain(&mut self.wake);
        self.pipes
            .iter_mut()
            .filter_map(|(signal, pipe)| drain(pipe).then_some(*signal))
            .collect()
    }
}

impl AsFd for Signals {
    /// Readable when a signal is pending.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// Returns whether the parent process set the signal to be ignored.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| (mask >> (signal - 1)) & 1 == 1)
}

/// Empties a pipe. Returns whether it held anything.
fn drain(pipe: &mut UnixStream) -> bool {
    let mut any = false;
    let mut buffer = [0; 64];
    while pipe.read(&mut buffer).is_ok_and(|n| n > 0) {
        any = true;
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_told_once() {
        let mut signals = Signals::catch().unwrap();
        assert_eq!(signals.pending(), []);
        signal_hook::low_level::raise(SIGTERM).unwrap();
        assert_eq!(signals.pending(), [SIGTERM]);
        assert_eq!(signals.pending(), []);
        // Rust's runtime ignores it.
        assert!(is_ignored(signal_hook::consts::SIGPIPE));
        assert!(!is_ignored(SIGTERM));
    }
}
