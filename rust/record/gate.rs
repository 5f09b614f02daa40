// SPDX-License-Identifier: GPL-2.0

//! Gates: the access of any context to its CPU's value, such as the CPU's buffer.
//!
//! A context *enters* a gate, uses the value if the gate is open, and *leaves*. Between the two it
//! is *inside*. Other contexts of the CPU may interrupt it and enter, too. But a probe that fires
//! itself would enter again and again, forever. So each gate counts the contexts inside. The
//! outermost context finds a count of 0 and needs no further check. Any other context must become
//! exclusive, in a function that is not inlined. There its [`Level`] distinguishes an
//! interruption, which may continue, from a recursion, which is refused.
//!
//! | type | context | made by |
//! | --- | --- | --- |
//! | [`Entry`] | the outermost, inside an open gate that is not watched | [`Ways::enter`] |
//! | [`Stopped`] | any other, which may not use the value yet | [`Ways::enter`] |
//! | [`Entry`] | any, inside an open or fenced gate | [`Stopped::pass`], [`Stopped::pass_fence`] |
//! | [`Exclusive`] | any, inside and no recursion | [`Entry::exclusive`] |
//!
//! A *watched* gate stops every context that enters. A buffer watches its gate while it is full, so that the
//! stopped probe can refuse the record at little cost (`Buffer::admit`).
//!
//! Contexts of a CPU nest: an interrupting context has left before the interrupted one continues.
//! So the following is true wherever a context is interrupted:
//!
//! - (G1) The count is the number of contexts between [`GateState::enter`] and [`GateState::leave`], which
//!   are one instruction each. A context that reads it several times between its own two calls
//!   always gets the same value.
//! - (G2) `levels` has a bit for each [`Exclusive`] that is not the outermost. One instruction sets
//!   the bit after the context was counted in. Another clears it before the context is counted out.
//!   So an interruption does not change `levels` for the interrupted context.
//! - (G3) The levels of the exclusive contexts grow from the outermost to the latest, except in the
//!   one case below. An interruption has a higher level than the context that it interrupts. A
//!   recursion has the same level, and is refused.
//!
//! A context that is not the outermost is a recursion in two cases:
//! - The bit of its level or of a higher one is set.
//! - Its level is [`Level::Thread`]. That is the lowest level, so this context cannot have interrupted another one.
//!
//! The check misses one recursion. The outermost context does not store its level, because that
//! would cost each event an instruction. Assume that an interrupt is the outermost context, and that its probe
//! fires itself. The recursion then looks like an interrupt of a thread: it continues, and sets its bit. The next
//! recursion finds the bit, and is refused.
//!
//! The gate's [`Deputy`] is a caller on another CPU, which uses the value without an interrupt of the
//! gate's CPU. It acts while no context is inside, and no context ever waits for it:
//!
//! - (D1) The deputy makes the gate fenced, then waits for all contexts that are inside. A context
//!   that enters later finds the gate fenced, and executes a full barrier. So that context is counted
//!   in, then executes the barrier, then looks at the gate again.
//! - (D2) The deputy makes the gate held by an instruction that is a full barrier, then looks at
//!   the count. So the context finds the gate held, or the deputy finds the context inside, or
//!   both. A context that finds the gate held is refused and counted. A deputy that finds a context
//!   inside does not act.
//! - (D3) No step of a deputy opens a closed gate, and by the contract of [`Ways::deputy`] no other code
//!   does. So a gate that is closed while it has a deputy stays closed.

use super::platform::WritePlatform;
use super::ring::platform::{Local, Shared};
use core::ops::Deref;

/// One `T` for each possible CPU. A clone refers to the same values.
pub trait EachCpu<T, G>: Clone + Sized {
    /// Allocates the values, each made by `make`. [`None`]: out of memory. May sleep.
    fn new(make: impl Fn() -> T) -> Option<Self>;
    /// Returns a word that stands for these values: an argument of [`at`](Self::at).
    fn word(&self) -> u64;
    /// Returns this CPU's value of the values with this [`word`](Self::word). `guard` keeps the caller on the CPU.
    /// Any context, NMI included.
    ///
    /// # Safety
    ///
    /// The values that have this word live as long as `'a`.
    unsafe fn at<'a>(word: u64, guard: &G) -> &'a T;
    /// Returns this CPU's value. `guard` keeps the caller on the CPU. Any context, NMI included.
    #[inline(always)]
    fn this_cpu(&self, guard: &G) -> &T {
        // SAFETY: The word is that of `self`.
        unsafe { Self::at(self.word(), guard) }
    }
    /// Returns the value of `cpu`; [`None`] if that CPU is impossible. Any context.
    fn of(&self, cpu: u32) -> Option<&T>;
    /// Calls `each` with each value.
    fn for_each(&self, each: impl FnMut(&T));
}

