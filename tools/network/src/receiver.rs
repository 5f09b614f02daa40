// SPDX-License-Identifier: GPL-2.0

//! Receives the traces of any number of machines. Each trace has a directory of its own.
//!
//! Each connection has a thread. The resources that a peer can use are bounded: a pipe, some blocks, one
//! description. A peer that is silent for too long is disconnected.

use crate::hello::{Hello, Sent};
use crate::message::Message;
use crate::quota::{Quota, FILE};
use crate::reception::{trouble_of, Reception};
use crate::relay::Relay;
use crate::security::Security;
use crate::slots::{ConnectionKind, Slot, Slots};
use crate::socket::PATIENCE;
use crate::stream::{Listener, PeerId, StreamSocket};
use crate::tls::ServerTls;
use crate::traces::{ReceivedTrace, Traces};
use crate::trouble::Trouble;
use crate::wire::Wire;
use crate::Notice;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, Builder, Scope};
use std::time::{Duration, Instant};
use store::{reserved, OutputOptions};
use system::{Error, Result};

/// Pause after a failure to accept a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Period of the check whether a watcher still waits for a trace.
const ASK: Duration = Duration::from_secs(1);

/// Listens for senders and watchers.
pub struct Receiver {
    listener: Listener,
    security: Security<ServerTls>,
    dir: PathBuf,
    /// The locked directory. One receiver alone knows which traces have a sender, and how much was received.
    _lock: File,
    options: OutputOptions,
    notice: Notice,
    traces: Arc<Traces>,
    slots: Slots,
    quota: Quota,
    stops: AtomicBool,
}

impl Receiver {
    /// Listens at `ADDRESS:PORT`, or at the path of a Unix socket. Writes traces into directories in `dir`.
    /// `dir` must exist, and no other receiver may have locked it. The traces may use `quota` bytes at most.
    pub fn bind(
        address: &str,
        security: Security<ServerTls>,
        dir: PathBuf,
        options: OutputOptions,
        quota: Option<u64>,
        notice: Notice,
    ) -> Result<Self> {
        let lock = lock(&dir)?;
        let listener = Listener::bind(address, &security);
        let failed = Error::system(format!("cannot listen at {address}"));
        Ok(Self {
            listener: listener.map_err(failed)?,
            security,
            _lock: lock,
            quota: Quota::new(dir.clone(), quota),
            dir,
            options,
            notice,
            traces: Arc::default(),
            slots: Slots::default(),
            stops: AtomicBool::new(false),
        })
    }

    /// Serves a connection that the caller made, until its end.
    pub fn attend(&self, stream: UnixStream) -> std::result::Result<(), Trouble> {
        let stream = StreamSocket::from(stream);
        let slot = self.slots.take(&stream, PeerId::User(0))?;
        self.serve(stream, &slot, "a connection")
    }

    /// Address of the listening socket.
    pub fn address(&self) -> Result<String> {
        let address = self.listener.address();
        address.map_err(Error::system("cannot get the address"))
    }

    /// Receives until `stop` is readable. By then each directory is a trace of what was received.
    pub fn run(&self, stop: impl AsFd) -> Result<()> {
        thread::scope(|scope| {
            let accepted = self.accept_all(scope, stop);
            self.stops.store(true, Ordering::Relaxed);
            self.slots.shut_down();
            accepted
        })
    }

