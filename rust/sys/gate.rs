// SPDX-License-Identifier: GPL-2.0

//! Gates: the way from any context of a CPU to what it has of something, if it is open.

use crate::sys::percpu::{OnceArc, PerCpu};
use crate::sys::preempt::NoPreempt;
use crate::sys::word::{LocalWord, SharedWord};
use kernel::prelude::*;
use kernel::sync::Arc;

/// One gate for each possible CPU.
pub(crate) struct Gates<T> {
    gates: PerCpu<Gate<T>>,
}

/// The way to one CPU's `T`.
///
/// # Invariants
///
/// `is_open` is not 0 only when `target` is filled.
// `room` comes first, where an instruction needs no offset to get at it.
#[repr(C)]
struct Gate<T> {
    /// How many more contexts may be inside.
    room: LocalWord,
    is_open: SharedWord,
    target: OnceArc<T>,
}

// SAFETY: Closed, empty, without room: each field may be zero.
unsafe impl<T> Zeroable for Gate<T> {}

impl<T> Gates<T> {
    /// Closed gates, with nothing behind them, that let `depth` contexts of a CPU in at a time.
    /// May sleep.
    pub(crate) fn new(depth: u64) -> Result<Self> {
        let gates: PerCpu<Gate<T>> = PerCpu::new()?;
        for gate in crate::sys::cpu::possible().filter_map(|cpu| gates.of(cpu)) {
            gate.room.store(depth);
        }
        Ok(Self { gates })
    }

    /// Puts `target` behind the gate of `cpu`. Returns whether there was none.
    pub(crate) fn fill(&self, cpu: u32, target: Arc<T>) -> bool {
        self.gates
            .of(cpu)
            .is_some_and(|gate| gate.target.set(target))
    }

    /// What is behind the gate of `cpu`, open or closed. Any context.
    pub(crate) fn of(&self, cpu: u32) -> Option<&T> {
        self.gates.of(cpu)?.target.get()
    }

    /// Opens the gate of `cpu`, if there is something behind it. Any CPU.
    pub(crate) fn open(&self, cpu: u32) {
        if let Some(gate) = self.gates.of(cpu) {
            // INVARIANT: Once filled, always filled.
            if gate.target.get().is_some() {
                gate.is_open.store_release(1);
            }
        }
    }

    /// Closes the gate of `cpu`. Who is inside stays inside. Any CPU.
    pub(crate) fn close(&self, cpu: u32) {
        if let Some(gate) = self.gates.of(cpu) {
            gate.is_open.store(0);
        }
    }

    /// Goes through this CPU's gate. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<Entry<'_, T>, Refused<'_, T>> {
        let guard = NoPreempt::new();
        let gate = self.gates.this_cpu(&guard);
        let has_room = gate.room.take_one();
        let entry = Entry { gate, guard };
        // Acquire: what is behind an open gate is seen as it was when it was put there.
        if has_room && gate.is_open.load_acquire() != 0 {
            Ok(entry)
        } else {
            Err(Refused(entry))
        }
    }
}

/// Being inside: the CPU stays the same, and its `T` is there.
///
/// # Invariants
///
/// `gate` is this CPU's, and filled (but for one in a [`Refused`]).
// One pointer, so that it is handed on in a register.
pub(crate) struct Entry<'a, T> {
    gate: &'a Gate<T>,
    guard: NoPreempt,
}

impl<'a, T> Entry<'a, T> {
    /// This CPU's `T`.
    #[inline(always)]
    pub(crate) fn target(&self) -> &'a T {
        // SAFETY: By the invariant.
        unsafe { self.gate.target.get_filled() }
    }
}

impl<T> Drop for Entry<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.gate.room.increment();
    }
}

/// Being refused. The CPU stays the same while this lives.
pub(crate) struct Refused<'a, T>(Entry<'a, T>);

impl<'a, T> Refused<'a, T> {
    /// This CPU's `T` if its gate is open and only too many were inside.
    pub(crate) fn too_deep(&self) -> Option<&'a T> {
        let gate = self.0.gate;
        if gate.is_open.load_acquire() != 0 {
            gate.target.get()
        } else {
            None
        }
    }

    /// Says that the CPU stays the same.
    pub(crate) fn guard(&self) -> &NoPreempt {
        &self.0.guard
    }
}
