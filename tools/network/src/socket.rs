// SPDX-License-Identifier: GPL-2.0

//! The socket of a connection.
//!
//! It never blocks. Readers and writers wait here: for the time of the peer's patience at most, and only for a
//! short time after a signal to stop.

use crate::stream::StreamSocket;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::ioctl_fionbio;
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_nodelay,
    set_tcp_user_timeout,
};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Maximum time of silence of a peer that must send something.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Maximum time without an acknowledgement of sent data by the other machine's kernel.
const UNREACHABLE: Duration = Duration::from_secs(15);

/// Time of silence after which a keepalive probe is sent to the other machine's kernel.
const ASK_AFTER: Duration = Duration::from_secs(10);

/// Maximum time for unfinished work after a signal to stop.
pub const GRACE: Duration = Duration::from_secs(5);

/// A socket for reading and writing.
pub struct Socket {
    pub stream: StreamSocket,
    /// Readable when the program is to stop.
    stop: Option<OwnedFd>,
    /// Whether it is readable.
    pub stops: bool,
    /// Whether the peer may be silent for any time.
    pub is_patient: bool,
    /// Time limit for all further waits, even if the peer is not silent.
    pub until: Option<Instant>,
    /// Whether to wait at all.
    pub waits: bool,
}

impl Socket {
    /// Makes the socket non-blocking. The kernel gives up a peer that is unreachable.
    pub fn new(stream: StreamSocket, stop: Option<OwnedFd>) -> io::Result<Self> {
        ioctl_fionbio(&stream, true)?;
        if !stream.is_local {
            set_tcp_nodelay(&stream, true)?;
            let milliseconds = UNREACHABLE.as_millis() as u32;
            set_tcp_user_timeout(&stream, milliseconds)?;
            set_socket_keepalive(&stream, true)?;
            set_tcp_keepidle(&stream, ASK_AFTER)?;
            set_tcp_keepintvl(&stream, ASK_AFTER / 2)?;
            set_tcp_keepcnt(&stream, 3)?;
        }
        Ok(Self {
            stream,
            stop,
            stops: false,
            is_patient: false,
            until: None,
            waits: true,
        })
    }

    /// Handles an error of an operation: waits until it can be repeated, if it can.
    pub fn wait_after(&mut self, error: impl Into<io::Error>, events: PollFlags) -> io::Result<()> {
        let error = error.into();
        match error.kind() {
            io::ErrorKind::Interrupted => Ok(()),
            io::ErrorKind::WouldBlock if self.waits => self.wait(events),
            _ => Err(error),
        }
    }

    fn wait(&mut self, events: PollFlags) -> io::Result<()> {
        let began = Instant::now();
        loop {
            let patience = match self.stops {
                true => Some(GRACE),
                false => Some(PATIENCE).filter(|_| !self.is_patient),
            };
            let silence = patience.map(|time| time.saturating_sub(began.elapsed()));
            let rest = self
                .until
                .map(|at| at.saturating_duration_since(Instant::now()));
            let left = silence.into_iter().chain(rest).min().map(timespec);
            let stop = self.stop.as_ref().filter(|_| !self.stops);
            let mut fds = vec![PollFd::new(&self.stream, events)];
            fds.extend(stop.map(|stop| PollFd::new(stop, PollFlags::IN)));
            match poll(&mut fds, left.as_ref()) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            if !fds[0].revents().is_empty() {
                return Ok(());
            }
            self.stops |= fds.get(1).is_some_and(|stop| !stop.revents().is_empty());
        }
    }
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match (&self.stream).read(bytes) {
                Err(e) => self.wait_after(e, PollFlags::IN)?,
                read => return read,
            }
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match (&self.stream).write(bytes) {
                Err(e) => self.wait_after(e, PollFlags::OUT)?,
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Converts a duration to the kernel's form.
pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    #[test]
    fn who_says_a_little_now_and_then_is_not_waited_for_for_ever() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut socket = Socket::new(listener.accept().unwrap().0.into(), None).unwrap();
        socket.until = Some(Instant::now() + Duration::from_millis(100));
        let drops = thread::spawn(move || {
            while peer.write_all(&[0]).is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
        });
        let error = socket.read_exact(&mut [0; 1 << 16]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(socket);
        drops.join().unwrap();
    }
}
