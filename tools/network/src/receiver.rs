// SPDX-License-Identifier: GPL-2.0

//! Takes the traces of any number of machines, each into a directory of its own.
//!
//! Each connection has a thread. What a peer can make that take is bounded: a pipe, some blocks, one
//! description; and a peer that says nothing for a while is left.

use crate::hello::{Hello, Sent};
use crate::message::Message;
use crate::peer::{not_loopback, Security};
use crate::reception::{trouble_of, Reception};
use crate::relay::Relay;
use crate::socket::PATIENCE;
use crate::tls::ServerTls;
use crate::traces::{Found, Traces};
use crate::trouble::Trouble;
use crate::wire::Wire;
use crate::Notice;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::iter;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, Scope};
use std::time::{Duration, Instant};
use trace::output::OutputOptions;
use trace::{Error, Result};

/// The most connections at a time.
const MOST: usize = 1024;

/// How long nobody is accepted when that failed.
const PAUSE: Duration = Duration::from_millis(100);

/// How often it is asked whether somebody still waits for a trace.
const ASK: Duration = Duration::from_secs(1);

/// Listens for senders.
pub struct Receiver {
    listener: TcpListener,
    security: Security<ServerTls>,
    dir: PathBuf,
    /// The directory, locked: which trace has a sender, and how far it has come, one receiver knows.
    _lock: File,
    options: OutputOptions,
    notice: Notice,
    traces: Arc<Traces>,
    /// Those that are open, by a number each.
    connections: Mutex<BTreeMap<u64, TcpStream>>,
    stops: AtomicBool,
}

