// SPDX-License-Identifier: GPL-2.0

//! Tasks that wait for their memory in a probe.

use crate::sys::bindings;
pub(crate) use bindings::rtrace_waiter as Waiter;

impl Waiter {
    /// The characters of its name; `?` for what is not printed.
    pub(crate) fn name(&self) -> impl Iterator<Item = char> + '_ {
        let bytes = self.comm.iter().copied();
        bytes.take_while(|byte| *byte != 0).map(|byte| match byte {
            b' '..=b'~' => byte.into(),
            _ => '?',
        })
    }
}

/// Tasks that wait now. One that begins or ends meanwhile may be missed. Process context.
pub(crate) fn all() -> impl Iterator<Item = Waiter> {
    (0..).map_while(|at| {
        let mut waiter = Waiter::default();
        // SAFETY: Room for one.
        let is_there = unsafe { bindings::rtrace_waiter(at, &mut waiter) };
        is_there.then_some(waiter)
    })
}
