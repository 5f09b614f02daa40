// SPDX-License-Identifier: GPL-2.0

//! The loop that moves packets from the kernel to a sink.
//!
//! For each packet: get it, pass it to the sink, put it. A packet is put only when the sink has every byte of it. So
//! a consumer that dies loses nothing: the kernel hands out the packet again, and [`Sink::has`] recognizes it. While
//! a packet is on its way to the sink, the other streams continue. Its own stream waits, and the kernel's buffer
//! fills.

use crate::sink::Sink;
use crate::source::{Source, Stream};
use ctf::StreamName;
use rtrace_abi::ioctl::Packet;
use rustix::event::{epoll, poll, PollFd, PollFlags};
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::ops::AddAssign;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use system::time::timespec;
use system::{Error, Result};

/// The interval at which the loop looks for new CPUs, and for the removal of the output.
const RESCAN: Duration = Duration::from_secs(1);

/// The number of packets taken from one stream before the next stream's turn.
const TURN: u64 = 8;

/// The delay of the loop if a stream was readable but had no packet.
const PAUSE: Duration = Duration::from_millis(1);

/// The epoll token of the descriptor that stops the loop. Other tokens are indices of readers.
const STOP: u64 = u64::MAX;

/// The epoll token of [`Sink::news`], which is readable when [`Sink::attend`] has work.
const NEWS: u64 = STOP - 1;

/// The reason why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The trace is over and every packet was read.
    Over,
    /// The stop descriptor became readable.
    Stopped,
}

/// The result of one attempt to take a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Took {
    Packet,
    Nothing,
    Over,
}

/// Moves the packets of one trace to one sink.
#[derive(Debug)]
pub struct Consumer<S: Source> {
    source: S,
    sink: Box<dyn Sink>,
    epoll: OwnedFd,
    readers: Vec<Reader<S::Stream>>,
    exposed: Option<Exposed>,
}

/// Streams whose packets may be overwritten while a snapshot writes other streams.
#[derive(Debug)]
pub struct Exposed {
    /// Number of these streams.
    pub streams: usize,
    /// The reason why the first of these streams could not be taken at once.
    pub cause: io::Error,
}

impl fmt::Display for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let streams = if self.streams == 1 {
            "stream"
        } else {
            "streams"
        };
        let count = self.streams;
        write!(
            f,
            "{count} {streams} could not be frozen at the same moment ({}): packets may have been overwritten while others were written",
            self.cause
        )
    }
}

/// A stream, and its number in the sink.
#[derive(Debug)]
struct Reader<T> {
    name: StreamName,
    stream: T,
    number: usize,
    /// The packet that is on its way to the sink.
    sent: Option<Packet>,
    written: Written,
    /// Whether a finished packet wakes the loop.
    is_watched: bool,
    over: bool,
}