/// A cell for a `T` that is filled once, and does not change until it is emptied.
pub trait FilledOnce<T> {
    /// Makes an empty cell.
    fn new() -> Self;
    /// Returns the value; [`None`] before the cell is filled. Any context, NMI included.
    fn get(&self) -> Option<&T>;
    /// Returns the value.
    ///
    /// # Safety
    ///
    /// The cell is filled, and the caller has learned this by an acquire.
    unsafe fn get_filled(&self) -> &T;
    /// Returns whether the cell is filled. Any context, NMI included.
    fn is_filled(&self) -> bool;
    /// Drops the value.
    ///
    /// # Safety
    ///
    /// No reference to the value exists, and none is made meanwhile.
    unsafe fn empty(&self);
}

/// Kind of a context of a CPU. A context of a higher level may interrupt one of a lower level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A thread, with interrupts enabled.
    Thread,
    /// A softirq, with interrupts enabled.
    Softirq,
    /// An interrupt, or any code that has interrupts disabled.
    Interrupt,
    /// An NMI, or an exception that the kernel treats as one (a breakpoint). Contains the number of
    /// contexts of this kind that it interrupted: an NMI may interrupt a breakpoint's handler.
    Nmi(u8),
}

impl Level {
    /// Bit of the level in a set of levels; a higher level has a higher bit.
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

/// A value behind gates.
pub trait Guarded {
    /// Counts a record that was refused because the gate was held. On the value's CPU, in any
    /// context, NMI included.
    fn count_busy(&self);
}

/// Whether contexts may pass a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Passage {
    /// No context passes.
    Closed = 0,
    /// Contexts pass.
    Open = 1,
    /// A context executes a full barrier, then reads the passage again to decide: see (D1).
    Fenced = 2,
    /// The [`Deputy`] acts or is about to. Contexts are refused and counted.
    Held = 3,
}

/// The state of a gate: the number of contexts of its CPU that are inside, its [`Passage`], and
/// whether it is watched.
///
/// # Safety
///
/// [`enter`](Self::enter) and [`is_open`](Self::is_open) return true, and
/// [`passage`](Self::passage) returns something else than [`Passage::Closed`], only after
/// [`set_open`](Self::set_open)`(true)`. They are acquires; `set_open` is a release.
pub unsafe trait GateState {
    /// The state of a closed gate that is not watched and has no context inside.
    fn new() -> Self;
    /// Counts a context in. Returns whether the context is the only one inside, and the gate is
    /// open and not watched. On the gate's CPU, in any context.
    fn enter(&self) -> bool;
    /// Counts the context out. Called once after each `enter`, whatever it returned. On the gate's CPU, in any context.
    fn leave(&self);
    /// Returns whether another context was inside when the calling context entered. On the gate's
    /// CPU, in any context.
    fn is_nested(&self) -> bool;
    /// Returns whether the gate is open.
    fn is_open(&self) -> bool;
    /// Returns whether contexts may pass.
    fn passage(&self) -> Passage;
    /// Opens or closes the gate. Any CPU.
    fn set_open(&self, open: bool);
    /// Changes the passage to `to` if it is `from`. Returns whether it was `from`. A full barrier in
    /// both cases. Any CPU.
    fn change(&self, from: Passage, to: Passage) -> bool;
    /// Executes a full barrier. On the gate's CPU, in any context, NMI included.
    fn fence(&self);
    /// Returns whether no context is inside. An acquire; pairs with [`leave`](Self::leave). Any CPU.
    fn is_empty(&self) -> bool;
    /// Makes the gate watched, or not watched. Any CPU.
    fn set_watched(&self, watched: bool);
}

/// One gate for each possible CPU, with the value behind each gate. The drop closes the gates,
/// waits for the contexts inside, and drops the values, even if [`Ways`] to the gates remain. May
/// sleep.
pub struct Gates<P: WritePlatform, T>(Ways<P, T>);

/// A shared reference to the gates, with which contexts enter. A clone refers to the same gates.
pub struct Ways<P: WritePlatform, T>(P::PerCpu<Gate<P, T>>);

