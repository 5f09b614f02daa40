// SPDX-License-Identifier: GPL-2.0

//! Tracepoints: lookup by name, and typed handlers.

use crate::arch::word::SharedWord;
use crate::sys::args::{Registers, Task};
use crate::sys::bindings;
use crate::sys::foreign::{ForeignFunction, ForeignModule, HeldModule};
use crate::sys::functions::names::FunctionName;
use crate::sys::module_tracepoint::ModuleTracepoint;
use crate::sys::retired::{self, Retirable, UsedBy};
use crate::sys::sort::sort_by;
use core::ffi::c_void;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A Rust type in which a handler receives one argument of a tracepoint.
///
/// # Safety
///
/// `Self` must have the size, alignment and C ABI of `Raw`. Each value that the kernel passes as `Raw` in a
/// tracepoint's call must be a valid `Self` during that call.
pub(crate) unsafe trait Arg {
    /// The type in the tracepoint's C prototype, as bindgen writes it.
    type Raw;

    /// The task, if the argument is one: the event is about it.
    #[inline(always)]
    fn task(&self) -> Option<&Task> {
        None
    }
}

macro_rules! plain_args {
    ($($t:ty),*) => { $(
        // SAFETY: Both are the same type.
        unsafe impl Arg for $t {
            type Raw = $t;
        }
    )* };
}

plain_args!(bool, i8, u8, i16, u16, i32, u32, i64, u64, isize, usize);

/// A handler function for tracepoints of one prototype, or of any prototype. Its first argument is a `&D`.
pub(crate) struct Handler<D> {
    function: *const c_void,
    /// The module that contains the function, if that is not this module.
    owner: Option<ForeignModule>,
    data: PhantomData<fn(&D)>,
}

impl<D> Clone for Handler<D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D> Copy for Handler<D> {}

// SAFETY: The pointer is a function's address.
unsafe impl<D> Send for Handler<D> {}
// SAFETY: As above.
unsafe impl<D> Sync for Handler<D> {}

