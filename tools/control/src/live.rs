// SPDX-License-Identifier: GPL-2.0

//! The current trace of a session: its description and its streams.

use crate::device::Device;
use crate::session::{is_no_trace, Session};
use consumer::stats::TraceStats;
use consumer::Source;
use ctf::StreamName;
use rustix::event::{poll, PollFd, PollFlags};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::PathBuf;
use std::time::Duration;
use system::time::timespec;
use system::{Error, Result};
use uuid::Uuid;

/// The minimum and maximum size of a packet of an AUX area. Between them, a packet is a quarter of the area.
const PAGE: u64 = 4 << 10;
const LARGEST: u64 = 1 << 20;

/// A trace in the kernel: being recorded, or stopped with packets left to read.
#[derive(Debug)]
pub struct LiveTrace {
    session: Session,
    uuid: Uuid,
    metadata: File,
    text: String,
    told: bool,
    /// Sub-buffers of a buffer, by channel.
    subbuf_counts: BTreeMap<String, u64>,
    /// The maximum number of packets in each AUX area that is read, too.
    areas: BTreeMap<String, u64>,
}

impl LiveTrace {
    /// The session's current or last trace. An error, if the session has had none.
    pub fn open(session: &Session) -> Result<Self> {
        let mut metadata = session.open_metadata()?;
        let path = session.path("metadata");
        let no_trace = || Error::NoTrace {
            session: session.name().to_owned(),
        };
        let mut uuid = session.uuid()?.ok_or_else(no_trace)?;
        // Reads again if a trace was started meanwhile, so that identity and text belong to the same trace.
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
        let (mut subbuf_counts, mut areas) = (BTreeMap::new(), BTreeMap::new());
        for channel in session.channels()? {
            let count = channel.settings()?.size.subbuf_count;
            subbuf_counts.insert(channel.name().to_owned(), count);
            let size = channel.aux_size()?;
            if size != 0 {
                // A packet ends at the end of the area at the latest; see the kernel's reader.
                let count = size.div_ceil((size / 4).clamp(PAGE, LARGEST)) + 1;
                areas.insert(channel.name().to_owned(), count);
            }
        }
        Ok(Self {
            session: session.clone(),
            uuid,
            metadata,
            text,
            told: false,
            subbuf_counts,
            areas,
        })
    }

    /// The same trace, limited to the channels whose names `keep` accepts.
    pub fn only(mut self, keep: impl Fn(&str) -> bool) -> Self {
        self.subbuf_counts.retain(|channel, _| keep(channel));
        self.areas.retain(|channel, _| keep(channel));
        self
    }

    /// The same trace, limited to events.
    pub fn only_events(mut self) -> Self {
        self.areas.clear();
        self
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether a reader has any stream open.
    pub fn is_being_read(&self) -> Result<bool> {
        for stream in self.streams()? {
            match self.open(&stream) {
                Err(Error::StreamBusy { .. }) => return Ok(true),
                opened => opened?,
            };
        }
        Ok(false)
    }

    /// Whether a packet waits in any stream.
    pub fn has_packets(&self) -> Result<bool> {
        for name in self.streams()? {
            if let Some(stream) = self.open(&name)? {
                if readable(&stream).map_err(Error::read(&self.path(&name)))? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The description, if it has changed since the last call.
    fn reread(&mut self) -> Result<Option<String>> {
        let mut text = String::new();
        match self
            .metadata
            .rewind()
            .and_then(|()| self.metadata.read_to_string(&mut text))
        {
            Ok(_) => {}
            // The session is gone, so the description does not change any more.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::read(&self.session.path("metadata"))(e)),
        }
        // The identity has changed: the session has begun a new trace, which is not this one.
        if text == self.text || self.session.uuid()? != Some(self.uuid) {
            return Ok(None);
        }
        self.text.clone_from(&text);
        Ok(Some(text))
    }

    /// The file of a stream.
    fn path(&self, stream: &StreamName) -> PathBuf {
        let cpu = stream.cpu;
        self.session.path(&match stream.area() {
            Some(channel) => format!("channels/{channel}/aux{cpu}"),
            None => format!("channels/{}/cpu{cpu}", stream.channel),
        })
    }
}

impl Source for LiveTrace {
    type Stream = Device;

    fn streams(&self) -> Result<Vec<StreamName>> {
        let mut streams = Vec::new();
        for channel in self.subbuf_counts.keys() {
            let path = self.session.path(&format!("channels/{channel}"));
            let entries = match fs::read_dir(&path) {
                Ok(entries) => entries,
                // The session or the module is being removed. Only the open streams are left.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(Error::read(&path)(e)),
            };
            for entry in entries {
                let name = entry.map_err(Error::read(&path))?.file_name();
                let number = name.to_str().and_then(|name| name.strip_prefix("cpu"));
                let Some(cpu) = number.and_then(|number| number.parse::<u32>().ok()) else {
                    continue;
                };
                streams.push(StreamName {
                    channel: channel.clone(),
                    cpu,
                });
                if self.areas.contains_key(channel) {
                    streams.push(StreamName::of_area(channel, cpu));
                }
            }
        }
        streams.sort_unstable();
        Ok(streams)
    }

    fn open(&self, stream: &StreamName) -> Result<Option<Device>> {
        let device = match Device::open(&self.path(stream)) {
            Ok(device) => device,
            // A CPU that was never online has no buffer.
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
        let path = self.session.path("metadata");
        if readable(&self.metadata).map_err(Error::read(&path))? {
            return self.reread();
        }
        Ok(None)
    }

    fn counters(&self) -> Result<String> {
        let counters = self.session.stats_and_text().and_then(|(_, text)| {
            // The counters of the session belong to the current trace. A new trace may have been started meanwhile.
            let is_ours = self.session.uuid()? == Some(self.uuid);
            Ok(if is_ours { text } else { String::new() })
        });
        match counters {
            // The rest of the trace can still be read.
            Err(_) if !self.session.exists() => Ok(String::new()),
            counters => counters,
        }
    }

    fn next_packets(&self) -> Result<BTreeMap<StreamName, u64>> {
        let mut next = BTreeMap::new();
        // A trace that is over may have one packet more than it counts. That packet reports losses.
        if !self.session.exists() || !self.session.is_active()? {
            return Ok(next);
        }
        let counters = self.counters()?;
        let stats = TraceStats::parse(&counters).map_err(|what| {
            let file = "channels/*/stats";
            self.session.unreadable(file, &what)
        })?;
        for channel in stats.channels {
            next.extend(channel.stats.cpus.iter().map(|row| {
                let stream = StreamName {
                    channel: channel.channel.clone(),
                    cpu: row.cpu,
                };
                (stream, row.counters.packets)
            }));
        }
        Ok(next)
    }

    fn subbuf_count(&self, stream: &StreamName) -> u64 {
        let count = match stream.area() {
            Some(channel) => self.areas.get(channel),
            None => self.subbuf_counts.get(&stream.channel),
        };
        count.copied().unwrap_or(0)
    }
}

fn readable(fd: &impl std::os::fd::AsFd) -> io::Result<bool> {
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    rustix::io::retry_on_intr(|| poll(&mut fds, Some(&timespec(Duration::ZERO))))?;
    Ok(fds[0].revents().contains(PollFlags::IN))
}
