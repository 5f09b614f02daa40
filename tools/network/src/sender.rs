// SPDX-License-Identifier: GPL-2.0

//! The sink that sends a trace to a receiver.
//!
//! One packet of each stream is in transit. The kernel gets it back when the receiver has written it. Without a
//! connection, the sender takes no other packets from the kernel. After a reconnection, the receiver reports
//! which packets it has, and the sender repeats those in transit that it lacks.

use crate::hello::{host, Sent};
use crate::link::Link;
use crate::message::Message;
use crate::peer::Peer;
use crate::pipe::Pipe;
use crate::socket::{timespec, GRACE};
use crate::trouble::Trouble;
use crate::Notice;
use consumer::{Sink, State, Stream};
use ctf::StreamName;
use rtrace_abi::ioctl::Packet;
use rustix::event::{epoll, poll, PollFd, PollFlags, Timespec};
use rustix::io::retry_on_intr;
use rustix::time::{
    timerfd_create, timerfd_settime, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags,
};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use system::{Error, Result};
use uuid::Uuid;

/// Period at which the receiver gets the contents of the buffers, and the counters.
const PERIOD: Duration = Duration::from_secs(1);

/// Delays between attempts to connect. Each is twice the previous one.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// The first delay.
    pub first: Duration,
    /// Maximum delay.
    pub most: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            most: Duration::from_secs(5),
        }
    }
}

/// Sends one trace.
pub struct Sender {
    peer: Peer,
    sent: Sent,
    retry: Retry,
    /// The next delay.
    delay: Duration,
    link: Option<Link>,
    /// Whether a receiver ever accepted a connection.
    was_welcome: bool,
    resumed: bool,
    streams: Vec<SentStream>,
    metadata: Option<String>,
    /// Copy of a packet on its way into the socket.
    transit: Pipe,
    null: File,
    /// The epoll instance for the timer and the connection.
    news: OwnedFd,
    timer: OwnedFd,
    /// Readable when the program is to stop.
    stop: OwnedFd,
    /// Time when the sender found `stop` readable.
    stopped: Option<Instant>,
    /// Time of the receiver's last acknowledgement.
    progress: Instant,
    next_turn: Instant,
    notice: Notice,
    /// The last problem that was reported.
    reported: Option<String>,
}

/// A stream, and its packet in transit.
#[derive(Debug)]
struct SentStream {
    name: StreamName,
    /// The receiver has the packets below this number.
    next: u64,
    /// Whether the receiver has confirmed `next` on this connection.
    is_known: bool,
    sequence: u64,
    /// The packet in transit, until the receiver has it.
    pipe: Pipe,
}

impl Sender {
    /// Sends the trace `uuid` to a receiver. `streams` are the possible streams. `stop` becomes readable when
    /// the program is to stop; from then on a receiver that does not answer gets only a short time.
    ///
    /// If the connection fails now, the sender retries later. A problem that a retry cannot solve is an error.
    pub fn begin(
        peer: Peer,
        uuid: Uuid,
        streams: Vec<StreamName>,
        retry: Retry,
        stop: OwnedFd,
        notice: Notice,
    ) -> Result<Self> {
        let now = Instant::now();
        let mut sender = Self {
            peer,
            sent: Sent {
                host: host(),
                uuid,
                streams,
            },
            retry,
            delay: retry.first,
            link: None,
            was_welcome: false,
            resumed: false,
            streams: Vec::new(),
            metadata: None,
            transit: pipe()?,
            null: null().map_err(Error::system("cannot open /dev/null"))?,
            news: epoll::create(epoll::CreateFlags::CLOEXEC)
                .map_err(Error::system("cannot create an epoll"))?,
            timer: timerfd_create(
                TimerfdClockId::Monotonic,
                TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
            )
            .map_err(Error::system("cannot create a timer"))?,
            stop,
            stopped: None,
            progress: now,
            next_turn: now + PERIOD,
            notice,
            reported: None,
        };
        sender.watch(&sender.timer)?;
        sender.connect_or_wait()?;
        Ok(sender)
    }

