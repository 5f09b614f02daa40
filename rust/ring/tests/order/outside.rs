// SPDX-License-Identifier: GPL-2.0

//! Mistakes outside the ring, in the code that replaces the module here. A test switches one on.
//! (Mistakes in the ring are in `tests/faults`.)

use std::cell::Cell;

/// A mistake outside the ring.
// Not every suite's platform uses each of them.
#[allow(dead_code)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// Neither side executes a barrier at delivery (no W1, no R1).
    NoBarrier,
    /// `rcnt` is read relaxed (no W2).
    RelaxedRcnt,
    /// The reader's CPU switches the packet, not the writer's.
    SwitchElsewhere,
}

thread_local! {
    /// Thread-local, like a search: loom and shuttle run all their threads on one thread.
    static ON: Cell<Option<Outside>> = const { Cell::new(None) };
}

/// Returns whether the mistake is switched on.
pub fn is_on(mistake: Outside) -> bool {
    ON.get() == Some(mistake)
}

/// Runs `work` with the mistake.
#[cfg(fault)]
pub fn with(mistake: Outside, work: impl FnOnce()) {
    ON.set(Some(mistake));
    work();
    ON.set(None);
}
