// SPDX-License-Identifier: GPL-2.0

//! The use of a directory's data by operations of its files.

use kernel::prelude::*;
use kernel::sync::{new_condvar, new_mutex, CondVar, Mutex};

/// Counts the running operations of a directory's files. After [`close`](Self::close) none begins.
#[pin_data]
pub(super) struct ActiveOperations {
    #[pin]
    state: Mutex<State>,
    /// Notified when the last operation ends.
    #[pin]
    left: CondVar,
}

struct State {
    running: usize,
    is_closed: bool,
}

/// A running operation.
pub(super) struct ActiveOperation<'a>(&'a ActiveOperations);

impl ActiveOperations {
    /// Creates the count of a directory whose operations may begin.
    pub(super) fn new() -> impl PinInit<Self> {
        let state = State {
            running: 0,
            is_closed: false,
        };
        pin_init!(Self {
            state <- new_mutex!(state),
            left <- new_condvar!(),
        })
    }

    /// Begins an operation. `ENOENT`: the directory is closed.
    pub(super) fn begin(&self) -> Result<ActiveOperation<'_>> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(ENOENT);
        }
        state.running += 1;
        Ok(ActiveOperation(self))
    }

    /// Lets no further operation begin, and waits for the running operations. May sleep.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        while state.running > 0 {
            self.left.wait(&mut state);
        }
    }
}

impl Drop for ActiveOperation<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.running -= 1;
        if state.running == 0 {
            self.0.left.notify_all();
        }
    }
}
