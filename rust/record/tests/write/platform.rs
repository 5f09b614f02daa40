// SPDX-License-Identifier: GPL-2.0

//! One CPU, whose clock and interrupts the test controls.

use crate::slots::IndexedSlots;
use rtrace_record::gate::{EachCpu, FilledOnce, GateState, Level, Passage};
use rtrace_record::memory::Pages;
use rtrace_record::platform::{Wakeup, WritePlatform};
use rtrace_ring::platform as ring;
use rtrace_ring::slot::Slot;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::rc::Rc;

thread_local! {
    /// Reading of the clocks.
    static TIME: Cell<u64> = const { Cell::new(0) };
    /// Level of the running context.
    static LEVEL: Cell<Level> = const { Cell::new(Level::Thread) };
    /// Number of nested sections without preemption.
    static NO_PREEMPT: Cell<u64> = const { Cell::new(0) };
    /// Interrupts of the next readings of the clock, one for each, just after it.
    static INTERRUPTS: RefCell<VecDeque<Box<dyn FnOnce()>>> = const { RefCell::new(VecDeque::new()) };
    /// Lag of the monotonic clock in an NMI.
    static LAG: Cell<u64> = const { Cell::new(0) };
    /// Advance of the clocks at each access.
    static TICK: Cell<u64> = const { Cell::new(0) };
    /// Ticks that the clocks have missed.
    static MISSED: Cell<u64> = const { Cell::new(0) };
    /// Time of the trace's stop.
    static STOPPED: Cell<u64> = const { Cell::new(u64::MAX) };
    /// Events between accesses, in their order.
    static COMING: RefCell<VecDeque<Coming>> = const { RefCell::new(VecDeque::new()) };
}

/// Makes the monotonic clock lag by `lag` in an NMI, as it may if the NMI interrupts the clock's
/// update.
pub fn set_lag(lag: u64) {
    LAG.set(lag);
}

/// Sets the ticks that the clocks have missed.
pub fn set_missed(ticks: u64) {
    MISSED.set(ticks);
}

/// Stops the trace at this time. All records are complete.
pub fn set_stopped(time: u64) {
    STOPPED.set(time);
}

/// An event between two accesses.
struct Coming {
    /// Waits until a context of a lower level runs; [`None`]: does not wait.
    level: Option<Level>,
    /// Number of accesses before it, after the previous event.
    after: u64,
    what: Box<dyn FnOnce()>,
}

/// Advances the clocks by `tick` at each access to a word.
pub fn set_tick(tick: u64) {
    TICK.set(tick);
}

/// Makes `what` happen `after` accesses to words from now, or after the previous event. A context
/// of the CPU has a level, and waits until it may interrupt the running context. Another CPU does
/// not wait.
pub fn comes(level: Option<Level>, after: u64, what: impl FnOnce() + 'static) {
    let what = Box::new(what);
    COMING.with_borrow_mut(|all| all.push_back(Coming { level, after, what }));
}

/// Drops the events that have not happened. Returns their number.
pub fn nothing_comes() -> usize {
    COMING.take().len()
}

/// Called before each access to a word.
fn access() {
    TIME.set(TIME.get() + TICK.get());
    let due = COMING.with_borrow_mut(|all| {
        let first = all.front_mut()?;
        if first.level.is_some_and(|level| level <= LEVEL.get()) {
            return None;
        }
        if first.after > 0 {
            first.after -= 1;
            return None;
        }
        all.pop_front()
    });
    match due {
        Some(Coming {
            level: Some(level),
            what,
            ..
        }) => at_level(level, what),
        Some(Coming { what, .. }) => what(),
        None => {}
    }
}

/// Sets the clocks.
pub fn set_time(time: u64) {
    TIME.set(time);
}

/// Makes `interrupt` run just after the next reading of the clock that has no interrupt yet.
pub fn interrupt_after_clock(interrupt: impl FnOnce() + 'static) {
    INTERRUPTS.with_borrow_mut(|all| all.push_back(Box::new(interrupt)));
}

/// Returns whether preemption is disabled.
pub fn preemption_is_disabled() -> bool {
    NO_PREEMPT.get() != 0
}

