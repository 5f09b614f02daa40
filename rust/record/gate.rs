// SPDX-License-Identifier: GPL-2.0

//! Gates: the way from any context of a CPU to what it has of something, if it is open.

use super::platform::Platform;

/// One `T` for each CPU. Clones lead to the same.
pub trait PerCpu<T, G>: Clone + Sized {
    /// Allocates them, each made by `make`. [`None`]: there is no memory. May sleep.
    fn new(make: impl Fn() -> T) -> Option<Self>;
    /// This CPU's. `guard` says that the CPU stays the same. Any context, NMI included.
    fn this_cpu(&self, guard: &G) -> &T;
    /// That of `cpu`; [`None`] if there can be no such CPU. Any context.
    fn of(&self, cpu: u32) -> Option<&T>;
}

/// A place for a `T` that is filled once and then stays as it is.
pub trait Place<T> {
    /// An empty one.
    fn new() -> Self;
    /// What is there. Any context, NMI included.
    fn get(&self) -> Option<&T>;
    /// What is there.
    ///
    /// # Safety
    ///
    /// Something is, and the caller has learned so by an acquire.
    unsafe fn get_filled(&self) -> &T;
}

/// The state of a gate: how many more contexts of its CPU may be inside, whether it is open, and
/// whether it is watched.
///
/// # Safety
///
/// [`enter`](Self::enter) and [`is_open`](Self::is_open) say yes only after
/// [`set_open`](Self::set_open)`(true)`, and are acquires; that is a release.
pub unsafe trait State {
    /// That of a closed gate, not watched, that lets `depth` contexts in at a time.
    fn new(depth: u64) -> Self;
    /// Takes the place of a context. Says whether there was one, and the gate is open and not
    /// watched. On the gate's CPU, in any context.
    fn enter(&self) -> bool;
    /// Gives the place back, whatever `enter` said. As [`enter`](Self::enter).
    fn leave(&self);
    /// Whether more contexts are inside than may be. As [`enter`](Self::enter).
    fn is_too_deep(&self) -> bool;
    /// Whether the gate is open.
    fn is_open(&self) -> bool;
    /// Opens or closes the gate. Any CPU.
    fn set_open(&self, open: bool);
    /// Has those who come stopped, or not any more. Any CPU.
    fn set_watched(&self, watched: bool);
}

/// One gate for each possible CPU. Clones lead through the same gates.
pub struct Gates<P: Platform, T>(P::PerCpu<Gate<P, T>>);

/// The way to one CPU's `T`.
///
/// # Invariants
///
/// It is open only when `place` is filled.
// `state` comes first, where an instruction needs no offset to get at it.
#[repr(C)]
pub struct Gate<P: Platform, T> {
    state: P::GateState,
    place: P::Place<T>,
}

impl<P: Platform, T> Clone for Gates<P, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<P: Platform, T> Gates<P, T> {
    /// Closed gates, with nothing behind them, that let `depth` contexts of a CPU in at a time.
    /// [`None`]: there is no memory. May sleep.
    pub fn new(depth: u64) -> Option<Self> {
        P::PerCpu::new(|| Gate {
            state: P::GateState::new(depth),
            place: P::Place::new(),
        })
        .map(Self)
    }

    /// The place behind the gate of `cpu`.
    pub fn place(&self, cpu: u32) -> Option<&P::Place<T>> {
        Some(&self.0.of(cpu)?.place)
    }

    /// What is behind the gate of `cpu`, open or closed. Any context.
    pub fn of(&self, cpu: u32) -> Option<&T> {
        self.0.of(cpu)?.place.get()
    }

    /// Opens the gate of `cpu`, if there is something behind it. Any CPU.
    pub fn open(&self, cpu: u32) {
        if let Some(gate) = self.0.of(cpu) {
            // INVARIANT: Once filled, always filled.
            if gate.place.get().is_some() {
                gate.state.set_open(true);
            }
        }
    }

    /// Closes the gate of `cpu`. Who is inside stays inside. Any CPU.
    pub fn close(&self, cpu: u32) {
        if let Some(gate) = self.0.of(cpu) {
            gate.state.set_open(false);
        }
    }

    /// Goes through this CPU's gate, if it is open, not watched and not too many are inside. Any
    /// context, NMI included.
    #[inline(always)]
    pub fn enter(&self) -> Result<Entry<'_, P, T>, Stopped<'_, P, T>> {
        let guard = P::no_preempt();
        let gate = self.0.this_cpu(&guard);
        let let_in = gate.state.enter();
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
pub struct Entry<'a, P: Platform, T> {
    gate: &'a Gate<P, T>,
    guard: P::NoPreempt,
}

impl<'a, P: Platform, T> Entry<'a, P, T> {
    /// This CPU's `T`.
    #[inline(always)]
    pub fn target(&self) -> &'a T {
        // SAFETY: By the invariants: it was filled when the gate was opened, before this CPU saw
        // that.
        unsafe { self.gate.place.get_filled() }
    }

    /// Has all who come after on this CPU stopped at the gate, or not any more.
    #[inline(always)]
    pub fn watch(&self, watched: bool) {
        self.gate.state.set_watched(watched);
    }
}

impl<P: Platform, T> Drop for Entry<'_, P, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.gate.state.leave();
    }
}

/// Being stopped at the gate. The CPU stays the same while this lives.
pub struct Stopped<'a, P: Platform, T>(Entry<'a, P, T>);

/// Why somebody may not go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The gate is closed.
    Closed,
    /// Too many are inside.
    TooDeep,
}

impl<'a, P: Platform, T> Stopped<'a, P, T> {
    /// Goes through all the same if the gate was only watched.
    #[inline(always)]
    pub fn pass(self) -> Result<Entry<'a, P, T>, (Self, Refusal)> {
        let gate = self.0.gate;
        if !gate.state.is_open() {
            Err((self, Refusal::Closed))
        } else if gate.state.is_too_deep() {
            Err((self, Refusal::TooDeep))
        } else {
            // INVARIANT: It is open.
            Ok(self.0)
        }
    }

    /// This CPU's `T`, if it has one.
    pub fn target(&self) -> Option<&'a T> {
        self.0.gate.place.get()
    }

    /// Says that the CPU stays the same.
    pub fn guard(&self) -> &P::NoPreempt {
        &self.0.guard
    }
}
