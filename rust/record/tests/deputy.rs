// SPDX-License-Identifier: GPL-2.0

//! A gate's deputy and the contexts of the gate's CPU, under loom: they never use the value at the same time, each
//! sees what the other has done, and each record is counted.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{fence, AtomicBool, AtomicU32, AtomicU64, Ordering};
use loom::sync::{Arc, Mutex, MutexGuard};
use rtrace_record::gate::{
    EachCpu, FilledOnce, GateState, Gates, Guarded, Level, Passage, Stopped,
};
use rtrace_record::memory::Pages;
use rtrace_record::platform::{Wakeup, WritePlatform};
use rtrace_ring::platform::{Local, Platform, Shared};
use rtrace_ring::slot::{Slot, Slots};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::{Arc as PlainArc, OnceLock};

loom::lazy_static! {
    /// Held by a CPU with preemption disabled. A grace period is one acquisition.
    static ref RCU: Mutex<()> = Mutex::new(());
}

loom::thread_local! {
    static NO_PREEMPT: Cell<u32> = Cell::new(0);
}

/// The machine. Without `FENCE`, a context does not execute the barrier (D1).
struct Machine<const FENCE: bool>;

/// A section without preemption; the outermost one of its CPU holds the lock.
struct NoPreempt(Option<MutexGuard<'static, ()>>);

impl Drop for NoPreempt {
    fn drop(&mut self) {
        let _lock = self.0.take();
        NO_PREEMPT.with(|depth| depth.set(depth.get() - 1));
    }
}

/// A word that one CPU writes. For other CPUs each operation is a load and a store.
struct Word(AtomicU64);

impl Word {
    fn change(&self, change: impl FnOnce(u64) -> u64, order: Ordering) -> u64 {
        let new = change(self.0.load(Ordering::Relaxed));
        self.0.store(new, order);
        new
    }
}

impl Local for Word {
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }
    fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn store(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
    fn compare_exchange(&self, _old: u64, _new: u64) -> bool {
        unreachable!("the gate alone is tested, without a ring")
    }
    fn subtract(&self, value: u64) -> bool {
        self.change(|old| old.wrapping_sub(value), Ordering::Relaxed) == 0
    }
    fn add(&self, value: u64) {
        self.change(|old| old.wrapping_add(value), Ordering::Relaxed);
    }
    fn increment(&self) {
        self.add(1);
    }
}

impl Shared for Word {
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }
    fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn load_acquire(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
    fn store(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
    fn compare_exchange(&self, _old: u64, _new: u64) -> bool {
        unreachable!("the gate alone is tested, without a ring")
    }
}

/// The value of the one CPU.
struct One<T>(PlainArc<T>);

impl<T> Clone for One<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> EachCpu<T, NoPreempt> for One<T> {
    fn new(make: impl Fn() -> T) -> Option<Self> {
        Some(Self(PlainArc::new(make())))
    }
    fn word(&self) -> u64 {
        PlainArc::as_ptr(&self.0).expose_provenance() as u64
    }
    unsafe fn at<'a>(word: u64, _guard: &NoPreempt) -> &'a T {
        // SAFETY: By the contract it is the address of a value that lives so long.
        unsafe { &*std::ptr::with_exposed_provenance(word as usize) }
    }
    fn of(&self, cpu: u32) -> Option<&T> {
        (cpu == 0).then_some(&self.0)
    }
    fn for_each(&self, mut each: impl FnMut(&T)) {
        each(&self.0);
    }
}

/// A cell that is filled before there is a second thread.
struct Once<T>(OnceLock<PlainArc<T>>);

impl<T> FilledOnce<T> for Once<T> {
    fn new() -> Self {
        Self(OnceLock::new())
    }
    fn get(&self) -> Option<&T> {
        self.0.get().map(PlainArc::as_ref)
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
struct State<const FENCE: bool> {
    inside: Word,
    passage: AtomicU32,
    watched: AtomicBool,
}

// SAFETY: The passage is that of a closed gate until `set_open`. All functions that load it are acquires.
unsafe impl<const FENCE: bool> GateState for State<FENCE> {
    fn new() -> Self {
        Self {
            inside: Local::new(0),
            passage: AtomicU32::new(Passage::Closed as u32),
            watched: AtomicBool::new(false),
        }
    }
    fn enter(&self) -> bool {
        let inside = self.inside.change(|count| count + 1, Ordering::Relaxed);
        let is_open = self.is_open();
        inside == 1 && is_open && !self.watched.load(Ordering::Relaxed)
    }
    fn leave(&self) {
        self.inside.change(|count| count - 1, Ordering::Release);
    }
    fn is_nested(&self) -> bool {
        Local::load(&self.inside) > 1
    }
    fn is_open(&self) -> bool {
        self.passage() == Passage::Open
    }
    fn passage(&self) -> Passage {
        match self.passage.load(Ordering::Acquire) {
            0 => Passage::Closed,
            1 => Passage::Open,
            2 => Passage::Fenced,
            _ => Passage::Held,
        }
    }
    fn set_open(&self, open: bool) {
        // An exchange, because loom leaves the order of a store and an exchange open.
        self.passage.swap(open.into(), Ordering::Release);
    }
    fn change(&self, from: Passage, to: Passage) -> bool {
        fence(Ordering::SeqCst);
        let changed = self.passage.compare_exchange(
            from as u32,
            to as u32,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        fence(Ordering::SeqCst);
        changed.is_ok()
    }
    fn fence(&self) {
        if FENCE {
            fence(Ordering::SeqCst);
        }
    }
    fn is_empty(&self) -> bool {
        self.inside.0.load(Ordering::Acquire) == 0
    }
    fn set_watched(&self, watched: bool) {
        self.watched.store(watched, Ordering::Relaxed);
    }
}

/// Memory of a buffer; there is none.
#[derive(Clone)]
struct NoPages;

// SAFETY: It has no bytes.
unsafe impl Pages for NoPages {
    fn base(&self) -> NonNull<u8> {
        NonNull::dangling()
    }
    fn size(&self) -> usize {
        0
    }
}

struct NoWakeup;

impl Wakeup for NoWakeup {
    fn packet_ready(&self, _unread: impl FnOnce() -> u64) {}
}

/// The slots of a ring; there is none.
struct NoSlots;

impl<const FENCE: bool> Slots<Machine<FENCE>> for NoSlots {
    fn all(&self) -> &[Slot<Machine<FENCE>>] {
        &[]
    }
    fn open(&self) -> &Slot<Machine<FENCE>> {
        unreachable!("the gate alone is tested, without a ring")
    }
    fn set_open(&self, _index: u64) {
        unreachable!("the gate alone is tested, without a ring")
    }
}

impl<const FENCE: bool> Platform for Machine<FENCE> {
    type Local = Word;
    type Shared = Word;
    type Slots = NoSlots;
    fn publish(&self) {}
    fn promote(&self) {}
}

impl<const FENCE: bool> WritePlatform for Machine<FENCE> {
    const PAGE_SIZE: u64 = 4096;

    type NoPreempt = NoPreempt;
    type PerCpu<T> = One<T>;
    type FilledOnce<T> = Once<T>;
    type GateState = State<FENCE>;
    type Pages = NoPages;
    type Wakeup = NoWakeup;

    fn no_preempt() -> NoPreempt {
        let depth = NO_PREEMPT.with(|depth| depth.replace(depth.get() + 1));
        NoPreempt((depth == 0).then(|| RCU.lock().unwrap()))
    }
    fn wait_for_entries() {
        drop(RCU.lock().unwrap());
    }
    fn level(_guard: &NoPreempt) -> Level {
        Level::Interrupt
    }
    fn tsc() -> u64 {
        0
    }
    fn monotonic_ns() -> u64 {
        0
    }
    fn slots(&mut self, _: usize, _: impl FnMut(u64) -> Slot<Self>) -> Option<Self::Slots> {
        None
    }
    fn pages(&mut self, _: usize, _: u32) -> Option<NoPages> {
        None
    }
}

/// The value: what only one CPU at a time may use, and the count of refused records.
struct Words {
    used: UnsafeCell<u64>,
    busy: AtomicU64,
}

// SAFETY: loom reports a concurrent access.
unsafe impl Sync for Words {}
// SAFETY: Plain words.
unsafe impl Send for Words {}

impl Words {
    fn use_them(&self) {
        // SAFETY: loom reports a concurrent access.
        self.used.with_mut(|used| unsafe { *used += 1 });
    }
}

impl Guarded for Words {
    fn count_busy(&self) {
        let busy = self.busy.load(Ordering::Relaxed);
        self.busy.store(busy + 1, Ordering::Relaxed);
    }
}

type TestGates<const FENCE: bool> = Gates<Machine<FENCE>, Words>;

/// Fires a record, which another one interrupts. Returns how many were let in.
fn fire<const FENCE: bool>(gates: &TestGates<FENCE>, interrupt: bool) -> u64 {
    let entered = gates
        .enter()
        .or_else(|stopped| stopped.pass().or_else(Stopped::pass_fence));
    let nested = if interrupt { fire(gates, false) } else { 0 };
    match entered {
        Ok(entered) => {
            entered.target().use_them();
            nested + 1
        }
        Err(_stopped) => nested,
    }
}

/// Searches the executions of a CPU that records and a deputy that acts up to twice. A third CPU may close the gate.
fn search<const FENCE: bool>(interrupt: bool, closes: bool) {
    let mut search = loom::model::Builder::new();
    search.preemption_bound = Some(if closes { 2 } else { 3 });
    search.check(move || {
        let words = PlainArc::new(Words {
            used: UnsafeCell::new(0),
            busy: AtomicU64::new(0),
        });
        let gates = Arc::new(TestGates::<FENCE>::new().unwrap());
        let is_new = gates.cell(0).unwrap().0.set(words.clone()).is_ok();
        assert!(is_new);
        gates.open(0);
        let cpu = {
            let gates = gates.clone();
            loom::thread::spawn(move || fire(&gates, interrupt) + fire(&gates, false))
        };
        let stop = closes.then(|| {
            let gates = gates.clone();
            loom::thread::spawn(move || gates.close(0))
        });
        let deputy = gates.deputy(0).unwrap();
        let acted = [(); 2].map(|()| deputy.act(|| words.use_them()));
        drop(deputy);
        let recorded = cpu.join().unwrap();
        if let Some(stop) = stop {
            stop.join().unwrap();
        }
        let acted = acted.into_iter().filter(|acted| *acted).count() as u64;
        // SAFETY: All other threads have ended.
        let used = words.used.with(|used| unsafe { *used });
        assert_eq!(used, recorded + acted);
        let refused = 2 + u64::from(interrupt) - recorded;
        let busy = words.busy.load(Ordering::Relaxed);
        assert!(busy <= refused, "a record is counted twice");
        assert!(busy == refused || closes, "a record is not counted");
        assert_eq!(gates.enter().is_ok(), !closes, "the gate is as before");
    });
}

#[test]
fn nobody_else_is_inside() {
    search::<true>(false, false);
}

#[test]
fn with_an_interruption() {
    search::<true>(true, false);
}

#[test]
fn with_a_stop() {
    search::<true>(false, true);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_barrier_is_needed() {
    search::<false>(false, false);
}
