// SPDX-License-Identifier: GPL-2.0

//! Tracepoints: finding one by name, and attaching typed handlers.

use crate::sys::args::Registers;
use crate::sys::bindings;
use crate::sys::foreign::{ForeignFunction, ForeignModule, HeldModule};
use crate::sys::module_tracepoint::ModuleTracepoint;
use crate::sys::retired::{self, Retirable};
use core::ffi::c_void;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A type that stands for an argument of a tracepoint.
///
/// # Safety
///
/// `Self` has the size, alignment and C ABI of `Raw`, and every value that the kernel passes
/// as `Raw` in a tracepoint's call is a valid `Self` during that call.
pub(crate) unsafe trait Arg {
    /// The type in the tracepoint's C prototype, as bindgen writes it.
    type Raw;
}

macro_rules! plain_args {
    ($($t:ty),*) => { $(
        // SAFETY: The same type.
        unsafe impl Arg for $t {
            type Raw = $t;
        }
    )* };
}

plain_args!(bool, i8, u8, i16, u16, i32, u32, i64, u64, isize, usize);

/// A function that can be attached to a tracepoint of the right prototype, or of any, with a `D`.
pub(crate) struct Handler<D> {
    function: *const c_void,
    /// Where it is, if it is not in this module.
    owner: Option<ForeignModule>,
    data: PhantomData<fn(&D)>,
}

impl<D> Clone for Handler<D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D> Copy for Handler<D> {}

// SAFETY: A function's address.
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

/// The constructors differ in the number of arguments. The second parameter is the
/// tracepoint's `__traceiter_<name>` from the kernel's headers: a handler of another prototype
/// does not compile.
#[allow(dead_code)] // One for each number of arguments, had by an event now or not.
impl<D> Handler<D> {
    handler_constructors! {
        /// A handler without arguments.
        new0();
        /// A handler of one argument.
        new1(A);
        /// A handler of two.
        new2(A, B);
        /// A handler of three.
        new3(A, B, C);
        /// A handler of four.
        new4(A, B, C, E);
        /// A handler of five.
        new5(A, B, C, E, F);
        /// A handler of six.
        new6(A, B, C, E, F, G);
    }

    /// One for a tracepoint of any prototype. [`None`]: the kernel checks handlers' prototypes (CFI).
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

    /// One of another module, which vouches for the prototype and takes a `D`.
    pub(crate) fn foreign(function: ForeignFunction, owner: ForeignModule) -> Self {
        Self {
            function: function.0,
            owner: Some(owner),
            data: PhantomData,
        }
    }

    /// Whether it is in this module.
    pub(crate) fn is_of(&self, owner: ForeignModule) -> bool {
        self.owner == Some(owner)
    }
}

/// What a tracepoint of any prototype calls.
pub(crate) trait Traced {
    /// With its arguments where a function would have them, as many as there are registers for behind
    /// the handler's own; what is beyond those it has means nothing. Context: the tracepoint's.
    fn traced(&self, registers: &Registers);
}

/// A kernel's calling convention puts integers, pointers and structures of 8 bytes into one register each,
/// and leaves it to who is called what it makes of the others.
extern "C" fn traced<D: Traced>(data: &D, a: u64, b: u64, c: u64, d: u64, e: u64) {
    let mut room = MaybeUninit::uninit();
    data.traced(Registers::of_call(&mut room, [a, b, c, d, e]));
}

/// A tracepoint of the kernel proper, which lives for ever.
#[derive(Clone, Copy)]
pub(crate) struct Tracepoint(NonNull<bindings::tracepoint>);

// SAFETY: Registration has a lock of its own.
unsafe impl Send for Tracepoint {}
// SAFETY: As above.
unsafe impl Sync for Tracepoint {}

impl Tracepoint {
    fn name(self) -> &'static [u8] {
        // SAFETY: It lives for ever, and so does its name, which is NUL-terminated.
        unsafe { CStr::from_ptr((*self.0.as_ptr()).name.cast()) }.to_bytes()
    }
}

