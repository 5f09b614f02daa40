// SPDX-License-Identifier: GPL-2.0

//! Kprobes: being called where code of the kernel is reached, and where a function returns.

use crate::sys::args::Registers;
use crate::sys::bindings;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// Where code is.
pub(crate) enum CodePlace {
    /// So many bytes behind a symbol.
    Symbol(CString, u32),
    /// At an address.
    Address(u64),
}

/// What is called where code is reached: in the kernel in any context but NMI, and maybe that, with
/// preemption disabled; in a program where it may sleep.
pub(crate) trait Reached: Send + Sync + 'static {
    /// With what the registers are there.
    fn reached(&self, registers: &Registers);
}

/// What is called where a function is called, and where it returns. Context as for [`Reached`].
pub(crate) trait Returned: Send + Sync + 'static {
    /// What is kept from the call to the return. It is not dropped.
    type Kept: Send + 'static;

    /// It is called. Returns what is kept, in that place.
    fn called<'k>(
        &self,
        registers: &Registers,
        kept: &'k mut MaybeUninit<Self::Kept>,
    ) -> &'k mut Self::Kept;

    /// It returns.
    fn returned(&self, registers: &Registers, kept: &mut Self::Kept);
}

/// A kprobe or a kretprobe, as the kernel has it.
///
/// # Safety
///
/// `register` and `unregister` must be the kernel's functions for this kind, and `kprobe` what it has in it.
unsafe trait Kind: Sized {
    /// Registers it. May sleep.
    const REGISTER: unsafe extern "C" fn(*mut Self) -> c_int;

    /// Ends that; afterwards it runs nowhere. May sleep.
    const UNREGISTER: unsafe extern "C" fn(*mut Self);

    /// The kprobe in it.
    fn kprobe(probe: *mut Self) -> *mut bindings::kprobe;
}

// SAFETY: The kernel's functions; a kprobe is itself.
unsafe impl Kind for bindings::kprobe {
    const REGISTER: unsafe extern "C" fn(*mut Self) -> c_int = bindings::register_kprobe;
    const UNREGISTER: unsafe extern "C" fn(*mut Self) = bindings::unregister_kprobe;

    fn kprobe(probe: *mut Self) -> *mut bindings::kprobe {
        probe
    }
}

// SAFETY: The kernel's functions; `kp` is at the begin.
unsafe impl Kind for bindings::kretprobe {
    const REGISTER: unsafe extern "C" fn(*mut Self) -> c_int = bindings::register_kretprobe;
    const UNREGISTER: unsafe extern "C" fn(*mut Self) = bindings::unregister_kretprobe;

    fn kprobe(probe: *mut Self) -> *mut bindings::kprobe {
        probe
            .wrapping_byte_add(core::mem::offset_of!(bindings::kretprobe, kp))
            .cast()
    }
}

/// A registered probe. It is off at first.
///
/// # Invariants
///
/// - `entry` is from `KBox::into_raw`, and its probe is registered.
/// - The probe stays where it is as long as it is registered.
#[expect(private_bounds)]
pub(crate) struct Registered<P: Kind, T> {
    entry: NonNull<Entry<P, T>>,
}

/// Called where code is reached.
pub(crate) type Kprobe<T> = Registered<bindings::kprobe, T>;

/// Called where a function is called, and where it returns.
pub(crate) type Kretprobe<T> = Registered<bindings::kretprobe, T>;

/// The probe comes first, so that its address is that of all.
#[repr(C)]
struct Entry<P, T> {
    probe: Opaque<P>,
    target: Arc<T>,
    place: CodePlace,
}

// SAFETY: The kernel's functions for kprobes have a lock of their own; the target is `Send` and `Sync`.
unsafe impl<P: Kind, T: Send + Sync> Send for Registered<P, T> {}
// SAFETY: As above.
unsafe impl<P: Kind, T: Send + Sync> Sync for Registered<P, T> {}

/// What a kprobe at a place begins as: off, and called nothing yet.
fn kprobe_at(place: &CodePlace) -> bindings::kprobe {
    let mut probe = bindings::kprobe {
        flags: bindings::KPROBE_FLAG_DISABLED,
        ..Default::default()
    };
    match place {
        CodePlace::Symbol(symbol, offset) => {
            probe.symbol_name = symbol.as_ptr().cast();
            probe.offset = *offset;
        }
        CodePlace::Address(address) => probe.addr = *address as usize as *mut _,
    }
    probe
}

impl<T: Reached> Kprobe<T> {
    /// Registers one. `ENOENT`: there is no such symbol; `EILSEQ`: no instruction begins there;
    /// `EINVAL`: no probe may be there. May sleep.
    pub(crate) fn new(place: CodePlace, target: Arc<T>) -> Result<Self> {
        let probe = bindings::kprobe {
            pre_handler: Some(reached::<T>),
            ..kprobe_at(&place)
        };
        Self::register(probe, place, target)
    }
}

impl<T: Returned> Kretprobe<T> {
    /// Registers one that sees the returns of `max` calls at once; 0 leaves that to the kernel. Calls that have
    /// not returned when it is dropped are forgotten. Errors as for [`Kprobe::new`]. May sleep.
    pub(crate) fn new(place: CodePlace, max: u32, target: Arc<T>) -> Result<Self> {
        const { assert!(!core::mem::needs_drop::<T::Kept>()) };
        const { assert!(align_of::<T::Kept>() <= 8) };
        let probe = bindings::kretprobe {
            kp: kprobe_at(&place),
            entry_handler: Some(called::<T>),
            handler: Some(returned::<T>),
            maxactive: max as c_int,
            data_size: size_of::<T::Kept>(),
            ..Default::default()
        };
        Self::register(probe, place, target)
    }