    /// Connects, or starts the timer for the next attempt.
    fn connect_or_wait(&mut self) -> Result<()> {
        match self.connect() {
            Ok(()) => Ok(()),
            Err(trouble) if trouble.lasting && !self.was_welcome => Err(self.error(trouble)),
            Err(trouble) => self.lost(trouble),
        }
    }

    /// Connects, and brings the receiver up to date.
    fn connect(&mut self) -> std::result::Result<(), Trouble> {
        let stop = self.stop.try_clone()?;
        let mut link = Link::connect(&self.peer, &self.sent, Some(stop))?;
        if !self.was_welcome {
            self.resumed = link.resumed();
        }
        self.was_welcome = true;
        let metadata = self.metadata.iter().cloned().map(Message::Metadata);
        let streams = (0..).zip(&self.streams).map(|(number, stream)| {
            let name = stream.name.clone();
            Message::Stream { number, name }
        });
        link.say_all(&metadata.chain(streams).collect::<Vec<_>>())?;
        for stream in &mut self.streams {
            stream.is_known = false;
        }
        // Each stream is answered once. Only then is it known which packets must be repeated.
        while self.streams.iter().any(|stream| !stream.is_known) {
            let answer = link.wait_for_answer()?;
            self.take(answer)?;
        }
        self.watch(&link)
            .map_err(|e| Trouble::passing(e.to_string()))?;
        self.link = Some(link);
        for number in 0..self.streams.len() {
            self.send(number)?;
        }
        self.next_turn = Instant::now() + PERIOD;
        Ok(())
    }

    /// Sends the packet in transit of a stream, if there is one.
    fn send(&mut self, number: usize) -> std::result::Result<(), Trouble> {
        let stream = &mut self.streams[number];
        let Some(link) = self.link.as_mut().filter(|_| stream.pipe.held() > 0) else {
            return Ok(());
        };
        self.transit.copy_of(&stream.pipe)?;
        let number = number as u32;
        Ok(self
            .transit
            .give(|pipe, size| link.send(number, pipe, size))?)
    }

    /// Sends a message, if there is a connection.
    fn say(&mut self, message: &Message) -> Result<()> {
        let said = self.link.as_mut().map_or(Ok(()), |link| link.say(message));
        said.or_else(|error| {
            let trouble = self.reason(error.into());
            self.lost(trouble)
        })
    }

    /// Handles the answers that were received.
    fn hear(&mut self) -> std::result::Result<(), Trouble> {
        while let Some(link) = &mut self.link {
            match link.answer()? {
                Some(answer) => self.take(answer)?,
                None => break,
            }
        }
        Ok(())
    }

    /// The reason of a failure. The receiver may have sent it before it closed the connection.
    fn reason(&mut self, trouble: Trouble) -> Trouble {
        self.hear().err().unwrap_or(trouble)
    }

    fn take(&mut self, answer: Message) -> std::result::Result<(), Trouble> {
        match answer {
            Message::Have { number, next } => {
                let stream = self.streams.get_mut(number as usize);
                let stream = stream.ok_or_else(|| {
                    Trouble::passing("the receiver acknowledged packets of an unknown stream")
                })?;
                if next < stream.next && !stream.is_known {
                    (self.notice)(&format!(
                        "{}: the receiver has lost packets {next} to {} of {}",
                        self.peer,
                        stream.next - 1,
                        stream.name
                    ));
                }
                if next > stream.next {
                    self.progress = Instant::now();
                    self.delay = self.retry.first;
                    if self.reported.take().is_some() {
                        (self.notice)(&format!("{}: packets arrive again", self.peer));
                    }
                }
                (stream.next, stream.is_known) = (next, true);
                if stream.pipe.held() > 0 && stream.sequence < next {
                    stream.pipe.clear(&self.null)?;
                }
                Ok(())
            }
            Message::Refused { lasting, reason } => Err(Trouble {
                lasting,
                what: reason,
            }),
            other => Err(Trouble::passing(format!("unexpected answer {other:?}"))),
        }
    }

