// SPDX-License-Identifier: GPL-2.0

//! Where a trace goes: to a directory, or to a receiver.

use crate::failure::Failure;
use crate::log::Log;
use anyhow::anyhow;
use network::{Credentials, Notice, Peer, Retry, Security, Sender};
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use trace::live::LiveTrace;
use trace::output::{Output, OutputOptions};
use trace::sink::Sink;
use trace::source::Source;
use trace::uuid::Uuid;

/// Where a trace goes.
pub enum Destination {
    /// A directory.
    Directory(Directory),
    /// A receiver, with its address and how the connection is protected.
    Receiver(String, Security<Credentials>),
}

/// A directory for traces.
pub struct Directory {
    /// Where it is.
    pub path: PathBuf,
    /// How to write there.
    pub options: OutputOptions,
}

impl Destination {
    /// Makes sure, before anything is waited for, that it can be written and holds nothing else than a
    /// part of the `last` trace. Whether it is known to hold that.
    pub fn try_writing(&self, last: Option<Uuid>) -> Result<bool, Failure> {
        match self {
            Self::Directory(directory) => directory.try_writing(last),
            Self::Receiver(_, security) => security
                .client()
                .map(|_| false)
                .map_err(|error| anyhow!(error).into()),
        }
    }

    /// Begins to write a trace there. `stop` becomes readable when the program is to stop.
    pub fn begin(
        &self,
        source: &LiveTrace,
        stop: impl AsFd,
        log: &Log,
    ) -> trace::Result<Box<dyn Sink>> {
        let (uuid, streams) = (source.uuid(), source.streams()?);
        match self {
            Self::Directory(Directory { path, options }) => options.begin(path, uuid, &streams),
            Self::Receiver(address, security) => {
                let what = "cannot use the certificates";
                let security = security.client().map_err(std::io::Error::other);
                let security = security.map_err(trace::Error::system(what))?;
                let stop = duplicate(stop)?;
                let peer = Peer::new(address.clone(), security);
                let retry = Retry::default();
                let sender = Sender::begin(peer, uuid, streams, retry, stop, notice(log))?;
                Ok(Box::new(sender))
            }
        }
    }

    /// What to do after an error in writing there, if there is something to say.
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::Directory(Directory { path, .. }) => Some(format!(
                "{} holds a valid trace up to there, and the kernel goes on recording: make room and \
                 start rtraced again to continue",
                path.display()
            )),
            Self::Receiver(..) => None,
        }
    }
}

/// As messages call it.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(directory) => directory.path.display().fmt(f),
            Self::Receiver(address, _) => f.write_str(address),
        }
    }
}

impl Directory {
    fn try_writing(&self, last: Option<Uuid>) -> Result<bool, Failure> {
        let Self { path, options } = self;
        let held = options.held(path)?;
        if let Some(other) = held.filter(|_| held != last) {
            return Err(Output::holds_another(path, other).into());
        }
        Output::try_writing(path, *options)?;
        Ok(held.is_some())
    }
}

/// Lets the network's messages go the way of all others.
pub fn notice(log: &Log) -> Notice {
    let log = log.clone();
    Arc::new(move |message| log.info(message))
}

fn duplicate(fd: impl AsFd) -> trace::Result<OwnedFd> {
    let duplicate = fd.as_fd().try_clone_to_owned();
    duplicate.map_err(trace::Error::system("cannot duplicate a descriptor"))
}
