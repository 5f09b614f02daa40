// SPDX-License-Identifier: GPL-2.0

//! The destination of a trace: a directory or a receiver.

use crate::peer::Peer;
use crate::security::Security;
use crate::sender::{Retry, Sender};
use crate::tls::{ClientTls, Credentials};
use crate::Notice;
use consumer::Sink;
use ctf::StreamName;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use store::OutputOptions;
use system::{Error, Result};
use uuid::Uuid;

/// The destination of a trace.
#[derive(Debug)]
pub enum Destination {
    /// A directory.
    Directory(Directory),
    /// A receiver (`rtraced --listen`).
    Receiver {
        /// `HOST:PORT`.
        address: String,
        /// Protection of the connection.
        security: Security<Credentials>,
    },
}

/// A directory for traces.
#[derive(Debug)]
pub struct Directory {
    /// Its path.
    pub path: PathBuf,
    /// How to write traces there.
    pub options: OutputOptions,
}

impl Destination {
    /// The directory, if it is one.
    pub fn directory(&self) -> Option<&Directory> {
        match self {
            Self::Directory(directory) => Some(directory),
            Self::Receiver { .. } => None,
        }
    }

    /// Fails if certificates are given and cannot be used.
    pub fn check_credentials(&self) -> Result<()> {
        match self {
            Self::Directory(_) => Ok(()),
            Self::Receiver { security, .. } => client(security).map(drop),
        }
    }

    /// Starts to write the trace `uuid`. `streams` are the possible streams. `stop` becomes readable, or hangs
    /// up, when the program is to stop; from then on a receiver that does not answer gets only a short time.
    /// Messages about the connection go to `notice`.
    pub fn begin(
        &self,
        uuid: Uuid,
        streams: Vec<StreamName>,
        stop: OwnedFd,
        notice: Notice,
    ) -> Result<Box<dyn Sink>> {
        match self {
            Self::Directory(Directory { path, options }) => options.begin(path, uuid, &streams),
            Self::Receiver { address, security } => {
                let peer = Peer::new(address.clone(), client(security)?);
                let sender = Sender::begin(peer, uuid, streams, Retry::default(), stop, notice)?;
                Ok(Box::new(sender))
            }
        }
    }
}

fn client(security: &Security<Credentials>) -> Result<Security<ClientTls>> {
    let read = security.client().map_err(io::Error::other);
    read.map_err(Error::system("cannot use the certificates"))
}

/// As messages show it.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(directory) => directory.path.display().fmt(f),
            Self::Receiver { address, .. } => f.write_str(address),
        }
    }
}
