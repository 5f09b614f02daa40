// SPDX-License-Identifier: GPL-2.0

//! Notifications to systemd, for units with `Type=notify`: sd_notify(3).

use consumer::Totals;
use control::Session;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Period of the counts.
const OFTEN: Duration = Duration::from_secs(10);

/// The service manager that started this program and wants its status, if there is one. A notification neither
/// waits nor fails: the trace is more important.
#[derive(Debug)]
pub struct Notify(Option<UnixDatagram>);

impl Notify {
    /// The manager whose socket is in the environment (`NOTIFY_SOCKET`).
    pub fn from_env() -> Self {
        let name = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty());
        Self(name.and_then(|name| connect(&name).ok()))
    }

    /// Reports that the program records, or waits for a trace, as `status` says. Later calls change the status.
    pub fn ready(&self, status: &str) {
        self.say(&format!("READY=1\nSTATUS={status}"));
    }

    /// Reports that the program is ending.
    pub fn stopping(&self) {
        self.say("STOPPING=1");
    }

    /// Reports the counts of the session's trace periodically, until the result is dropped.
    pub fn report(&self, session: &Session) -> Reporting {
        let socket = self.0.as_ref().and_then(|socket| socket.try_clone().ok());
        Reporting(socket.and_then(|socket| {
            let (notify, session) = (Self(Some(socket)), session.clone());
            let (end, ended) = channel();
            let report = move || {
                while ended.recv_timeout(OFTEN) == Err(RecvTimeoutError::Timeout) {
                    notify.counts(&session);
                }
            };
            let thread = thread::Builder::new().spawn(report).ok()?;
            Some((end, thread))
        }))
    }

    fn counts(&self, session: &Session) {
        if let Ok(stats) = session.stats() {
            let total = stats.all.total;
            let (recorded, lost) = (total.recorded, total.lost());
            self.say(&format!("STATUS=writing: {}", Totals { recorded, lost }));
        }
    }

    fn say(&self, text: &str) {
        if let Some(socket) = &self.0 {
            let _ = socket.send(text.as_bytes());
        }
    }
}

/// Ends the reports of [`Notify::report`] when it is dropped.
#[derive(Debug)]
pub struct Reporting(Option<(Sender<()>, JoinHandle<()>)>);

impl Drop for Reporting {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}

/// Connects to a socket: a path, or an abstract name after `@`.
fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hears(listener: &UnixDatagram, text: &str) {
        let mut buffer = [0; 256];
        let n = listener.recv(&mut buffer).unwrap();
        assert_eq!(std::str::from_utf8(&buffer[..n]).unwrap(), text);
    }

    #[test]
    fn both_kinds_of_sockets() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let abstract_name = format!("rtraced-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        for (name, listener) in [
            (path.as_os_str(), UnixDatagram::bind(&path).unwrap()),
            (
                OsStr::new(&format!("@{abstract_name}")),
                UnixDatagram::bind_addr(&address).unwrap(),
            ),
        ] {
            let notify = Notify(Some(connect(name).unwrap()));
            notify.ready("so far so good");
            hears(&listener, "READY=1\nSTATUS=so far so good");
            notify.stopping();
            hears(&listener, "STOPPING=1");
        }
    }

    #[test]
    fn nobody_listens() {
        let dir = tempfile::tempdir().unwrap();
        assert!(connect(dir.path().join("none").as_os_str()).is_err());
        let notify = Notify(None);
        notify.ready("unheard");
        notify.stopping();
    }
}
