// SPDX-License-Identifier: GPL-2.0

//! The connection of a sender: writes the received data to the sink of the trace's directory.

use crate::hello::Sent;
use crate::incoming::Incoming;
use crate::message::{invalid, Message};
use crate::progress::Progress;
use crate::quota::{Quota, Streams, FILE};
use crate::trouble::Trouble;
use crate::wire::Wire;
use consumer::stats::TraceStats;
use consumer::{Sink, State};
use ctf::{Metadata, PacketAt, StreamName};
use rtrace_abi::ioctl;
use rtrace_abi::packet::PacketHeader;
use std::fs;
use std::io::Read;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};
use store::reserved;
use system::Error;

/// Period of the messages to a sender whose trace is still being written to the disk, and of the checks that the
/// directory still exists.
const ALIVE: Duration = Duration::from_secs(1);

/// Maximum number of streams of a trace. It limits the number of open files.
const STREAMS: usize = 64 << 10;

/// A trace that is being received.
pub struct Reception<'a> {
    wire: &'a mut Wire,
    sent: &'a Sent,
    sink: Box<dyn Sink>,
    dir: &'a Path,
    progress: &'a Progress,
    quota: &'a Quota,
    /// The open streams.
    open: Streams<'a>,
    /// The streams, and their numbers in the progress for watchers.
    streams: Vec<(StreamName, Option<usize>)>,
    /// Size of the description, if it was received.
    described: Option<u64>,
    /// Bytes that the quota has for the file of the recording.
    room: u64,
    /// Text of the last counters; empty if none were received.
    stats: String,
}

/// Last message of a sender.
enum Last {
    End { state: State, unwritten: u64 },
    Discard,
}

impl<'a> Reception<'a> {
    /// For a sender that was welcomed, into `dir`, to which `sink` writes.
    pub fn new(
        wire: &'a mut Wire,
        sent: &'a Sent,
        sink: Box<dyn Sink>,
        dir: &'a Path,
        progress: &'a Progress,
        quota: &'a Quota,
    ) -> Self {
        Self {
            wire,
            sent,
            sink,
            dir,
            progress,
            quota,
            open: quota.streams(),
            streams: Vec::new(),
            described: None,
            room: reserved(&sent.streams, 1),
            stats: String::new(),
        }
    }

