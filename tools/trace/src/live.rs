// SPDX-License-Identifier: GPL-2.0

//! The current trace of a session: its description and its streams.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::source::Source;
use crate::tracer::{is_no_trace, Session};
use crate::uuid::Uuid;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::time::Duration;

/// A trace in the kernel: being recorded, or stopped with packets left to read.
#[derive(Debug)]
pub struct LiveTrace {
    session: Session,
    uuid: Uuid,
    metadata: File,
    text: String,
    told: bool,
    subbuf_count: u64,
}

impl LiveTrace {
    /// The session's current trace, or the last one; an error if it has had none.
    pub fn open(session: &Session) -> Result<Self> {
        let mut metadata = session.open_metadata()?;
        let path = session.channel();
        let no_trace = || Error::NoTrace {
            session: session.name().to_owned(),
        };
        let mut uuid = session.uuid()?.ok_or_else(no_trace)?;
        // Read again if a trace was started meanwhile: identity and text are of the same trace.
        let text = loop {
            let mut text = String::new();
            metadata
                .rewind()
                .and_then(|()| metadata.read_to_string(&mut text))
                .map_err(|source| session.no_trace_or_read(&path, source))?;
            let after = session.uuid()?.ok_or_else(no_trace)?;
            if after == uuid {
                break text;
            }
            uuid = after;
        };
        let subbuf_count = session.settings()?.size.subbuf_count;
        Ok(Self {
            session: session.clone(),
            uuid,
            metadata,
            text,
            told: false,
            subbuf_count,
        })
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether a reader has any stream open.
    pub fn is_being_read(&self) -> Result<bool> {
        for cpu in self.cpus()? {
            match self.open(cpu) {
                Err(Error::StreamBusy { .. }) => return Ok(true),
                opened => opened?,
            };
        }
        Ok(false)
    }

    /// Whether a packet waits in any stream.
    pub fn has_packets(&self) -> Result<bool> {
        for cpu in self.cpus()? {
            if let Some(stream) = self.open(cpu)? {
                if readable(&stream).map_err(Error::read(&self.session.channel()))? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The description, if it has changed.
    fn reread(&mut self) -> Result<Option<String>> {
        let path = self.session.channel();
        let mut text = String::new();
        self.metadata
            .rewind()
            .and_then(|()| self.metadata.read_to_string(&mut text))
            .map_err(Error::read(&path))?;
        // Another identity: the session has begun a new trace, which is not this one's business.
        if text == self.text || self.session.uuid()? != Some(self.uuid) {
            return Ok(None);
        }
        self.text.clone_from(&text);
        Ok(Some(text))
    }
}

impl Source for LiveTrace {
    type Stream = Device;

    fn cpus(&self) -> Result<Vec<u32>> {
        let path = self.session.channel();
        let mut cpus = Vec::new();
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            // The module is being unloaded: the open streams are what is left.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(cpus),
            Err(e) => return Err(Error::read(&path)(e)),
        };
        for entry in entries {
            let name = entry.map_err(Error::read(&path))?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("cpu"));
            cpus.extend(number.and_then(|number| number.parse::<u32>().ok()));
        }
        cpus.sort_unstable();
        Ok(cpus)
    }

    fn open(&self, cpu: u32) -> Result<Option<Device>> {
        let path = self.session.channel().join(format!("cpu{cpu}"));
        let device = match Device::open(&path) {
            Ok(device) => device,
            // A CPU that never was online has no buffer.
            Err(Error::Read { cause, .. }) if is_no_trace(&cause) => return Ok(None),
            Err(e) => return Err(e),
        };
        // A stream belongs to the trace that was current when it was opened.
        let is_ours = self.session.uuid()? == Some(self.uuid);
        Ok(is_ours.then_some(device))
    }

    fn uuid(&self) -> Uuid {
        self.uuid
    }

    fn metadata(&mut self) -> Result<Option<String>> {
        if !self.told {
            self.told = true;
            return Ok(Some(self.text.clone()));
        }
        let path = self.session.channel();
        if readable(&self.metadata).map_err(Error::read(&path))? {
            return self.reread();
        }
        Ok(None)
    }

    fn subbuf_count(&self) -> u64 {
        self.subbuf_count
    }
}

fn readable(fd: &impl std::os::fd::AsFd) -> io::Result<bool> {
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    rustix::io::retry_on_intr(|| poll(&mut fds, Some(&timespec(Duration::ZERO))))?;
    Ok(fds[0].revents().contains(PollFlags::IN))
}

/// A duration as the kernel takes it.
pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    }
}
