// SPDX-License-Identifier: GPL-2.0

//! Gates: the way from any context of a CPU to what it has of something, if it is open.

use crate::arch::preempt::NoPreempt;
use crate::arch::word::CountAndFlags;
use crate::sys::cpu;
use crate::sys::percpu::{OnceArc, PerCpu};
use kernel::prelude::*;
use kernel::sync::Arc;

/// One gate for each possible CPU. Clones lead through the same gates.
///
/// # Invariants
///
/// `offset` is that of `gates`: here, so that who has a clone is one load nearer.
pub(crate) struct Gates<T> {
    offset: usize,
    gates: Arc<PerCpu<Gate<T>>>,
}

/// The way to one CPU's `T`.
///
/// # Invariants
///
/// It is open only when `target` is filled.
// `state` comes first, where an instruction needs no offset to get at it.
#[repr(C)]
struct Gate<T> {
    /// How many more contexts may be inside; whether it is open; whether it is watched.
    state: CountAndFlags,
    target: OnceArc<T>,
}

// SAFETY: Closed, empty, without room: each field may be zero.
unsafe impl<T> Zeroable for Gate<T> {}

impl<T> Clone for Gates<T> {
    fn clone(&self) -> Self {
        Self {
            offset: self.offset,
            gates: self.gates.clone(),
        }
    }
}

impl<T> Gates<T> {
    /// Closed gates, with nothing behind them, that let `depth` contexts of a CPU in at a time.
    /// May sleep.
    pub(crate) fn new(depth: u64) -> Result<Self> {
        let gates: PerCpu<Gate<T>> = PerCpu::new()?;
        for gate in cpu::possible().filter_map(|cpu| gates.of(cpu)) {
            gate.state.count().store(depth);
        }
        Ok(Self {
            offset: gates.offset(),
            gates: Arc::new(gates, GFP_KERNEL)?,
        })
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
                gate.state.set_first(true);
            }
        }
    }

    /// Closes the gate of `cpu`. Who is inside stays inside. Any CPU.
    pub(crate) fn close(&self, cpu: u32) {
        if let Some(gate) = self.gates.of(cpu) {
            gate.state.set_first(false);
        }
    }

    /// Goes through this CPU's gate, if it is open, not watched and not too many are inside. Any
    /// context, NMI included.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<Entry<'_, T>, Stopped<'_, T>> {
        let guard = NoPreempt::new();
        // SAFETY: By the invariant it is the offset of `gates`.
        let gate = unsafe { self.gates.this_cpu_at(self.offset, &guard) };
        let let_in = gate.state.take_if_only_first();
        let entry = Entry { gate, guard };
        if let_in {
            Ok(entry)
        } else {
            Err(Stopped(entry))
        }
    }
}

/// Being inside: the CPU stays the same, and its `T` is there.
///
/// # Invariants
///
/// `gate` is this CPU's, and was open (but for one in a [`Stopped`]).
// One pointer, so that it is handed on in a register.
pub(crate) struct Entry<'a, T> {
    gate: &'a Gate<T>,
    guard: NoPreempt,
}

impl<'a, T> Entry<'a, T> {
    /// This CPU's `T`.
    #[inline(always)]
    pub(crate) fn target(&self) -> &'a T {
        // SAFETY: By the invariants: it was filled when the gate was opened, before this CPU saw
        // that.
        unsafe { self.gate.target.get_filled() }
    }

    /// Has all who come after on this CPU stopped at the gate, or not any more.
    #[inline(always)]
    pub(crate) fn watch(&self, watched: bool) {
        self.gate.state.set_second(watched);
    }
}

impl<T> Drop for Entry<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.gate.state.count().increment();
    }
}

/// Being stopped at the gate. The CPU stays the same while this lives.
pub(crate) struct Stopped<'a, T>(Entry<'a, T>);

/// Why somebody may not go through.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The gate is closed.
    Closed,
    /// Too many are inside.
    TooDeep,
}

impl<'a, T> Stopped<'a, T> {
    /// Goes through all the same if the gate was only watched.
    #[inline(always)]
    pub(crate) fn pass(self) -> Result<Entry<'a, T>, (Self, Refusal)> {
        let gate = self.0.gate;
        if !gate.state.is_first() {
            Err((self, Refusal::Closed))
        } else if gate.state.count().is_negative() {
            Err((self, Refusal::TooDeep))
        } else {
            // INVARIANT: It is open.
            Ok(self.0)
        }
    }

    /// This CPU's `T`, if it has one.
    pub(crate) fn target(&self) -> Option<&'a T> {
        self.0.gate.target.get()
    }

    /// Says that the CPU stays the same.
    pub(crate) fn guard(&self) -> &NoPreempt {
        &self.0.guard
    }
}
