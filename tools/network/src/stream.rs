// SPDX-License-Identifier: GPL-2.0

//! Stream sockets: Unix sockets within a machine, TCP between machines.

use crate::resolve::resolve;
use crate::security::{plain_tcp, Security};
use crate::trouble::Trouble;
use rustix::fs::Mode;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    connect, recv, send, shutdown, socket_with, AddressFamily, RecvFlags, SendFlags, Shutdown,
    SocketAddrUnix, SocketFlags, SocketType,
};
use rustix::process::geteuid;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use system::peer;

/// An address, as typed.
#[derive(Clone, Copy, Debug)]
pub enum Address<'a> {
    /// `HOST:PORT`.
    Tcp(&'a str),
    /// A path, which contains a `/`.
    Unix(&'a Path),
}

impl<'a> Address<'a> {
    /// The kind of this address.
    pub fn of(text: &'a str) -> Self {
        match text.contains('/') {
            true => Self::Unix(Path::new(text)),
            false => Self::Tcp(text),
        }
    }

    /// Refuses a protection that does not fit the address.
    pub fn check<T>(self, security: &Security<T>) -> Result<(), Trouble> {
        match (self, security) {
            (Self::Tcp(address), Security::Local) => Err(Trouble::lasting(plain_tcp(address))),
            (Self::Unix(_), Security::Tls(_)) => Err(Trouble::lasting(
                "a Unix socket needs no certificates: omit --ca, --cert and --key",
            )),
            _ => Ok(()),
        }
    }
}

/// A connected socket.
#[derive(Debug)]
pub struct StreamSocket {
    fd: OwnedFd,
    /// Whether it is a Unix socket.
    pub is_local: bool,
}

/// The other end of a connection, as far as limits tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerId {
    /// A machine, by its address or network.
    Machine(IpAddr),
    /// A user of this machine.
    User(u32),
}

impl StreamSocket {
    /// Connects to the Unix socket at a path.
    pub fn connect(path: &Path) -> io::Result<Self> {
        // A blocking connect would wait for a receiver whose queue is full.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&fd, &SocketAddrUnix::new(path)?)?;
        Ok(Self { fd, is_local: true })
    }

    /// Refuses the other end of a Unix socket unless that is root, or this process's user. The user of a
    /// listening socket is the one that called listen.
    pub fn check_user(&self) -> Result<(), Trouble> {
        if !self.is_local {
            return Ok(());
        }
        let user = socket_peercred(self).map_err(io::Error::from)?.uid;
        let own = geteuid();
        if user.is_root() || user == own {
            return Ok(());
        }
        Err(Trouble::lasting(format!(
            "the other side is user {}: only root and user {} are allowed",
            user.as_raw(),
            own.as_raw()
        )))
    }

    /// Another descriptor of the same connection.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            fd: self.fd.try_clone()?,
            is_local: self.is_local,
        })
    }

    /// Ends one direction or both, for all descriptors.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        Ok(shutdown(&self.fd, how)?)
    }
}

impl From<UnixStream> for StreamSocket {
    fn from(stream: UnixStream) -> Self {
        Self {
            fd: stream.into(),
            is_local: true,
        }
    }
}

impl From<TcpStream> for StreamSocket {
    fn from(stream: TcpStream) -> Self {
        Self {
            fd: stream.into(),
            is_local: false,
        }
    }
}

impl Read for &StreamSocket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        Ok(recv(&self.fd, bytes, RecvFlags::empty())?.0)
    }
}

impl Write for &StreamSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(&self.fd, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for StreamSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A listening socket.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix socket, and its path. The path is removed when this is dropped.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens at an address. The accepted connections are protected by `security`.
    pub fn bind<T>(address: &str, security: &Security<T>) -> io::Result<Self> {
        let address = Address::of(address);
        address.check(security)?;
        let listener = match address {
            Address::Tcp(address) => Self::Tcp(TcpListener::bind(&*resolve(address)?)?),
            Address::Unix(path) => Self::Unix(bind_unix(path)?, path.to_owned()),
        };
        match &listener {
            Self::Tcp(tcp) => tcp.set_nonblocking(true)?,
            Self::Unix(unix, _) => unix.set_nonblocking(true)?,
        }
        Ok(listener)
    }

    /// Accepts a connection. Returns its other end, and the name of that for messages.
    pub fn accept(&self) -> io::Result<(StreamSocket, PeerId, String)> {
        match self {
            Self::Tcp(tcp) => {
                let (stream, from) = tcp.accept()?;
                Ok((
                    stream.into(),
                    PeerId::Machine(peer::of(from.ip())),
                    from.to_string(),
                ))
            }
            Self::Unix(unix, _) => {
                let stream = StreamSocket::from(unix.accept()?.0);
                let peer = socket_peercred(&stream)?;
                let (user, process) = (peer.uid.as_raw(), peer.pid.as_raw_nonzero());
                let from = format!("user {user}, process {process}");
                Ok((stream, PeerId::User(user), from))
            }
        }
    }

    /// Address of the socket. Includes the port, even if the system chose it.
    pub fn address(&self) -> io::Result<String> {
        Ok(match self {
            Self::Tcp(tcp) => tcp.local_addr()?.to_string(),
            Self::Unix(_, path) => path.display().to_string(),
        })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(tcp) => tcp.as_fd(),
            Self::Unix(unix, _) => unix.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            // Otherwise the next receiver removes it.
            let _ = fs::remove_file(path);
        }
    }
}

/// Listens at a path, for this user and root. Replaces a socket at which no process listens any more.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let listener = match UnixListener::bind(path) {
        Err(e) if e.kind() == io::ErrorKind::AddrInUse && is_abandoned(path) => {
            fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        bound => bound?,
    };
    rustix::fs::chmod(path, Mode::RUSR | Mode::WUSR)?;
    Ok(listener)
}

fn is_abandoned(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    is_socket
        && StreamSocket::connect(path).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
}
