// SPDX-License-Identifier: GPL-2.0

//! Exclusion of operations that may take long. A signal ends the wait for the other operation.

use kernel::prelude::*;
use kernel::sync::{new_condvar, new_mutex, CondVar, Mutex};

/// A turn, which one operation at a time takes.
#[pin_data]
pub(crate) struct Turn {
    #[pin]
    is_taken: Mutex<bool>,
    /// Notified when the turn is given back.
    #[pin]
    given_back: CondVar,
}

/// The turn of an operation. The drop gives it back.
pub(crate) struct TakenTurn<'a>(&'a Turn);

impl Turn {
    /// A turn that no operation has.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            is_taken <- new_mutex!(false),
            given_back <- new_condvar!(),
        })
    }

    /// Takes the turn. `EINTR`: a signal came first. May sleep.
    pub(crate) fn take(&self) -> Result<TakenTurn<'_>> {
        let mut is_taken = self.is_taken.lock();
        while *is_taken {
            if self.given_back.wait_interruptible(&mut is_taken) {
                return Err(EINTR);
            }
        }
        *is_taken = true;
        Ok(TakenTurn(self))
    }

    /// Takes the turn, whatever signals come. May sleep.
    pub(crate) fn take_anyway(&self) -> TakenTurn<'_> {
        let mut is_taken = self.is_taken.lock();
        while *is_taken {
            self.given_back.wait(&mut is_taken);
        }
        *is_taken = true;
        TakenTurn(self)
    }
}

impl Drop for TakenTurn<'_> {
    fn drop(&mut self) {
        *self.0.is_taken.lock() = false;
        self.0.given_back.notify_one();
    }
}
