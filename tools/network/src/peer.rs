// SPDX-License-Identifier: GPL-2.0

//! A receiver's address, and the connection to it.

use crate::resolve::resolve;
use crate::stream::{Address, StreamSocket};
use crate::tls::{ClientTls, Credentials, ServerTls};
use crate::trouble::Trouble;
use crate::wire::Wire;
use std::fmt;
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::path::{absolute, PathBuf};
use std::time::Duration;

/// Time limit for an attempt to connect to one address.
const CONNECT: Duration = Duration::from_secs(5);

/// Protection of connections.
#[derive(Clone, Debug)]
pub enum Security<T> {
    /// By Unix sockets. The other end must be root or this process's user.
    Local,
    /// Without protection, because the user said so.
    Plain,
    /// By TLS.
    Tls(T),
}

impl Security<Credentials> {
    /// From the command line: either all three files of certificates, or none.
    pub fn new(
        ca: Option<PathBuf>,
        cert: Option<PathBuf>,
        key: Option<PathBuf>,
        plain: bool,
    ) -> Self {
        match (ca, cert, key) {
            (Some(ca), Some(cert), Some(key)) => Self::Tls(Credentials { ca, cert, key }),
            _ if plain => Self::Plain,
            _ => Self::Local,
        }
    }

    /// For the side that connects.
    pub fn client(&self) -> Result<Security<ClientTls>, String> {
        self.with(Credentials::client)
    }

    /// For the side that listens.
    pub fn server(&self) -> Result<Security<ServerTls>, String> {
        self.with(Credentials::server)
    }

    fn with<T>(
        &self,
        read: impl Fn(&Credentials) -> Result<T, String>,
    ) -> Result<Security<T>, String> {
        Ok(match self {
            Self::Local => Security::Local,
            Self::Plain => Security::Plain,
            Self::Tls(credentials) => Security::Tls(read(credentials)?),
        })
    }
}

/// A receiver.
#[derive(Clone, Debug)]
pub struct Peer {
    /// `HOST:PORT`, or the path of a Unix socket.
    address: String,
    security: Security<ClientTls>,
}

impl Peer {
    /// The receiver at `HOST:PORT`, or at the path of a Unix socket.
    pub fn new(address: String, security: Security<ClientTls>) -> Self {
        Self { address, security }
    }

    /// Connects to the first of its addresses that answers.
    pub fn connect(&self, stop: Option<OwnedFd>) -> Result<Wire, Trouble> {
        let address = Address::of(&self.address);
        address.check(&self.security)?;
        let addresses = match address {
            Address::Unix(path) => {
                let stream = StreamSocket::connect(path)?;
                stream.check_user()?;
                return Ok(Wire::plain(stream, stop)?);
            }
            Address::Tcp(address) => resolve(address)?,
        };
        let mut trouble = Trouble::passing("the name has no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => {
                    let mut wire = Wire::plain(stream.into(), stop)?;
                    self.protect(&mut wire)?;
                    return Ok(wire);
                }
                Err(error) => trouble = error.into(),
            }
        }
        Err(trouble)
    }

    fn protect(&self, wire: &mut Wire) -> Result<(), Trouble> {
        let Security::Tls(tls) = &self.security else {
            return Ok(());
        };
        let host = self.address.rsplit_once(':').map_or("", |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        wire.encrypt(tls.connection(host)?)
            .map_err(Trouble::of_greeting)
    }
}

/// The address as typed.
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address)
    }
}

/// Message for an unprotected TCP connection that the user did not request.
pub(crate) fn plain_tcp(address: &str) -> String {
    format!(
        "{address} is a TCP address: without certificates every user of this machine, and everybody on the way, \
         can read the trace and change it. Give --ca, --cert and --key for TLS, or the path of a Unix socket \
         within this machine; --plain accepts the risk"
    )
}

/// Makes a path in an address absolute, for a process that changes its directory.
pub fn absolute_address(address: String) -> io::Result<String> {
    match Address::of(&address) {
        Address::Unix(path) => Ok(absolute(path)?.display().to_string()),
        Address::Tcp(_) => Ok(address),
    }
}

/// Checks `HOST:PORT` or the path of a Unix socket. For the command line.
pub fn parse_address(text: &str) -> Result<String, String> {
    if matches!(Address::of(text), Address::Unix(_)) {
        return Ok(text.to_owned());
    }
    let port = text
        .rsplit_once(':')
        .map(|(host, port)| (host, port.parse::<u16>()));
    match port {
        Some((host, Ok(_))) if !host.is_empty() => Ok(text.to_owned()),
        _ => Err(
            "not HOST:PORT, such as collector:5344 or [::1]:5344, nor the PATH of a Unix socket, with a `/`"
                .to_owned(),
        ),
    }
}
