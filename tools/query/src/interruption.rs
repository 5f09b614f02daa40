// SPDX-License-Identifier: GPL-2.0

//! Signals that end a query.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use system::signals::Signals;

/// Caught signals. After the first signal, every check fails.
#[derive(Clone)]
pub struct Interruption(Arc<Mutex<(Signals, bool)>>);

impl Interruption {
    /// Catches signals from now on.
    pub fn catch() -> system::Result<Self> {
        let signals = Signals::catch()?;
        Ok(Self(Arc::new(Mutex::new((signals, false)))))
    }

    /// Whether the process has caught a signal.
    pub fn has_come(&self) -> bool {
        let mut signals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        signals.1 |= !signals.0.pending().is_empty();
        signals.1
    }

    /// Returns an error if the process has caught a signal.
    pub fn check(&self) -> io::Result<()> {
        match self.has_come() {
            false => Ok(()),
            true => Err(io::Error::new(
                io::ErrorKind::Interrupted,
                "stopped by a signal",
            )),
        }
    }
}
