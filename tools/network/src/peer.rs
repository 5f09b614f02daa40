// SPDX-License-Identifier: GPL-2.0

//! A receiver's address, and the connection to it.

use crate::resolve::resolve;
use crate::security::Security;
use crate::stream::{Address, StreamSocket};
use crate::tls::ClientTls;
use crate::trouble::Trouble;
use crate::wire::Wire;
use std::fmt;
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::path::absolute;
use std::time::Duration;

/// Time limit for an attempt to connect to one address.
const CONNECT: Duration = Duration::from_secs(5);

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