/// A choice between two [`Ways`], through which contexts enter. The choice can change at any time.
///
/// # Invariants
///
/// `taken` is the word of `direct` or of `diverted`.
pub struct Route<P: WritePlatform, T> {
    taken: P::Shared,
    direct: Ways<P, T>,
    diverted: Ways<P, T>,
}

/// The gate of one CPU, with its `T`.
///
/// # Invariants
///
/// The gate is open, fenced or held only when `cell` is filled.
// `state` comes first, so that instructions access it without an offset.
#[repr(C)]
pub struct Gate<P: WritePlatform, T> {
    state: P::GateState,
    cell: P::FilledOnce<T>,
    /// Bits of levels, see (G2).
    levels: P::Local,
}

impl<P: WritePlatform, T> Clone for Ways<P, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<P: WritePlatform, T> Deref for Gates<P, T> {
    type Target = Ways<P, T>;

    fn deref(&self) -> &Ways<P, T> {
        &self.0
    }
}

impl<P: WritePlatform, T> Drop for Gates<P, T> {
    fn drop(&mut self) {
        let Ways(gates) = &self.0;
        gates.for_each(|gate| gate.state.set_open(false));
        P::wait_for_entries();
        // SAFETY: No reference to the `T` is left, and none can begin:
        // - References from `of` and `cell` borrow this `Gates`, which is being dropped.
        // - `Ways` may outlive this, but its gates are closed and no `Gates` is left that could open them: `enter` and
        //   `Stopped::pass` give no `Entry` any more. `pass_fence` uses the `T` of a held gate, but by (D3) no gate
        //   becomes held after it was closed.
        // - An `Entry` from before has preemption disabled, so it has ended: `wait_for_entries`.
        // - A reference from `Entry::target` can have a longer lifetime than its entry. Its users (`Buffer` and the
        //   `Begun` types) keep the entry until the last use.
        gates.for_each(|gate| unsafe { gate.cell.empty() });
    }
}

impl<P: WritePlatform, T> Gates<P, T> {
    /// Makes closed gates with empty cells. [`None`]: out of memory. May sleep.
    pub fn new() -> Option<Self> {
        Ways::closed().map(Self)
    }

    /// The way through these gates, which the caller may clone.
    pub fn ways(&self) -> &Ways<P, T> {
        &self.0
    }

    /// The cell of the value behind the gate of `cpu`.
    pub fn cell(&self, cpu: u32) -> Option<&P::FilledOnce<T>> {
        Some(&self.0 .0.of(cpu)?.cell)
    }

    /// Opens the gate of `cpu`, if its cell is filled. Any CPU.
    pub fn open(&self, cpu: u32) {
        if let Some(gate) = self.0 .0.of(cpu) {
            // INVARIANT: A filled cell stays filled while a `Gates` exists that can open the gate.
            if gate.cell.get().is_some() {
                gate.state.set_open(true);
            }
        }
    }

    /// Closes the gate of `cpu`. Contexts inside stay inside. Any CPU.
    pub fn close(&self, cpu: u32) {
        if let Some(gate) = self.0 .0.of(cpu) {
            gate.state.set_open(false);
        }
    }

    /// Stops every context that enters the gate of `cpu`. A stopped context that passes may [end the
    /// watch](Entry::watch). Any CPU.
    pub fn watch(&self, cpu: u32) {
        if let Some(gate) = self.0 .0.of(cpu) {
            gate.state.set_watched(true);
        }
    }
}

impl<P: WritePlatform, T> Ways<P, T> {
    /// Makes gates that stay closed. [`None`]: out of memory. May sleep.
    pub fn closed() -> Option<Self> {
        P::PerCpu::new(|| Gate {
            state: P::GateState::new(),
            cell: P::FilledOnce::new(),
            levels: P::Local::new(0),
        })
        .map(Self)
    }

    /// Returns the deputy of `cpu`, for a caller on another CPU. [`None`]: that CPU is impossible. May sleep.
    ///
    /// A gate has one deputy at a time. The gate is open already, or no caller opens it while the deputy exists.
    pub fn deputy(&self, cpu: u32) -> Option<Deputy<'_, P, T>> {
        let gate = self.0.of(cpu)?;
        // (D1). No effect if the gate is closed.
        let _fenced = gate.state.change(Passage::Open, Passage::Fenced);
        P::wait_for_entries();
        Some(Deputy(gate))
    }

    /// Enters this CPU's gate. `Ok` if it is open and not watched, and no other context is inside.
    /// Any context, NMI included.
    #[inline(always)]
    pub fn enter(&self) -> Result<Entry<'_, P, T>, Stopped<'_, P, T>> {
        let guard = P::no_preempt();
        self.0.this_cpu(&guard).enter(guard)
    }
}

