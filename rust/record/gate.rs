// SPDX-License-Identifier: GPL-2.0

//! Gates: the way from any context of a CPU to what it has of something, if it is open.
//!
//! A context that is inside may be interrupted by others of its CPU, which may go in, too. But a
//! probe that fires itself would go in for ever. So each gate counts who is inside. The outermost
//! finds nobody there, and nothing more is asked. Who finds somebody must become
//! [`Exclusive`], out of line: there its [`Level`] tells an interruption, which may go on, from a
//! recursion, which may not.
//!
//! Contexts of a CPU nest: who comes while another runs has left before that one goes on. So these
//! hold, wherever a context is interrupted:
//!
//! - (G1) The count says how many are between [`State::enter`] and [`State::leave`], which are one
//!   instruction each. It is the same whenever a context looks, between its own two.
//! - (G2) `levels` has a bit for each [`Exclusive`] that is not the outermost. A bit is set after its
//!   context was counted in, and cleared before that is counted out, by one instruction. It is the
//!   same before an interruption as after.
//! - (G3) The levels of those who are exclusive grow from the outermost to the latest, but for the
//!   one case below: an interruption has a higher level than what it interrupts, and a recursion,
//!   which has the same, is refused.
//!
//! A context that is not the outermost is a recursion if its bit or a higher one is set, or if there is no
//! level below its own, where by (G3) the outermost would have to be. One case is left: the
//! outermost leaves nothing that tells its level, for that would cost each event an instruction. If
//! it is above [`Level::Thread`] and fires itself, this looks like the interruption of a thread. It
//! goes on once, sets its bit, and is refused when it fires itself again.

use super::platform::Platform;
use super::ring::platform::{Local, Shared};
use core::ops::Deref;

/// One `T` for each CPU. Clones lead to the same.
pub trait PerCpu<T, G>: Clone + Sized {
    /// Allocates them, each made by `make`. [`None`]: there is no memory. May sleep.
    fn new(make: impl Fn() -> T) -> Option<Self>;
    /// The word that [`at`](Self::at) finds them by.
    fn word(&self) -> u64;
    /// This CPU's value among those that have this [`word`](Self::word). `guard` says that the CPU stays the same.
    /// Any context, NMI included.
    ///
    /// # Safety
    ///
    /// The values that have this word live as long as `'a`.
    unsafe fn at<'a>(word: u64, guard: &G) -> &'a T;
    /// This CPU's value. `guard` says that the CPU stays the same. Any context, NMI included.
    #[inline(always)]
    fn this_cpu(&self, guard: &G) -> &T {
        // SAFETY: The word is its own.
        unsafe { Self::at(self.word(), guard) }
    }
    /// The value of `cpu`; [`None`] if there can be no such CPU. Any context.
    fn of(&self, cpu: u32) -> Option<&T>;
    /// Calls `each` with all of them.
    fn for_each(&self, each: impl FnMut(&T));
}

/// A place for a `T` that is filled once and then stays as it is, until it is emptied.
pub trait Place<T> {
    /// An empty one.
    fn new() -> Self;
    /// The value; [`None`] before it is filled. Any context, NMI included.
    fn get(&self) -> Option<&T>;
    /// The value.
    ///
    /// # Safety
    ///
    /// Something is, and the caller has learned so by an acquire.
    unsafe fn get_filled(&self) -> &T;
    /// Whether something is there. Any context, NMI included.
    fn is_filled(&self) -> bool;
    /// Drops what is there.
    ///
    /// # Safety
    ///
    /// No reference to the value exists, and none is taken meanwhile.
    unsafe fn empty(&self);
}

/// A context of a CPU, by what may still interrupt it: those of a higher level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A thread, with interrupts enabled.
    Thread,
    /// A softirq, with interrupts enabled.
    Softirq,
    /// An interrupt, or anything that has interrupts disabled.
    Interrupt,
    /// An NMI, or an exception that the kernel treats as one (a breakpoint), inside so many others of
    /// these: an NMI may come in the middle of a breakpoint's handler.
    Nmi(u8),
}

impl Level {
    /// Its place in a set of levels; that of a higher one is higher.
    pub fn bit(self) -> u64 {
        let place = match self {
            Self::Thread => 0,
            Self::Softirq => 1,
            Self::Interrupt => 2,
            Self::Nmi(inside) => u32::from(inside).wrapping_add(3),
        };
        1_u64.wrapping_shl(place)
    }
}

/// The state of a gate: how many contexts of its CPU are inside, whether it is open, and whether it
/// is watched.
///
/// # Safety
///
/// [`enter`](Self::enter) and [`is_open`](Self::is_open) say yes only after
/// [`set_open`](Self::set_open)`(true)`, and are acquires; that is a release.
pub unsafe trait State {
    /// The state of a closed gate that is not watched and has no context inside.
    fn new() -> Self;
    /// Counts a context in. Says whether nobody else is inside, and the gate is open and not
    /// watched. On the gate's CPU, in any context.
    fn enter(&self) -> bool;
    /// Counts it out, whatever `enter` said. As [`enter`](Self::enter).
    fn leave(&self);
    /// Whether somebody was inside when the context entered that asks. As [`enter`](Self::enter).
    fn is_nested(&self) -> bool;
    /// Whether the gate is open.
    fn is_open(&self) -> bool;
    /// Opens or closes the gate. Any CPU.
    fn set_open(&self, open: bool);
    /// Has those who come stopped, or not any more. Any CPU.
    fn set_watched(&self, watched: bool);
}

