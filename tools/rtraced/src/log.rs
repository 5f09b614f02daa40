// SPDX-License-Identifier: GPL-2.0

//! Where messages go: standard error, and once detached the system log.

use network::Notice;
use std::os::unix::net::UnixDatagram;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use system::printing::commands_terminal;

/// Takes the program's messages. Clones are the same.
#[derive(Clone, Debug)]
pub struct Log(Arc<Mutex<Target>>);

/// Who has them.
#[derive(Debug)]
enum Target {
    Stderr,
    /// The system log's socket, if there is one.
    System(Option<UnixDatagram>),
}

impl Log {
    /// To standard error.
    pub fn stderr() -> Self {
        Self(Arc::new(Mutex::new(Target::Stderr)))
    }

    /// To the system log from now on.
    pub fn go_to_system(&self) {
        let socket = UnixDatagram::unbound().and_then(|socket| {
            socket.connect("/dev/log")?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Target::System(socket.ok());
    }

    /// Something to know.
    pub fn info(&self, message: &str) {
        self.say(6, message);
    }

    /// Something that went wrong.
    pub fn error(&self, message: &str) {
        self.say(3, message);
    }

    /// For who says what happens on the way to another machine.
    pub fn notice(&self) -> Notice {
        let log = self.clone();
        Arc::new(move |message| log.info(message))
    }

    fn say(&self, severity: u8, message: &str) {
        /// "System daemons" among syslog's facilities, in its place.
        const DAEMON: u8 = 3 << 3;
        // It may contain what another machine says: nothing that a terminal would obey.
        let message = message.replace(commands_terminal, "?");
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Target::Stderr => eprintln!("rtraced: {message}"),
            Target::System(Some(socket)) => {
                let line = format!(
                    "<{}>rtraced[{}]: {message}",
                    DAEMON | severity,
                    process::id()
                );
                // Without a reader of the log there is nobody left to tell.
                let _ = socket.send(line.as_bytes());
            }
            Target::System(None) => {}
        }
    }
}