/// Runs `context` at `level`.
pub fn at_level(level: Level, context: impl FnOnce()) {
    let below = LEVEL.replace(level);
    context();
    LEVEL.set(below);
}

/// Level of the running context.
pub fn level() -> Level {
    LEVEL.get()
}

fn read_clock() -> u64 {
    access();
    let time = TIME.get();
    let interrupt = INTERRUPTS.with_borrow_mut(VecDeque::pop_front);
    if let Some(interrupt) = interrupt {
        interrupt();
    }
    time
}

/// The platform of this module's CPU.
#[derive(Debug)]
pub struct OneCpu;

impl ring::Platform for OneCpu {
    type Local = Word;
    type Shared = Word;
    type Slots = IndexedSlots<Self>;

    fn publish(&self) {}
    fn promote(&self) {}
}

impl WritePlatform for OneCpu {
    const PAGE_SIZE: u64 = 256;

    type NoPreempt = NoPreempt;
    type PerCpu<T> = One<T>;
    type FilledOnce<T> = Once<T>;
    type GateState = State;
    type Pages = SharedBytes;
    type Wakeup = Announced;

    fn no_preempt() -> NoPreempt {
        NO_PREEMPT.set(NO_PREEMPT.get() + 1);
        NoPreempt(())
    }

    fn wait_for_entries() {}

    fn level(_guard: &NoPreempt) -> Level {
        access();
        level()
    }

    fn tsc() -> u64 {
        read_clock()
    }

    fn monotonic_ns() -> u64 {
        let lag = if level() >= Level::Nmi(0) {
            LAG.get()
        } else {
            0
        };
        read_clock() - lag
    }

    fn missed(&self) -> u64 {
        access();
        MISSED.get()
    }

    fn stopped(&self) -> u64 {
        access();
        STOPPED.get()
    }

    fn slots(&mut self, count: usize, slot: impl FnMut(u64) -> Slot<Self>) -> Option<Self::Slots> {
        Some(IndexedSlots::new((0..count as u64).map(slot).collect()))
    }

    fn pages(&mut self, bytes: usize, cpu: u32) -> Option<SharedBytes> {
        assert_eq!(cpu, crate::CPU);
        Some(SharedBytes(Rc::new(Bytes::new(bytes))))
    }
}

/// A section without preemption.
#[derive(Debug)]
pub struct NoPreempt(());

impl Drop for NoPreempt {
    fn drop(&mut self) {
        NO_PREEMPT.set(NO_PREEMPT.get() - 1);
    }
}

/// A word of the one CPU.
#[derive(Debug)]
pub struct Word(Cell<u64>);

impl ring::Local for Word {
    fn new(value: u64) -> Self {
        Self(Cell::new(value))
    }
    fn load(&self) -> u64 {
        access();
        self.0.get()
    }
    fn store(&self, value: u64) {
        access();
        self.0.set(value);
    }
    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        access();
        let same = self.0.get() == old;
        if same {
            self.0.set(new);
        }
        same
    }
    fn subtract(&self, value: u64) -> bool {
        access();
        self.0.set(self.0.get().wrapping_sub(value));
        self.0.get() == 0
    }
    fn add(&self, value: u64) {
        access();
        self.0.set(self.0.get().wrapping_add(value));
    }
    fn increment(&self) {
        ring::Local::add(self, 1);
    }
}

impl ring::Shared for Word {
    fn new(value: u64) -> Self {
        Self(Cell::new(value))
    }
    fn load(&self) -> u64 {
        access();
        self.0.get()
    }
    fn load_acquire(&self) -> u64 {
        access();
        self.0.get()
    }
    fn store(&self, value: u64) {
        access();
        self.0.set(value);
    }
    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        ring::Local::compare_exchange(self, old, new)
    }
}

/// The one CPU's value.
#[derive(Debug)]
pub struct One<T>(Rc<T>);

