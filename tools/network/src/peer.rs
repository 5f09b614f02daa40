// SPDX-License-Identifier: GPL-2.0

//! Where a receiver is, and how to reach it.

use crate::tls::{ClientTls, Credentials, ServerTls};
use crate::trouble::Trouble;
use crate::wire::Wire;
use std::fmt;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

/// How long one address may take to answer.
const CONNECT: Duration = Duration::from_secs(5);

/// How connections are protected.
#[derive(Clone, Debug)]
pub enum Security<T> {
    /// Not at all, within one machine.
    Loopback,
    /// Not at all, by the user's word.
    Plain,
    /// By TLS.
    Tls(T),
}

impl Security<Credentials> {
    /// As the user wants it: files of certificates, all three or none, or none by his word.
    pub fn new(
        ca: Option<PathBuf>,
        cert: Option<PathBuf>,
        key: Option<PathBuf>,
        plain: bool,
    ) -> Self {
        match (ca, cert, key) {
            (Some(ca), Some(cert), Some(key)) => Self::Tls(Credentials { ca, cert, key }),
            _ if plain => Self::Plain,
            _ => Self::Loopback,
        }
    }

    /// For who connects.
    pub fn client(&self) -> Result<Security<ClientTls>, String> {
        self.with(Credentials::client)
    }

    /// For who listens.
    pub fn server(&self) -> Result<Security<ServerTls>, String> {
        self.with(Credentials::server)
    }

    fn with<T>(
        &self,
        read: impl Fn(&Credentials) -> Result<T, String>,
    ) -> Result<Security<T>, String> {
        Ok(match self {
            Self::Loopback => Security::Loopback,
            Self::Plain => Security::Plain,
            Self::Tls(credentials) => Security::Tls(read(credentials)?),
        })
    }
}

/// A receiver.
#[derive(Clone, Debug)]
pub struct Peer {
    /// `HOST:PORT`.
    address: String,
    security: Security<ClientTls>,
}

impl Peer {
    /// The receiver at `HOST:PORT`.
    pub fn new(address: String, security: Security<ClientTls>) -> Self {
        Self { address, security }
    }

    /// Connects to it, at the first of its addresses that answers.
    pub fn connect(&self, stop: Option<OwnedFd>) -> Result<Wire, Trouble> {
        let addresses = self.address.to_socket_addrs()?;
        let mut trouble = Trouble::passing("it has no address");
        for address in addresses {
            match self.reach(&address) {
                Ok(stream) => {
                    let mut wire = Wire::plain(stream, stop)?;
                    self.protect(&mut wire)?;
                    return Ok(wire);
                }
                Err(error) => trouble = error,
            }
        }
        Err(trouble)
    }

    fn reach(&self, address: &SocketAddr) -> Result<TcpStream, Trouble> {
        if matches!(self.security, Security::Loopback) && !address.ip().is_loopback() {
            return Err(Trouble::lasting(not_loopback(address)));
        }
        Ok(TcpStream::connect_timeout(address, CONNECT)?)
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

/// As typed.
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address)
    }
}

/// Why nothing goes to another machine unprotected.
pub(crate) fn not_loopback(address: &SocketAddr) -> String {
    format!(
        "{address} is not on this machine alone: give --ca, --cert and --key for TLS, or --plain to go \
         without"
    )
}

/// Checks `HOST:PORT`, for the command line.
pub fn parse_address(text: &str) -> Result<String, String> {
    let port = text
        .rsplit_once(':')
        .map(|(host, port)| (host, port.parse::<u16>()));
    match port {
        Some((host, Ok(_))) if !host.is_empty() => Ok(text.to_owned()),
        _ => Err("not HOST:PORT, such as collector:5344 or [::1]:5344".to_owned()),
    }
}
