// SPDX-License-Identifier: GPL-2.0

//! Mistakes around the ring, in what the tests have in the place of the module: a test switches them
//! on. (Mistakes in the ring are in `tests/faults`.)

use std::cell::Cell;

/// A mistake that is not the ring's.
// Not every suite's platform makes each.
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
    /// Of the thread, as a search is: loom and shuttle run all their threads on it.
    static ON: Cell<Option<Outside>> = const { Cell::new(None) };
}

/// Whether the mistake is to be made now.
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