    /// How many calls were not seen, for more than `max` had not returned.
    pub(crate) fn missed_at_once(&self) -> u64 {
        // SAFETY: A word of a live kretprobe.
        unsafe { (&raw const (*self.probe()).nmissed).read_volatile() as u64 }
    }
}

#[expect(private_bounds)]
impl<P: Kind, T> Registered<P, T> {
    fn register(probe: P, place: CodePlace, target: Arc<T>) -> Result<Self> {
        let entry = Entry {
            probe: Opaque::new(probe),
            target,
            place,
        };
        let entry = KBox::into_raw(KBox::new(entry, GFP_KERNEL)?);
        // SAFETY: The entry lives, where it is, until `drop` has unregistered the probe, and with it the
        // symbol's text and what the handlers find behind the probe.
        let registered = unsafe { P::REGISTER(entry.cast()) };
        if let Err(error) = kernel::error::to_result(registered) {
            // SAFETY: From `into_raw`; nobody else has it.
            drop(unsafe { KBox::from_raw(entry) });
            return Err(error);
        }
        let entry = NonNull::new(entry).ok_or(EINVAL)?;
        // INVARIANT: Registered above; nothing moves it.
        Ok(Self { entry })
    }

    fn probe(&self) -> *mut P {
        self.entry.as_ptr().cast()
    }

    fn kprobe(&self) -> *mut bindings::kprobe {
        P::kprobe(self.probe())
    }

    /// Has it called from now on. `EINVAL`: the module that it was in is gone. May sleep.
    pub(crate) fn enable(&self) -> Result {
        // SAFETY: By the invariant it is registered.
        kernel::error::to_result(unsafe { bindings::enable_kprobe(self.kprobe()) })
    }

    /// Has it not called any more; it may still run. May sleep.
    pub(crate) fn disable(&self) {
        // SAFETY: By the invariant it is registered. That its module is gone is no error here.
        unsafe { bindings::disable_kprobe(self.kprobe()) };
    }

    /// How often it was reached while another kprobe ran on the CPU, and not called.
    pub(crate) fn missed(&self) -> u64 {
        // SAFETY: A word of a live kprobe.
        unsafe { (&raw const (*self.kprobe()).nmissed).read_volatile() as u64 }
    }
}

impl<P: Kind, T> Drop for Registered<P, T> {
    fn drop(&mut self) {
        // SAFETY:
        // - By the invariant it is registered. It runs nowhere when this returns.
        // - Then nobody uses the entry, which is from `into_raw`.
        unsafe {
            P::UNREGISTER(self.probe());
            drop(KBox::from_raw(self.entry.as_ptr()));
        }
    }
}

/// # Safety
///
/// `probe` must be that of an `Entry<kprobe, T>`, `registers` live.
unsafe extern "C" fn reached<T: Reached>(
    probe: *mut bindings::kprobe,
    registers: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: By the contract; the probe is the entry's first field. Nobody has the target mutably.
    let (target, registers) = unsafe {
        let entry = probe.cast::<Entry<bindings::kprobe, T>>();
        (&(*entry).target, &*registers.cast::<Registers>())
    };
    target.reached(registers);
    0
}

/// The target of the probe that `instance` is of, and what the instance keeps.
///
/// # Safety
///
/// `instance` must be one of the probe of a `Entry<kretprobe, T>`, that lives.
unsafe fn of_instance<'a, T: Returned>(
    instance: *mut bindings::kretprobe_instance,
) -> (&'a T, *mut T::Kept) {
    // SAFETY: By the contract; the probe is the entry's first field. Nobody has the target mutably.
    unsafe {
        let entry = bindings::rtrace_kretprobe_of(instance).cast::<Entry<bindings::kretprobe, T>>();
        let kept = bindings::rtrace_kretprobe_data(instance).cast();
        (&(*entry).target, kept)
    }
}

/// # Safety
///
/// `instance` must be one of the probe of a `Entry<kretprobe, T>`, `registers` live.
unsafe extern "C" fn called<T: Returned>(
    instance: *mut bindings::kretprobe_instance,
    registers: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: By the contract; an instance has room for what is kept, at a multiple of 8, and it is its
    // own.
    let (target, kept, registers) = unsafe {
        let (target, kept) = of_instance::<T>(instance);
        let kept = &mut *kept.cast::<MaybeUninit<T::Kept>>();
        (target, kept, &*registers.cast::<Registers>())
    };
    target.called(registers, kept);
    0
}

/// # Safety
///
/// As [`called`], which has been called with this instance.
unsafe extern "C" fn returned<T: Returned>(
    instance: *mut bindings::kretprobe_instance,
    registers: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: By the contract; `called` has put there what is kept (by its type it can return nothing
    // else). Nobody else has the instance.
    let (target, kept, registers) = unsafe {
        let (target, kept) = of_instance::<T>(instance);
        (target, &mut *kept, &*registers.cast::<Registers>())
    };
    target.returned(registers, kept);
    0
}
