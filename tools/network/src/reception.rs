// SPDX-License-Identifier: GPL-2.0

//! One sender's connection: what comes goes to the sink that has the trace's directory.

use crate::hello::Sent;
use crate::incoming::Incoming;
use crate::message::{invalid, Message};
use crate::progress::Progress;
use crate::quota::{Quota, Streams};
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
use system::Error;

/// How often a sender hears that its trace is still being written to the disk.
const ALIVE: Duration = Duration::from_secs(1);

/// The most streams of a trace: for nobody more files are opened.
const STREAMS: usize = 64 << 10;

/// A trace that comes in.
pub struct Reception<'a> {
    wire: &'a mut Wire,
    sent: &'a Sent,
    sink: Box<dyn Sink>,
    dir: &'a Path,
    progress: &'a Progress,
    quota: &'a Quota,
    /// How many streams are open.
    open: Streams<'a>,
    /// The streams, and their numbers in what those know who watch.
    streams: Vec<(StreamName, Option<usize>)>,
    is_described: bool,
    /// The text of the last counters that came; empty if none did.
    stats: String,
}

/// A sender's last word.
enum Last {
    End { state: State, unwritten: u64 },
    Discard,
}

impl<'a> Reception<'a> {
    /// From a sender who was welcomed, into `dir`, which `sink` has.
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
            is_described: false,
            stats: String::new(),
        }
    }

    /// Takes all that comes, to the trace's end; how that came about, for people. After an error the
    /// directory has every packet that was acknowledged; if the receiver `stops`, it says so there.
    pub fn run(mut self, stops: impl Fn() -> bool) -> Result<&'static str, Trouble> {
        let last = match self.take_all() {
            Ok(last) => last,
            Err(trouble) => {
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
        // The last answer once more. Only a sender without streams gets nothing until it is done.
        let streams = u32::try_from(streams.len()).unwrap_or_default();
        let alive = streams.checked_sub(1).map(|number| Message::Have {
            number,
            next: next(&*sink, number as usize),
        });
        let say_alive = || {
            // The last word finds out that the sender is gone.
            let _ = alive.as_ref().map(|alive| wire.say(alive));
        };
        let (state, outcome) = meanwhile(say_alive, || match last {
            Last::End { state, unwritten } => {
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
        loop {
            match Message::read(self.wire)? {
                Message::Stream { number, name } => self.open(number, name)?,
                Message::Metadata(text) => self.describe(&text)?,
                Message::Packet { number, size } => self.packet(number as usize, size)?,
                Message::Stats(text) => self.count(text)?,
                Message::End { state, unwritten } => return Ok(Last::End { state, unwritten }),
                Message::Discard => return Ok(Last::Discard),
                _ => return Err(invalid("an answer, where nothing was asked").into()),
            }
            if self.sink.deadline().is_some_and(|at| at <= Instant::now()) {
                self.turn()?;
            }
        }
    }

    fn describe(&mut self, text: &str) -> Result<(), Trouble> {
        if Metadata::find_uuid(text) != Some(self.sent.uuid) {
            return Err(invalid("a description of another trace").into());
        }
        self.quota.take(text.len() as u64)?;
        self.sink.describe(text).map_err(trouble_of)?;
        self.is_described = true;
        self.progress.described();
        Ok(())
    }

    fn open(&mut self, number: u32, name: StreamName) -> Result<(), Trouble> {
        if number as usize != self.streams.len() || number as usize >= STREAMS {
            return Err(invalid(format!("stream {number} comes out of turn")).into());
        }
        if self.streams.iter().any(|(known, _)| *known == name) {
            return Err(invalid(format!("stream {name} comes twice")).into());
        }
        self.open.open()?;
        let opened = self.sink.open(&name).map_err(trouble_of)?;
        debug_assert_eq!(opened, number as usize);
        let path = self.dir.join(name.to_string());
        // Where the trace is in chunks there is no such file, and nobody can watch.
        let bytes = fs::metadata(path).map_or(0, |file| file.len());
        let next = next(&*self.sink, opened);
        // Who watches sees events.
        let shown = name.area().is_none();
        let shown = shown.then(|| self.progress.opened(&name, bytes, next));
        self.streams.push((name, shown));
        self.acknowledge(opened)
    }

    /// Takes a packet, of which the head was read, unless it is there already.
    fn packet(&mut self, number: usize, size: u32) -> Result<(), Trouble> {
        let Some((name, shown)) = self.streams.get(number) else {
            return Err(invalid(format!("a packet of an unknown stream {number}")).into());
        };
        if !self.is_described {
            return Err(invalid("packets came before the description").into());
        }
        let mut head = [0; PacketHeader::SIZE];
        if (size as usize) < head.len() {
            return Err(invalid(format!("{size} bytes are no packet")).into());
        }
        self.wire.read_exact(&mut head)?;
        let path = name.to_string();
        let packet = PacketAt::decode(&head, Path::new(&path), 0, Some(self.sent.uuid))
            .map_err(|error| invalid(error.to_string()))?;
        let header = packet.header;
        let (cpu, sequence) = (header.cpu_id, header.packet_seq_num);
        if packet.size() != size.into() || cpu != name.cpu || sequence == u64::MAX {
            return Err(invalid(format!("{name}: a packet that is not as it should be")).into());
        }
        let mut incoming = Incoming::new(self.wire, &head, size as usize);
        if self.sink.has(number, sequence) {
            incoming.skip()?;
        } else {
            self.quota.take(size.into())?;
            if self.sink.is_full(size.into()) {
                let turned = self.sink.turn(&|| Ok(self.stats.clone()));
                turned.map_err(trouble_of)?;
            }
            let packet = ioctl::Packet {
                sequence,
                size: packet.size(),
                content: packet.content(),
                records: 0,
            };
            let taken = self.sink.packet(number, &packet, &mut incoming);
            taken.map_err(trouble_of)?;
            if let Some(shown) = *shown {
                self.progress.came(shown, &header);
            }
        }
        self.acknowledge(number)
    }

    /// Says what is on the disk of a stream.
    fn acknowledge(&mut self, number: usize) -> Result<(), Trouble> {
        let next = next(&*self.sink, number);
        let number = number as u32;
        Ok(self.wire.say(&Message::Have { number, next })?)
    }

    fn count(&mut self, text: String) -> Result<(), Trouble> {
        // As it is to be read again in the directory.
        let begins = ["channel ", "cpu "]
            .iter()
            .any(|word| text.starts_with(word));
        match TraceStats::parse(&text) {
            Ok(stats) if begins => self.progress.counted(&stats),
            _ if text.is_empty() => {}
            _ => return Err(invalid("counters that are none").into()),
        }
        self.stats = text;
        Ok(())
    }

    fn turn(&mut self) -> Result<(), Trouble> {
        let turned = self.sink.turn(&|| Ok(self.stats.clone()));
        turned.map_err(trouble_of)
    }
}

/// The number of the next packet of a stream.
fn next(sink: &dyn Sink, stream: usize) -> u64 {
    sink.last(stream).map_or(0, |last| last + 1)
}

/// Does the work in a thread, and calls `say_alive` every [`ALIVE`] until it is done.
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

/// What to say of an error of the sink.
pub fn trouble_of(error: Error) -> Trouble {
    match error {
        // The stream is the connection.
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
