// SPDX-License-Identifier: GPL-2.0

//! Where messages go: standard error, and once detached the system log.

use std::os::unix::net::UnixDatagram;
use std::process;

/// Takes the program's messages.
#[derive(Debug)]
pub enum Log {
    /// Standard error.
    Stderr,
    /// The system log's socket, if there is one.
    System(Option<UnixDatagram>),
}

impl Log {
    /// The system log.
    pub fn system() -> Self {
        let socket = UnixDatagram::unbound().and_then(|socket| {
            socket.connect("/dev/log")?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        Self::System(socket.ok())
    }

    /// Something to know.
    pub fn info(&self, message: &str) {
        self.say(6, message);
    }

    /// Something that went wrong.
    pub fn error(&self, message: &str) {
        self.say(3, message);
    }

    fn say(&self, severity: u8, message: &str) {
        /// "System daemons" among syslog's facilities, in its place.
        const DAEMON: u8 = 3 << 3;
        match self {
            Self::Stderr => eprintln!("rtraced: {message}"),
            Self::System(Some(socket)) => {
                let line = format!(
                    "<{}>rtraced[{}]: {message}",
                    DAEMON | severity,
                    process::id()
                );
                // Without a reader of the log there is nobody left to tell.
                let _ = socket.send(line.as_bytes());
            }
            Self::System(None) => {}
        }
    }
}