/// One gate for each possible CPU, and what is behind them. Dropping it closes them, and drops that, though there
/// may still be [`Ways`]. That may sleep.
pub struct Gates<P: Platform, T>(Ways<P, T>);

/// The way through gates. Clones lead through the same.
pub struct Ways<P: Platform, T>(P::PerCpu<Gate<P, T>>);

/// One of two ways, which can be exchanged while contexts take it.
///
/// # Invariants
///
/// `taken` is the word of `direct` or of `diverted`.
pub struct Route<P: Platform, T> {
    taken: P::Shared,
    direct: Ways<P, T>,
    diverted: Ways<P, T>,
}

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
    /// See (G2).
    levels: P::Local,
}

impl<P: Platform, T> Clone for Ways<P, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<P: Platform, T> Deref for Gates<P, T> {
    type Target = Ways<P, T>;

    fn deref(&self) -> &Ways<P, T> {
        &self.0
    }
}

impl<P: Platform, T> Drop for Gates<P, T> {
    fn drop(&mut self) {
        let Ways(gates) = &self.0;
        gates.for_each(|gate| gate.state.set_open(false));
        P::wait_for_entries();
        // SAFETY: No reference to the `T` is left, and none can begin:
        // - References from `of` and `place` borrow this `Gates`, which is being dropped.
        // - `Ways` may outlive this, but its gates are closed and no `Gates` is left that could open them: `enter` and
        //   `Stopped::pass` give no `Entry` any more.
        // - An `Entry` from before has preemption disabled, so it has ended: `wait_for_entries`.
        // - A reference from `Entry::target` can have a longer lifetime than its entry. Its users (`Buffer` and the
        //   `Begun` types) keep the entry until the last use.
        gates.for_each(|gate| unsafe { gate.place.empty() });
    }
}

impl<P: Platform, T> Gates<P, T> {
    /// Closed gates, with nothing behind them. [`None`]: there is no memory. May sleep.
    pub fn new() -> Option<Self> {
        Ways::closed().map(Self)
    }

    /// The way through them, to keep.
    pub fn ways(&self) -> &Ways<P, T> {
        &self.0
    }

    /// The place behind the gate of `cpu`.
    pub fn place(&self, cpu: u32) -> Option<&P::Place<T>> {
        Some(&self.0 .0.of(cpu)?.place)
    }

    /// The value behind the gate of `cpu`, open or closed. Any context.
    pub fn of(&self, cpu: u32) -> Option<&T> {
        self.0 .0.of(cpu)?.place.get()
    }

    /// Opens the gate of `cpu`, if there is something behind it. Any CPU.
    pub fn open(&self, cpu: u32) {
        if let Some(gate) = self.0 .0.of(cpu) {
            // INVARIANT: Once filled, always filled while gates are opened.
            if gate.place.get().is_some() {
                gate.state.set_open(true);
            }
        }
    }

    /// Closes the gate of `cpu`. Who is inside stays inside. Any CPU.
    pub fn close(&self, cpu: u32) {
        if let Some(gate) = self.0 .0.of(cpu) {
            gate.state.set_open(false);
        }
    }

    /// Stops every context that comes to the gate of `cpu`, until one that passes all the same
    /// [ends that](Entry::watch). Any CPU.
    pub fn watch(&self, cpu: u32) {
        if let Some(gate) = self.0 .0.of(cpu) {
            gate.state.set_watched(true);
        }
    }
}

impl<P: Platform, T> Ways<P, T> {
    /// The way to gates that stay closed. [`None`]: there is no memory. May sleep.
    pub fn closed() -> Option<Self> {
        P::PerCpu::new(|| Gate {
            state: P::GateState::new(),
            place: P::Place::new(),
            levels: P::Local::new(0),
        })
        .map(Self)
    }

    /// Goes through this CPU's gate, if it is open, not watched and nobody is inside. Any context,
    /// NMI included.
    #[inline(always)]
    pub fn enter(&self) -> Result<Entry<'_, P, T>, Stopped<'_, P, T>> {
        let guard = P::no_preempt();
        self.0.this_cpu(&guard).enter(guard)
    }
}

impl<P: Platform, T> Route<P, T> {
    /// The route that takes `direct` until it is [diverted](Self::divert) to the other.
    pub fn new(direct: Ways<P, T>, diverted: Ways<P, T>) -> Self {
        Self {
            taken: P::Shared::new(direct.0.word()),
            direct,
            diverted,
        }
    }

    /// The ways that it takes unless it is diverted.
    #[inline(always)]
    pub fn direct(&self) -> &Ways<P, T> {
        &self.direct
    }