    /// Receives until the trace's end. Returns the outcome, as text for the user. After an error the directory
    /// has each packet that was acknowledged. If the receiver `stops`, the directory's state says so.
    pub fn run(mut self, stops: impl Fn() -> bool) -> Result<&'static str, Trouble> {
        let last = match self.take_all() {
            Ok(last) => last,
            Err(trouble) => {
                self.sink.check().map_err(trouble_of)?;
                self.sink.sync().map_err(trouble_of)?;
                if stops() {
                    let ended = self.sink.end(State::Stopped, 0, &self.stats);
                    ended.map_err(trouble_of)?;
                }
                return Err(trouble);
            }
        };
        let Self {
            wire,
            mut sink,
            progress,
            streams,
            stats,
            ..
        } = self;
        // Repeats the last answer. A sender without streams gets none until the work is done.
        let streams = u32::try_from(streams.len()).unwrap_or_default();
        let alive = streams.checked_sub(1).map(|number| Message::Have {
            number,
            next: next(&*sink, number as usize),
        });
        let say_alive = || {
            // The final message detects that the sender is gone.
            let _ = alive.as_ref().map(|alive| wire.say(alive));
        };
        let (state, outcome) = meanwhile(say_alive, || match last {
            Last::End { state, unwritten } => {
                sink.check()?;
                sink.sync()?;
                sink.end(state, unwritten, &stats)?;
                let outcome = match state {
                    State::Over => "the trace is over",
                    State::Failed => "the sender failed",
                    State::Stopped | State::Writing => "the sender was stopped",
                };
                Ok((state, outcome))
            }
            Last::Discard => {
                sink.discard()?;
                Ok((State::Failed, "the sender discarded the trace"))
            }
        })
        .map_err(trouble_of)?;
        progress.ended(state);
        wire.say(&Message::Done)?;
        Ok(outcome)
    }

    fn take_all(&mut self) -> Result<Last, Trouble> {
        let mut checked = Instant::now();
        loop {
            match Message::read(self.wire)? {
                Message::Stream { number, name } => self.open(number, name)?,
                Message::Metadata(text) => self.describe(&text)?,
                Message::Packet { number, size } => self.packet(number as usize, size)?,
                Message::Stats(text) => self.count(text)?,
                Message::End { state, unwritten } => return Ok(Last::End { state, unwritten }),
                Message::Discard => return Ok(Last::Discard),
                _ => return Err(invalid("the sender sent an answer").into()),
            }
            if self.sink.deadline().is_some_and(|at| at <= Instant::now()) {
                self.turn()?;
            }
            if checked.elapsed() >= ALIVE {
                self.sink.check().map_err(trouble_of)?;
                checked = Instant::now();
            }
        }
    }

    fn describe(&mut self, text: &str) -> Result<(), Trouble> {
        if Metadata::find_uuid(text) != Some(self.sent.uuid) {
            return Err(invalid("the description is that of another trace").into());
        }
        let bytes = FILE.max(text.len() as u64);
        self.quota.take(bytes)?;
        self.sink.describe(text).map_err(trouble_of)?;
        self.described = Some(bytes);
        self.progress.described();
        Ok(())
    }

    fn open(&mut self, number: u32, name: StreamName) -> Result<(), Trouble> {
        if number as usize != self.streams.len() || number as usize >= STREAMS {
            return Err(invalid(format!("stream {number} is not the next one")).into());
        }
        if self.streams.iter().any(|(known, _)| *known == name) {
            return Err(invalid(format!("stream {name} is opened twice")).into());
        }
        self.open.open()?;
        self.quota.take(FILE)?;
        let opened = self.sink.open(&name).map_err(trouble_of)?;
        debug_assert_eq!(opened, number as usize);
        let path = self.dir.join(name.to_string());
        // A trace in chunks has no such file, and cannot be watched.
        let bytes = fs::metadata(path).map_or(0, |file| file.len());
        let next = next(&*self.sink, opened);
        // Watchers see events only.
        let shown = name.area().is_none();
        let shown = shown.then(|| self.progress.opened(&name, bytes, next));
        self.streams.push((name, shown));
        self.acknowledge(opened)
    }

    /// Receives a packet, unless it was received before.
    fn packet(&mut self, number: usize, size: u32) -> Result<(), Trouble> {
        let Some((name, shown)) = self.streams.get(number).cloned() else {
            return Err(invalid(format!("a packet of an unknown stream {number}")).into());
        };
        if self.described.is_none() {
            return Err(invalid("a packet came before the description").into());
        }
        let mut head = [0; PacketHeader::SIZE];
        if (size as usize) < head.len() {
            return Err(invalid(format!("{size} bytes are too few for a packet")).into());
        }
        self.wire.read_exact(&mut head)?;
        let path = name.to_string();
        let packet = PacketAt::decode(&head, Path::new(&path), 0, Some(self.sent.uuid))
            .map_err(|error| invalid(error.to_string()))?;
        let header = packet.header;
        let (cpu, sequence) = (header.cpu_id, header.packet_seq_num);
        if packet.size() != u64::from(size) || cpu != name.cpu || sequence == u64::MAX {
            return Err(invalid(format!(
                "{name}: the size, CPU or number of a packet is wrong"
            ))
            .into());
        }
        let is_new = !self.sink.has(number, sequence);
        if is_new && self.sink.is_full(size.into()) {
            self.turn()?;
        }
        let mut incoming = Incoming::new(self.wire, &head, size as usize);
        if !is_new {
            incoming.skip()?;
        } else {
            self.quota.take(size.into())?;
            let packet = ioctl::Packet {
                sequence,
                size: packet.size(),
                content: packet.content(),
                records: 0,
            };
            let taken = self.sink.packet(number, &packet, &mut incoming);
            taken.map_err(trouble_of)?;
            if let Some(shown) = shown {
                self.progress.came(shown, &header);
            }
        }
        self.acknowledge(number)
    }

    /// Tells the sender which packets of a stream are on the disk.
    fn acknowledge(&mut self, number: usize) -> Result<(), Trouble> {
        let next = next(&*self.sink, number);
        let number = number as u32;
        Ok(self.wire.say(&Message::Have { number, next })?)
    }

    fn count(&mut self, text: String) -> Result<(), Trouble> {
        // The text must be valid when it is read from the directory again.
        let begins = ["channel ", "cpu "]
            .iter()
            .any(|word| text.starts_with(word));
        match TraceStats::parse(&text) {
            Ok(stats) if begins => {
                // The file of the recording has the text, and each row may be a line about the place of the next chunk.
                let channels = stats.channels.iter();
                let rows: usize = channels.map(|channel| channel.stats.cpus.len()).sum();
                let room = reserved(&self.sent.streams, 1 + rows).max(text.len() as u64);
                self.quota.take(room.saturating_sub(self.room))?;
                self.room = self.room.max(room);
                self.progress.counted(&stats);
            }
            _ if text.is_empty() => {}
            _ => return Err(invalid("the counters cannot be parsed").into()),
        }
        self.stats = text;
        Ok(())
    }

    /// Begins the next chunk: a directory with the description, the file of the recording, and the streams.
    fn turn(&mut self) -> Result<(), Trouble> {
        let files = FILE * (2 + self.streams.len() as u64);
        self.quota
            .take(files + self.room + self.described.unwrap_or(0))?;
        let turned = self.sink.turn(&|| Ok(self.stats.clone()));
        turned.map_err(trouble_of)
    }
}

/// Number of the next packet of a stream.
fn next(sink: &dyn Sink, stream: usize) -> u64 {
    sink.last(stream).map_or(0, |last| last + 1)
}

/// Calls `work` in a thread, and `say_alive` every [`ALIVE`] until the work is done.
fn meanwhile<T: Send>(mut say_alive: impl FnMut(), work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let (working, done) = mpsc::channel::<()>();
        let worker = scope.spawn(move || {
            let _working = working;
            work()
        });
        while done.recv_timeout(ALIVE) == Err(RecvTimeoutError::Timeout) {
            say_alive();
        }
        worker.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Converts an error of the sink.
pub fn trouble_of(error: Error) -> Trouble {
    match error {
        // The stream of the error is the connection.
        Error::Stream { cause, .. } => cause.into(),
        Error::OutputTaken { .. } | Error::Corrupt { .. } => Trouble::lasting(error.to_string()),
        _ => Trouble::passing(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sender_hears_something_while_the_trace_is_brought_to_the_disk() {
        let (said, hears) = mpsc::channel();
        let say_alive = || said.send(()).unwrap();
        let work = move || (0..2).for_each(|_| hears.recv().unwrap());
        meanwhile(say_alive, work);
    }
}