    /// Handles the loss of the connection: starts the timer for the next attempt.
    fn lost(&mut self, trouble: Trouble) -> Result<()> {
        self.link = None;
        if self.reported.as_ref() != Some(&trouble.what) {
            (self.notice)(&format!(
                "{}: {trouble}; trying again; events stay in the kernel's buffers",
                self.peer
            ));
            self.reported = Some(trouble.what);
        }
        let delay = self.delay.max(Duration::from_nanos(1));
        self.delay = (self.delay * 2).min(self.retry.most);
        self.set_timer(delay)
    }

    fn set_timer(&self, delay: Duration) -> Result<()> {
        let once = Itimerspec {
            it_interval: timespec(Duration::ZERO),
            it_value: timespec(delay),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)
            .map(drop)
            .map_err(Error::system("cannot set a timer"))
    }

    /// Whether the timer has expired since the last call.
    fn is_due(&self) -> bool {
        rustix::io::read(&self.timer, &mut [0; 8]).is_ok()
    }

    fn watch(&self, fd: impl AsFd) -> Result<()> {
        let data = epoll::EventData::new_u64(0);
        epoll::add(&self.news, fd, data, epoll::EventFlags::IN).map_err(Error::system("epoll"))
    }

    /// Time when the sender first noticed that the program is to stop.
    fn stopped(&mut self) -> Option<Instant> {
        let mut fds = [PollFd::new(&self.stop, PollFlags::IN)];
        if self.stopped.is_none() && poll(&mut fds, Some(&Timespec::default())) == Ok(1) {
            self.stopped = Some(Instant::now());
        }
        self.stopped
    }

    /// Whether the program is to stop, and the receiver has not answered for a while since then.
    fn is_given_up(&mut self) -> bool {
        let since = self.stopped().map(|stopped| stopped.max(self.progress));
        since.is_some_and(|since| since.elapsed() >= GRACE)
    }

    fn error(&self, trouble: Trouble) -> Error {
        Error::system(format!("cannot send to {}", self.peer))(io::Error::from(trouble))
    }
}

impl Sink for Sender {
    fn resumed(&self) -> bool {
        self.resumed
    }

    fn describe(&mut self, metadata: &str) -> Result<()> {
        self.metadata = Some(metadata.to_owned());
        self.say(&Message::Metadata(metadata.to_owned()))
    }

    fn open(&mut self, stream: &StreamName) -> Result<usize> {
        let number = self.streams.len();
        self.streams.push(SentStream {
            name: stream.clone(),
            next: 0,
            is_known: false,
            sequence: 0,
            pipe: pipe()?,
        });
        self.say(&Message::Stream {
            number: number as u32,
            name: stream.clone(),
        })?;
        Ok(number)
    }

    fn last(&self, stream: usize) -> Option<u64> {
        self.streams[stream].next.checked_sub(1)
    }

    fn packet(&mut self, number: usize, packet: &Packet, from: &mut dyn Stream) -> Result<()> {
        let stream = &mut self.streams[number];
        let size = usize::try_from(packet.size).unwrap_or(usize::MAX);
        let filled = stream.pipe.fill(from, size);
        filled.map_err(|cause| Error::Stream {
            stream: stream.name.to_string(),
            action: "reading a packet",
            cause,
        })?;
        stream.sequence = packet.sequence;
        let sent = self.send(number);
        sent.or_else(|trouble| {
            let trouble = self.reason(trouble);
            self.lost(trouble)
        })
    }

    fn name(&self, stream: usize) -> String {
        self.streams[stream].name.to_string()
    }

