// SPDX-License-Identifier: GPL-2.0

//! A connection: bytes in both directions, plain or by TLS.
//!
//! On a plain TCP socket, splice moves packets. Otherwise they are copied: TLS encrypts them in memory. A Unix
//! socket would give the receiver the sender's pages, which the kernel overwrites when the sender dies.

use crate::message::Message;
use crate::socket::{Socket, GRACE};
use crate::stream::StreamSocket;
use crate::trouble::Trouble;
use rustix::event::PollFlags;
use rustix::fs::sendfile;
use rustix::net::sockopt::{set_socket_linger, set_tcp_user_timeout};
use rustix::net::{send, SendFlags, Shutdown};
use rustix::pipe::{splice, SpliceFlags};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Number of bytes to copy at a time.
const BLOCK: usize = 64 << 10;

/// A connection.
pub struct Wire {
    socket: Socket,
    tls: Option<Box<rustls::Connection>>,
    /// Buffer for copies.
    block: Vec<u8>,
}

impl Wire {
    /// A connection without encryption. `stop` becomes readable when the program is to stop.
    pub fn plain(stream: StreamSocket, stop: Option<OwnedFd>) -> io::Result<Self> {
        let block = if stream.is_local { BLOCK } else { 0 };
        Ok(Self {
            socket: Socket::new(stream, stop)?,
            tls: None,
            block: vec![0; block],
        })
    }

    /// Encrypts it: exchanges certificates, and checks the peer's.
    pub fn encrypt(&mut self, tls: impl Into<rustls::Connection>) -> io::Result<()> {
        let mut tls = Box::new(tls.into());
        while tls.is_handshaking() {
            tls.complete_io(&mut self.socket)?;
        }
        self.tls = Some(tls);
        self.block = vec![0; BLOCK];
        Ok(())
    }

    /// Whether it is a Unix socket.
    fn is_local(&self) -> bool {
        self.socket.stream.is_local
    }

    /// Refuses another user at the other end of a Unix socket.
    pub fn check_user(&self) -> Result<(), Trouble> {
        self.socket.stream.check_user()
    }

    /// Sends a message.
    pub fn say(&mut self, message: &Message) -> io::Result<()> {
        self.write_all(&message.to_bytes())?;
        self.flush()
    }

