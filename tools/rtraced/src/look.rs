// SPDX-License-Identifier: GPL-2.0

//! The time between two checks of a session.

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use system::signals::Signals;

/// Period of the checks whether the session has a trace.
const ASK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

/// Waits for the next check of the session. Returns the signals that arrived in that time.
pub fn look(signals: &mut Signals) -> Vec<i32> {
    let mut fds = [PollFd::new(&*signals, PollFlags::IN)];
    let _ = poll(&mut fds, Some(&ASK));
    signals.pending()
}