impl<P: WritePlatform, T> Route<P, T> {
    /// The route that takes `direct` until it is [diverted](Self::divert) to the other.
    pub fn new(direct: Ways<P, T>, diverted: Ways<P, T>) -> Self {
        Self {
            taken: P::Shared::new(direct.0.word()),
            direct,
            diverted,
        }
    }

    /// The ways that the route takes unless it is diverted.
    #[inline(always)]
    pub fn direct(&self) -> &Ways<P, T> {
        &self.direct
    }

    /// Selects the diverted ways if `divert` is true, the direct ways otherwise. Any CPU.
    pub fn divert(&self, divert: bool) {
        let ways = if divert { &self.diverted } else { &self.direct };
        // INVARIANT: One of the two.
        self.taken.store(ways.0.word());
    }

    /// Enters this CPU's gate of the selected ways, as [`Ways::enter`] does.
    #[inline(always)]
    pub fn enter(&self) -> Result<Entry<'_, P, T>, Stopped<'_, P, T>> {
        let guard = P::no_preempt();
        // SAFETY: By the invariant `taken` is the word of one of the two ways, which live as long as `self`.
        let gate: &Gate<P, T> = unsafe { P::PerCpu::at(self.taken.load(), &guard) };
        gate.enter(guard)
    }

    /// Returns whether the context was stopped because it was diverted.
    pub fn was_diverted(&self, stopped: &Stopped<'_, P, T>) -> bool {
        let Stopped(Entry { gate, guard }) = stopped;
        core::ptr::eq(*gate, self.diverted.0.this_cpu(guard))
    }
}

impl<P: WritePlatform, T> Gate<P, T> {
    /// Enters the gate, as [`Ways::enter`] does. It must be the current CPU's.
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

/// The right to act in place of the CPU of a gate, which is fenced or closed.
pub struct Deputy<'a, P: WritePlatform, T>(&'a Gate<P, T>);

impl<P: WritePlatform, T> Deputy<'_, P, T> {
    /// If no context is inside, calls `act`. Returns whether it called `act`. No context passes during the call;
    /// contexts that enter are refused. So the caller must have interrupts disabled, and `act` must be short.
    /// Any CPU except the gate's.
    pub fn act(&self, act: impl FnOnce()) -> bool {
        let state = &self.0.state;
        // A first test, which refuses no context.
        if !state.is_empty() {
            return false;
        }
        let is_held = state.change(Passage::Fenced, Passage::Held);
        if !is_held && !state.change(Passage::Closed, Passage::Closed) {
            return false;
        }
        // (D2)
        let is_empty = state.is_empty();
        if is_empty {
            act();
        }
        if is_held {
            // No effect if the gate was closed meanwhile.
            let _fenced = state.change(Passage::Held, Passage::Fenced);
        }
        is_empty
    }
}

impl<P: WritePlatform, T> Drop for Deputy<'_, P, T> {
    fn drop(&mut self) {
        // No effect if the gate was closed.
        let _opened = self.0.state.change(Passage::Fenced, Passage::Open);
    }
}

/// A context inside an open gate. While it exists, the caller stays on its CPU, and the CPU's `T` exists.
/// An entry that [`Ways::enter`] returned as `Ok` is the outermost of its CPU.
///
/// # Invariants
///
/// `gate` is this CPU's, and was open or fenced when the context entered (except for an entry in a
/// [`Stopped`]).
pub struct Entry<'a, P: WritePlatform, T> {
    // An entry is one pointer in the module, so the compiler passes it in a register.
    gate: &'a Gate<P, T>,
    guard: P::NoPreempt,
}