macro_rules! handler_constructors {
    ($($(#[$doc:meta])* $name:ident($($arg:ident),*);)*) => { $(
        $(#[$doc])*
        pub(crate) const fn $name<$($arg: Arg),*>(
            function: extern "C" fn(&D $(, $arg)*),
            _prototype: unsafe extern "C" fn(*mut c_void $(, $arg::Raw)*) -> c_int,
        ) -> Self {
            Self { function: function as *const c_void, owner: None, data: PhantomData }
        }
    )* };
}

/// The constructors differ in the number of arguments. The second parameter is the tracepoint's
/// `__traceiter_<name>` from the kernel's headers: a handler of another prototype does not compile.
#[allow(dead_code)] // Some numbers of arguments have no event.
impl<D> Handler<D> {
    handler_constructors! {
        /// A handler without arguments.
        new0();
        /// A handler of one argument.
        new1(A);
        /// A handler of two arguments.
        new2(A, B);
        /// A handler of three arguments.
        new3(A, B, C);
        /// A handler of four arguments.
        new4(A, B, C, E);
        /// A handler of five arguments.
        new5(A, B, C, E, F);
        /// A handler of six arguments.
        new6(A, B, C, E, F, G);
    }

    /// A handler for tracepoints of any prototype. [`None`]: the kernel checks handlers' prototypes (CFI).
    pub(crate) fn of_any() -> Option<Self>
    where
        D: Traced,
    {
        (!cfg!(CONFIG_CFI)).then_some(Self {
            function: traced::<D> as *const c_void,
            owner: None,
            data: PhantomData,
        })
    }

    /// A handler in another module, which guarantees its prototype and that it takes a `D`.
    pub(crate) fn foreign(function: ForeignFunction, owner: ForeignModule) -> Self {
        Self {
            function: function.0,
            owner: Some(owner),
            data: PhantomData,
        }
    }

    /// Whether the handler is in module `owner`.
    pub(crate) fn is_of(&self, owner: ForeignModule) -> bool {
        self.owner == Some(owner)
    }
}

/// Receives the calls of a tracepoint of any prototype.
pub(crate) trait Traced {
    /// Handles a call. `registers` has the tracepoint's arguments in the argument registers of a function that has
    /// only these arguments. The handler's own argument takes one register, so the last argument register is
    /// missing. Registers beyond the tracepoint's arguments are meaningless. Context: the tracepoint's.
    fn traced(&self, registers: &Registers);
}

/// The handler for any prototype. The kernel's calling convention passes integers, pointers and structures of 8
/// bytes in one register each. The callee may ignore the other registers.
extern "C" fn traced<D: Traced>(data: &D, a: u64, b: u64, c: u64, d: u64, e: u64) {
    let mut room = MaybeUninit::uninit();
    data.traced(Registers::of_call(&mut room, [a, b, c, d, e]));
}

/// A tracepoint of the kernel proper, which is never freed.
#[derive(Clone, Copy)]
pub(crate) struct Tracepoint(NonNull<bindings::tracepoint>);

// SAFETY: Registration has its own lock.
unsafe impl Send for Tracepoint {}
// SAFETY: As above.
unsafe impl Sync for Tracepoint {}

impl Tracepoint {
    fn name(self) -> &'static [u8] {
        // SAFETY: The tracepoint and its name are never freed. The name is NUL-terminated.
        unsafe { CStr::from_ptr((*self.0.as_ptr()).name.cast()) }.to_bytes()
    }
}

/// The tracepoints of the kernel proper, sorted by name.
pub(crate) struct Tracepoints(KVVec<(&'static [u8], Tracepoint)>);

impl Tracepoints {
    /// All of them. May sleep.
    pub(crate) fn new() -> Result<Self> {
        let mut count = 0;
        for_each(&mut |_| count += 1);
        let mut all = KVVec::with_capacity(count, GFP_KERNEL)?;
        let mut result = Ok(());
        for_each(&mut |tracepoint| {
            // The second pass finds no more tracepoints than the first.
            if let Err(error) = all.push((tracepoint.name(), tracepoint), GFP_KERNEL) {
                result = Err(error);
            }
        });
        result?;
        sort_by(&mut all, |one, other| one.0.cmp(other.0));
        Ok(Self(all))
    }

    /// The tracepoint with this name.
    pub(crate) fn find(&self, name: &str) -> Option<Tracepoint> {
        let found = self
            .0
            .binary_search_by_key(&name.as_bytes(), |&(known, _)| known);
        Some(self.0.get(found.ok()?)?.1)
    }
}

/// Place of a handler.
#[derive(Clone)]
pub(crate) enum AttachPoint {
    /// A tracepoint of the kernel proper.
    Kernel(Tracepoint),
    /// A tracepoint of a module, which need not be loaded.
    Module(Arc<ModuleTracepoint>),
}

impl From<Tracepoint> for AttachPoint {
    fn from(tracepoint: Tracepoint) -> Self {
        Self::Kernel(tracepoint)
    }
}

impl AttachPoint {
    /// # Safety
    ///
    /// As for [`TracepointProbe::register`], except that the tracepoint need not be loaded.
    unsafe fn register(&self, probe: TracepointProbe) -> Result {
        match self {
            // SAFETY: The tracepoint is never freed. The rest is the caller's contract.
            Self::Kernel(tracepoint) => unsafe { probe.register(tracepoint.0) },
            // SAFETY: By the caller's contract.
            Self::Module(tracepoint) => unsafe { tracepoint.register(probe) },
        }
    }

    /// Unregisters a registered probe. Returns whether a call of its handler may be asleep.
    fn unregister(&self, probe: TracepointProbe) -> bool {
        match self {
            // SAFETY: The tracepoint is never freed, and the probe was registered.
            Self::Kernel(tracepoint) => unsafe { probe.unregister(tracepoint.0) },
            Self::Module(tracepoint) => tracepoint.unregister(probe),
        }
    }

    /// Whether handlers at this place may sleep.
    fn may_sleep(&self) -> bool {
        match self {
            // SAFETY: The tracepoint is never freed.
            Self::Kernel(tracepoint) => unsafe {
                bindings::rtrace_tracepoint_may_sleep(tracepoint.0.as_ptr())
            },
            Self::Module(tracepoint) => tracepoint.may_sleep(),
        }
    }
}

/// A handler with its data, in the form that the kernel calls.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct TracepointProbe {
    function: *const c_void,
    data: *const c_void,
    rank: Rank,
}

// SAFETY: Both pointers are only compared and forwarded.
unsafe impl Send for TracepointProbe {}

impl TracepointProbe {
    /// Registers the probe with the tracepoint. Error: `ENOMEM`. May sleep.
    ///
    /// # Safety
    ///
    /// - The tracepoint must be loaded.
    /// - The function must take a pointer to the data, then the arguments of the tracepoint's prototype; or it
    ///   must accept any arguments.
    /// - Function and data must stay until the probe was [unregistered](Self::unregister) and does not run any
    ///   more.
    pub(super) unsafe fn register(self, tracepoint: NonNull<bindings::tracepoint>) -> Result {
        // SAFETY: By the caller's contract.
        kernel::error::to_result(unsafe {
            bindings::tracepoint_probe_register_prio(
                tracepoint.as_ptr(),
                self.function.cast_mut(),
                self.data.cast_mut(),
                self.rank.priority(),
            )
        })
    }

    /// Unregisters the probe, which may still run. Returns whether a call of its handler may be asleep. May sleep.
    ///
    /// # Safety
    ///
    /// The tracepoint must be loaded, and the probe must be registered with it.
    pub(super) unsafe fn unregister(self, tracepoint: NonNull<bindings::tracepoint>) -> bool {
        // SAFETY: By the caller's contract, for which the call cannot fail.
        unsafe {
            bindings::tracepoint_probe_unregister(
                tracepoint.as_ptr(),
                self.function.cast_mut(),
                self.data.cast_mut(),
            );
            bindings::rtrace_tracepoint_may_sleep(tracepoint.as_ptr())
        }
    }
}

/// Calls `see` for each tracepoint of the kernel proper.
fn for_each(see: &mut dyn FnMut(Tracepoint)) {
    /// Calls `see` for one tracepoint.
    ///
    /// # Safety
    ///
    /// `see` must point to the `see` of [`for_each`].
    unsafe extern "C" fn visit(tracepoint: *mut bindings::tracepoint, see: *mut c_void) {
        // SAFETY: The pointer is to the variable below.
        let see = unsafe { &mut *see.cast::<&mut dyn FnMut(Tracepoint)>() };
        if let Some(tracepoint) = NonNull::new(tracepoint) {
            see(Tracepoint(tracepoint));
        }
    }
    let mut see = see;
    // SAFETY: `visit` gets `see`, and is not called after this returns.
    unsafe { bindings::for_each_kernel_tracepoint(Some(visit), (&raw mut see).cast()) };
}

/// The functions through which the tracepoints of the kernel proper call their handlers if there are several
/// (`__traceiter_<name>`).
pub(super) struct Iterators {
    /// Where each begins, and the address behind it; sorted.
    code: KVVec<(u64, u64)>,
    /// Addresses that are in none of them, which spare the next search for the same address.
    others: [SharedWord; 1 << OTHER_BITS],
}

const OTHER_BITS: u32 = 6;

impl Iterators {
    /// All of them. One whose size the kernel does not know is left out. May sleep.
    pub(super) fn new() -> Result<Self> {
        let mut code = KVVec::new();
        let mut result = Ok(());
        for_each(&mut |Tracepoint(tracepoint)| {
            // SAFETY: The tracepoint is never freed.
            let begin = unsafe { (*tracepoint.as_ptr()).iterator }.addr();
            if let Some(size) = FunctionName::with_distance(begin).size() {
                let begin = begin as u64;
                if let Err(error) = code.push((begin, begin.wrapping_add(size)), GFP_KERNEL) {
                    result = Err(error);
                }
            }
        });
        result?;
        sort_by(&mut code, |one, other| one.0.cmp(&other.0));
        Ok(Self {
            code,
            others: [const { SharedWord::new(0) }; 1 << OTHER_BITS],
        })
    }

    /// Whether a return address is in one of them. Any context, NMI included.
    #[inline(always)]
    pub(super) fn contain(&self, address: u64) -> bool {
        let place = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - OTHER_BITS);
        match self.others.get(place as usize) {
            Some(other) if other.load() == address => false,
            Some(other) if !self.find(address) => {
                other.store(address);
                false
            }
            _ => true,
        }
    }

    #[cold]
    #[inline(never)]
    fn find(&self, address: u64) -> bool {
        let (mut low, mut high) = (0, self.code.len());
        // (Core's search has overflow checks here, which call a panic.)
        while low < high {
            let middle = usize::wrapping_add(low, high) / 2;
            match self.code.get(middle) {
                Some((begin, _)) if address < *begin => high = middle,
                Some((_, end)) if address >= *end => low = middle.wrapping_add(1),
                found => return found.is_some(),
            }
        }
        false
    }
}

/// Position of a handler among those of its event: smaller ranks run first, at tracepoints and in lists of probes
/// alike. Handlers of one rank run in the order in which they were attached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// Records the event. First, so that an event that ends a recording is recorded. Other tracers' handlers have the
    /// same rank.
    Record,
    /// Updates a map, or ends a measurement.
    End,
    /// Begins a measurement. After [`End`](Self::End), so that an event that does both ends the old measurement.
    Begin,
    /// Fires a trigger, which may stop what the others do.
    Trigger,
}

