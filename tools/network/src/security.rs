// SPDX-License-Identifier: GPL-2.0

//! The protection of connections.

use crate::tls::{ClientTls, Credentials, ServerTls};
use std::path::PathBuf;

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

/// Message for an unprotected TCP connection that the user did not request.
pub(crate) fn plain_tcp(address: &str) -> String {
    format!(
        "{address} is a TCP address: without certificates every user of this machine, and everybody on the way, \
         can read the trace and change it. Give --ca, --cert and --key for TLS, or the path of a Unix socket \
         within this machine; --plain accepts the risk"
    )
}