/// The tracepoints of the kernel proper, by their names.
pub(crate) struct Tracepoints(KVVec<(&'static [u8], Tracepoint)>);

impl Tracepoints {
    /// All of them. May sleep.
    pub(crate) fn new() -> Result<Self> {
        let mut count = 0;
        for_each(&mut |_| count += 1);
        let mut all = KVVec::with_capacity(count, GFP_KERNEL)?;
        let mut result = Ok(());
        for_each(&mut |tracepoint| {
            // There are no more now than before.
            if let Err(error) = all.push((tracepoint.name(), tracepoint), GFP_KERNEL) {
                result = Err(error);
            }
        });
        result?;
        all.sort_unstable_by_key(|&(name, _)| name);
        Ok(Self(all))
    }

    /// The one called `name`.
    pub(crate) fn find(&self, name: &str) -> Option<Tracepoint> {
        let found = self
            .0
            .binary_search_by_key(&name.as_bytes(), |&(known, _)| known);
        Some(self.0.get(found.ok()?)?.1)
    }
}

/// Where a handler is attached.
#[derive(Clone)]
pub(crate) enum AttachPoint {
    /// At a tracepoint of the kernel proper.
    Kernel(Tracepoint),
    /// At one of a module, whenever that is loaded.
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
    /// As for [`TracepointProbe::register`], but that the tracepoint need not be there.
    unsafe fn register(&self, probe: TracepointProbe) -> Result {
        match self {
            // SAFETY: It lives for ever; the rest is the caller's contract.
            Self::Kernel(tracepoint) => unsafe { probe.register(tracepoint.0) },
            // SAFETY: The caller's contract.
            Self::Module(tracepoint) => unsafe { tracepoint.register(probe) },
        }
    }

    /// Takes off what was registered there. Returns whether it may be asleep there.
    fn unregister(&self, probe: TracepointProbe) -> bool {
        match self {
            // SAFETY: It lives for ever, and the probe was registered.
            Self::Kernel(tracepoint) => unsafe { probe.unregister(tracepoint.0) },
            Self::Module(tracepoint) => tracepoint.unregister(probe),
        }
    }

    /// Whether handlers may sleep there.
    fn may_sleep(&self) -> bool {
        match self {
            // SAFETY: It lives for ever.
            Self::Kernel(tracepoint) => unsafe {
                bindings::rtrace_tracepoint_may_sleep(tracepoint.0.as_ptr())
            },
            Self::Module(tracepoint) => tracepoint.may_sleep(),
        }
    }
}

/// A handler with its data, as the kernel calls it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct TracepointProbe {
    function: *const c_void,
    data: *const c_void,
    order: Order,
}

// SAFETY: Two addresses, which are only compared and passed on.
unsafe impl Send for TracepointProbe {}

impl TracepointProbe {
    /// Has the tracepoint call it. `ENOMEM`. May sleep.
    ///
    /// # Safety
    ///
    /// - The tracepoint is there.
    /// - The function has its prototype, behind a pointer to the data, or takes any.
    /// - Both stay until it was [unregistered](Self::unregister), and runs nowhere any more.
    pub(super) unsafe fn register(self, tracepoint: NonNull<bindings::tracepoint>) -> Result {
        // SAFETY: The caller's contract.
        kernel::error::to_result(unsafe {
            bindings::tracepoint_probe_register_prio(
                tracepoint.as_ptr(),
                self.function.cast_mut(),
                self.data.cast_mut(),
                self.order as c_int,
            )
        })
    }

    /// Has the tracepoint not call it any more; it may still run. Returns whether it may be asleep there. May sleep.
    ///
    /// # Safety
    ///
    /// The tracepoint is there, and this was registered with it.
    pub(super) unsafe fn unregister(self, tracepoint: NonNull<bindings::tracepoint>) -> bool {
        // SAFETY: The caller's contract. It cannot fail for that.
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

/// Shows each to `see`.
fn for_each(see: &mut dyn FnMut(Tracepoint)) {
    /// Shows one.
    ///
    /// # Safety
    ///
    /// `see` must point to what [`for_each`] got.
    unsafe extern "C" fn visit(tracepoint: *mut bindings::tracepoint, see: *mut c_void) {
        // SAFETY: The one below.
        let see = unsafe { &mut *see.cast::<&mut dyn FnMut(Tracepoint)>() };
        if let Some(tracepoint) = NonNull::new(tracepoint) {
            see(Tracepoint(tracepoint));
        }
    }
    let mut see = see;
    // SAFETY: `visit` gets `see`, and is not called after this returns.
    unsafe { bindings::for_each_kernel_tracepoint(Some(visit), (&raw mut see).cast()) };
}

/// When a handler is called, among those of its tracepoint: the kernel's priorities.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
enum Order {
    /// As `tracepoint_probe_register()` has it.
    Usual = bindings::TRACEPOINT_DEFAULT_PRIO as i32,
    /// After these.
    Last = 0,
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
    /// The module that the handler is in, if it is another.
    _owner: Option<HeldModule>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Attached,
    /// Off its tracepoint; it may still run.
    Detached,
    /// The same, and it may be asleep.
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
/// Dropping detaches them; see [`detach`].
pub(crate) struct Attachments<D: Send + Sync + 'static>(KVVec<Attached<D>>);

impl<D: Send + Sync + 'static> Attachments<D> {
    /// None.
    pub(crate) const fn new() -> Self {
        Self(KVVec::new())
    }

    /// Attaches `handler` at `place` and calls it with `data` from now on; at a tracepoint of a module
    /// whenever that is loaded. May sleep.
    pub(crate) fn attach(
        &mut self,
        place: impl Into<AttachPoint>,
        handler: Handler<D>,
        data: Arc<D>,
    ) -> Result {
        self.register(place.into(), handler, data, Order::Usual)
    }

    /// The same; it is called after all handlers that are not attached like this.
    pub(crate) fn attach_last(
        &mut self,
        place: impl Into<AttachPoint>,
        handler: Handler<D>,
        data: Arc<D>,
    ) -> Result {
        self.register(place.into(), handler, data, Order::Last)
    }

    fn register(
        &mut self,
        place: AttachPoint,
        handler: Handler<D>,
        data: Arc<D>,
        order: Order,
    ) -> Result {
        let owner = match handler.owner {
            Some(owner) => Some(owner.hold().ok_or(ENODEV)?),
            None => None,
        };
        let probe = TracepointProbe {
            function: handler.function,
            data: Arc::as_ptr(&data).cast(),
            order,
        };
        // Before the registration, so that nothing can fail after it.
        self.0.reserve(1, GFP_KERNEL)?;
        let used = Retirable::new(Used {
            data,
            _owner: owner,
        })?;
        if place.may_sleep() {
            retired::settle(true)?;
        }
        // SAFETY: The handler has the tracepoint's prototype, or takes any (`Handler`); its first argument
        // is a `&D`, and `used` has that and the handler's module until it is detached and runs nowhere
        // (`detach`).
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

    /// Those whose data `picks` picks, for [`detach`].
    pub(crate) fn picked<P: Fn(&D) -> bool>(&mut self, picks: P) -> Picked<'_, D, P> {
        Picked {
            attachments: self,
            picks,
        }
    }

    /// The data of those that are attached.
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
    /// The two halves of [`detach`](super::detach). Only that calls them, in this order and with
    /// the wait between them.
    pub(crate) trait Sealed {
        /// Takes them off their tracepoints. Says of each whether it may be asleep.
        fn unregister(&mut self, may_sleep: &mut dyn FnMut(bool));
        /// Drops their data; later, if they may be asleep.
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
                        attached.used.retire();
                    }
                }
                _ => {}
            }
        }
    }
}

/// Detaches all of these, and waits, once, until none of them runs with preemption disabled. Those that may sleep
/// where they are may still run then: their data goes when they have returned. May sleep, but waits for none that
/// sleeps.
pub(crate) fn detach(all: &mut [&mut dyn Detach]) {
    let (mut any, mut any_may_sleep) = (false, false);
    for handlers in &mut *all {
        handlers.unregister(&mut |may_sleep| {
            any = true;
            any_may_sleep |= may_sleep;
        });
    }
    if any {
        // SAFETY: May sleep here.
        unsafe { bindings::rtrace_synchronize_probes(any_may_sleep) };
    }
    for handlers in all {
        handlers.release();
    }
}