    /// Takes the diverted ways from now on, or the direct ones. Any CPU.
    pub fn divert(&self, divert: bool) {
        let ways = if divert { &self.diverted } else { &self.direct };
        // INVARIANT: One of the two.
        self.taken.store(ways.0.word());
    }

    /// As [`Ways::enter`] of the ways that it takes now.
    #[inline(always)]
    pub fn enter(&self) -> Result<Entry<'_, P, T>, Stopped<'_, P, T>> {
        let guard = P::no_preempt();
        // SAFETY: By the invariant that is the word of one of the two, which live as long as `self`.
        let gate: &Gate<P, T> = unsafe { P::PerCpu::at(self.taken.load(), &guard) };
        gate.enter(guard)
    }

    /// Whether a context was stopped because it was diverted.
    pub fn has_diverted(&self, stopped: &Stopped<'_, P, T>) -> bool {
        let Stopped(Entry { gate, guard }) = stopped;
        core::ptr::eq(*gate, self.diverted.0.this_cpu(guard))
    }
}

impl<P: Platform, T> Gate<P, T> {
    /// As [`Ways::enter`]. It is this CPU's.
    #[inline(always)]
    fn enter(&self, guard: P::NoPreempt) -> Result<Entry<'_, P, T>, Stopped<'_, P, T>> {
        let let_in = self.state.enter();
        let entry = Entry { gate: self, guard };
        if let_in {
            Ok(entry)
        } else {
            Err(Stopped(entry))
        }
    }
}

/// A passage through an open gate. While it lives, the CPU stays the same and its `T` is there. One from
/// [`Ways::enter`] is the outermost of its CPU.
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
    /// This CPU's `T`. The caller keeps the entry until the last use of the reference. `'a` is longer than the
    /// entry, so that one value can contain both; the compiler does not check the rest.
    #[inline(always)]
    pub fn target(&self) -> &'a T {
        // SAFETY:
        // - By the invariants the gate was open when this context entered. `Gates::open` opens it only with a filled
        //   place, by a release; `State::enter` and `State::is_open` are acquires.
        // - `Gates::drop` closes the gate and waits for the entry before it empties the place.
        unsafe { self.gate.place.get_filled() }
    }

    /// Has all who come after on this CPU stopped at the gate, or not any more.
    #[inline(always)]
    pub fn watch(&self, watched: bool) {
        self.gate.state.set_watched(watched);
    }

    /// Whether this is not the outermost.
    #[inline(always)]
    pub fn is_nested(&self) -> bool {
        self.gate.state.is_nested()
    }

    /// Makes sure that this is no recursion, as far as can be told.
    #[inline(always)]
    pub fn exclusive(self) -> Result<Exclusive<'a, P, T>, Self> {
        if !self.is_nested() || self.take_level() {
            Ok(Exclusive(self))
        } else {
            Err(self)
        }
    }

    /// Sets the bit of this level, unless this is a recursion.
    #[cold]
    #[inline(never)]
    fn take_level(&self) -> bool {
        let level = P::level(&self.guard);
        // An interruption between this and the next line leaves the bits as they are: (G2).
        if level == Level::Thread || self.gate.levels.load() >= level.bit() {
            return false;
        }
        self.gate.levels.add(level.bit());
        true
    }

    /// Undoes it.
    #[cold]
    #[inline(never)]
    fn give_level(&self) {
        let bit = P::level(&self.guard).bit();
        self.gate.levels.add(bit.wrapping_neg());
    }
}

impl<P: Platform, T> Drop for Entry<'_, P, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.gate.state.leave();
    }
}

/// Being inside, and nobody else of the same level.
///
/// # Invariants
///
/// The bit of this level is set, unless the entry is the outermost.
pub struct Exclusive<'a, P: Platform, T>(Entry<'a, P, T>);

impl<'a, P: Platform, T> Deref for Exclusive<'a, P, T> {
    type Target = Entry<'a, P, T>;

    #[inline(always)]
    fn deref(&self) -> &Entry<'a, P, T> {
        &self.0
    }
}

impl<P: Platform, T> Drop for Exclusive<'_, P, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.is_nested() {
            self.0.give_level();
        }
    }
}

/// Being stopped at the gate. The CPU stays the same while this lives.
pub struct Stopped<'a, P: Platform, T>(Entry<'a, P, T>);

impl<'a, P: Platform, T> Stopped<'a, P, T> {
    /// Goes through all the same, unless the gate is closed: it was watched, or somebody is inside.
    #[inline(always)]
    pub fn pass(self) -> Result<Entry<'a, P, T>, Self> {
        if self.0.gate.state.is_open() {
            // INVARIANT: It is open.
            Ok(self.0)
        } else {
            Err(self)
        }
    }

    /// Whether this CPU has a `T`.
    pub fn has_target(&self) -> bool {
        self.0.gate.place.is_filled()
    }

    /// Says that the CPU stays the same.
    pub fn guard(&self) -> &P::NoPreempt {
        &self.0.guard
    }
}
