// SPDX-License-Identifier: GPL-2.0

//! Destination of messages: standard error, and after detaching the system log.

use network::Notice;
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use system::printing::commands_terminal;

/// Writes the program's messages. Clones have the same destination.
#[derive(Clone, Debug)]
pub struct Log(Arc<Mutex<Target>>);

/// Destination of the messages.
#[derive(Debug)]
enum Target {
    Stderr,
    /// The system log's socket, if there is one.
    System(Option<UnixDatagram>),
}

impl Log {
    /// A log on standard error.
    pub fn stderr() -> Self {
        Self(Arc::new(Mutex::new(Target::Stderr)))
    }

    /// Switches to the system log.
    pub fn go_to_system(&self) {
        let socket = UnixDatagram::unbound().and_then(|socket| {
            socket.connect("/dev/log")?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Target::System(socket.ok());
    }

    /// Writes an informational message.
    pub fn info(&self, message: &str) {
        self.say(6, message);
    }

    /// Writes an error message.
    pub fn error(&self, message: &str) {
        self.say(3, message);
    }

    /// Receiver of messages about connections to other machines.
    pub fn notice(&self) -> Notice {
        let log = self.clone();
        Arc::new(move |message| log.info(message))
    }

    fn say(&self, severity: u8, message: &str) {
        /// "System daemons" among syslog's facilities, in its place.
        const DAEMON: u8 = 3 << 3;
        // The message may contain text of another machine, so characters that control a terminal are removed.
        let message = message.replace(commands_terminal, "?");
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Target::Stderr => {
                // One write(2), so that another process on the same terminal cannot write in between. Without a reader
                // of standard error, the error cannot be reported.
                let _ = io::stderr().write_all(format!("rtraced: {message}\n").as_bytes());
            }
            Target::System(Some(socket)) => {
                let line = format!(
                    "<{}>rtraced[{}]: {message}",
                    DAEMON | severity,
                    process::id()
                );
                // Without a reader of the log, the error cannot be reported.
                let _ = socket.send(line.as_bytes());
            }
            Target::System(None) => {}
        }
    }
}