    fn accept_all<'s>(&'s self, scope: &'s Scope<'s, '_>, stop: impl AsFd) -> Result<()> {
        // Reported once, and not ten times a second while, for example, no file can be opened.
        let mut is_reported = false;
        loop {
            let (stream, peer, from) = loop {
                let mut fds = [
                    PollFd::new(&self.listener, PollFlags::IN),
                    PollFd::new(&stop, PollFlags::IN),
                ];
                match poll(&mut fds, None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(e) => return Err(Error::system("poll")(e)),
                }
                if !fds[1].revents().is_empty() {
                    return Ok(());
                }
                match self.listener.accept() {
                    Ok(accepted) => break accepted,
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(e) => {
                        if !is_reported {
                            (self.notice)(&format!("cannot accept connections: {e}"));
                        }
                        is_reported = true;
                        thread::sleep(PAUSE);
                    }
                }
            };
            is_reported = false;
            if let Err(error) = self.spawn(scope, stream, peer, from.clone()) {
                (self.notice)(&format!("{from}: {error}"));
            }
        }
    }

    /// Serves a connection in a thread of its own.
    fn spawn<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        stream: StreamSocket,
        peer: PeerId,
        from: String,
    ) -> io::Result<()> {
        let slot = self.slots.take(&stream, peer)?;
        let thread = Builder::new().name(from.clone());
        let serve = move || {
            let serve = AssertUnwindSafe(|| self.serve(stream, &slot, &from));
            // The standard library has printed the panic. Only this connection ends, not the receiver.
            let panic = |_| Err(Trouble::passing("internal error"));
            if let Err(trouble) = catch_unwind(serve).unwrap_or_else(panic) {
                (self.notice)(&format!("{from}: {trouble}"));
            }
        };
        thread.spawn_scoped(scope, serve).map(drop)
    }

    fn serve(
        &self,
        stream: StreamSocket,
        slot: &Slot<'_>,
        from: &str,
    ) -> std::result::Result<(), Trouble> {
        let socket = stream.try_clone()?;
        let mut wire = Wire::plain(stream, None)?;
        let served = self.greet(&mut wire).and_then(|hello| match hello {
            Hello::Send(sent) => {
                slot.is_now(ConnectionKind::Sender)?;
                self.receive(&mut wire, &socket, &sent, from)
            }
            Hello::Watch { trace } => {
                slot.is_now(ConnectionKind::Watcher)?;
                self.show(&mut wire, trace.as_deref())
            }
        });
        if let Err(Trouble { lasting, what }) = &served {
            let refused = Message::Refused {
                lasting: *lasting,
                reason: what.clone(),
            };
            // The peer may be gone.
            let _ = wire.say(&refused);
        }
        wire.part();
        served
    }

    /// Reads the first message. Any peer can send it. So the time is limited: otherwise a few peers could use
    /// up all connections.
    fn greet(&self, wire: &mut Wire) -> std::result::Result<Hello, Trouble> {
        wire.check_user()?;
        wire.set_deadline(Some(Instant::now() + PATIENCE));
        if let Security::Tls(tls) = &self.security {
            wire.encrypt(tls.connection()?)?;
        }
        let first = Message::read(wire).map_err(Trouble::of_greeting)?;
        wire.set_deadline(None);
        match first {
            Message::Hello(hello) => Ok(hello),
            _ => Err(Trouble::lasting(
                "the peer does not speak rtrace's protocol",
            )),
        }
    }

    fn receive(
        &self,
        wire: &mut Wire,
        socket: &StreamSocket,
        sent: &Sent,
        from: &str,
    ) -> std::result::Result<(), Trouble> {
        let name = sent.name();
        let claim = self.traces.claim(sent, socket)?;
        let dir = self.dir.join(&name);
        // The directory, that of a chunk, and the file of the recording.
        let room = reserved(&sent.streams, 1);
        self.quota.take(room + 3 * FILE)?;
        let begun = self.options.begin(&dir, sent.uuid, &sent.streams);
        let sink = begun.map_err(trouble_of)?;
        let resumed = sink.resumed();
        let verb = if resumed { "continuing" } else { "writing" };
        (self.notice)(&format!("{from}: {verb} {}", dir.display()));
        wire.say(&Message::Welcome {
            trace: name.clone(),
            resumed,
        })?;
        let reception = Reception::new(wire, sent, sink, &dir, &claim.progress, &self.quota);
        let taken = reception.run(|| self.stops());
        let outcome = taken.map_err(|trouble| Trouble {
            what: format!("{name}: {trouble}"),
            ..trouble
        })?;
        (self.notice)(&format!("{from}: {name}: {outcome}"));
        Ok(())
    }

    /// Shows a trace to a watcher. If there is none, waits for it.
    fn show(&self, wire: &mut Wire, wanted: Option<&str>) -> std::result::Result<(), Trouble> {
        if self.options.rotate.is_some() {
            let what = "a receiver with --rotate cannot show traces";
            return Err(Trouble::lasting(what));
        }
        wire.be_patient()?;
        let ReceivedTrace {
            name,
            uuid,
            progress,
        } = loop {
            if self.stops() || !wire.is_open() {
                return Ok(());
            }
            if let Some(found) = self.traces.find(wanted, ASK) {
                break found;
            }
        };
        let dir = self.dir.join(&name);
        wire.say(&Message::Welcome {
            trace: name,
            resumed: false,
        })?;
        Relay::new(wire, &dir, uuid).run(&progress, || self.stops())
    }

    fn stops(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }
}

/// Locks a directory until the file is closed.
fn lock(dir: &Path) -> Result<File> {
    let failed = || Error::system(format!("cannot receive into {}", dir.display()));
    let file = File::open(dir).map_err(failed())?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
        Errno::WOULDBLOCK => failed()(io::Error::other("another receiver uses it")),
        errno => failed()(errno.into()),
    })?;
    Ok(file)
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("listener", &self.listener)
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}