impl<T> Clone for One<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> EachCpu<T, NoPreempt> for One<T> {
    fn new(make: impl Fn() -> T) -> Option<Self> {
        Some(Self(Rc::new(make())))
    }
    fn word(&self) -> u64 {
        Rc::as_ptr(&self.0).expose_provenance() as u64
    }
    unsafe fn at<'a>(word: u64, _guard: &NoPreempt) -> &'a T {
        // SAFETY: By the contract it is the address of what lives so long.
        unsafe { &*core::ptr::with_exposed_provenance(word as usize) }
    }
    fn of(&self, cpu: u32) -> Option<&T> {
        (cpu == 0).then_some(&self.0)
    }
    fn for_each(&self, mut each: impl FnMut(&T)) {
        each(&self.0);
    }
}

/// A cell that is filled once.
#[derive(Debug)]
pub struct Once<T>(OnceCell<Rc<T>>);

impl<T> Once<T> {
    /// Fills the cell.
    pub fn set(&self, value: Rc<T>) {
        assert!(self.0.set(value).is_ok(), "filled twice");
    }
}

impl<T> FilledOnce<T> for Once<T> {
    fn new() -> Self {
        Self(OnceCell::new())
    }
    fn get(&self) -> Option<&T> {
        self.0.get().map(Rc::as_ref)
    }
    unsafe fn get_filled(&self) -> &T {
        self.get().expect("an open gate has a value")
    }
    fn is_filled(&self) -> bool {
        self.0.get().is_some()
    }
    // The drop of the cell drops the value.
    unsafe fn empty(&self) {}
}

/// A gate's state.
#[derive(Debug)]
pub struct State {
    inside: Cell<u64>,
    passage: Cell<Passage>,
    watched: Cell<bool>,
}

// SAFETY: `enter` and `is_open` return true only after `set_open(true)`; there is one thread.
unsafe impl GateState for State {
    fn new() -> Self {
        Self {
            inside: Cell::new(0),
            passage: Cell::new(Passage::Closed),
            watched: Cell::new(false),
        }
    }
    fn enter(&self) -> bool {
        access();
        self.inside.set(self.inside.get() + 1);
        self.inside.get() == 1 && self.passage.get() == Passage::Open && !self.watched.get()
    }
    fn leave(&self) {
        access();
        self.inside.set(self.inside.get() - 1);
    }
    fn is_nested(&self) -> bool {
        access();
        self.inside.get() > 1
    }
    fn is_open(&self) -> bool {
        access();
        self.passage.get() == Passage::Open
    }
    fn passage(&self) -> Passage {
        access();
        self.passage.get()
    }
    fn change(&self, from: Passage, to: Passage) -> bool {
        access();
        let is_changed = self.passage.get() == from;
        if is_changed {
            self.passage.set(to);
        }
        is_changed
    }
    fn fence(&self) {}
    fn is_empty(&self) -> bool {
        self.inside.get() == 0
    }
    fn set_open(&self, open: bool) {
        access();
        self.passage.set(match open {
            false => Passage::Closed,
            true => Passage::Open,
        });
    }
    fn set_watched(&self, watched: bool) {
        access();
        self.watched.set(watched);
    }
}

/// Memory that a buffer and its reader share.
#[derive(Clone, Debug)]
pub struct SharedBytes(Rc<Bytes>);

/// The memory.
#[derive(Debug)]
struct Bytes {
    base: NonNull<u8>,
    len: usize,
}

impl Bytes {
    fn new(len: usize) -> Self {
        let bytes = Box::leak(vec![0; len].into_boxed_slice());
        Self {
            base: NonNull::from(bytes).cast(),
            len,
        }
    }
}

// SAFETY: The slice is boxed, and no other code has its address until the drop.
unsafe impl Pages for SharedBytes {
    fn base(&self) -> NonNull<u8> {
        self.0.base
    }

    fn size(&self) -> usize {
        self.0.len
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        let bytes = std::ptr::slice_from_raw_parts_mut(self.base.as_ptr(), self.len);
        // SAFETY: `new` made the box.
        drop(unsafe { Box::from_raw(bytes) });
    }
}

/// Number of packets announced.
#[derive(Clone, Debug, Default)]
pub struct Announced(pub Rc<Cell<u64>>);

impl Wakeup for Announced {
    fn packet_ready(&self, _unread: impl FnOnce() -> u64) {
        self.0.set(self.0.get() + 1);
    }
}