    fn news(&self) -> Option<BorrowedFd<'_>> {
        Some(self.news.as_fd())
    }

    fn attend(&mut self) -> Result<()> {
        let is_due = self.is_due();
        let is_connected = self.link.is_some();
        // An answer that was received counts, even if it is read late.
        let heard = self.hear();
        heard.or_else(|trouble| self.lost(trouble))?;
        if self.is_given_up() {
            let on_their_way = self.streams.iter().filter(|stream| stream.pipe.held() > 0);
            return Err(self.error(Trouble::passing(format!(
                "{} packets were not acknowledged",
                on_their_way.count()
            ))));
        }
        if is_due && !is_connected {
            self.connect_or_wait()?;
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Instant> {
        self.link.as_ref().map(|_| self.next_turn)
    }

    fn turn(&mut self, stats: &dyn Fn() -> Result<String>) -> Result<()> {
        self.next_turn = Instant::now() + PERIOD;
        self.say(&Message::Stats(stats()?))
    }

    /// The receiver syncs, at the end. Our pipes only reference the kernel's pages. Once the streams are
    /// closed, the kernel overwrites them. So if a packet is still in transit, this drops the connection and
    /// empties the pipes.
    fn sync(&mut self) -> Result<()> {
        for stream in &mut self.streams {
            if stream.pipe.held() > 0 {
                self.link = None;
                let cleared = stream.pipe.clear(&self.null);
                cleared.map_err(Error::system("cannot empty a pipe"))?;
            }
        }
        Ok(())
    }

    fn end(mut self: Box<Self>, state: State, unwritten: u64, stats: &str) -> Result<()> {
        self.close(&[
            Message::Stats(stats.to_owned()),
            Message::End { state, unwritten },
        ])
    }

    fn discard(mut self: Box<Self>) -> Result<()> {
        self.close(&[Message::Discard])
    }
}

impl Sender {
    /// Sends the last messages, and waits until the receiver has handled them. Without a connection it retries
    /// until there is one. When the program is to stop, it gives up after [`GRACE`].
    fn close(&mut self, words: &[Message]) -> Result<()> {
        let began = Instant::now();
        loop {
            let Err(trouble) = self.try_close(words) else {
                return Ok(());
            };
            let stopped = self.stopped();
            let is_last = match stopped {
                Some(at) => trouble.lasting || at.max(began).elapsed() >= GRACE,
                None => trouble.lasting && !self.was_welcome,
            };
            if is_last {
                return Err(self.error(Trouble::passing(format!(
                    "cannot tell the receiver how the trace ended: {trouble}"
                ))));
            }
            if stopped.is_some() {
                self.delay = self.retry.first;
            }
            self.lost(trouble)?;
            self.wait_for_retry(stopped.is_some())?;
        }
    }

    /// Waits for the next attempt to connect, or until the program is to stop.
    fn wait_for_retry(&self, is_stopped: bool) -> Result<()> {
        let mut fds = vec![PollFd::new(&self.timer, PollFlags::IN)];
        fds.extend((!is_stopped).then(|| PollFd::new(&self.stop, PollFlags::IN)));
        retry_on_intr(|| poll(&mut fds, None)).map_err(Error::system("poll"))?;
        self.is_due();
        Ok(())
    }

    fn try_close(&mut self, words: &[Message]) -> std::result::Result<(), Trouble> {
        if self.link.is_none() {
            self.connect()?;
        }
        if let Some(link) = &mut self.link {
            let said = link.say_all(words);
            said.map_err(|error| self.reason(error.into()))?;
        }
        if let Some(link) = &mut self.link {
            // A large trace takes minutes to write to the disk. Receivers of earlier versions send nothing in
            // that time.
            link.let_be_silent();
        }
        loop {
            let Some(link) = &mut self.link else {
                return Err(Trouble::passing("there is no connection"));
            };
            match link.wait_for_answer()? {
                Message::Done => return Ok(()),
                answer => self.take(answer)?,
            }
        }
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("peer", &self.peer)
            .field("link", &self.link)
            .field("streams", &self.streams)
            .finish_non_exhaustive()
    }
}

fn pipe() -> Result<Pipe> {
    Pipe::new().map_err(Error::system("cannot create a pipe"))
}

fn null() -> io::Result<File> {
    OpenOptions::new().write(true).open("/dev/null")
}