impl Rank {
    /// The kernel's priority: handlers of higher priorities run first.
    fn priority(self) -> c_int {
        bindings::TRACEPOINT_DEFAULT_PRIO as c_int - self as c_int
    }
}

struct Attached<D> {
    place: AttachPoint,
    probe: TracepointProbe,
    used: KBox<Retirable<Used<D>>>,
    state: State,
}

/// Values that a handler needs while it runs.
struct Used<D> {
    data: Arc<D>,
    /// Reference to the module that contains the handler, if that is not this module.
    _owner: Option<HeldModule>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Attached,
    /// Unregistered from its tracepoint; a call may still run.
    Detached,
    /// As `Detached`, and a call may be asleep.
    MaySleep,
}

impl<D> Attached<D> {
    fn detach(&mut self) {
        self.state = match self.place.unregister(self.probe) {
            false => State::Detached,
            true => State::MaySleep,
        };
    }
}

/// Handlers that are attached to tracepoints.
///
/// The drop detaches them; see [`detach`].
pub(crate) struct Attachments<D: Send + Sync + 'static>(KVVec<Attached<D>>);

impl<D: Send + Sync + 'static> Attachments<D> {
    /// An empty list.
    pub(crate) const fn new() -> Self {
        Self(KVVec::new())
    }

    /// Attaches `handler` at `place`, which calls it with `data` from now on. A tracepoint of a module calls it
    /// whenever the module is loaded. May sleep.
    pub(crate) fn attach(
        &mut self,
        place: impl Into<AttachPoint>,
        handler: Handler<D>,
        data: Arc<D>,
        rank: Rank,
    ) -> Result {
        let place = place.into();
        let owner = match handler.owner {
            Some(owner) => Some(owner.hold().ok_or(ENODEV)?),
            None => None,
        };
        let probe = TracepointProbe {
            function: handler.function,
            data: Arc::as_ptr(&data).cast(),
            rank,
        };
        // Reserved before the registration, so that no step after it can fail.
        self.0.reserve(1, GFP_KERNEL)?;
        let used = Retirable::new(Used {
            data,
            _owner: owner,
        })?;
        if place.may_sleep() {
            retired::settle(true)?;
        }
        // SAFETY: The handler has the tracepoint's prototype, or accepts any (`Handler`). Its first argument is
        // a `&D`. `used` owns the data and a reference to the handler's module. It lives until the handler is
        // detached and does not run any more (`detach`).
        unsafe { place.register(probe) }?;
        self.0.push(
            Attached {
                place,
                probe,
                used,
                state: State::Attached,
            },
            GFP_KERNEL,
        )?;
        Ok(())
    }

    /// The handlers whose data `picks` selects, for [`detach`].
    pub(crate) fn picked<P: Fn(&D) -> bool>(&mut self, picks: P) -> Picked<'_, D, P> {
        Picked {
            attachments: self,
            picks,
        }
    }

    /// The data of the attached handlers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<D>> {
        self.0.iter().map(|attached| &attached.used.value().data)
    }
}

