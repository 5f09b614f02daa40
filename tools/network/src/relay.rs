// SPDX-License-Identifier: GPL-2.0

//! Shows a trace that is being received to a watcher: from its beginning, read back from the directory.
//!
//! Packets are sent in the order of their first event. Between them, the relay reports up to which time the
//! trace is complete. So the watcher needs memory for the packets of one moment only. A slow watcher delays no
//! other peer, because the data is on the disk.

use crate::message::{invalid, Message};
use crate::progress::{Progress, Reached};
use crate::trouble::Trouble;
use crate::wire::Wire;
use ctf::{PacketAt, METADATA};
use rtrace_abi::packet::PacketHeader;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;
use system::regular_file;
use uuid::Uuid;

/// Period of the check whether the watcher is still connected, while nothing is received.
const PERIOD: Duration = Duration::from_secs(1);

/// Shows a trace.
#[derive(Debug)]
pub struct Relay<'a> {
    wire: &'a mut Wire,
    dir: &'a Path,
    uuid: Uuid,
    descriptions: u64,
    streams: Vec<Shown>,
    /// Time up to which the trace was reported complete.
    complete: u64,
}

/// A stream, and how much of it was shown.
#[derive(Debug)]
struct Shown {
    file: File,
    /// Offset of the next packet.
    at: u64,
    /// The next packet, if it was received.
    next: Option<PacketAt>,
}

impl<'a> Relay<'a> {
    /// Shows the trace `uuid` in `dir` over this connection.
    pub fn new(wire: &'a mut Wire, dir: &'a Path, uuid: Uuid) -> Self {
        Self {
            wire,
            dir,
            uuid,
            descriptions: 0,
            streams: Vec::new(),
            complete: 0,
        }
    }

    /// Shows the trace as it is received, until it has ended, the watcher is gone, or the receiver `stops`.
    pub fn run(mut self, progress: &Progress, stops: impl Fn() -> bool) -> Result<(), Trouble> {
        let mut changes = 0;
        while !stops() && self.wire.is_open() {
            let reached = progress.wait(changes, PERIOD);
            changes = reached.changes;
            self.show(&reached)?;
            if let Some(state) = reached.ended {
                let unwritten = 0;
                self.wire.say(&Message::End { state, unwritten })?;
                break;
            }
        }
        Ok(())
    }

    /// Shows what was received.
    fn show(&mut self, reached: &Reached) -> Result<(), Trouble> {
        if reached.descriptions > self.descriptions {
            self.descriptions = reached.descriptions;
            let text = regular_file::read_to_string(&self.dir.join(METADATA))?;
            self.wire.say(&Message::Metadata(text))?;
        }
        // A watcher cannot use packets without a description.
        if self.descriptions == 0 {
            return Ok(());
        }
        for stream in &reached.streams[self.streams.len()..] {
            let number = self.streams.len() as u32;
            self.streams.push(Shown {
                file: regular_file::open(&self.dir.join(stream.name.to_string()))?,
                at: 0,
                next: None,
            });
            let name = stream.name.clone();
            self.wire.say(&Message::Stream { number, name })?;
        }
        for number in 0..self.streams.len() {
            self.look(number, reached)?;
        }
        while let Some((begin, number)) = self.first() {
            // No later packet begins before this one.
            self.is_complete(reached.complete.min(begin.saturating_sub(1)))?;
            self.send(number)?;
            self.look(number, reached)?;
        }
        self.is_complete(reached.complete)
    }

    /// The stream whose next packet begins first, and the time of that.
    fn first(&self) -> Option<(u64, usize)> {
        let begin = |shown: &Shown| Some(shown.next?.header.timestamp_begin);
        let streams = self.streams.iter().enumerate();
        streams
            .filter_map(|(number, shown)| Some((begin(shown)?, number)))
            .min()
    }

    /// Reads the header of a stream's next packet, if it was received.
    fn look(&mut self, number: usize, reached: &Reached) -> Result<(), Trouble> {
        let shown = &mut self.streams[number];
        if shown.next.is_some() || shown.at >= reached.streams[number].bytes {
            return Ok(());
        }
        let mut head = [0; PacketHeader::SIZE];
        shown.file.read_exact_at(&mut head, shown.at)?;
        let path = reached.streams[number].name.to_string();
        let packet = PacketAt::decode(&head, Path::new(&path), shown.at, Some(self.uuid));
        shown.next = Some(packet.map_err(|error| Trouble::passing(error.to_string()))?);
        Ok(())
    }

    fn send(&mut self, number: usize) -> Result<(), Trouble> {
        let shown = &mut self.streams[number];
        let Some(packet) = shown.next.take() else {
            return Ok(());
        };
        shown.at = packet.end();
        let size = u32::try_from(packet.size()).map_err(|_| invalid("a packet is too large"))?;
        let number = number as u32;
        self.wire.begin(&Message::Packet { number, size })?;
        Ok(self
            .wire
            .send_file(&shown.file, packet.offset, packet.size())?)
    }

    fn is_complete(&mut self, time: u64) -> Result<(), Trouble> {
        if time > self.complete {
            self.complete = time;
            self.wire.say(&Message::Complete { time })?;
        }
        Ok(())
    }
}