    /// Sends a message that is followed by more data.
    pub fn begin(&mut self, message: &Message) -> io::Result<()> {
        let mut bytes = &*message.to_bytes();
        if self.tls.is_some() {
            return self.write_all(bytes);
        }
        while !bytes.is_empty() {
            let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
            match send(&self.socket.stream, bytes, flags) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(e) => self.socket.wait_after(e, PollFlags::OUT)?,
            }
        }
        Ok(())
    }

    /// Sends the `left` bytes in `pipe`.
    pub fn send_pipe(&mut self, pipe: impl AsFd, mut left: usize) -> io::Result<()> {
        if self.tls.is_some() || self.is_local() {
            let mut block = mem::take(&mut self.block);
            let sent = self.send_copied(pipe, left, &mut block);
            self.block = block;
            return sent;
        }
        while left > 0 {
            match splice(
                &pipe,
                None,
                &self.socket.stream,
                None,
                left,
                SpliceFlags::MOVE,
            ) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => left -= sent,
                Err(e) => self.socket.wait_after(e, PollFlags::OUT)?,
            }
        }
        Ok(())
    }

    fn send_copied(
        &mut self,
        pipe: impl AsFd,
        mut left: usize,
        block: &mut [u8],
    ) -> io::Result<()> {
        while left > 0 {
            let most = block.len().min(left);
            let read = rustix::io::retry_on_intr(|| rustix::io::read(&pipe, &mut block[..most]))?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.write_all(&block[..read])?;
            left -= read;
        }
        self.flush()
    }

    /// Moves up to `most` received bytes into `pipe`, which must have room for them. Returns 0 at the
    /// connection's end.
    pub fn receive_into(&mut self, pipe: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
        if self.tls.is_some() {
            let mut block = mem::take(&mut self.block);
            let most = block.len().min(most);
            let read = self.read(&mut block[..most]);
            let written = read.and_then(|read| write_all(pipe, &block[..read]));
            self.block = block;
            return written;
        }
        loop {
            match splice(
                &self.socket.stream,
                None,
                pipe,
                None,
                most,
                SpliceFlags::MOVE,
            ) {
                Ok(moved) => return Ok(moved),
                Err(e) => self.socket.wait_after(e, PollFlags::IN)?,
            }
        }
    }

    /// Sends `left` bytes of a file, from `offset` on.
    pub fn send_file(&mut self, file: &File, offset: u64, left: u64) -> io::Result<()> {
        if self.tls.is_some() {
            let mut block = mem::take(&mut self.block);
            let sent = self.send_file_copied(file, offset, left, &mut block);
            self.block = block;
            return sent;
        }
        let (mut at, end) = (offset, offset + left);
        while at < end {
            let left = usize::try_from(end - at).unwrap_or(usize::MAX);
            match sendfile(&self.socket.stream, file, Some(&mut at), left) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(e) => self.socket.wait_after(e, PollFlags::OUT)?,
            }
        }
        Ok(())
    }

    fn send_file_copied(
        &mut self,
        file: &File,
        mut offset: u64,
        mut left: u64,
        block: &mut [u8],
    ) -> io::Result<()> {
        while left > 0 {
            let most = (block.len() as u64).min(left);
            let part = &mut block[..most as usize];
            file.read_exact_at(part, offset)?;
            self.write_all(part)?;
            offset += most;
            left -= most;
        }
        self.flush()
    }

    /// Sets the time limit for all further waits, even if the peer sends a little now and then. Without it,
    /// only the peer's silence is limited.
    pub fn set_deadline(&mut self, until: Option<Instant>) {
        self.socket.until = until;
    }

    /// From now on the peer may be silent for any time.
    pub fn let_be_silent(&mut self) {
        self.socket.is_patient = true;
    }

    /// From now on the peer may also stop to read. The kernel does not mistake that for an unreachable machine
    /// any more.
    pub fn be_patient(&mut self) -> io::Result<()> {
        self.let_be_silent();
        if !self.is_local() {
            set_tcp_user_timeout(&self.socket.stream, 0)?;
        }
        Ok(())
    }

    /// Whether the peer, which has nothing more to send, is still connected.
    pub fn is_open(&mut self) -> bool {
        let read = self.read_now(&mut [0; 64]);
        read.is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock)
    }

    /// Reads received bytes without a wait. [`io::ErrorKind::WouldBlock`] if there are none.
    pub fn read_now(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.socket.waits = false;
        let read = self.read(bytes);
        self.socket.waits = true;
        read
    }

    /// From now on a close drops unsent data, even if this program is killed: these are pages that the kernel
    /// overwrites then.
    pub fn forget_on_close(&self) -> io::Result<()> {
        if self.is_local() {
            return Ok(());
        }
        let now = Some(Duration::ZERO);
        Ok(set_socket_linger(&self.socket.stream, now)?)
    }

    /// Ends the connection after the last message. Waits until the peer has closed its side, so that data which
    /// the peer still sends does not make the kernel drop our last message.
    pub fn part(mut self) {
        let until = Instant::now() + GRACE;
        self.socket.stops = true;
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        let _ = self.flush();
        let _ = self.socket.stream.shutdown(Shutdown::Write);
        // On the stack: each thread has a heap of its own, which keeps the most memory that it ever used.
        let mut rest = [0; 4096];
        while Instant::now() < until && matches!(self.socket.read(&mut rest), Ok(1..)) {}
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.stream.as_fd()
    }
}

impl Read for Wire {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.socket.read(bytes);
        };
        loop {
            match tls.reader().read(bytes) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    tls.complete_io(&mut self.socket)?;
                }
                read => return read,
            }
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.socket.write(bytes);
        };
        let taken = tls.writer().write(bytes)?;
        self.flush()?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut self.socket)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire")
            .field("stream", &self.socket.stream)
            .field("is_encrypted", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}

/// Writes all bytes, and returns their number.
fn write_all(pipe: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let mut rest = bytes;
    while !rest.is_empty() {
        rest = &rest[rustix::io::retry_on_intr(|| rustix::io::write(pipe, rest))?..];
    }
    Ok(bytes.len())
}