impl<D: Send + Sync + 'static> Drop for Attachments<D> {
    fn drop(&mut self) {
        detach(&mut [&mut self.picked(|_| true)]);
    }
}

/// Some of the handlers of [`Attachments`].
pub(crate) struct Picked<'a, D: Send + Sync + 'static, P> {
    attachments: &'a mut Attachments<D>,
    picks: P,
}

/// Handlers that can be detached together with others.
pub(crate) trait Detach: detach::Sealed {}

mod detach {
    /// The two halves of [`detach`](super::detach). Only `detach` calls them, in this order and with the wait
    /// between them.
    pub(crate) trait Sealed {
        /// Unregisters the handlers from their tracepoints. Calls `may_sleep` for each, with whether a call of the
        /// handler may be asleep.
        fn unregister(&mut self, may_sleep: &mut dyn FnMut(bool));
        /// Drops the data of the unregistered handlers. If a call may be asleep, the data is dropped later.
        fn release(&mut self);
    }
}

impl<D: Send + Sync + 'static, P: Fn(&D) -> bool> Detach for Picked<'_, D, P> {}

impl<D: Send + Sync + 'static, P: Fn(&D) -> bool> detach::Sealed for Picked<'_, D, P> {
    fn unregister(&mut self, may_sleep: &mut dyn FnMut(bool)) {
        for attached in &mut self.attachments.0 {
            if (self.picks)(&attached.used.value().data) {
                attached.detach();
                may_sleep(attached.state == State::MaySleep);
            }
        }
    }

    fn release(&mut self) {
        let all = &mut self.attachments.0;
        let mut place = all.len();
        while place > 0 {
            place -= 1;
            match all.get(place).map(|attached| attached.state) {
                Some(State::Detached) => drop(all.remove(place)),
                Some(State::MaySleep) => {
                    if let Ok(attached) = all.remove(place) {
                        attached.used.retire(UsedBy::Tracepoint);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Detaches all these handlers, and waits once until none of them runs with preemption disabled. A handler that
/// may sleep may still run after that; its data is freed when it has returned. May sleep, but does not wait for
/// a handler that sleeps.
pub(crate) fn detach(all: &mut [&mut dyn Detach]) {
    let (mut any, mut any_may_sleep) = (false, false);
    for handlers in &mut *all {
        handlers.unregister(&mut |may_sleep| {
            any = true;
            any_may_sleep |= may_sleep;
        });
    }
    if any {
        // SAFETY: This context may sleep.
        unsafe { bindings::rtrace_synchronize_probes(any_may_sleep) };
    }
    for handlers in all {
        handlers.release();
    }
}
