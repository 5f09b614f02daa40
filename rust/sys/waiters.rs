// SPDX-License-Identifier: GPL-2.0

//! Tasks that wait in a probe for their memory.

use crate::sys::bindings;
pub(crate) use bindings::rtrace_waiter as Waiter;

impl Waiter {
    /// The characters of the task's name; `?` for one that cannot be printed.
    pub(crate) fn name(&self) -> impl Iterator<Item = char> + '_ {
        let bytes = self.comm.iter().copied();
        bytes.take_while(|byte| *byte != 0).map(|byte| match byte {
            b' '..=b'~' => byte.into(),
            _ => '?',
        })
    }
}

/// Tasks that wait now, the longest wait first. Process context.
pub(crate) fn all() -> impl Iterator<Item = Waiter> {
    let mut after = 0;
    core::iter::from_fn(move || {
        let mut waiter = Waiter::default();
        // SAFETY: `waiter` is memory for one waiter.
        let is_there = unsafe { bindings::rtrace_waiter(after, &mut waiter) };
        after = waiter.number;
        is_there.then_some(waiter)
    })
}