/// The packets that the sink has and that were returned to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Records in these packets.
    pub records: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl AddAssign for Written {
    fn add_assign(&mut self, other: Self) {
        self.records += other.records;
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl<S: Source> Consumer<S> {
    /// Opens every stream, makes the sink by `begin`, and passes the description to the sink. After that the sink's
    /// output is a valid trace.
    pub fn open(mut source: S, begin: impl FnOnce(&S) -> Result<Box<dyn Sink>>) -> Result<Self> {
        // Opens the streams first: only one process can have them open, so no other one writes the same output.
        let mut streams = Vec::new();
        for name in source.streams()? {
            if let Some(stream) = source.open(&name)? {
                streams.push((name, stream));
            }
        }
        let mut sink = begin(&source)?;
        if let Some(text) = source.metadata()? {
            sink.describe(&text)?;
        }
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(Error::system("cannot create an epoll"))?;
        let mut consumer = Self {
            source,
            sink,
            epoll,
            readers: Vec::new(),
            exposed: None,
        };
        for (name, stream) in streams {
            consumer.add(name, stream)?;
        }
        Ok(consumer)
    }

    /// The trace that is read.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The sink.
    pub fn sink(&self) -> &dyn Sink {
        &*self.sink
    }

    /// Closes the streams, and returns the sink.
    pub fn into_sink(self) -> Box<dyn Sink> {
        self.sink
    }

    /// The packets written so far, except those that were removed since.
    pub fn written(&self) -> Written {
        self.sum(true)
    }

    /// The packets that were written, and removed since.
    pub fn removed(&self) -> Written {
        self.sum(false)
    }

    fn sum(&self, is_left: bool) -> Written {
        let mut sum = Written::default();
        for reader in &self.readers {
            if self.sink.is_left(reader.number) == is_left {
                sum += reader.written;
            }
        }
        sum
    }

    /// The streams in overwrite mode that the last snapshot could not take at one moment.
    pub fn exposed(&mut self) -> Option<Exposed> {
        self.exposed.take()
    }

    /// The number of open streams.
    pub fn streams(&self) -> usize {
        self.readers.len()
    }

    /// Moves packets until the trace is over or `stop` is readable, then makes the packets durable. If `stop` is
    /// readable, flushes the buffers and writes their contents first.
    ///
    /// After an error the sink has all packets that were written before the error, complete.
    pub fn run(&mut self, stop: impl AsFd) -> Result<End> {
        let end = self.pump(stop).and_then(|end| {
            if end == End::Stopped {
                self.rescan()?;
                self.finish()?;
            }
            Ok(end)
        });
        let synced = self.sink.sync();
        // Checked first: if the output was removed, the other errors are consequences.
        self.sink.check()?;
        let end = end?;
        synced?;
        Ok(end)
    }

    /// Writes a snapshot: the contents of the buffers at this moment. Later events stay in the buffers. The caller
    /// calls this once, because the consumer reads no packet of the streams afterwards.
    pub fn snapshot(&mut self) -> Result<()> {
        let taken = self.try_snapshot();
        let synced = self.sink.sync();
        self.sink.check().and(taken).and(synced)
    }

    fn try_snapshot(&mut self) -> Result<()> {
        self.rescan()?;
        let taken = self.take_all()?;
        let next = self.source.next_packets()?;
        // The streams that continue in the same memory come first, because they may be overwritten.
        for i in (0..taken.len()).filter(|&i| taken[i].is_none()) {
            let next = next.get(&self.readers[i].name).copied();
            self.write(i, self.most(i), next.unwrap_or(u64::MAX))?;
        }
        for (i, taken) in taken.into_iter().enumerate() {
            if let Some(packets) = taken {
                self.write(i, packets, u64::MAX)?;
                self.readers[i].over = true;
            }
        }
        Ok(())
    }

    /// Takes the packets of all streams, as near to one moment as possible. Returns the number of packets for each
    /// stream. [`None`]: the stream cannot take all packets at one moment; only its open packet was closed.
    fn take_all(&mut self) -> Result<Vec<Option<u64>>> {
        // A trace that is over overwrites nothing.
        let is_recorded = !self.source.next_packets()?.is_empty();
        // Preparing takes long, so all streams are prepared before the first is taken.
        let prepare = |reader: &mut Reader<S::Stream>| reader.stream.prepare();
        let prepared: Vec<_> = match is_recorded {
            true => self.readers.iter_mut().map(prepare).collect(),
            false => Vec::new(),
        };
        let mut prepared = prepared.into_iter();
        let mut all = Vec::new();
        for reader in &mut self.readers {
            let taken = match prepared.next() {
                Some(Ok(())) => reader.stream.take_all().map(Some),
                Some(Err(cause)) => Err(cause),
                None => Ok(None),
            };
            let taken = taken.unwrap_or_else(|cause| {
                if Errno::from_io_error(&cause) != Some(Errno::OPNOTSUPP) {
                    let exposed = Exposed { streams: 0, cause };
                    self.exposed.get_or_insert(exposed).streams += 1;
                }
                None
            });
            if taken.is_none() {
                reader
                    .stream
                    .flush()
                    .map_err(stream_error(&*self.sink, reader.number, "flush"))?;
            }
            all.push(taken);
        }
        Ok(all)
    }

    /// Writes up to `most` packets of one stream whose numbers are below `next`.
    fn write(&mut self, i: usize, most: u64, next: u64) -> Result<()> {
        for _ in 0..most {
            match self.take_before(i, next)? {
                Took::Packet => {}
                Took::Nothing | Took::Over => break,
            }
        }
        Ok(())
    }

    fn pump(&mut self, stop: impl AsFd) -> Result<End> {
        self.watch(&stop, STOP)?;
        if let Some(news) = self.sink.news() {
            self.watch(news, NEWS)?;
        }
        let mut scanned = Instant::now();
        loop {
            let mut took = Took::Nothing;
            let rescan = RESCAN.saturating_sub(scanned.elapsed());
            let deadline = self.sink.deadline();
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            for token in self.wait(left.map_or(rescan, |left| left.min(rescan)))? {
                let took_now = match token {
                    STOP => return Ok(End::Stopped),
                    NEWS => self.attend()?,
                    reader => self.drain(reader as usize, TURN)?,
                };
                if took_now != Took::Nothing {
                    took = took_now;
                }
            }
            if deadline.is_some_and(|at| at <= Instant::now()) {
                self.flush()?;
                turn(&self.source, &mut *self.sink)?;
            }
            let over = self.is_over();
            if over || scanned.elapsed() >= RESCAN {
                self.sink.check()?;
                self.rescan()?;
                scanned = Instant::now();
            } else if took == Took::Nothing && scanned.elapsed() < RESCAN {
                std::thread::sleep(PAUSE);
            }
            if over && self.is_over() {
                return Ok(End::Over);
            }
        }
    }

    /// Moves the contents of the buffers to the sink. The trace may continue meanwhile, so this takes at most as many
    /// packets as the buffers can hold.
    fn flush(&mut self) -> Result<()> {
        self.close_packets()?;
        for i in 0..self.readers.len() {
            if !self.readers[i].over {
                self.drain(i, self.most(i))?;
            }
        }
        Ok(())
    }

    /// Like [`flush`](Self::flush), and waits until the sink has all packets.
    fn finish(&mut self) -> Result<()> {
        self.close_packets()?;
        let mut left: Vec<u64> = (0..self.readers.len()).map(|i| self.most(i)).collect();
        loop {
            for (i, left) in left.iter_mut().enumerate() {
                while *left > 0 && !self.readers[i].over {
                    match self.take(i)? {
                        Took::Packet => *left -= 1,
                        Took::Nothing => break,
                        Took::Over => self.end_stream(i)?,
                    }
                }
                // If the loop ended because `left` is 0, the last packet was not put yet.
                self.put_sent(i)?;
            }
            let waits = self.readers.iter().any(|reader| reader.sent.is_some());
            let Some(news) = self.sink.news().filter(|_| waits) else {
                return Ok(());
            };
            wait_for(news).map_err(Error::system("poll"))?;
            self.sink.attend()?;
        }
    }

    /// Handles the sink's news. Continues with the streams whose sent packet has arrived in the sink.
    fn attend(&mut self) -> Result<Took> {
        self.sink.attend()?;
        let mut result = Took::Nothing;
        for i in 0..self.readers.len() {
            if self.readers[i].sent.is_some() {
                match self.drain(i, TURN)? {
                    Took::Nothing => {}
                    other => result = other,
                }
            }
        }
        Ok(result)
    }

    /// Closes the open packets of all streams, as near to one moment as possible.
    fn close_packets(&mut self) -> Result<()> {
        for reader in self.readers.iter_mut().filter(|reader| !reader.over) {
            reader
                .stream
                .flush()
                .map_err(stream_error(&*self.sink, reader.number, "flush"))?;
        }
        Ok(())
    }

    /// Number of attempts that empty a buffer: the packets that it can hold, one that is closed meanwhile, and one
    /// more attempt, which detects the end of a trace.
    fn most(&self, i: usize) -> u64 {
        let count = self.source.subbuf_count(&self.readers[i].name);
        count.saturating_add(2)
    }

    /// Takes up to `most` packets of one stream. Returns [`Took::Over`] if the stream has ended, otherwise
    /// [`Took::Packet`] if any packet was taken.
    fn drain(&mut self, i: usize, most: u64) -> Result<Took> {
        let mut result = Took::Nothing;
        for _ in 0..most {
            match self.take(i)? {
                Took::Packet => result = Took::Packet,
                Took::Nothing => break,
                Took::Over => {
                    self.end_stream(i)?;
                    return Ok(Took::Over);
                }
            }
        }
        Ok(result)
    }

    /// Moves one packet of one stream to the sink.
    fn take(&mut self, i: usize) -> Result<Took> {
        self.take_before(i, u64::MAX)
    }

    /// Moves one packet to the sink if its number is below `next`. Otherwise leaves the packet in the kernel, and
    /// treats the stream as ended.
    fn take_before(&mut self, i: usize, next: u64) -> Result<Took> {
        if !self.put_sent(i)? {
            return Ok(Took::Nothing);
        }
        let Reader {
            stream,
            number,
            sent,
            written,
            over,
            ..
        } = &mut self.readers[i];
        if *over {
            return Ok(Took::Over);
        }
        let packet = match stream.get() {
            Ok(packet) => packet,
            Err(e) => match Errno::from_io_error(&e) {
                Some(Errno::AGAIN | Errno::INTR) => return Ok(Took::Nothing),
                Some(Errno::NODATA) => return Ok(Took::Over),
                _ => return Err(stream_error(&*self.sink, *number, "taking a packet")(e)),
            },
        };
        if packet.sequence >= next {
            // Closing the stream returns the packet to the kernel.
            *over = true;
            return Ok(Took::Over);
        }
        // An earlier process may have written the packet, and died before it returned the packet to the kernel.
        if !self.sink.has(*number, packet.sequence) {
            if self.sink.is_full(packet.size) {
                turn(&self.source, &mut *self.sink)?;
            }
            // The description of an event in this packet may be new.
            if let Some(text) = self.source.metadata()? {
                self.sink.describe(&text)?;
            }
            self.sink.packet(*number, &packet, stream)?;
            written.packets += 1;
            written.bytes += packet.size;
        }
        *sent = Some(packet);
        if !self.put_sent(i)? {
            // Until the sink has this packet, the loop need not know of the next one.
            self.unwatch(i)?;
        }
        Ok(Took::Packet)
    }

    /// If the sink has the sent packet, returns that packet to the kernel. Returns false if the packet is still on its
    /// way to the sink; then no other packet of the stream can be taken.
    fn put_sent(&mut self, i: usize) -> Result<bool> {
        let Reader {
            stream,
            number,
            sent,
            written,
            is_watched,
            ..
        } = &mut self.readers[i];
        let Some(packet) = *sent else {
            return Ok(true);
        };
        if !self.sink.has(*number, packet.sequence) {
            return Ok(false);
        }
        *sent = None;
        written.records += packet.records;
        stream
            .put()
            .map_err(stream_error(&*self.sink, *number, "giving a packet back"))?;
        if !*is_watched {
            *is_watched = true;
            let data = epoll::EventData::new_u64(i as u64);
            epoll::add(&self.epoll, &*stream, data, epoll::EventFlags::IN)
                .map_err(Error::system("epoll"))?;
        }
        Ok(true)
    }

    /// Opens the streams of new CPUs.
    fn rescan(&mut self) -> Result<()> {
        for name in self.source.streams()? {
            if self.readers.iter().any(|reader| reader.name == name) {
                continue;
            }
            if let Some(stream) = self.source.open(&name)? {
                self.add(name, stream)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, name: StreamName, stream: S::Stream) -> Result<()> {
        let number = self.sink.open(&name)?;
        self.watch(&stream, self.readers.len() as u64)?;
        self.readers.push(Reader {
            name,
            stream,
            number,
            sent: None,
            written: Written::default(),
            is_watched: true,
            over: false,
        });
        Ok(())
    }

    fn end_stream(&mut self, i: usize) -> Result<()> {
        self.readers[i].over = true;
        self.unwatch(i)
    }

    fn unwatch(&mut self, i: usize) -> Result<()> {
        let reader = &mut self.readers[i];
        reader.is_watched = false;
        epoll::delete(&self.epoll, &reader.stream).map_err(Error::system("epoll"))
    }

    fn is_over(&self) -> bool {
        self.readers.iter().all(|reader| reader.over)
    }

    fn watch(&self, fd: impl AsFd, token: u64) -> Result<()> {
        let data = epoll::EventData::new_u64(token);
        epoll::add(&self.epoll, fd, data, epoll::EventFlags::IN).map_err(Error::system("epoll"))
    }

    /// Waits for any descriptor. Returns the tokens of the ready ones.
    fn wait(&self, time: Duration) -> Result<Vec<u64>> {
        let mut events = Vec::with_capacity(64);
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut events),
            Some(&timespec(time)),
        ) {
            Ok(_) | Err(Errno::INTR) => Ok(events.iter().map(|e| e.data.u64()).collect()),
            Err(e) => Err(Error::system("epoll")(e)),
        }
    }
}

/// Waits until a descriptor is readable, or times out.
fn wait_for(fd: BorrowedFd<'_>) -> rustix::io::Result<()> {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    match poll(&mut fds, Some(&timespec(RESCAN))) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(e) => Err(e),
    }
}

/// Lets the sink begin its next chunk.
fn turn(source: &impl Source, sink: &mut dyn Sink) -> Result<()> {
    sink.turn(&|| source.counters())
}

/// Makes an error with the name that the sink has for the stream.
fn stream_error<'a>(
    sink: &'a dyn Sink,
    number: usize,
    action: &'static str,
) -> impl FnOnce(std::io::Error) -> Error + 'a {
    move |cause| Error::Stream {
        stream: sink.name(number),
        action,
        cause,
    }
}