impl<'a, P: WritePlatform, T> Entry<'a, P, T> {
    /// Returns this CPU's `T`. The caller must keep the entry until the last use of the reference. The
    /// compiler does not check that: `'a` is longer than the life of the entry, so that one value can
    /// contain the entry and the reference.
    #[inline(always)]
    pub fn target(&self) -> &'a T {
        // SAFETY:
        // - By the invariants the gate was open or fenced when this context entered. `Gates::open` opens it only with a
        //   filled cell, by a release; `GateState::enter`, `GateState::is_open` and `GateState::passage` are acquires.
        // - `Gates::drop` closes the gate and waits for the entry before it empties the cell.
        unsafe { self.gate.cell.get_filled() }
    }

    /// The guard that keeps the context on its CPU.
    #[inline(always)]
    pub fn guard(&self) -> &P::NoPreempt {
        &self.guard
    }

    /// Makes the gate watched, so that it stops all later contexts of this CPU, or not watched.
    #[inline(always)]
    pub fn watch(&self, watched: bool) {
        self.gate.state.set_watched(watched);
    }

    /// Returns whether this entry is not the outermost.
    #[inline(always)]
    pub fn is_nested(&self) -> bool {
        self.gate.state.is_nested()
    }

    /// Makes the entry exclusive. `Err`: it is a recursion. One recursion is missed: see the [module](self).
    #[inline(always)]
    pub fn exclusive(self) -> Result<Exclusive<'a, P, T>, Self> {
        if !self.is_nested() || self.take_level() {
            Ok(Exclusive(self))
        } else {
            Err(self)
        }
    }

    /// Sets the bit of this level. Returns false, and sets no bit, if this is a recursion.
    #[cold]
    #[inline(never)]
    fn take_level(&self) -> bool {
        let level = P::level(&self.guard);
        // An interruption between this load and the add below leaves the bits as they are: (G2).
        if level == Level::Thread || self.gate.levels.load() >= level.bit() {
            return false;
        }
        self.gate.levels.add(level.bit());
        true
    }

    /// Clears the bit that [`take_level`](Self::take_level) set.
    #[cold]
    #[inline(never)]
    fn give_level(&self) {
        let bit = P::level(&self.guard).bit();
        self.gate.levels.add(bit.wrapping_neg());
    }
}

impl<P: WritePlatform, T> Drop for Entry<'_, P, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.gate.state.leave();
    }
}

/// An entry that is the only one of its level.
///
/// # Invariants
///
/// The bit of this level is set, unless the entry is the outermost.
pub struct Exclusive<'a, P: WritePlatform, T>(Entry<'a, P, T>);

impl<'a, P: WritePlatform, T> Deref for Exclusive<'a, P, T> {
    type Target = Entry<'a, P, T>;

    #[inline(always)]
    fn deref(&self) -> &Entry<'a, P, T> {
        &self.0
    }
}

impl<P: WritePlatform, T> Drop for Exclusive<'_, P, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.is_nested() {
            self.0.give_level();
        }
    }
}

/// Entry of a context that was stopped at the gate. While it exists, the context stays on its CPU.
pub struct Stopped<'a, P: WritePlatform, T>(Entry<'a, P, T>);

impl<'a, P: WritePlatform, T> Stopped<'a, P, T> {
    /// Passes the gate if it is open: the context was stopped because the gate is watched, or another
    /// context is inside. `Err`: the gate is closed, fenced or held; [`pass_fence`](Self::pass_fence) decides.
    #[inline(always)]
    pub fn pass(self) -> Result<Entry<'a, P, T>, Self> {
        if self.0.gate.state.is_open() {
            // INVARIANT: The gate is open.
            Ok(self.0)
        } else {
            Err(self)
        }
    }

    /// Passes the gate unless it is closed, or held by its [`Deputy`]. If it is held, the value has
    /// counted the refusal.
    #[cold]
    #[inline(never)]
    pub fn pass_fence(self) -> Result<Entry<'a, P, T>, Self>
    where
        T: Guarded,
    {
        let gate = self.0.gate;
        let mut passage = gate.state.passage();
        if matches!(passage, Passage::Fenced | Passage::Held) {
            // (D1)
            gate.state.fence();
            passage = gate.state.passage();
        }
        match passage {
            // INVARIANT: The gate is open or fenced.
            Passage::Open | Passage::Fenced => Ok(self.0),
            Passage::Closed => Err(self),
            Passage::Held => {
                if let Some(target) = gate.cell.get() {
                    target.count_busy();
                }
                Err(self)
            }
        }
    }

    /// Returns whether the gate is closed.
    pub fn is_closed(&self) -> bool {
        self.0.gate.state.passage() == Passage::Closed
    }

    /// Returns whether this CPU has a `T`.
    pub fn has_target(&self) -> bool {
        self.0.gate.cell.is_filled()
    }

    /// The guard that keeps the context on its CPU.
    pub fn guard(&self) -> &P::NoPreempt {
        &self.0.guard
    }
}
