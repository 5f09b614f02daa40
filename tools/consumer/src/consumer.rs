// SPDX-License-Identifier: GPL-2.0

//! The loop that moves packets from the kernel to a sink.
//!
//! For each packet: get, hand to the sink, put. A packet is put only when the sink has every
//! byte of it, so a consumer that dies loses nothing: the kernel hands the packet out again, and
//! [`Sink::has`] knows it. Where a packet is on its way to the sink for a while, the other streams go on
//! meanwhile; its own does not, and the kernel's buffer is what fills.

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

/// How often new CPUs are looked for.
const RESCAN: Duration = Duration::from_secs(1);

/// Packets taken from one stream before the others have their turn.
const TURN: u64 = 8;

/// How long to wait when a stream says that it is readable and then gives nothing.
const PAUSE: Duration = Duration::from_millis(1);

/// The epoll token of the descriptor that stops the loop; the others are places among the readers.
const STOP: u64 = u64::MAX;

/// That of the sink's news.
const NEWS: u64 = STOP - 1;

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The trace is over and every packet was read.
    Over,
    /// The stop descriptor became readable.
    Stopped,
}

/// What one attempt to take a packet brought.
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
    written: Written,
    exposed: Option<Exposed>,
}

/// Streams whose packets may be overwritten while a snapshot writes others.
#[derive(Debug)]
pub struct Exposed {
    /// How many.
    pub streams: usize,
    /// Why the first of them could not be taken at once.
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
            "{count} {streams} could not be taken at one moment ({}): \
             packets may have been overwritten while others were written",
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
    /// Whether a finished packet wakes the loop.
    is_watched: bool,
    over: bool,
}

/// What a consumer has brought to its sink and given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Records in the packets below.
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
    /// Opens every stream, begins the sink, and hands it the description: from now on it has a
    /// trace.
    pub fn open(mut source: S, begin: impl FnOnce(&S) -> Result<Box<dyn Sink>>) -> Result<Self> {
        // The streams first: who has them open has the sink to itself.
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
            written: Written::default(),
            exposed: None,
        };
        for (name, stream) in streams {
            consumer.add(name, stream)?;
        }
        Ok(consumer)
    }

    /// The trace read.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// What is written to.
    pub fn sink(&self) -> &dyn Sink {
        &*self.sink
    }

    /// Closes the streams; what was written to is left.
    pub fn into_sink(self) -> Box<dyn Sink> {
        self.sink
    }

    /// What was written so far.
    pub fn written(&self) -> Written {
        self.written
    }

    /// The streams that the last snapshot did not take at one moment, although they are overwritten.
    pub fn exposed(&mut self) -> Option<Exposed> {
        self.exposed.take()
    }

    /// How many streams are open.
    pub fn streams(&self) -> usize {
        self.readers.len()
    }

    /// Moves packets until the trace is over or `stop` is readable, then makes them durable. When it
    /// was stopped, what the buffers hold is flushed and written first.
    ///
    /// After an error the sink has every packet written before it, whole.
    pub fn run(&mut self, stop: impl AsFd) -> Result<End> {
        let end = self.pump(stop).and_then(|end| {
            if end == End::Stopped {
                self.rescan()?;
                self.finish()?;
            }
            Ok(end)
        });
        let synced = self.sink.sync();
        let end = end?;
        synced?;
        Ok(end)
    }

    /// Writes what the buffers hold at this moment: a snapshot. What comes meanwhile is left in them.
    /// Only once: nothing more is read from the streams then.
    pub fn snapshot(&mut self) -> Result<()> {
        let taken = self.try_snapshot();
        let synced = self.sink.sync();
        taken.and(synced)
    }

    fn try_snapshot(&mut self) -> Result<()> {
        self.rescan()?;
        let taken = self.take_all()?;
        let next = self.source.next_packets()?;
        // First the streams that go on in the same memory.
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

    /// Takes the packets of all streams, as near to one moment as can be: how many of each. [`None`]: of this one
    /// the packet being written is closed, and no more.
    fn take_all(&mut self) -> Result<Vec<Option<u64>>> {
        // A trace that is over overwrites nothing.
        let is_recorded = !self.source.next_packets()?.is_empty();
        // That takes a while: all are prepared before the first is taken.
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

    /// Writes up to `most` packets of one stream, those below number `next`.
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

    /// Brings what the buffers hold to the sink. A busy trace goes on meanwhile: no more is taken than
    /// they could hold. One try more sees the end of a trace that is over.
    fn flush(&mut self) -> Result<()> {
        self.close_packets()?;
        for i in 0..self.readers.len() {
            if !self.readers[i].over {
                self.drain(i, self.most(i))?;
            }
        }
        Ok(())
    }

    /// The same, and waits until the sink has all of it.
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
                // The last one that is taken of a busy stream, too.
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

    /// Has the sink attend to its news, and goes on with the streams whose packet it has then.
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

    /// Closes the packets being written, of all streams as near to one moment as can be.
    fn close_packets(&mut self) -> Result<()> {
        for reader in self.readers.iter_mut().filter(|reader| !reader.over) {
            reader
                .stream
                .flush()
                .map_err(stream_error(&*self.sink, reader.number, "flush"))?;
        }
        Ok(())
    }

    /// How many packets a buffer can hold, and one that is closed meanwhile, and one try more.
    fn most(&self, i: usize) -> u64 {
        let count = self.source.subbuf_count(&self.readers[i].name);
        count.saturating_add(2)
    }

    /// Takes up to `most` packets of one stream. What the last attempt brought, or
    /// [`Took::Packet`] if any was taken.
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

    /// Takes one packet of one stream to the sink.
    fn take(&mut self, i: usize) -> Result<Took> {
        self.take_before(i, u64::MAX)
    }

    /// The same, if its number is below `next`. If not it is left, and the stream is done with.
    fn take_before(&mut self, i: usize, next: u64) -> Result<Took> {
        if !self.put_sent(i)? {
            return Ok(Took::Nothing);
        }
        let Reader {
            stream,
            number,
            sent,
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
            // The kernel has it again when the stream is closed.
            *over = true;
            return Ok(Took::Over);
        }
        // An earlier run wrote it, and died before it gave it back.
        if !self.sink.has(*number, packet.sequence) {
            if self.sink.is_full(packet.size) {
                turn(&self.source, &mut *self.sink)?;
            }
            // An event that the packet carries may have been described only now.
            if let Some(text) = self.source.metadata()? {
                self.sink.describe(&text)?;
            }
            self.sink.packet(*number, &packet, stream)?;
            self.written.packets += 1;
            self.written.bytes += packet.size;
        }
        *sent = Some(packet);
        if !self.put_sent(i)? {
            // That the next one is finished is of no use until then.
            self.unwatch(i)?;
        }
        Ok(Took::Packet)
    }

    /// Gives the packet back that is on its way to the sink, if the sink has it. Whether none is on its way.
    fn put_sent(&mut self, i: usize) -> Result<bool> {
        let Reader {
            stream,
            number,
            sent,
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
        self.written.records += packet.records;
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

    /// Opens the streams of CPUs that have appeared.
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

    /// Waits for any descriptor; the tokens of those that are ready.
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

/// Waits until a descriptor is readable, or for a while.
fn wait_for(fd: BorrowedFd<'_>) -> rustix::io::Result<()> {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    match poll(&mut fds, Some(&timespec(RESCAN))) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(e) => Err(e),
    }
}

/// Has the sink go on elsewhere.
fn turn(source: &impl Source, sink: &mut dyn Sink) -> Result<()> {
    sink.turn(&|| source.counters())
}

/// A stream is called as the sink calls it.
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
