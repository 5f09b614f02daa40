// SPDX-License-Identifier: GPL-2.0

//! Points: the moments before an access, at which anything else may happen first.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Decides what happens at a point.
pub trait Hook {
    fn at_point(&self);
}

thread_local! {
    /// So that a point costs next to nothing where no hook would do anything.
    static ARMED: Cell<bool> = const { Cell::new(false) };
    /// How many contexts are nested in one another.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static HOOK: RefCell<Option<Rc<dyn Hook>>> = const { RefCell::new(None) };
}

/// An interrupt, or the other CPU, may come here.
// (Of a search's points most come when nothing more can happen, and they are millions.)
#[inline(always)]
pub fn point() {
    if ARMED.get() {
        armed_point();
    }
}

#[inline(never)]
fn armed_point() {
    let hook = HOOK.with_borrow(Clone::clone);
    if let Some(hook) = hook {
        DEPTH.set(DEPTH.get() + 1);
        hook.at_point();
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// How deep the running context is nested.
pub fn depth() -> u32 {
    DEPTH.get()
}

/// Turns points on or off. Returns what they were.
pub fn arm(on: bool) -> bool {
    ARMED.replace(on)
}

/// Runs `work` as if it took no time: its accesses are no points.
pub fn at_once<T>(work: impl FnOnce() -> T) -> T {
    let before = arm(false);
    let result = work();
    arm(before);
    result
}

/// Sets or removes the hook of this thread. Points are off.
pub fn set_hook(hook: Option<Rc<dyn Hook>>) {
    arm(false);
    DEPTH.set(0);
    HOOK.set(hook);
}
