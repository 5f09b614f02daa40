// SPDX-License-Identifier: GPL-2.0

//! Points: the moments before an access. At a point, other contexts may run first.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Decides what happens at a point.
pub trait Hook {
    fn at_point(&self);
}

thread_local! {
    /// Whether a hook may act. It makes a point cheap where no hook would act.
    static ARMED: Cell<bool> = const { Cell::new(false) };
    /// Number of contexts nested in one another.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static HOOK: RefCell<Option<Rc<dyn Hook>>> = const { RefCell::new(None) };
}

/// A point at which an interrupt, or the other CPU, may run.
// (A search has millions of points; at most of them nothing more can happen.)
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

/// Returns the nesting depth of the running context.
pub fn depth() -> u32 {
    DEPTH.get()
}

/// Turns points on or off. Returns the previous state.
pub fn arm(on: bool) -> bool {
    ARMED.replace(on)
}

/// Runs `work` as if it took no time: its accesses are not points.
pub fn at_once<T>(work: impl FnOnce() -> T) -> T {
    let before = arm(false);
    let result = work();
    arm(before);
    result
}

/// Sets or removes the hook of this thread, and turns points off.
pub fn set_hook(hook: Option<Rc<dyn Hook>>) {
    arm(false);
    DEPTH.set(0);
    HOOK.set(hook);
}