impl Receiver {
    /// Listens at `ADDRESS:PORT`. Traces are written into directories below `dir`, which is there, and which
    /// no other receiver has.
    pub fn bind(
        address: &str,
        security: Security<ServerTls>,
        dir: PathBuf,
        options: OutputOptions,
        notice: Notice,
    ) -> Result<Self> {
        let what = || format!("cannot listen at {address}");
        let listener = TcpListener::bind(address).map_err(Error::system(what()))?;
        let at = listener.local_addr().map_err(Error::system(what()))?;
        if matches!(security, Security::Loopback) && !at.ip().is_loopback() {
            let refusal = io::Error::other(not_loopback(&at));
            return Err(Error::system(what())(refusal));
        }
        let set = listener.set_nonblocking(true);
        set.map_err(Error::system(what()))?;
        Ok(Self {
            listener,
            security,
            _lock: lock(&dir)?,
            dir,
            options,
            notice,
            traces: Arc::default(),
            connections: Mutex::default(),
            stops: AtomicBool::new(false),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> Result<SocketAddr> {
        let address = self.listener.local_addr();
        address.map_err(Error::system("cannot tell the address"))
    }

    /// Takes what comes until `stop` is readable. What has come by then is a trace in each directory.
    pub fn run(&self, stop: impl AsFd) -> Result<()> {
        thread::scope(|scope| {
            let accepted = self.accept_all(scope, stop);
            self.stops.store(true, Ordering::Relaxed);
            for connection in self.lock().values() {
                let _ = connection.shutdown(Shutdown::Both);
            }
            accepted
        })
    }

    fn accept_all<'s>(&'s self, scope: &'s Scope<'s, '_>, stop: impl AsFd) -> Result<()> {
        // Once, not ten times a second for as long as there are, say, no more files.
        let mut is_reported = false;
        for number in 0.. {
            let (stream, from) = loop {
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
            if let Err(error) = self.spawn(scope, number, stream, from) {
                (self.notice)(&format!("{from}: {error}"));
            }
        }
        Ok(())
    }

    /// Serves a connection in a thread.
    fn spawn<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        number: u64,
        stream: TcpStream,
        from: SocketAddr,
    ) -> io::Result<()> {
        let mut connections = self.lock();
        if connections.len() >= MOST {
            return Err(io::Error::other("there are too many connections"));
        }
        connections.insert(number, stream.try_clone()?);
        drop(connections);
        let serve = move || {
            let served = self.serve(stream, from);
            self.lock().remove(&number);
            if let Err(trouble) = served {
                (self.notice)(&format!("{from}: {trouble}"));
            }
        };
        let spawned = Builder::new()
            .name(from.to_string())
            .spawn_scoped(scope, serve);
        if spawned.is_err() {
            self.lock().remove(&number);
        }
        spawned.map(drop)
    }

    fn serve(&self, stream: TcpStream, from: SocketAddr) -> std::result::Result<(), Trouble> {
        let socket = stream.try_clone()?;
        let mut wire = Wire::plain(stream, None)?;
        let served = self.greet(&mut wire).and_then(|hello| match hello {
            Hello::Send(sent) => self.receive(&mut wire, &socket, &sent, from),
            Hello::Watch { trace } => self.show(&mut wire, trace.as_deref()),
        });
        if let Err(Trouble { lasting, what }) = &served {
            let refused = Message::Refused {
                lasting: *lasting,
                reason: what.clone(),
            };
            // Who is gone need not know.
            let _ = wire.say(&refused);
        }
        wire.part();
        served
    }

    /// Takes the first words. They come from anybody: who does not end soon is left, or a few could take all
    /// connections that there are.
    fn greet(&self, wire: &mut Wire) -> std::result::Result<Hello, Trouble> {
        wire.set_deadline(Some(Instant::now() + PATIENCE));
        if let Security::Tls(tls) = &self.security {
            wire.encrypt(tls.connection()?)?;
        }
        let first = Message::read(wire).map_err(Trouble::of_greeting)?;
        wire.set_deadline(None);
        match first {
            Message::Hello(hello) => Ok(hello),
            _ => Err(Trouble::lasting("no hello of rtrace's")),
        }
    }

    fn receive(
        &self,
        wire: &mut Wire,
        socket: &TcpStream,
        sent: &Sent,
        from: SocketAddr,
    ) -> std::result::Result<(), Trouble> {
        let name = sent.name();
        let claim = self.traces.claim(sent, socket)?;
        let dir = self.dir.join(&name);
        let begun = self.options.begin(&dir, sent.uuid, &sent.streams);
        let sink = begun.map_err(trouble_of)?;
        let resumed = sink.resumed();
        let verb = if resumed { "continuing" } else { "writing" };
        (self.notice)(&format!("{from}: {verb} {}", dir.display()));
        wire.say(&Message::Welcome {
            trace: name.clone(),
            resumed,
        })?;
        let reception = Reception::new(wire, sent, sink, &dir, &claim.progress);
        let taken = reception.run(|| self.stops());
        let outcome = taken.map_err(|trouble| Trouble {
            what: format!("{name}: {trouble}"),
            ..trouble
        })?;
        (self.notice)(&format!("{from}: {name}: {outcome}"));
        Ok(())
    }

    /// Shows a trace to somebody who watches; waits for it, if none is there.
    fn show(&self, wire: &mut Wire, wanted: Option<&str>) -> std::result::Result<(), Trouble> {
        if self.options.rotate.is_some() {
            let what = "traces that come in are not shown where they are cut into chunks";
            return Err(Trouble::lasting(what));
        }
        wire.be_patient()?;
        let found = iter::repeat_with(|| self.traces.find(wanted, ASK))
            .take_while(|_| !self.stops() && wire.is_open())
            .find_map(|found| found);
        let Some(Found {
            name,
            uuid,
            progress,
        }) = found
        else {
            return Ok(());
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

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, TcpStream>> {
        // Whoever panicked did so between two changes.
        let locked = self.connections.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Locks a directory, until the file is closed.
fn lock(dir: &Path) -> Result<File> {
    let failed = || Error::system(format!("cannot receive into {}", dir.display()));
    let file = File::open(dir).map_err(failed())?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
        Errno::WOULDBLOCK => failed()(io::Error::other("another receiver does")),
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
